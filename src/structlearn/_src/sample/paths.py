"""Draws of paths: slices leave finitely many transitions open, of which few can be reached.

Every position has random numbers of its own, and sums are added up in the order of positions, so
that threads change no draw.
"""

from __future__ import annotations

from threading import local
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats
from structlearn._src.kernels.chain import beam
from structlearn._src.kernels.chain import pieces as kernels
from structlearn._src.kernels.draw.density import Densities
from structlearn._src.kernels.team import make_board
from structlearn._src.sample import hdp
from structlearn._src.sample.factors import joint_densities
from structlearn._src.sample.hmm import (
    HmmModel,
    HmmState,
    HmmStatistics,
)
from structlearn._src.sample.tally import TALLY_PHASES, tally

_CUT = 32  # pieces whose slices are worth a thread
_TAKEN = 4  # pieces whose paths are worth a thread
_STATES = 32  # whose number memory is kept for, or a multiple: it changes from sweep to sweep
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
    seed = _seed(rng)
    n = opened.process.n_states
    borders = model.borders
    pieces = kernels.make_pieces(borders, n, model.n_positions)
    largest = int(np.diff(model.offsets[borders]).max())
    paths = np.empty_like(state.states)
    densities = joint_densities(model.emissions, opened.parameters)
    transitions = beam.sorted_transitions(opened.process.rows)
    longest = int(np.diff(model.offsets).max())
    sums = [tally(emission, n, model.n_positions) for emission in model.emissions]
    count = threads.few(model.n_jobs, len(borders) - 1, _TAKEN)
    counts = np.zeros((count, n + 1, n), np.int64)
    board = make_board(kernels.PHASES + TALLY_PHASES * len(sums))

    def work(number: int, _: int) -> None:
        given = (
            board, densities, transitions, slices.values, seed, model.offsets, pieces,
            _workspace(longest, n, densities), np.empty(largest), paths, counts[number],
        )  # fmt: skip
        while kernels.draw_pieces(*given):
            pass
        kernels.arrange(board, model.offsets, pieces, paths)
        for i, own in enumerate(sums):
            own.add_up(board, kernels.PHASES + TALLY_PHASES * i, pieces.members)

    threads.together(work, board, count)
    members = tuple(pieces.members.of(k) for k in range(n))
    found = HmmStatistics(counts.sum(0), tuple(own.total() for own in sums), members)
    occurring = np.flatnonzero(np.diff(pieces.members.starts))
    kept = hdp.keep(opened.process, occurring)
    parameters = tuple(tuple(a[occurring] for a in own) for own in opened.parameters)
    new = HmmState(paths, kept, parameters)
    return PathDraw(new, found.of(occurring), n, float(pieces.log_densities.sum()))


def _cut(model: HmmModel, state: HmmState, rng: Generator) -> _Slices:
    """Draw slices below the probabilities of all transitions."""
    borders = model.borders
    count = threads.few(model.n_jobs, len(borders) - 1, _CUT)
    slices, least = np.empty(model.n_positions), np.full(count, np.inf)
    seed, board = _seed(rng), make_board(1)

    def work(number: int, _: int) -> None:
        least[number] = kernels.cut_pieces(
            board, seed, state.states, model.offsets, borders, state.process.rows, _LEAST, slices
        )

    threads.together(work, board, count)
    return _Slices(slices, float(least.min()))


def _seed(rng: Generator) -> np.uint64:
    """Draw where a stream of random numbers begins, which kernels make themselves."""
    return np.uint64(rng.integers(2**64, dtype=np.uint64))


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


def _workspace(longest: int, n: int, densities: Densities) -> beam.BeamWorkspace:
    """Return the workspace of this thread: fresh memory costs as much as the work that is in it.

    For sequences of up to `longest` positions, and `n` states.
    """
    n = -(-n // _STATES) * _STATES
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
