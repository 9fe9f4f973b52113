"""Beliefs of the variables and factors of many graphs, each a block of a flat array."""

from __future__ import annotations

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.reuse import empty
from structlearn._src.common.vectors import over
from structlearn._src.graph.wiring import Wiring
from structlearn._src.kernels import launch
from structlearn._src.kernels.graph import tables


def normalise(blocks: Floats, offsets: Ints, n_jobs: int | None = 1) -> Floats:
    """Divide every block by its sum, unless that is 0."""
    return normalised(blocks, offsets, n_jobs)[0]


def normalised(blocks: Floats, offsets: Ints, n_jobs: int | None) -> tuple[Floats, bool]:
    """Return the same, and whether the sum of some block was below a half."""
    out = empty(len(blocks))
    low = np.zeros(1, np.bool_)
    if len(blocks):
        ranges = threads.calls_of(offsets, "entries")
        launch.over(tables.normalise_in_threads, ranges, n_jobs, offsets, blocks, out, low)
    return out, bool(low[0])


def point_mass(wiring: Wiring, labels: Ints) -> tuple[Floats, Floats]:
    """Beliefs of variables and of factors that are sure of the labels; zeros where one is -1."""
    known = labels >= 0
    steps = wiring.strides * labels[wiring.scopes]
    entry = np.bincount(wiring.slot_factors, steps, wiring.n_factors).astype(np.int64)
    whole = np.ones(wiring.n_factors, np.bool_)
    whole[wiring.slot_factors[~known[wiring.scopes]]] = False
    factors = np.zeros(int(wiring.table_offsets[-1]))
    factors[(wiring.table_offsets[:-1] + entry)[whole]] = 1.0
    return sure_beliefs(wiring, labels), factors


def sure_beliefs(wiring: Wiring, labels: Ints) -> Floats:
    """Those of variables alone."""
    known = labels >= 0
    beliefs = np.zeros(int(wiring.belief_offsets[-1]))
    beliefs[(wiring.belief_offsets[:-1] + labels)[known]] = 1.0
    return beliefs


def best_states(wiring: Wiring, beliefs: Floats) -> Ints:
    """State of largest belief of every variable, the first of several."""
    starts = wiring.belief_offsets[:-1]
    sizes = wiring.cards
    top = np.repeat(np.maximum.reduceat(beliefs, starts), sizes) if len(starts) else beliefs
    state = np.arange(len(beliefs)) - np.repeat(starts, sizes)
    hits = np.where(beliefs >= top, state, len(beliefs))
    return np.minimum.reduceat(hits, starts) if len(starts) else np.empty(0, np.int64)


def belief_distance(wiring: Wiring, one: Floats, other: Floats, n_jobs: int | None = 1) -> Floats:
    """Largest difference between two sets of beliefs of the variables, per graph."""
    out = np.zeros(wiring.n_graphs)
    borders = wiring.belief_offsets[wiring.graph_variables]
    some = np.flatnonzero(np.diff(borders))
    if not len(some):
        return out
    apart = np.empty(len(one))

    def work(part: slice) -> None:
        np.subtract(one[part], other[part], out=apart[part])
        np.abs(apart[part], out=apart[part])

    over(work, len(one), n_jobs, threads.GRAIN["entries"])
    out[some] = np.maximum.reduceat(apart, borders[some])
    return out
