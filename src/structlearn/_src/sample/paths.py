"""Draws of paths: slices leave finitely many transitions open, of which few can be reached.

Every range of sequences has a random stream of its own, so that threads change no draw.
"""

from __future__ import annotations

from threading import local
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats
from structlearn._src.kernels.chain import beam
from structlearn._src.kernels.draw.density import NO_DENSITIES, Densities
from structlearn._src.sample import hdp
from structlearn._src.sample.hmm import (
    HmmModel,
    HmmState,
    HmmStatistics,
    RunningStatistics,
    emitted,
    keep,
    pieces,
)

_CUT = 2**15  # positions whose slices are drawn at a time: two tenths of a millisecond
_EACH = 3  # times as many are worth a thread
_MOST = 2**22  # numbers that a thread keeps memory for: 32 megabytes
_LEAST = 1e-17  # below every uniform number but 0, which would open infinitely many states
_thread = local()


class PathDraw(NamedTuple):
    """Paths that were drawn."""

    state: HmmState
    statistics: HmmStatistics
    n_open: int  #: states that were open
    log_density: float  #: of what is seen given the paths


class _Slices(NamedTuple):
    values: Floats  #: (positions,)
    least: float


def draw_paths(model: HmmModel, state: HmmState, rng: Generator) -> PathDraw:
    """Draw the paths of all sequences."""
    slices = _cut(model, state, rng)
    opened = _grown(model, state, slices.least, rng)
    n = opened.process.n_states
    ranges = pieces(model)
    seeds = rng.integers(2**63, size=(len(ranges), 4))
    paths = np.empty_like(state.states)
    densities = _densities(model, opened)
    transitions = beam.sorted_transitions(opened.process.rows)
    longest = int(np.diff(model.offsets).max())
    found = RunningStatistics()
    log_densities = np.empty(len(ranges))

    def work(i: int, _: int) -> None:
        first, last = ranges[i]
        low, high = model.offsets[[first, last]].tolist()
        uniforms = np.random.default_rng(seeds[i]).random(high - low)
        counts = np.zeros((n + 1, n), np.int64)
        log_densities[i] = beam.draw_paths(
            densities, transitions, slices.values, uniforms, model.offsets, first, last,
            _workspace(longest, n, densities), paths, counts,
        )  # fmt: skip
        found.add(i, HmmStatistics(counts, emitted(model, paths, n, low, high)))

    threads.run(work, [(i, i + 1) for i in range(len(ranges))], model.n_jobs)
    given = found.total
    assert given is not None  # there is at least one sequence
    occurring = np.flatnonzero(given.counts.sum(0))
    new = keep(opened._replace(states=paths), occurring, model.n_jobs)
    return PathDraw(new, given.of(occurring), n, float(sum(log_densities)))


def _cut(model: HmmModel, state: HmmState, rng: Generator) -> _Slices:
    """Draw slices below the probabilities of all transitions."""
    ranges = threads.split(model.offsets, 1 + model.n_positions // _CUT)
    seeds = dict(zip(ranges, rng.integers(2**63, size=(len(ranges), 4)), strict=True))
    slices = np.empty(model.n_positions)
    least: list[float] = []

    def work(first: int, last: int) -> None:
        some = slices[model.offsets[first] : model.offsets[last]]
        np.random.default_rng(seeds[first, last]).random(out=some)
        np.maximum(some, _LEAST, out=some)
        beam.multiply_by_path(state.states, model.offsets, state.process.rows, first, last, slices)
        least.append(float(some.min()))

    threads.run(work, ranges, threads.few(model.n_jobs, len(ranges), _EACH))
    return _Slices(slices, min(least))


def _grown(model: HmmModel, state: HmmState, least: float, rng: Generator) -> HmmState:
    """Add states, with parameters from their priors, until none beyond them can be reached."""
    process = hdp.grow(state.process, least, rng)
    new = process.n_states - state.n_states
    if new == 0:
        return state
    parameters = tuple(
        tuple(map(np.concatenate, zip(arrays, emission.draw_prior(new, rng), strict=True)))
        for emission, arrays in zip(model.emissions, state.parameters, strict=True)
    )
    return HmmState(state.states, process, parameters)


def _densities(model: HmmModel, state: HmmState) -> Densities:
    """Return the log densities of all emissions as kernels find them."""
    found = NO_DENSITIES
    for emission, parameters in zip(model.emissions, state.parameters, strict=True):
        own = emission.densities(parameters)._asdict().items()
        none = NO_DENSITIES._asdict()
        found = found._replace(**{name: part for name, part in own if part is not none[name]})
    return found


def _workspace(longest: int, n: int, densities: Densities) -> beam.BeamWorkspace:
    """Return the workspace of this thread: fresh memory costs as much as the work that is in it.

    For sequences of up to `longest` positions, and `n` states.
    """
    shape = longest, n, densities.points.means.shape[1], densities.labels.weights.shape[1:]
    kept: tuple[object, beam.BeamWorkspace] | None = getattr(_thread, "kept", None)
    if kept is not None and kept[0] == shape:
        return kept[1]
    size = 3 * longest * n
    flat: Floats = getattr(_thread, "flat", np.empty(0))
    if len(flat) < size:
        flat = np.empty(size)
    made = beam.beam_workspace(longest, n, densities, flat)
    if size <= _MOST:
        _thread.flat = flat
        _thread.kept = shape, made
    return made
