"""Ground rules: from rules and tables of atoms to flat hinges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.errors import AtomError, RuleError
from structlearn._src.common.memory import PROGRAM, ArrayWriter, Store
from structlearn._src.common.place import placed
from structlearn._src.field.hinges import AT_MOST, DTYPES, EQUAL, HINGE, Hinges
from structlearn._src.rules.linear import Unfit
from structlearn._src.rules.parse import refusal
from structlearn._src.rules.plan import (
    SLACK,
    Flat,
    QueryPlan,
    covers,
    flat,
    flat_clause,
    flat_linear,
    split,
)
from structlearn._src.rules.sums import Sums, has_sums
from structlearn._src.rules.syntax import Atom, Clause, Linear, Program, Rule
from structlearn._src.rules.tables import Tables

#: Hard rules hold among observed atoms if they miss by no more than this, as in inference.
MISSED = 1e-6
_BYTES_PER_ROW = 100  # of what a query gives, with all copies on the way to forms
_FITS = 8  # part of the memory limit that forms may take before they are left in their files:
# learning has them several times, with multipliers, columns and rows of Newton steps


@dataclass(frozen=True)
class Grounding:
    """A ground program: a linear form for each grounding, whose group is the number of its rule."""

    hinges: Hinges
    rules: Program
    tables: Tables  #: a variable of the hinges is the number of a free atom there

    @property
    def weights(self) -> Floats:
        """(rules) Weights, 0 for hard rules."""
        return np.array([rule.weight or 0.0 for rule in self.rules])

    @property
    def hard(self) -> Bools:
        """(rules) Which are hard constraints."""
        return np.array([rule.weight is None for rule in self.rules], bool)

    @cached_property
    def counts(self) -> Ints:
        """(rules) Number of forms of every rule."""
        return self.hinges.counts

    @property
    def silent(self) -> list[int]:
        """Rules without a single form."""
        return np.flatnonzero(self.counts == 0).tolist()

    @cached_property
    def unreached(self) -> Ints:
        """Free atoms that are in no form: nothing speaks about their value."""
        return self.hinges.absent


class Piece(NamedTuple):
    """Forms of one rule: how many entries each has, the entries, and the constants."""

    lengths: Ints
    variables: Ints
    coefficients: Floats
    constants: Floats
    kind: int


def ground(rules: Program, tables: Tables, store: Store | None = None) -> Grounding:
    """Ground a program: one query for each rule.

    With a `store`, forms are written there piece by piece, and the same forms result.

    Groundings without free atoms, and those satisfied for every value of the free atoms, are not
    there; atoms of a predicate without targets are 0 where they are not listed, and others that a
    rule reaches must be. A weighted rule with ``=`` gives two hinges. The order of the forms does
    not depend on the number of threads: by rule, then by atoms.
    """
    _refuse_open_filters(rules, tables)
    return Grounding(ground_forms(rules, tables, store), rules, tables)


@placed
def ground_forms(rules: Program, tables: Tables, store: Store | None = None) -> Hinges:
    """Return the forms of all rules, or with a share of the tables those of its bindings."""
    if store is not None:
        return _written(rules, tables, store)
    return _assemble(rules, tables)


def are_many(rules: Program, tables: Tables, n: int) -> bool:
    """Tell whether rules without sums have at least `n` forms; no more than these are counted."""
    for rule in rules:
        for form, _ in forms_of(rule, tables):
            plan = form.plan() if n > 0 else None
            if plan is not None and not plan.entries:
                n -= tables.count(f"(SELECT 1 FROM ({plan.rows}) LIMIT {n})")
    return n <= 0


def estimate(rules: Program, tables: Tables) -> list[int]:
    """Count the forms of every rule without making them.

    The queries are those of `ground`, so the work of joining is done, but nothing is kept in
    memory. Counts are exact, except that a form which is satisfied only because one atom stands in
    it twice is still counted.
    """
    _refuse_open_filters(rules, tables)
    return [_count((form.plan() for form, _ in forms_of(rule, tables)), tables) for rule in rules]


def broken(rules: Program, tables: Tables) -> list[int]:
    """Count the groundings of every hard rule that observed atoms alone do not keep.

    No value of the free atoms can mend these, so `ground` leaves them out, as PSL does. Unlike
    `ground`, this goes through all groundings without free atoms.
    """
    return [
        _count((form.broken(MISSED) for form, _ in forms_of(rule, tables)), tables)
        if rule.weight is None
        else 0
        for rule in rules
    ]


def _refuse_open_filters(rules: Program, tables: Tables) -> None:
    """Refuse filters that ask for predicates with targets, whose values are not known yet."""
    for rule in rules:
        filters = rule.body.filters if isinstance(rule.body, Linear) else ()
        for atom in [literal.atom for each in filters for literal in each.literals]:
            if isinstance(atom, Atom) and tables.relation(atom.predicate).n_free:
                reason = f"{atom.predicate} has targets, so {atom} is not known before inference"
                unfit = Unfit(f"{reason}: a filter needs closed predicates", atom.place)
                raise refusal(rule, unfit)


def forms_of(rule: Rule, tables: Tables) -> Iterator[tuple[Flat | Sums, int]]:
    """The linear forms of a rule, with their kind."""
    hard = rule.weight is None
    body = rule.body
    if isinstance(body, Clause):
        yield flat_clause(body, tables), AT_MOST if hard else HINGE
        return
    signs = {"<=": (1,), ">=": (-1,), "=": (1,) if hard else (1, -1)}[body.operator]
    kind = HINGE if not hard else EQUAL if body.operator == "=" else AT_MOST
    for sign in signs:
        form = (Sums if has_sums(body) else flat_linear)(body, tables, sign, kind == EQUAL)
        yield form, kind


def _count(plans: Iterable[QueryPlan | None], tables: Tables) -> int:
    total = 0
    for plan in filter(None, plans):
        _prepare(plan, tables)
        total += tables.count(f"({plan.rows})")
    return total


def _prepare(plan: QueryPlan, tables: Tables) -> None:
    for query in plan.prepare:
        tables.connection.execute(query)


def _pieces(rule: Rule, tables: Tables, store: Store | None) -> Iterator[Piece]:
    if isinstance(rule.body, Clause):
        _refuse_unlisted(rule, rule.body, tables)
    rows = None if store is None else max(store.grain // _BYTES_PER_ROW, 1)
    for form, kind in forms_of(rule, tables):
        plan = form.plan()
        if plan is not None and plan.entries:
            yield from _summed(plan, kind, rule, tables, rows)
        elif plan is not None:
            yield from _flat(plan, kind, tables, rows)


def _refuse_unlisted(rule: Rule, clause: Clause, tables: Tables) -> None:
    """Refuse a rule that reaches an atom which is neither observed nor a target.

    Atoms of closed predicates are 0 where they are not listed; the others must be listed, unless
    the body holds nowhere above 0.
    """
    slots, tests = split(clause, tables)
    body = [slot for slot in slots if slot.coefficient > 0]
    for head in [slot for slot in slots if slot.coefficient < 0 and not slot.outer]:
        if any(covers(tables, head, slot, one=False) for slot in body):
            continue
        whole = flat(tables, body, 1.0 - len(body), tests)
        join = whole.join(whole.slots)
        listed = " AND ".join(join.matches(head.atom, "h")) or "true"
        known = f"SELECT 1 FROM {head.relation.table} AS h WHERE {listed}"
        join.conditions.append(f"NOT EXISTS ({known})")
        chosen = ", ".join(map(join.term, head.atom.terms))
        query = f"SELECT DISTINCT {chosen} {join.clause()} ORDER BY ALL LIMIT 1"
        for codes in tables.connection.execute(query).fetchall():
            raise AtomError(
                f"the rule {rule.text!r} reaches {tables.atom_text(head.relation, codes)}, which "
                f"is neither observed nor a target: list it as one of them"
            )


def _fetched(query: str, tables: Tables, rows: int | None) -> Iterator[dict[str, Any]]:
    """The columns of a query: all at once, or so many rows at a time from a table that spills."""
    connection = tables.connection
    if rows is None:
        yield connection.execute(query).fetchnumpy()
        return
    connection.execute(f"CREATE OR REPLACE TEMP TABLE fetched AS {query}")
    for first in range(0, tables.count("fetched"), rows):
        some = f"SELECT * FROM fetched WHERE rowid >= {first} AND rowid < {first + rows}"
        yield connection.execute(some).fetchnumpy()
    connection.execute("DROP TABLE fetched")


def _flat(plan: QueryPlan, kind: int, tables: Tables, rows: int | None) -> Iterator[Piece]:
    for found in _fetched(f"SELECT * FROM ({plan.rows}) ORDER BY ALL", tables, rows):
        constants = found.pop("b")
        atoms = np.stack(list(found.values()), axis=1)
        found.clear()
        is_free = atoms >= 0
        coefficients = np.broadcast_to(np.array(plan.coefficients), atoms.shape)[is_free]
        piece = Piece(
            is_free.sum(axis=1, dtype=np.int32), atoms[is_free], coefficients, constants, kind
        )
        has_twins = any(((atoms[:, i] == atoms[:, j]) & is_free[:, i]).any() for i, j in plan.twins)
        yield _merge(piece) if has_twins else piece


def _summed(
    plan: QueryPlan, kind: int, rule: Rule, tables: Tables, rows: int | None
) -> Iterator[Piece]:
    _prepare(plan, tables)
    if rows is not None:
        tables.connection.execute(f"CREATE OR REPLACE TEMP TABLE summed AS {plan.entries}")
    for forms in _fetched(plan.rows, tables, rows):
        query = plan.entries
        if rows is not None:
            ends = int(forms["form"][0]), int(forms["form"][-1])
            query = f"SELECT * FROM summed WHERE form BETWEEN {ends[0]} AND {ends[1]}"
        entries = tables.connection.execute(query).fetchnumpy()
        if not (np.isfinite(forms["b"]).all() and np.isfinite(entries["coefficient"]).all()):
            raise RuleError(
                f"the rule {rule.text!r} divides by 0 where a sum has no atoms: write "
                f"@Max[1, |B|] for the count |B|"
            )
        lengths = np.bincount(
            np.searchsorted(forms["form"], entries["form"]), minlength=len(forms["form"])
        )
        yield _merge(Piece(lengths, entries["variable"], entries["coefficient"], forms["b"], kind))


def _merge(piece: Piece) -> Piece:
    """Add up entries of one atom in one form; drop what is 0, empty or satisfied by that."""
    n = len(piece.constants)
    rows = np.repeat(np.arange(n), piece.lengths)
    order = np.lexsort((piece.variables, rows))
    rows, variables = rows[order], piece.variables[order]
    is_new = np.ones(len(rows), bool)
    is_new[1:] = (rows[1:] != rows[:-1]) | (variables[1:] != variables[:-1])
    starts = np.flatnonzero(is_new)
    coefficients = np.add.reduceat(piece.coefficients[order], starts) if len(rows) else np.zeros(0)
    kept = coefficients != 0
    rows, variables, coefficients = rows[starts][kept], variables[starts][kept], coefficients[kept]
    lengths = np.bincount(rows, minlength=n)
    largest = piece.constants + np.bincount(rows, np.maximum(coefficients, 0), minlength=n)
    alive = (lengths > 0) & ((piece.kind == EQUAL) | (largest > SLACK))
    inside = alive[rows]
    return Piece(
        lengths[alive], variables[inside], coefficients[inside], piece.constants[alive], piece.kind
    )


def _assemble(rules: Program, tables: Tables) -> Hinges:
    """Put the pieces of all rules one after another, array by array, freeing them as it goes."""
    heads: list[tuple[int, int, int, int]] = []
    arrays: list[list[NDArray[Any]]] = [[], [], [], []]
    for i, rule in enumerate(rules):
        for piece in _pieces(rule, tables, None):
            heads.append((piece.kind, 2 if rule.squared else 1, i, len(piece.constants)))
            for array, part in zip(arrays, piece[:4], strict=True):
                array.append(part)
    kinds, powers, groups, sizes = np.array(heads, np.int64).reshape(-1, 4).T
    offsets = np.zeros(sizes.sum() + 1, np.int64)
    np.cumsum(_joined(arrays.pop(0), np.int32), out=offsets[1:])
    return Hinges(
        offsets,
        _joined(arrays.pop(0), np.int32),
        _joined(arrays.pop(0), np.float64),
        _joined(arrays.pop(0), np.float64),
        np.repeat(kinds.astype(np.int8), sizes),
        np.repeat(powers.astype(np.int8), sizes),
        np.repeat(groups.astype(np.int32), sizes),
        tables.n_free,
        len(rules),
    )


def _written(rules: Program, tables: Tables, store: Store) -> Hinges:
    """Write the pieces of all rules to files as they come."""
    writers = [ArrayWriter(store, dtype) for dtype in DTYPES.values()]
    writers[0].append(np.zeros(1))
    entries = 0
    for i, rule in enumerate(rules):
        for piece in _pieces(rule, tables, store):
            offsets = entries + np.cumsum(piece.lengths, dtype=np.int64)
            entries += len(piece.variables)
            each = piece.kind, 2 if rule.squared else 1, i
            alike = (np.full(len(offsets), number) for number in each)
            parts = (offsets, piece.variables, piece.coefficients, piece.constants, *alike)
            for writer, part in zip(writers, parts, strict=True):
                writer.append(part)
    arrays = {name: writer.finish() for name, writer in zip(DTYPES, writers, strict=True)}
    if sum(array.nbytes for array in arrays.values()) <= max(store.limit - PROGRAM, 0) // _FITS:
        whole = {name: array.copy() for name, array in arrays.items()}
        store.release()
        return Hinges(**whole, n_variables=tables.n_free, n_groups=len(rules))
    return Hinges.stored(store, arrays, tables.n_free, len(rules))


def _joined(arrays: list[NDArray[Any]], kind: type) -> NDArray[Any]:
    """Concatenate arrays, of which there may be none."""
    return np.concatenate([np.zeros(0, kind), *arrays]).astype(kind, copy=False)
