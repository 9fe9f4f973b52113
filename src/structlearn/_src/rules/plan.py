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
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal as OneOf

from structlearn._src.rules.join import Join
from structlearn._src.rules.linear import evaluate
from structlearn._src.rules.syntax import Atom, Clause, Comparison, Constant, Linear, Term
from structlearn._src.rules.tables import Relation, Tables

#: Forms whose largest value is not above this are satisfied: sums of decimal fractions round.
SLACK = 1e-9

#: What a slot may hold in a query: free atoms, observed ones, or both.
Mode = OneOf["free", "seen", "any"]

#: A comparison, and whether it holds where a clause is not satisfied already.
Test = tuple[Comparison, bool]


# ---- rules without sums --------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """One atom of a rule, with its coefficient in the linear form; in a query it is a table.

    `outer`: an atom that is not listed has the value 0. `keep`: a condition on observed values,
    without which the form is satisfied.
    """

    atom: Atom
    relation: Relation
    coefficient: float
    outer: bool = False
    keep: str = ""
    alias: str = ""  #: of its table in the query
    mode: Mode = "any"

    @property
    def is_open(self) -> bool:
        """Whether the slot can hold a free atom."""
        return self.relation.n_free > 0 and self.coefficient != 0

    @property
    def size(self) -> int:
        """Number of atoms that the slot can hold."""
        relation = self.relation
        return (self.mode != "seen") * relation.n_free + (self.mode != "free") * relation.n_observed

    @property
    def value(self) -> str:
        """The value of an observed atom, in the query."""
        return f"coalesce({self.alias}.value, 0)" if self.outer else f"{self.alias}.value"

    @property
    def freedom(self) -> str:
        """1 where the atom is free, else 0, in the query."""
        return "1" if self.mode == "free" else f"({self.alias}.atom >= 0)::DOUBLE"

    def conditions(self) -> Iterator[str]:
        """Conditions on the atom: that it fits the mode, and does not satisfy the form alone."""
        if self.mode == "seen" and self.is_open:
            yield f"{self.alias}.atom < 0"
        if self.keep and self.mode != "free":
            seen = f"{self.value} {self.keep}"
            yield f"({self.alias}.atom >= 0 OR {seen})" if self.mode == "any" else seen


def in_order(slots: Sequence[Slot]) -> list[Slot]:
    """Order slots so that each shares variables with those before it; ties go to small tables."""
    order = [min(slots, key=lambda slot: (slot.mode != "free", slot.size))]
    rest = [slot for slot in slots if slot is not order[0]]
    seen = set(order[0].atom.names)
    while rest:
        best = min(rest, key=lambda slot: (_fresh(slot.atom, seen), slot.size))
        order.append(best)
        rest.remove(best)
        seen.update(best.atom.names)
    return order


def _fresh(atom: Atom, seen: set[str]) -> float:
    """How much an atom multiplies the rows: by nothing, by some, or by all of its table."""
    new = [name for name in atom.names if name not in seen]
    return len(new) if len(new) < len(atom.names) else len(new) + 100 * bool(new)


def never_equal(left: Atom, right: Atom, apart: set[frozenset[Term]]) -> bool:
    """Say whether two atoms of one predicate differ in every grounding."""
    return any(
        (isinstance(a, Constant) and isinstance(b, Constant) and a != b)
        or frozenset((a, b)) in apart
        for a, b in zip(left.terms, right.terms, strict=True)
    )


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


def covers(tables: Tables, slot: Slot, other: Slot, *, one: bool) -> bool:
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
        if any(covers(tables, slot, other, one=True) for other in inner):
            needed = others
            constant += slot.coefficient
    for i, slot in enumerate(needed):
        mode: Mode = "any" if slot.relation.n_observed else "free"
        needed[i] = replace(slot, alias=f"t{i}", mode=mode if slot.is_open else "seen")
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
        queries = [
            f"SELECT {self._columns(slots)} {self.join(slots).clause()}" for slots in self.cases()
        ]
        if not queries:
            return None
        opened = [slot for slot in self.slots if slot.is_open]
        twins = [(i, j) for i, j in self._pairs(opened) if not _are_opposed(opened[i], opened[j])]
        coefficients = tuple(slot.coefficient for slot in opened)
        return QueryPlan(" UNION ALL ".join(queries), coefficients, tuple(twins))

    def broken(self, slack: float) -> QueryPlan:
        """The forms without free atoms that are not satisfied."""
        slots = [replace(slot, mode="seen") for slot in self.slots]
        join = self.join(slots)
        value = self.constant_of(slots)
        join.conditions.append(f"{f'abs({value})' if self.equal else value} > {slack}")
        return QueryPlan(f"SELECT 1 {join.clause()}")

    def cases(self) -> Iterator[list[Slot]]:
        """Disjoint cases that together hold every grounding with a free atom."""
        slots = list(self.slots)
        if any(slot.mode == "free" for slot in slots):
            yield slots
            return
        for i, slot in enumerate(self.slots):
            if slot.mode == "any":
                slots[i] = replace(slot, mode="free")
                yield list(slots)
                slots[i] = replace(slot, mode="seen")

    def join(self, slots: Sequence[Slot]) -> Join:
        """Join the tables of the slots, without forms that are satisfied."""
        join = Join(self.tables)
        for slot in in_order([slot for slot in slots if not slot.outer]):
            relation = slot.relation
            join.add(
                slot.atom, relation.free if slot.mode == "free" else relation.table, slot.alias
            )
        for slot in slots:
            if slot.outer:
                join.add_outer(slot.atom, slot.relation.table, slot.alias)
        join.conditions += [join.compared(comparison, holds) for comparison, holds in self.tests]
        for slot in slots:
            join.conditions += slot.conditions()
        join.conditions += self._no_tautology(join)
        if not self.equal:
            join.conditions.append(f"{self._largest(slots)} > {SLACK}")
        return join

    def _pairs(self, slots: Sequence[Slot]) -> Iterator[tuple[int, int]]:
        """Pairs of slots of one predicate that some grounding may fill with one atom."""
        apart = {
            frozenset(comparison.terms)
            for comparison, holds in self.tests
            if holds == (comparison.operator != "==")
        }
        for i, j in combinations(range(len(slots)), 2):
            left, right = slots[i], slots[j]
            same = left.relation is right.relation
            if same and not never_equal(left.atom, right.atom, apart):
                yield i, j

    def _no_tautology(self, join: Join) -> Iterator[str]:
        for i, j in self._pairs(self.slots):
            left, right = self.slots[i], self.slots[j]
            if _are_opposed(left, right):
                pairs = zip(left.atom.terms, right.atom.terms, strict=True)
                same = [f"{join.term(a)} = {join.term(b)}" for a, b in pairs if a != b]
                yield f"NOT ({' AND '.join(same) or 'true'})"

    def _columns(self, slots: Sequence[Slot]) -> str:
        atoms = [
            "-1" if slot.mode == "seen" else f"{slot.alias}.atom" for slot in slots if slot.is_open
        ]
        columns = [f"{atom} AS v{i}" for i, atom in enumerate(atoms)]
        return ", ".join([*columns, f"{self.constant_of(slots)} AS b"])

    def constant_of(self, slots: Sequence[Slot]) -> str:
        """The form's value where all free atoms are 0, as they are in the tables."""
        terms = [
            _times(slot.coefficient, slot.value)
            for slot in slots
            if slot.coefficient and slot.mode != "free"
        ]
        return f"{self.constant!r}::DOUBLE{''.join(terms)}"

    def _largest(self, slots: Sequence[Slot]) -> str:
        """The form's largest value: free atoms with a positive coefficient are 1."""
        gains = [
            _times(slot.coefficient, slot.freedom)
            for slot in slots
            if slot.coefficient > 0 and slot.mode != "seen"
        ]
        return f"{self.constant_of(slots)}{''.join(gains)}"


def _are_opposed(left: Slot, right: Slot) -> bool:
    """Whether they are on both sides of a clause, which one atom in both satisfies."""
    return bool(left.keep) and left.coefficient != right.coefficient


def _times(coefficient: float, factor: str) -> str:
    """Add a coefficient times a factor."""
    if abs(coefficient) == 1:
        return f" {'+' if coefficient > 0 else '-'} {factor}"
    return f" + {coefficient!r}::DOUBLE * {factor}"
