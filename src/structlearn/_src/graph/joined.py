"""Many graphs side by side in one wiring, and some graphs of such a wiring on their own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from operator import attrgetter, is_
from typing import Any

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints, block_indices, offsets_of
from structlearn._src.common.errors import GraphError
from structlearn._src.common.reuse import empty
from structlearn._src.graph.build import FactorGraph, flat_potentials
from structlearn._src.graph.naming import NamedWirings
from structlearn._src.graph.wiring import Wiring, compile_wiring, empty_wiring, frozen
from structlearn._src.kernels import gather
from structlearn._src.kernels.graph import wiring as wire
from structlearn._src.kernels.launch import over

_CACHED = 256  # graphs that the cache holds: some tens of kilobytes


def join(wirings: Sequence[Wiring], n_jobs: int | None = 1) -> Wiring:
    """Put many wirings side by side, in order; those that come again are copied, in threads."""
    if not wirings:
        raise GraphError("no graphs were given; at least one is needed")
    # In loops of C: the rest costs next to nothing for each of many small graphs.
    identities = list(map(id, wirings))
    distinct = dict(zip(identities, wirings, strict=True))
    together = _together(list(distinct.values()), n_jobs)
    if len(distinct) == len(wirings):
        return together
    number = dict(zip(distinct, range(len(distinct)), strict=True))
    which = np.fromiter(map(number.__getitem__, identities), np.int64, len(wirings))
    if together.n_graphs > len(distinct):
        counts = [w.n_graphs for w in distinct.values()]
        which = block_indices(offsets_of(counts), which)
    return select(together, which, n_jobs)


def select(wiring: Wiring, which: Ints, n_jobs: int | None = 1) -> Wiring:
    """Return the wiring of some of the graphs of a wiring, in the order given, or repeated."""
    starts = _starts(wiring)
    sizes = np.diff(starts, axis=0)[which]
    places = np.zeros((len(which) + 1, starts.shape[1]), np.int64)
    np.cumsum(sizes, axis=0, out=places[1:])
    out = empty_wiring(places)
    ranges = threads.calls_of(places[:, 3], "graphs")
    over(wire.copy_in_threads, ranges, n_jobs, wiring, starts, which, places, out)
    return frozen(out)


def graph_range(wiring: Wiring, first: int, last: int) -> Wiring:
    """Return the wiring of the graphs first..last-1; if these are all, the same one."""
    everything = (first, last) == (0, wiring.n_graphs)
    return wiring if everything else select(wiring, np.arange(first, last))


def _starts(wiring: Wiring) -> Ints:
    """Where the variables, factors, slots, tables, messages and beliefs of all graphs begin."""
    variables, factors = wiring.graph_variables, wiring.graph_factors
    slots = wiring.scope_offsets[factors]
    own = (variables, factors, slots, wiring.table_offsets[factors])
    return np.stack([*own, wiring.message_offsets[slots], wiring.belief_offsets[variables]], axis=1)


def _together(wirings: list[Wiring], n_jobs: int | None) -> Wiring:
    """Put wirings side by side, compiled anew."""
    if len(wirings) == 1:
        return wirings[0]
    counts = [len(w.cards) for w in wirings]
    first = offsets_of(counts)
    if all(len(w.graph_variables) == 2 for w in wirings):
        graph_variables = first
        graph_factors = offsets_of([len(w.table_offsets) - 1 for w in wirings])
    else:
        graph_variables = _chained([w.graph_variables for w in wirings])
        graph_factors = _chained([w.graph_factors for w in wirings])
    scopes = np.concatenate([w.scopes for w in wirings])
    scopes += np.repeat(first[:-1], [len(w.scopes) for w in wirings])
    own = (
        np.concatenate([w.cards for w in wirings]),
        np.concatenate([w.roles for w in wirings]),
        _chained([w.scope_offsets for w in wirings]),
        scopes,
    )
    for array in own:
        array.setflags(write=False)  # made here, so no copy is needed
    return compile_wiring(*own, graph_variables, graph_factors, n_jobs)


def _chained(parts: list[Ints]) -> Ints:
    """Join offsets, each from 0, into those of all blocks one after the other."""
    ends = np.cumsum([len(part) for part in parts[:-1]], dtype=np.int64)
    return offsets_of(np.delete(np.diff(np.concatenate(parts)), ends - 1))


# ---- graphs with names and tables ---------------------------------------------------------


def taken_apart(graphs: Sequence[FactorGraph]) -> tuple[NamedWirings, list[Floats | None]]:
    """Return graphs as they are now, and the arrays that hold all tables of each, if they do.

    It costs next to nothing.
    """
    # In loops of C, as graphs may be many and small, and while the cache holds them: in a batch
    # most of the time is spent waiting for the memory that the graphs are in.
    columns: tuple[list[Any], ...] = ([], [], [])
    getters = list(map(attrgetter, ("_wiring", "_index", "_flat")))
    for first in range(0, len(graphs), _CACHED):
        part = graphs[first : first + _CACHED]
        for column, get in zip(columns, getters, strict=True):
            column.extend(map(get, part))
    wirings, places, tables = columns
    if not all(wirings):
        wirings = [graph.wiring for graph in graphs]
    return NamedWirings(wirings, places), tables


def joined_potentials(
    graphs: Sequence[FactorGraph], tables: list[Floats | None], offsets: Ints, n_jobs: int | None
) -> Floats:
    """All tables of all graphs, which begin at `offsets`; of one graph, the array that it holds."""
    if len(graphs) == 1:
        return flat_potentials(graphs[0], n_jobs)
    whole: list[Any] = tables
    if any(map(is_, tables, repeat(None))):
        whole = list(map(flat_potentials, graphs))
    out = empty(int(offsets[-1]))
    if not gather.readable():
        return np.concatenate(whole, out=out)
    objects = np.fromiter(map(id, whole), np.int64, len(whole))
    unlike = np.zeros(1, np.bool_)
    ranges = threads.calls_of(offsets, "entries")
    over(gather.join_in_threads, ranges, n_jobs, objects, offsets, out, unlike)
    return np.concatenate(whole, out=out) if unlike[0] else out
