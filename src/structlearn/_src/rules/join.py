"""Atoms as tables of one query, and shares of its rows for several processes."""

from __future__ import annotations

from structlearn._src.rules.few import TEXTS
from structlearn._src.rules.syntax import Atom, Comparison, Constant, Term, Variable
from structlearn._src.rules.tables import Tables

_SIGNS = {"==": "=", "!=": "<>", "%": "<"}
_MULTIPLIER = 2654435761  # of Knuth's multiplicative hash: 2^32 over the golden ratio


class Join:
    """A query that grows atom by atom; the first column with a variable binds it."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.bound: dict[str, str] = {}  #: the column of every variable
        self.conditions: list[str] = []
        self._sources: list[str] = []
        self._outer: list[str] = []
        self._places: dict[str, list[str]] = {}  # all columns of a variable

    def add(self, atom: Atom, table: str, alias: str) -> None:
        """Join the rows of an atom's table that agree with its terms."""
        self._sources.append(f"{table} AS {alias}")
        for i, term in enumerate(atom.terms):
            if isinstance(term, Variable):
                self._places.setdefault(term.name, []).append(f"{alias}.a{i}")
        self.conditions += self.matches(atom, alias, bind=True)

    def add_outer(self, atom: Atom, table: str, alias: str) -> None:
        """Join an atom whose variables are all bound, keeping the row where it is not listed."""
        agree = " AND ".join(self.matches(atom, alias)) or "true"
        self._outer.append(f" LEFT JOIN {table} AS {alias} ON {agree}")

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

    def clause(self) -> str:
        """``FROM ... WHERE ...`` of all that was joined."""
        where = " AND ".join([*self.conditions, *self._shared()]) or "true"
        return f"FROM {' CROSS JOIN '.join(self._sources)}{''.join(self._outer)} WHERE {where}"

    def _shared(self) -> list[str]:
        """Conditions that take a share of the bindings, by a hash of the variable in most atoms.

        Every column of the variable has the condition, so that all of its tables get smaller.
        """
        if self.tables.share is None:
            return []
        part, parts = self.tables.share
        if not self._places:
            return [] if part == 0 else ["false"]
        columns = max(self._places.values(), key=len)
        return [
            f"({column}::BIGINT * {_MULTIPLIER} % {2**32}) // {2**16} % {parts} = {part}"
            for column in columns
        ]


def _text(code: str) -> str:
    """The text of a constant, given by its code."""
    texts = f"(SELECT text FROM constants WHERE code = {code})"
    return f"CASE WHEN {code} < {TEXTS} THEN {code}::VARCHAR ELSE {texts} END"
