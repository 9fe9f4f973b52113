"""In which order message passing visits the variables, so that threads work side by side.

The variables of a graph lie in *blocks* and the blocks have *colours*: no factor holds variables
of two blocks of one colour. Colours are visited from the last to the first and back, and the
blocks of one colour at the same time, with the same result to the last bit as one after the other.
All is chosen from the graph alone.

Inside of a block messages go from variable to variable, back and forth, so that they travel far
in one sweep; a colour for every second variable, as in a chess board, would let them travel by one
step and would need several times as many sweeps on loopy graphs.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Ints, offsets_of
from structlearn._src.graph.wiring import Wiring
from structlearn._src.kernels.graph import schedule as kernels

LARGE = 2**17  # entries of the tables of a graph from which on threads share it
_BLOCKS = 256  # of a graph at most: some for every thread and each of two colours
_BANDS = 4  # widths of the band in a block at least: messages then need no more sweeps (measured)
_FEW = 8  # blocks below which threads would mostly wait
_SMALLEST = 2**9  # variables in a block of single colours
_COLOURS = 64  # of single variables at most; more would be mostly waiting


class VisitingOrder(NamedTuple):
    """Blocks of variables and their colours, of all graphs of a wiring."""

    variables: Ints  #: of graph after graph, colour after colour, block after block, in their order
    block_offsets: Ints  #: (blocks + 1) into `variables`
    colour_offsets: Ints  #: (colours + 1) into blocks
    graph_colours: Ints  #: (graphs + 1) into colours

    @property
    def shared(self) -> Ints:
        """Graphs of more than one block."""
        return np.flatnonzero(np.diff(self.colour_offsets[self.graph_colours]) > 1)

    @property
    def rounds(self) -> list[tuple[int, int]]:
        """Ranges of blocks that may be visited at the same time: colour by colour of graphs.

        Graphs of one block each that lie side by side are one range.
        """
        first, last = self.graph_colours[:-1], self.graph_colours[1:]
        several = last - first > 1
        # A new range begins with every colour of such a graph, and with the graph after it.
        begins = np.zeros(len(self.colour_offsets), np.bool_)
        begins[0] = begins[-1] = True
        begins[last[several]] = True
        for g in np.flatnonzero(several):
            begins[first[g] : last[g]] = True
        return list(pairwise(self.colour_offsets[begins].tolist()))


class _Cut(NamedTuple):
    """Blocks of one graph: ranges of its variables in some order, by default their own."""

    order: Ints | None
    starts: Ints  #: of blocks, in that order
    sizes: Ints  #: of blocks
    counts: Ints  #: blocks of every colour


def make_schedule(wiring: Wiring, forests: Bools, n_jobs: int | None = None) -> VisitingOrder:
    """Return the schedule of a wiring: small graphs and forests are one block each.

    Forests are visited breadth first, so that one sweep is exact; the graphs that `forests` does
    not name in the order of their variables, unless others allow more blocks.
    """
    large = np.flatnonzero(~forests & (np.diff(wiring.graph_tables) >= LARGE))
    cuts = {int(g): _cut(wiring, int(g), n_jobs) for g in large}
    all_cut = len(cuts) == wiring.n_graphs
    variables = (
        np.empty(wiring.n_variables, np.int64) if all_cut else wiring.breadth_first(forests, n_jobs)
    )
    sizes: list[Ints] = []
    counts: list[Ints] = []
    done = 0
    for g, cut in cuts.items():
        _write(cut, slice(*wiring.graph_variables[g : g + 2].tolist()), variables, n_jobs)
        sizes += [np.diff(wiring.graph_variables[done : g + 1]), cut.sizes]
        counts += [np.ones(g - done, np.int64), cut.counts]
        done = g + 1
    sizes.append(np.diff(wiring.graph_variables[done:]))
    counts.append(np.ones(wiring.n_graphs - done, np.int64))
    colours = np.ones(wiring.n_graphs, np.int64)
    colours[list(cuts)] = [len(cut.counts) for cut in cuts.values()]
    return VisitingOrder(
        variables,
        offsets_of(np.concatenate(sizes)),
        offsets_of(np.concatenate(counts)),
        offsets_of(colours),
    )


def _write(cut: _Cut, graph: slice, variables: Ints, n_jobs: int | None) -> None:
    """Write the variables of a graph block by block."""
    ends = graph.start + offsets_of(cut.sizes)

    def work(first: int, last: int) -> None:
        for b in range(first, last):
            start = cut.starts[b]
            own = np.arange(graph.start + start, graph.start + start + cut.sizes[b])
            part = own if cut.order is None else cut.order[start : start + cut.sizes[b]]
            variables[ends[b] : ends[b + 1]] = part

    threads.over_items(work, ends - graph.start, "entries", n_jobs)


def _cut(wiring: Wiring, g: int, n_jobs: int | None) -> _Cut:
    """Cut one graph: into bands by index, else breadth first, else by colours of the variables."""
    start, stop = wiring.graph_variables[g : g + 2].tolist()
    cut = _bands(None, stop - start, _bandwidth(wiring, g, np.empty(0, np.int64), n_jobs))
    if cut is None:
        this = np.arange(wiring.n_graphs) == g
        order = wiring.breadth_first(this)[start:stop]
        place = np.empty(wiring.n_variables, np.int64)
        place[order] = np.arange(start, stop)
        cut = _bands(order, stop - start, _bandwidth(wiring, g, place, n_jobs))
    if cut is None:
        cut = _classes(np.arange(start, stop), colour(wiring)[start:stop])
    one = np.ones(1, np.int64)
    return cut or _Cut(None, 0 * one, (stop - start) * one, one)


def _bandwidth(wiring: Wiring, g: int, place: Ints, n_jobs: int | None) -> int:
    """Return the largest distance in `place` between two variables of one factor of a graph."""
    first, last = wiring.graph_factors[g : g + 2]
    ranges = threads.split(wiring.table_offsets[first : last + 1], _BLOCKS)
    widths = np.zeros(len(ranges), np.int64)

    def work(a: int, b: int) -> None:
        for i in range(a, b):
            low, high = ranges[i]
            widths[i] = kernels.bandwidth(wiring, place, first + low, first + high)

    threads.run(work, [(i, i + 1) for i in range(len(ranges))], n_jobs)
    return int(widths.max(initial=0))


def _bands(order: Ints | None, size: int, width: int) -> _Cut | None:
    """Cut an order into blocks that touch the next ones only, of two colours in turn."""
    count = min(_BLOCKS, size // (_BANDS * max(width, 1)))
    if count < _FEW:
        return None
    borders = np.linspace(0, size, count + 1).astype(np.int64)
    blocks = np.concatenate([np.arange(0, count, 2), np.arange(1, count, 2)])
    counts = np.array([(count + 1) // 2, count // 2])
    return _Cut(order, borders[blocks], np.diff(borders)[blocks], counts)


def _classes(order: Ints, colours: Ints) -> _Cut | None:
    """Cut by the colours of the variables; variables of one colour do not touch at all."""
    if colours.max() >= _COLOURS:
        return None
    members = np.bincount(colours)
    counts = np.clip(members // _SMALLEST, 1, _BLOCKS)
    sizes = np.concatenate([
        np.diff(np.linspace(0, m, n + 1).astype(np.int64))
        for m, n in zip(members, counts, strict=True)
    ])  # fmt: skip
    sorted_order = order[np.argsort(colours, kind="stable")]
    return _Cut(sorted_order, offsets_of(sizes)[:-1], sizes, counts)


def colour(wiring: Wiring) -> Ints:
    """Colour the variables so that no factor holds two of one colour.

    Greedy in the order of the variables: on a grid of four neighbours a chess board, and never more
    colours than the most neighbours of a variable and one.
    """
    colours = np.full(wiring.n_variables, -1, np.int64)
    kernels.colour(wiring, colours, np.full(wiring.n_variables + 1, -1, np.int64))
    return colours
