"""A wiring as message passing reads it: who is visited when, and who is whose neighbour."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints, offsets_of
from structlearn._src.common.reuse import empty
from structlearn._src.common.vectors import over
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.schedule import LARGE, VisitingOrder, make_schedule
from structlearn._src.kernels import launch
from structlearn._src.kernels.graph import schedule as kernels
from structlearn._src.kernels.graph.message import Net

_Numbers = TypeVar("_Numbers", Floats, Ints)
_PARTS = 128  # of a graph that threads share: a few for every thread


class Parts(NamedTuple):
    """Ranges of graphs, or of a large one, for work that needs no order; chosen from graphs."""

    borders: Ints  #: (parts + 1, 3) where their variables, slots and factors begin
    graph_parts: Ints  #: (graphs + 1) into parts
    tables: Ints  #: (parts + 1) where their tables begin, as weights

    def sums(self, values: _Numbers) -> _Numbers:
        """Add up the values of the parts of every graph."""
        return np.add.reduceat(values, self.graph_parts[:-1]) if len(values) else values


class Layout(NamedTuple):
    """What message passing must know about a wiring, at whatever temperatures."""

    forests: Bools  #: which graphs have no cycle
    order: VisitingOrder
    net: Net  #: with the turns of all messages
    parts: Parts
    facts: Ints  #: (parts, 4) factors over one variable, most states, variables and entries
    weights: Floats  #: the same number for all factors
    ratios: Floats  #: 1 for all slots


def lay_out(wiring: Wiring, weight: float, n_jobs: int | None = None) -> Layout:
    """Pack a wiring for the message kernels.

    The turns of a slot are the bits `BACK` and `FORTH`: on the way back, from the last variable to
    the first, a variable listens to factors with later ones; on the way forth to factors with
    earlier ones.
    """
    if (np.diff(wiring.graph_tables) < LARGE).all():
        return _small(wiring, weight, n_jobs)
    forests = wiring.forests(n_jobs)
    order = make_schedule(wiring, forests, n_jobs)
    made = _empty(wiring, forests, order)
    rank = np.empty_like(order.variables)

    def turn(part: slice) -> None:
        kernels.turn(wiring, order.variables, part.start, part.stop, rank, made.net)

    def pack(first: int, last: int) -> None:
        given = wiring, rank, weight, first, last
        kernels.pack(*given, made.net, made.weights, made.ratios)

    def survey(first: int, last: int) -> None:
        kernels.survey(wiring, made.parts.borders, first, last, made.facts)

    over(turn, len(rank), n_jobs, threads.GRAIN["entries"])
    threads.over_items(pack, wiring.table_offsets, "entries", n_jobs)
    threads.over_items(survey, made.parts.tables, "entries", n_jobs)
    return made


def _small(wiring: Wiring, weight: float, n_jobs: int | None) -> Layout:
    """Lay out graphs of one block each, all in one go."""
    n = wiring.n_graphs
    forests = wiring.sparse()
    blocks = wiring.graph_variables.copy()  # which kernels are used to write to
    order = VisitingOrder(
        empty(wiring.n_variables, np.int64), blocks, np.arange(n + 1), np.arange(n + 1)
    )
    made = _empty(wiring, forests, order)
    rank, parents = empty((2, wiring.n_variables), np.int64)
    seen = np.zeros(wiring.n_variables, np.bool_), np.zeros(wiring.n_factors, np.bool_)
    launch.over(
        kernels.lay_out_in_threads, threads.calls_of(wiring.graph_tables, "graphs"), n_jobs, wiring,
        made.parts.borders, weight, parents, *seen, forests, order.variables, rank, made.net,
        made.weights, made.ratios, made.facts,
    )  # fmt: skip
    return made


def _empty(wiring: Wiring, forests: Bools, order: VisitingOrder) -> Layout:
    """Return the arrays that are to be filled."""
    slots = empty((len(wiring.scopes), 4), np.int64)
    variables = empty((wiring.n_variables + 1, 2), np.int64)
    variables[-1] = wiring.slot_offsets[-1], wiring.belief_offsets[-1]
    factors = empty((wiring.n_factors + 1, 2), np.int64)
    factors[-1] = wiring.scope_offsets[-1], wiring.table_offsets[-1]
    net = Net(slots, variables, factors, wiring.slots)
    parts = _parts(wiring, order.shared)
    facts = np.empty((len(parts.tables) - 1, 4), np.int64)
    weights, ratios = empty(wiring.n_factors), empty(len(slots))
    return Layout(forests, order, net, parts, facts, weights, ratios)


def _parts(wiring: Wiring, shared: Ints) -> Parts:
    """Graphs that threads share have several parts, all others are one."""
    counts = np.ones(wiring.n_graphs, np.int64)
    counts[shared] = _PARTS
    graph_parts = offsets_of(counts)
    graphs = np.repeat(np.arange(wiring.n_graphs), counts)
    share = (np.arange(len(graphs)) - graph_parts[graphs]) / counts[graphs]

    def cut(borders: Ints) -> Ints:
        inside = (share * np.diff(borders)[graphs]).astype(np.int64)
        return np.append(borders[graphs] + inside, borders[-1])

    variables, factors = cut(wiring.graph_variables), cut(wiring.graph_factors)
    borders = np.stack([variables, wiring.scope_offsets[factors], factors], axis=1)
    return Parts(borders, graph_parts, wiring.table_offsets[factors])
