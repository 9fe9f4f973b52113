"""Draws of paths: slices leave finitely many transitions open, of which few can be reached.

Numbers for ranges of sequences come from random streams of their own, and sums are added up in the
order of positions, so that threads change no draw.
"""

from __future__ import annotations

from threading import local
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
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

_CUT = 2**15  # positions whose numbers are drawn at a time: three tenths of a millisecond
_PIECE = 2**11  # positions whose states are drawn together: half a millisecond
_PIECES = 2**10  # of these at most
_TAKEN = 4  # times as many are worth a thread
_MOST = 2**22  # numbers that a thread keeps memory for: 32 megabytes
_LEAST = 1e-17  # below every uniform number but 0, which would open infinitely many states
_thread = local()


class PathDraw(NamedTuple):
    """Paths that were drawn."""

    state: HmmState
    statistics: HmmStatistics
    n_open: int  #: states that were open
    log_density: float  #: of what is seen given the paths


class _Drawn(NamedTuple):
    """Random numbers of all positions."""

    slices: Floats  #: (positions,)
    uniforms: Floats  #: (positions,) for their states
    least: float  #: of the slices


def draw_paths(model: HmmModel, state: HmmState, rng: Generator) -> PathDraw:
    """Draw the paths of all sequences."""
    drawn = _cut(model, state, rng)
    opened = _grown(model, state, drawn.least, rng)
    n = opened.process.n_states
    borders = _borders(model)
    pieces = kernels.make_pieces(borders, n, model.n_positions)
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
            board, densities, transitions, drawn.slices, drawn.uniforms, model.offsets, pieces,
            _workspace(longest, n, densities), paths, counts[number],
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


def _borders(model: HmmModel) -> Ints:
    """Return the sequences where pieces begin, which depend on the sequences alone, and the end.

    They are small, as nobody has anything to do while the last ones are drawn.
    """
    n = min(1 + model.n_positions // _PIECE, _PIECES)
    return np.array([0, *(last for _, last in threads.split(model.offsets, n))])


def _cut(model: HmmModel, state: HmmState, rng: Generator) -> _Drawn:
    """Draw slices below the probabilities of all transitions, and numbers for the states."""
    ranges = threads.split(model.offsets, 1 + model.n_positions // _CUT)
    seeds = rng.integers(2**63, size=(len(ranges), 4))
    drawn = np.empty((2, model.n_positions))
    least = np.empty(len(ranges))

    def work(i: int, _: int) -> None:
        first, last = ranges[i]
        some = slice(*model.offsets[[first, last]].tolist())
        stream = np.random.default_rng(seeds[i])
        for numbers in drawn:
            stream.random(out=numbers[some])
        least[i] = beam.cut(
            state.states, model.offsets, state.process.rows, first, last, _LEAST, drawn[0]
        )

    threads.run(work, [(i, i + 1) for i in range(len(ranges))], model.n_jobs)
    return _Drawn(drawn[0], drawn[1], float(least.min()))


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
