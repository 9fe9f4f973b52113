r"""From a rule to one query: every row of its answer is a linear form.

Both kinds of rules end as :math:`l(y) = b + \sum_k a_k y_k`, to be at most 0. For a clause this is
the distance to satisfaction of Lukasiewicz logic,

.. math:: l(y) = 1 - \sum_{k \text{ positive}} y_k - \sum_{k \text{ negated}} (1 - y_k).

Observed values are summed into :math:`b` inside the query. What has no free atom, or is satisfied
for every :math:`y \in [0, 1]^n`, is not in the answer; nor are groundings without free atoms
enumerated to find that out: the query is the union over which atom is the first free one.

References
----------
S. Bach, M. Broecheler, B. Huang and L. Getoor, "Hinge-loss Markov random fields and probabilistic
soft logic", JMLR 2017, section 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from structlearn._src.rules.join import Join, in_order, never_equal
from structlearn._src.rules.linear import evaluate
from structlearn._src.rules.syntax import Atom, Clause, Comparison, Linear, Term
from structlearn._src.rules.tables import Relation, Tables

#: Forms whose largest value is not above this are satisfied: sums of decimal fractions round.
SLACK = 1e-9

#: What a slot may hold in a query: free atoms, observed ones, or both.
Mode = OneOf["free", "seen", "any"]

#: A comparison, and whether it holds where a clause is not satisfied already.
Test = tuple[Comparison, bool]


@dataclass(frozen=True)
class Slot:
    """One atom of a rule, with its coefficient in the linear form.

    `outer`: an atom that is not listed has the value 0. `keep`: a condition on observed values,
    without which the form is satisfied.
    """

    atom: Atom
    relation: Relation
    coefficient: float
    outer: bool = False
    keep: str = ""

    @property
    def is_open(self) -> bool:
        """Whether the slot can hold a free atom."""
        return self.relation.n_free > 0 and self.coefficient != 0

    @property
    def has_mix(self) -> bool:
        """Whether it can hold an observed one too."""
        return self.relation.n_observed > 0


@dataclass(frozen=True)
class QueryPlan:
    """The forms of a rule in queries: `rows` has one for each form, after all of `prepare` has run.

    Of rules without sums a row has free atoms, or -1, in the columns ``v0, v1, ...`` and the
    constant in ``b``. Rows of sums have ``form`` and ``b``, and those of `entries` ``form``,
    ``variable`` and ``coefficient``, both in order of the forms.
    """

    rows: str
    coefficients: tuple[float, ...] = ()  #: of the columns of atoms
    twins: tuple[tuple[int, int], ...] = ()  #: pairs of columns that may hold the same atom
    prepare: tuple[str, ...] = ()
    entries: str = ""


def flat_clause(clause: Clause, tables: Tables) -> Flat:
    """The linear form of a logical rule."""
    slots, tests = split(clause, tables)
    negated = sum(slot.coefficient > 0 for slot in slots)
    return flat(tables, slots, 1.0 - negated, tests)


def first_unlisted(clause: Clause, tables: Tables) -> str:
    """Name an atom that the rule reaches and that is neither observed nor a target, if any.

    Atoms of closed predicates are 0 where they are not listed; the others must be listed, unless
    the body holds nowhere above 0.
    """
    slots, tests = split(clause, tables)
    body = [slot for slot in slots if slot.coefficient > 0]
    for head in [slot for slot in slots if slot.coefficient < 0 and not slot.outer]:
        if any(_covers(tables, head, slot, one=False) for slot in body):
            continue
        whole = flat(tables, body, 1.0 - len(body), tests)
        join, conditions = whole.rows(whole.modes())
        listed = " AND ".join(join.matches(head.atom, "h")) or "true"
        conditions.append(f"NOT EXISTS (SELECT 1 FROM {head.relation.table} AS h WHERE {listed})")
        chosen = ", ".join(join.term(term) for term in head.atom.terms)
        query = f"SELECT DISTINCT {chosen} {join.clause(conditions)} ORDER BY ALL LIMIT 1"
        found = tables.connection.execute(query).fetchall()
        if found:
            return tables.atom_text(head.relation, found[0])
    return ""


def _covers(tables: Tables, slot: Slot, other: Slot, *, one: bool) -> bool:
    """Whether one slot alone shows that the atom of another is listed, or 1, wherever it is."""
    terms = other.atom.terms
    if not set(slot.atom.terms) <= set(terms):
        return False
    places = tuple(terms.index(term) for term in slot.atom.terms)
    return tables.covers(slot.relation, other.relation, places, one)


def split(clause: Clause, tables: Tables) -> tuple[list[Slot], list[Test]]:
    """Slots for the atoms of a clause, each literal once, and the comparisons that must hold."""
    slots: dict[tuple[str, tuple[Term, ...], bool], Slot] = {}
    tests = []
    for literal in clause.literals:
        if isinstance(literal.atom, Comparison):
            tests.append((literal.atom, literal.negated))
        else:
            relation = tables.relation(literal.atom.predicate)
            slot = Slot(literal.atom, relation, -1.0, relation.n_free == 0, keep="< 1")
            if literal.negated:
                slot = Slot(literal.atom, relation, 1.0, keep="> 0")
            slots.setdefault((relation.name, literal.atom.terms, literal.negated), slot)
    return list(slots.values()), tests


def flat_linear(body: Linear, tables: Tables, sign: int, equal: bool) -> Flat:
    """The linear form of an arithmetic rule without sums, times `sign`: at most or equal to 0."""
    constant = 0.0
    slots = []
    for summand in body.summands:
        coefficient = sign * evaluate(summand.coefficient, {})
        if summand.atom is None:
            constant += coefficient
        else:
            relation = tables.relation(summand.atom.predicate)
            slots.append(Slot(summand.atom, relation, coefficient))
    return flat(tables, slots, constant, [(test, True) for test in body.tests], equal)


def flat(
    tables: Tables,
    slots: Sequence[Slot],
    constant: float,
    tests: Sequence[Test] = (),
    equal: bool = False,
) -> Flat:
    """Leave out slots whose atom is 1 wherever another slot's atom is listed at all.

    Rules often name an observed predicate only to say which atoms exist, as in
    ``Knows(A, B) & Trusts(A, B) -> ...``: without it the query has fewer tables.
    """
    needed = list(slots)
    for slot in [slot for slot in slots if not slot.outer and not slot.relation.n_free]:
        others = [other for other in needed if other is not slot]
        inner = [other for other in others if not other.outer]
        if any(_covers(tables, slot, other, one=True) for other in inner):
            needed = others
            constant += slot.coefficient
    return Flat(tables, needed, constant, tests, equal)


@dataclass(frozen=True)
class Flat:
    """A rule whose linear form has one slot for each of its atoms."""

    tables: Tables
    slots: Sequence[Slot]
    constant: float
    tests: Sequence[Test]
    equal: bool = False

    def plan(self) -> QueryPlan | None:
        """Write the query; None if there can be no groundings with free atoms."""
        queries = []
        for modes in self._branches():
            join, conditions = self.rows(modes)
            queries.append(f"SELECT {self._columns(modes)} {join.clause(conditions)}")
        if not queries:
            return None
        opened = [i for i, slot in enumerate(self.slots) if slot.is_open]
        column = {slot: i for i, slot in enumerate(opened)}
        twins = [(column[i], column[j]) for i, j in self._pairs(opened) if not self._opposed(i, j)]
        return QueryPlan(
            " UNION ALL ".join(queries),
            tuple(self.slots[i].coefficient for i in opened),
            tuple(twins),
        )

    def broken(self, slack: float) -> QueryPlan:
        """The forms without free atoms that are not satisfied."""
        modes: list[Mode] = ["seen"] * len(self.slots)
        join, conditions = self.rows(modes)
        value = self._constant(modes)
        conditions.append(f"{f'abs({value})' if self.equal else value} > {slack}")
        return QueryPlan(f"SELECT 1 {join.clause(conditions)}")

    def modes(self) -> list[Mode]:
        """What each slot may hold where nothing more is asked."""
        kinds: list[Mode] = []
        for slot in self.slots:
            kinds.append(("any" if slot.has_mix else "free") if slot.is_open else "seen")
        return kinds

    def _branches(self) -> Iterator[list[Mode]]:
        """Disjoint cases that together hold every grounding with a free atom."""
        modes = self.modes()
        if "free" in modes:
            yield modes
            return
        for i in [i for i, mode in enumerate(modes) if mode == "any"]:
            modes[i] = "free"
            yield list(modes)
            modes[i] = "seen"

    def _pairs(self, slots: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Slots of one predicate that some grounding may fill with one atom."""
        apart = set(self._apart())
        for n, j in enumerate(slots):
            for i in slots[:n]:
                left, right = self.slots[i], self.slots[j]
                if left.relation is right.relation and not never_equal(
                    left.atom.terms, right.atom.terms, apart
                ):
                    yield i, j

    def _apart(self) -> Iterator[frozenset[Term]]:
        """Pairs of terms that a comparison keeps apart."""
        for comparison, holds in self.tests:
            if holds == (comparison.operator != "=="):
                yield frozenset((comparison.left, comparison.right))

    def _opposed(self, i: int, j: int) -> bool:
        """An atom on both sides of a clause satisfies it."""
        left, right = self.slots[i], self.slots[j]
        return bool(left.keep) and left.coefficient != right.coefficient

    def rows(self, modes: Sequence[Mode]) -> tuple[Join, list[str]]:
        """Join the slots; the conditions leave out forms that are satisfied."""
        join = Join(self.tables)
        inner = [i for i, slot in enumerate(self.slots) if not slot.outer]
        sizes = [self._size(i, modes[i]) for i in inner]
        start = min(range(len(inner)), key=lambda k: (modes[inner[k]] != "free", sizes[k]))
        for k in in_order([self.slots[i].atom for i in inner], sizes, start):
            slot = self.slots[inner[k]]
            table = slot.relation.free if modes[inner[k]] == "free" else ""
            join.add(slot.atom, f"t{inner[k]}", table)
        for i, slot in enumerate(self.slots):
            if slot.outer:
                join.add_outer(slot.atom, f"t{i}")
        join.conditions += [join.compared(comparison, holds) for comparison, holds in self.tests]
        conditions = [test for i, mode in enumerate(modes) for test in self._keep(i, mode)]
        conditions += self._no_tautology(join)
        if not self.equal:
            conditions.append(f"{self._largest(modes)} > {SLACK}")
        return join, conditions

    def _size(self, i: int, mode: Mode) -> int:
        relation = self.slots[i].relation
        return (mode != "seen") * relation.n_free + (mode != "free") * relation.n_observed

    def _columns(self, modes: Sequence[Mode]) -> str:
        atoms = [i for i, slot in enumerate(self.slots) if slot.is_open]
        columns = [
            f"{'-1' if modes[i] == 'seen' else f't{i}.atom'} AS v{k}" for k, i in enumerate(atoms)
        ]
        return ", ".join([*columns, f"{self._constant(modes)} AS b"])

    def _value(self, i: int) -> str:
        return f"coalesce(t{i}.value, 0)" if self.slots[i].outer else f"t{i}.value"

    def _constant(self, modes: Sequence[Mode]) -> str:
        """The form's value where all free atoms are 0, as they are in the tables."""
        terms = [
            _times(slot.coefficient, self._value(i))
            for i, slot in enumerate(self.slots)
            if slot.coefficient and modes[i] != "free"
        ]
        return f"{self.constant!r}::DOUBLE{''.join(terms)}"

    def _largest(self, modes: Sequence[Mode]) -> str:
        """The form's largest value: free atoms with a positive coefficient are 1."""
        gains = [
            _times(slot.coefficient, f"(t{i}.atom >= 0)::DOUBLE" if modes[i] == "any" else "1")
            for i, slot in enumerate(self.slots)
            if slot.coefficient > 0 and modes[i] != "seen"
        ]
        return f"{self._constant(modes)}{''.join(gains)}"

    def _keep(self, i: int, mode: Mode) -> Iterator[str]:
        slot = self.slots[i]
        if mode == "seen" and slot.is_open:
            yield f"t{i}.atom < 0"
        if slot.keep and mode != "free":
            seen = f"{self._value(i)} {slot.keep}"
            yield f"(t{i}.atom >= 0 OR {seen})" if mode == "any" else seen

    def _no_tautology(self, join: Join) -> Iterator[str]:
        for i, j in self._pairs(range(len(self.slots))):
            if self._opposed(i, j):
                left, right = self.slots[i].atom.terms, self.slots[j].atom.terms
                pairs = zip(left, right, strict=True)
                same = [f"{join.term(a)} = {join.term(b)}" for a, b in pairs if a != b]
                yield f"NOT ({' AND '.join(same) or 'true'})"


def _times(coefficient: float, factor: str) -> str:
    """Add a coefficient times a factor."""
    if abs(coefficient) == 1:
        return f" {'+' if coefficient > 0 else '-'} {factor}"
    return f" + {coefficient!r}::DOUBLE * {factor}"
