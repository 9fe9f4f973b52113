"""Atoms of a rule as tables of one query: variables become equal columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from structlearn._src.rules.check import variables_of
from structlearn._src.rules.load import TEXTS
from structlearn._src.rules.syntax import Atom, Comparison, Constant, SumVariable, Term, Variable
from structlearn._src.rules.tables import Tables

_SIGNS = {"==": "=", "!=": "<>", "%": "<"}


class Join:
    """A query that grows atom by atom; the first column with a variable binds it."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.bound: dict[str, str] = {}  #: the column of every variable
        self.conditions: list[str] = []
        self._sources: list[str] = []
        self._outer: list[str] = []

    def add(self, atom: Atom, alias: str, source: str = "") -> None:
        """Join the rows of an atom's table that agree with its terms."""
        self._sources.append(f"{source or self._table(atom)} AS {alias}")
        self.conditions += self.matches(atom, alias, bind=True)

    def add_outer(self, atom: Atom, alias: str) -> None:
        """Join an atom whose variables are all bound, keeping the row where it is not listed."""
        agree = " AND ".join(self.matches(atom, alias)) or "true"
        self._outer.append(f" LEFT JOIN {self._table(atom)} AS {alias} ON {agree}")

    def matches(self, atom: Atom, alias: str, *, bind: bool = False) -> list[str]:
        """Conditions under which a row of an atom's table agrees with its terms."""
        conditions = []
        for i, term in enumerate(atom.terms):
            column = f"{alias}.a{i}"
            if bind and not isinstance(term, Constant) and term.name not in self.bound:
                self.bound[term.name] = column
            else:
                conditions.append(f"{column} = {self.term(term)}")
        return conditions

    def term(self, term: Term) -> str:
        """A term as an expression: a code or a column."""
        if isinstance(term, Constant):
            return str(self.tables.learn_code(term.value))
        return self.bound[term.name]

    def compared(self, comparison: Comparison, holds: bool = True) -> str:
        """The condition that a comparison holds, or does not."""
        left, right = self.term(comparison.left), self.term(comparison.right)
        if comparison.operator == "%":
            left, right = _text(left), _text(right)
        test = f"{left} {_SIGNS[comparison.operator]} {right}"
        return test if holds else f"NOT ({test})"

    def clause(self, conditions: Iterable[str] = ()) -> str:
        """``FROM ... WHERE ...`` of all that was joined."""
        where = " AND ".join([*self.conditions, *conditions]) or "true"
        return f"FROM {' CROSS JOIN '.join(self._sources)}{''.join(self._outer)} WHERE {where}"

    def _table(self, atom: Atom) -> str:
        return self.tables.relation(atom.predicate).table


def _text(code: str) -> str:
    """The text of a constant, given by its code."""
    texts = f"(SELECT text FROM constants WHERE code = {code})"
    return f"CASE WHEN {code} < {TEXTS} THEN {code}::VARCHAR ELSE {texts} END"


def in_order(atoms: Sequence[Atom], sizes: Sequence[int], start: int) -> list[int]:
    """Order atoms so that each shares variables with those before it; ties go to small tables."""
    order = [start]
    seen = set(names_of(atoms[start]))
    rest = [i for i in range(len(atoms)) if i != start]
    while rest:
        best = min(rest, key=lambda i: (_fresh(atoms[i], seen), sizes[i], i))
        order.append(best)
        rest.remove(best)
        seen.update(names_of(atoms[best]))
    return order


def names_of(atom: Atom) -> list[str]:
    """Name the variables of an atom, summed ones too."""
    summed = [term.name for term in atom.terms if isinstance(term, SumVariable)]
    return variables_of(atom.terms) + summed


def _fresh(atom: Atom, seen: set[str]) -> float:
    """How much an atom multiplies the rows: by nothing, by some, or by all of its table."""
    names = names_of(atom)
    new = [name for name in names if name not in seen]
    return len(new) if len(new) < len(names) else len(new) + 100 * bool(new)


def never_equal(left: Sequence[Term], right: Sequence[Term], apart: set[frozenset[Term]]) -> bool:
    """Say whether two atoms of one predicate differ in every grounding."""
    return any(
        (isinstance(a, Constant) and isinstance(b, Constant) and a != b)
        or frozenset((a, b)) in apart
        for a, b in zip(left, right, strict=True)
    )


def is_summed(atom: Atom) -> bool:
    """Say whether an atom stands for a sum."""
    return any(isinstance(term, SumVariable) for term in atom.terms)


def plain(atom: Atom) -> Atom:
    """The atom with its summed variables as plain ones."""
    terms = [Variable(t.name) if isinstance(t, SumVariable) else t for t in atom.terms]
    return Atom(atom.predicate, tuple(terms), atom.place)
