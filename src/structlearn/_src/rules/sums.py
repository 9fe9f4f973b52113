"""From an arithmetic rule with sums to queries: every row of the answer is a linear form.

The variables that are not summed take all values for which each atom of the rule is listed, as if
summed variables were plain. For each of these bindings a sum runs over the atoms that are listed
and that its filters let pass. ``|B|`` counts them; over a closed predicate, whose atoms are 0 where
they are not listed, it counts all values that its column has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from structlearn._src.rules import syntax
from structlearn._src.rules.join import Join
from structlearn._src.rules.linear import counted
from structlearn._src.rules.plan import SLACK, QueryPlan
from structlearn._src.rules.tables import Relation, Tables


@dataclass(frozen=True)
class SumTerm:
    """One atom of the rule, summed or not, with its coefficient."""

    atom: syntax.Atom
    relation: Relation
    coefficient: syntax.Coefficient

    @property
    def is_open(self) -> bool:
        """Whether free atoms may stand here."""
        return self.relation.n_free > 0


def has_sums(body: syntax.Linear) -> bool:
    """Say whether a rule has sums."""
    return any(each.atom is not None and each.atom.summed for each in body.summands)


class Sums:
    """An arithmetic rule with sums, times `sign`: at most or equal to 0.

    In its queries ``base`` has a row for each binding, ``forms`` for each form.
    """

    def __init__(self, body: syntax.Linear, tables: Tables, sign: int, equal: bool) -> None:
        self.tables = tables
        self.sign = sign
        self.equal = equal
        self.filters = body.filters
        self.tests = body.tests
        self.constants = [each.coefficient for each in body.summands if each.atom is None]
        self.parts = [
            SumTerm(each.atom, tables.relation(each.atom.predicate), each.coefficient)
            for each in body.summands
            if each.atom is not None
        ]
        names = dict.fromkeys(n for part in self.parts for n in part.atom.names)
        summed = {name for part in self.parts for name in part.atom.summed}
        self.columns = {name: f"x{i}" for i, name in enumerate(n for n in names if n not in summed)}

    def plan(self) -> QueryPlan | None:
        """Write the queries; None if no atom is free."""
        opened = [k for k, part in enumerate(self.parts) if part.is_open]
        if not opened:
            return None
        alive = "true" if self.equal else f"(NOT isfinite(b) OR largest > {SLACK})"
        prepare = (self.base(), self.forms(f"n_free > 0 AND {alive}"))
        entries = " UNION ALL ".join(self._entries(k) for k in opened)
        rows = "SELECT form, b FROM forms ORDER BY form"
        return QueryPlan(rows, prepare=prepare, entries=f"SELECT * FROM ({entries}) ORDER BY ALL")

    def broken(self, slack: float) -> QueryPlan:
        """The forms without free atoms that are not satisfied."""
        value = "abs(b)" if self.equal else "b"
        prepare = (self.base(), self.forms(f"n_free = 0 AND {value} > {slack}"))
        return QueryPlan("SELECT form FROM forms", prepare=prepare)

    def base(self) -> str:
        """Make a table of every binding of the variables that are not summed, numbered."""
        join = Join(self.tables)
        for k, part in enumerate(self.parts):
            table = self._rows(part) if part.atom.summed else part.relation.table
            join.add(part.atom, table, f"t{k}")
        join.conditions += map(join.compared, self.tests)
        bound = [f"{join.bound[name]} AS {column}" for name, column in self.columns.items()]
        chosen = ", ".join(bound) or "0 AS x"
        order = ", ".join(self.columns.values()) or "x"
        query = f"SELECT DISTINCT {chosen} {join.clause()}"
        return (
            f"CREATE OR REPLACE TEMP TABLE base AS "
            f"SELECT *, row_number() OVER (ORDER BY {order}) - 1 AS form FROM ({query})"
        )

    def _rows(self, part: SumTerm) -> str:
        """The table of a sum without its summed columns: one row is enough."""
        kept = []
        for i, term in enumerate(part.atom.terms):
            kept.append(f"0 AS a{i}" if isinstance(term, syntax.SumVariable) else f"a{i}")
        return f"(SELECT DISTINCT {', '.join(kept)} FROM {part.relation.table})"

    def _bound(self) -> Join:
        """A join in which the binding of a form is known."""
        join = Join(self.tables)
        join.bound = {name: f"base.{column}" for name, column in self.columns.items()}
        return join

    def _listed(self, k: int) -> str:
        """The atoms of one part in every form, with values."""
        join = self._bound()
        part = self.parts[k]
        agree = join.matches(part.atom, "t", bind=True)
        where = " AND ".join([*agree, *self._passing(part, join)]) or "true"
        return (
            f"SELECT form, t.atom, t.value, {', '.join(f't.{c}' for c in part.relation.columns)} "
            f"FROM base CROSS JOIN {part.relation.table} AS t WHERE {where}"
        )

    def _passing(self, part: SumTerm, join: Join) -> Iterator[str]:
        for each in self.filters:
            if each.variable in part.atom.summed:
                yield from (_holds(literal, join) for literal in each.literals)

    def _total(self, k: int) -> str:
        """How many atoms one part has in a form, which are free, and the sum of all values."""
        part = self.parts[k]
        order = f"ORDER BY {part.relation.keys}"
        return (
            f"SELECT form, count(*) AS n, list(atom {order}) FILTER (atom >= 0) AS atoms, "
            f"sum(value {order}) AS total FROM ({self._listed(k)}) GROUP BY form"
        )

    def _domain(self, k: int) -> str:
        """How many atoms of a closed predicate one part has in a form, listed or not."""
        join = self._bound()
        part = self.parts[k]
        fixed = [
            f"a{i} = {join.term(term)}"
            for i, term in enumerate(part.atom.terms)
            if isinstance(term, syntax.Constant)
        ]
        where = " AND ".join(fixed) or "true"
        sources = ["base"]
        for i, term in enumerate(part.atom.terms):
            if isinstance(term, syntax.SumVariable):
                values = f"SELECT DISTINCT a{i} AS a FROM {part.relation.table} WHERE {where}"
                sources.append(f"({values}) AS d{i}")
                join.bound[term.name] = f"d{i}.a"
        passing = " AND ".join(self._passing(part, join)) or "true"
        return (
            f"SELECT form, count(*) AS n FROM {' CROSS JOIN '.join(sources)} "
            f"WHERE {passing} GROUP BY form"
        )

    def forms(self, kept: str) -> str:
        """Make a table of the forms, of those for which `kept` holds."""
        parts = range(len(self.parts))
        sources, counts = self._sources()
        lists = [f"coalesce(s{k}.atoms, []) AS atoms{k}" for k in parts]
        factors = [
            f"{self._number(part.coefficient, counts)} AS f{k}" for k, part in enumerate(self.parts)
        ]
        constants = [self._number(each, counts) for each in self.constants]
        values = [f"f{k} * coalesce(s{k}.total, 0)" for k in parts]
        gains = [f"greatest(f{k}, 0) * len(atoms{k})" for k in parts]
        n_free = " + ".join(f"len(atoms{k})" for k in parts)
        return (
            f"CREATE OR REPLACE TEMP TABLE forms AS SELECT * FROM ("
            f"SELECT *, {n_free} AS n_free, {' + '.join(['b', *gains])} AS largest FROM ("
            f"SELECT {', '.join(['form', *lists, *factors])}, "
            f"{' + '.join([*constants, *values])} AS b FROM {sources})) WHERE {kept}"
        )

    def _sources(self) -> tuple[str, dict[str, str]]:
        """All parts side by side, and how many atoms each summed variable counts."""
        sources = ["base"]
        counts: dict[str, str] = {}
        for k, part in enumerate(self.parts):
            sources.append(f"LEFT JOIN ({self._total(k)}) AS s{k} USING (form)")
            counter = f"s{k}"
            if part.atom.summed and not part.is_open and self._counted(part):
                counter = f"d{k}"
                sources.append(f"LEFT JOIN ({self._domain(k)}) AS d{k} USING (form)")
            counts.update(dict.fromkeys(part.atom.summed, f"coalesce({counter}.n, 0)"))
        return " ".join(sources), counts

    def _counted(self, part: SumTerm) -> bool:
        found = [each.coefficient for each in self.parts] + self.constants
        return any(name in counted(each) for each in found for name in part.atom.summed)

    def _number(self, coefficient: syntax.Coefficient, counts: dict[str, str]) -> str:
        return f"({self.sign} * {_expression(coefficient, counts)})::DOUBLE"

    def _entries(self, k: int) -> str:
        return f"SELECT form, unnest(atoms{k}) AS variable, f{k} AS coefficient FROM forms"


def _expression(coefficient: syntax.Coefficient, counts: dict[str, str]) -> str:
    """A coefficient in SQL; `counts` has an expression for every summed variable."""
    if isinstance(coefficient, syntax.Number):
        return f"({coefficient.value!r}::DOUBLE)"
    if isinstance(coefficient, syntax.Count):
        return f"({counts[coefficient.variable]}::DOUBLE)"
    left, right = _expression(coefficient.left, counts), _expression(coefficient.right, counts)
    if coefficient.operator in ("min", "max"):
        return f"{'least' if coefficient.operator == 'min' else 'greatest'}({left}, {right})"
    if coefficient.operator == "/":
        return f"coalesce({left} / {right}, 'nan'::DOUBLE)"
    return f"({left} {coefficient.operator} {right})"


def _holds(literal: syntax.Literal, join: Join) -> str:
    """A literal of a filter in SQL: an atom holds where its value is not 0."""
    if isinstance(literal.atom, syntax.Comparison):
        return join.compared(literal.atom, not literal.negated)
    table = join.tables.relation(literal.atom.predicate).table
    agree = " AND ".join([*join.matches(literal.atom, "c"), "c.value > 0"])
    sign = "NOT " if literal.negated else ""
    return f"{sign}EXISTS (SELECT 1 FROM {table} AS c WHERE {agree})"
