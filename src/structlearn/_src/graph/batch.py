"""Many examples side by side: which factors belong to which group, and to which example."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints, block_indices, offsets_of
from structlearn._src.common.vectors import ranges_of
from structlearn._src.graph.joined import select
from structlearn._src.graph.wiring import OUTPUT, Wiring, compile_by_graph
from structlearn._src.kernels.graph.tables import put_in_threads, take_in_threads
from structlearn._src.kernels.team import make_board
from structlearn._src.text.labels import Forbidden

#: One array (rows, entries) for each group of factors, or with a row for all.
Tables = tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class Sequences:
    """Chains without hidden variables: group 0 holds one row per position, group 1 one per edge."""

    offsets: Ints  #: (sequences + 1,) where sequences begin and end; none is empty
    states: int  #: of every position
    forbidden: Forbidden | None = None  #: labels and transitions

    @property
    def n_examples(self) -> int:
        """Number of sequences."""
        return len(self.offsets) - 1

    @property
    def n_variables(self) -> int:
        """Number of positions over all sequences."""
        return int(self.offsets[-1])

    def rows(self, group: int) -> Ints:
        """Where the rows of every example begin in a group."""
        return self.offsets - (np.arange(len(self.offsets)) if group else 0)

    @property
    def variables(self) -> Ints:
        """Where the variables of every example begin."""
        return self.offsets

    def take(self, which: Ints) -> Sequences:
        """Return some of the sequences."""
        sizes = np.diff(self.offsets)[which]
        return Sequences(offsets_of(sizes), self.states, self.forbidden)

    def graphs(self) -> Graphs:
        """Return the same sequences as graphs, for inference at two temperatures."""
        n = self.n_variables
        inner = np.ones(n, np.bool_)
        inner[self.offsets[:-1]] = False
        later = np.flatnonzero(inner)
        scopes = np.arange(n)[:, None], np.stack([later - 1, later], axis=1)
        graphs = assemble(np.full(n, self.states), np.full(n, OUTPUT), self.offsets, scopes)
        return replace(graphs, forbidden_potentials=self._forbidden_potentials(graphs))

    def _forbidden_potentials(self, graphs: Graphs) -> Floats | None:
        if self.forbidden is None:
            return None
        out = np.zeros(int(graphs.wiring.table_offsets[-1]))
        nodes, edges = graphs.entries
        out[nodes[self.offsets[:-1]][:, self.forbidden.first]] = -np.inf
        out[nodes[self.offsets[1:] - 1][:, self.forbidden.last]] = -np.inf
        if len(edges):
            out[edges[:, self.forbidden.pairs.ravel()]] = -np.inf
        return out


@dataclass(frozen=True, eq=False)
class Graphs:
    """Any graphs; the factors of a group have tables of one size and share weights."""

    wiring: Wiring  #: all graphs side by side; hidden variables have that role
    groups: tuple[Ints, ...]  #: factors of every group, in ascending order
    forbidden_potentials: Floats | None = None  #: -inf where a combination is forbidden, else 0

    @property
    def n_examples(self) -> int:
        """Number of graphs."""
        return self.wiring.n_graphs

    @property
    def n_variables(self) -> int:
        """Number of variables over all graphs."""
        return self.wiring.n_variables

    @property
    def variables(self) -> Ints:
        """Where the variables of every example begin."""
        return self.wiring.graph_variables

    def rows(self, group: int) -> Ints:
        """Where the rows of every example begin in a group."""
        return np.searchsorted(self.groups[group], self.wiring.graph_factors)

    @cached_property
    def starts(self) -> tuple[Ints, ...]:
        """For every group, where its tables begin in the potentials."""
        return tuple(self.wiring.table_offsets[factors] for factors in self.groups)

    @property
    def entries(self) -> tuple[Ints, ...]:
        """For every group, where the entries of its tables lie in the potentials: (rows, size)."""
        sizes = np.diff(self.wiring.table_offsets)
        widths = (sizes[factors].max(initial=0) for factors in self.groups)
        return tuple(s[:, None] + np.arange(w) for s, w in zip(self.starts, widths, strict=True))

    def take(self, which: Ints) -> Graphs:
        """Return some of the graphs."""
        wiring = self.wiring
        factors = block_indices(wiring.graph_factors, which)
        kind = np.full(wiring.n_factors, -1, np.int64)
        for g, members in enumerate(self.groups):
            kind[members] = g
        chosen = kind[factors]
        groups = tuple(np.flatnonzero(chosen == g) for g in range(len(self.groups)))
        never = self.forbidden_potentials
        if never is not None:
            never = never[block_indices(wiring.table_offsets, factors)]
        return Graphs(select(wiring, which), groups, never)


def assemble(cards: Ints, roles: Ints, graph_variables: Ints, scopes: tuple[Ints, ...]) -> Graphs:
    """Compile graphs given by the scopes of every group of factors, an array (factors, arity)."""
    arities = np.concatenate([np.full(len(rows), rows.shape[1]) for rows in scopes])
    kinds = np.repeat(np.arange(len(scopes)), [len(rows) for rows in scopes])
    flat = np.concatenate([rows.ravel() for rows in scopes])
    wiring, order = compile_by_graph(cards, roles, arities, flat, graph_variables)
    groups = tuple(np.flatnonzero(kinds[order] == g) for g in range(len(scopes)))
    return Graphs(wiring, groups)


def tables_to_potentials(
    graphs: Graphs, tables: Tables, n_jobs: int | None = 1, out: Floats | None = None
) -> Floats:
    """Flat potentials from the tables of every group, in `out` or a new array."""
    potentials = np.empty(int(graphs.wiring.table_offsets[-1])) if out is None else out
    if sum(map(len, graphs.groups)) < graphs.wiring.n_factors:
        potentials.fill(0.0)  # what is in no group
    for starts, table in zip(graphs.starts, tables, strict=True):
        plain = np.require(table, np.float64, ("C", "W"))  # compiled once
        ranges, helpers = _tasks(starts, table, n_jobs)
        given = make_board(1), ranges, starts, plain, potentials
        threads.launch(put_in_threads, helpers, *given)
    return potentials


def potentials_to_tables(
    graphs: Graphs,
    values: Floats,
    like: Tables,
    n_jobs: int | None = 1,
    into: Tables | None = None,
) -> Tables:
    """Adjoint of `tables_to_potentials`: tables that factors share get the sum of their values.

    They are added to those in `into`, if it is given.
    """
    out = []
    for group, (starts, table) in enumerate(zip(graphs.starts, like, strict=True)):
        ranges, helpers = _tasks(starts, table, n_jobs)
        shared = len(table) == 1
        old = None if into is None else into[group]
        rows = np.empty((0 if shared else len(starts), table.shape[1])) if old is None else old
        sums = np.zeros((len(ranges) - 1 if shared else 0, table.shape[1]))
        given = make_board(1), ranges, starts, values, rows, sums, old is not None
        threads.launch(take_in_threads, helpers, *given)
        if shared:  # sums of ranges, which depend on the graphs alone, are added in their order
            total = sums.cumsum(axis=0)[-1:]
            rows = total if old is None else np.add(old, total, out=old)
        out.append(rows)
    return tuple(out)


def _tasks(starts: Ints, table: Floats, n_jobs: int | None) -> tuple[Ints, int]:
    """Return the borders of ranges of factors, and how many threads help with them."""
    ranges = ranges_of(len(starts), 1 + threads.GRAIN["entries"] // max(table.shape[1], 1))
    borders = np.array([0, *(last for _, last in ranges)])
    return borders, threads.helpers(n_jobs, len(ranges))
