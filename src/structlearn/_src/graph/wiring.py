"""The frozen compiled form of one graph or of many: flat integer arrays, no weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices, offsets_of
from structlearn._src.common.errors import GraphError
from structlearn._src.kernels.graph import local
from structlearn._src.kernels.graph import wiring as wire

ROLES = ("output", "hidden", "observed")
OUTPUT, HIDDEN, OBSERVED = range(3)


class Wiring(NamedTuple):
    """Who interacts with whom, as arrays that kernels read directly.

    A *slot* is one variable in one factor's scope: slots ``scope_offsets[f]`` to
    ``scope_offsets[f + 1]`` belong to factor ``f``. Factor tables lie one after the other in a
    flat potentials array, each in C order (last variable of the scope fastest). Messages have
    one block of ``cards[variable]`` numbers per slot, beliefs one per variable.

    Many graphs lie side by side in one wiring: graph ``g`` owns the variables
    ``graph_variables[g]:graph_variables[g + 1]`` and likewise factors.
    """

    cards: Ints  #: number of states of every variable
    roles: Ints  #: OUTPUT, HIDDEN or OBSERVED
    scope_offsets: Ints  #: (factors + 1) into slots
    scopes: Ints  #: variable of every slot
    strides: Ints  #: step of the slot's variable in its factor's table
    slot_factors: Ints  #: factor of every slot
    table_offsets: Ints  #: (factors + 1) into potentials
    slot_offsets: Ints  #: (variables + 1) into `slots`
    slots: Ints  #: slots of every variable
    message_offsets: Ints  #: (slots + 1) into messages
    belief_offsets: Ints  #: (variables + 1) into beliefs
    graph_variables: Ints  #: (graphs + 1) into variables
    graph_factors: Ints  #: (graphs + 1) into factors

    @property
    def n_variables(self) -> int:
        """Number of variables over all graphs."""
        return len(self.cards)

    @property
    def n_factors(self) -> int:
        """Number of factors over all graphs."""
        return len(self.table_offsets) - 1

    @property
    def n_graphs(self) -> int:
        """Number of graphs side by side."""
        return len(self.graph_variables) - 1

    @property
    def arities(self) -> Ints:
        """Number of variables in every factor."""
        return np.diff(self.scope_offsets)

    @property
    def variable_graphs(self) -> Ints:
        """Graph of every variable."""
        return np.repeat(np.arange(self.n_graphs), np.diff(self.graph_variables))

    @property
    def graph_tables(self) -> Ints:
        """Where the tables of every graph begin in the potentials, and the last ones end."""
        return self.table_offsets[self.graph_factors]

    def forests(self) -> Bools:
        """Tell for every graph whether its factor graph has no cycle."""
        out = np.empty(self.n_graphs, np.bool_)
        wire.forest(self, np.arange(self.n_variables), out)
        return out

    def breadth_first(self) -> Ints:
        """Variables in breadth-first order, so that in a forest parents precede children."""
        order = np.empty(self.n_variables, np.int64)
        seen = np.zeros(self.n_variables, np.bool_), np.zeros(self.n_factors, np.bool_)
        wire.breadth_first(self, *seen, order)
        return order

    def score(self, potentials: Floats, labels: Ints) -> Floats:
        """Sum of log potentials of every graph at a full assignment."""
        score, broken = self.energy(potentials, labels)
        return np.where(broken > 0, -np.inf, score)

    def energy(self, potentials: Floats, labels: Ints) -> tuple[Floats, Ints]:
        """Sum of the finite log potentials, and the number of those that are -inf, per graph."""
        score = np.empty(self.n_graphs)
        broken = np.empty(self.n_graphs, np.int64)
        local.energy(self, potentials, labels, score, broken)
        return score, broken


def compile_wiring(
    cards: Ints,
    roles: Ints,
    scope_offsets: Ints,
    scopes: Ints,
    graph_variables: Ints | None = None,
    graph_factors: Ints | None = None,
) -> Wiring:
    """Lay out strides, tables, messages and the slots of every variable."""
    cards, scope_offsets, scopes = (_frozen(a) for a in (cards, scope_offsets, scopes))
    n_variables = len(cards)
    n_factors = len(scope_offsets) - 1
    strides = np.empty(len(scopes), np.int64)
    sizes = np.empty(n_factors, np.int64)
    wire.strides(cards, scope_offsets, scopes, strides, sizes)
    slot_offsets = offsets_of(np.bincount(scopes, minlength=n_variables))
    slots = np.empty(len(scopes), np.int64)
    wire.slots_by_variable(scopes, slot_offsets[:-1].copy(), slots)
    if graph_variables is None:
        graph_variables = np.array([0, n_variables])
    if graph_factors is None:
        graph_factors = np.array([0, n_factors])
    ours = (
        strides,
        np.repeat(np.arange(n_factors), np.diff(scope_offsets)),
        offsets_of(sizes),
        slot_offsets,
        slots,
        offsets_of(cards[scopes]),
        offsets_of(cards),
    )
    for array in ours:
        array.setflags(write=False)  # made here, so no copy is needed
    borders = _frozen(graph_variables), _frozen(graph_factors)
    return Wiring(cards, _frozen(roles), scope_offsets, scopes, *ours, *borders)


def compile_by_graph(
    cards: Ints, roles: Ints, arities: Ints, scopes: Ints, graph_variables: Ints
) -> tuple[Wiring, Ints]:
    """Compile factors that are given in any order, sorted by graph; also returns their order."""
    starts = offsets_of(arities)
    owners = np.searchsorted(graph_variables, scopes[starts[:-1]], side="right") - 1
    order = np.argsort(owners, kind="stable")
    scopes = scopes[block_indices(starts, order)]
    counts = np.bincount(owners, minlength=len(graph_variables) - 1)
    borders = graph_variables, offsets_of(counts)
    return compile_wiring(cards, roles, offsets_of(arities[order]), scopes, *borders), order


def join(wirings: Sequence[Wiring]) -> Wiring:
    """Put many wirings side by side, in order."""
    if not wirings:
        raise GraphError("no graphs were given; at least one is needed")
    first = np.repeat(
        offsets_of([w.n_variables for w in wirings])[:-1], [len(w.scopes) for w in wirings]
    )
    return compile_wiring(
        np.concatenate([w.cards for w in wirings]),
        np.concatenate([w.roles for w in wirings]),
        _chained([w.scope_offsets for w in wirings]),
        np.concatenate([w.scopes for w in wirings]) + first,
        _chained([w.graph_variables for w in wirings]),
        _chained([w.graph_factors for w in wirings]),
    )


def _chained(parts: list[Ints]) -> Ints:
    """Join offsets, each from 0, into those of all blocks one after the other."""
    ends = np.cumsum([len(part) for part in parts[:-1]], dtype=np.int64)
    return offsets_of(np.delete(np.diff(np.concatenate(parts)), ends - 1))


def _frozen(array: Ints) -> Ints:
    # Always read-only, also so that every kernel sees one array type and compiles once.
    # The copy keeps what a caller holds writeable.
    if array.flags.writeable or array.dtype != np.int64 or not array.flags.c_contiguous:
        array = np.array(array, dtype=np.int64, order="C")
    array.setflags(write=False)
    return array
