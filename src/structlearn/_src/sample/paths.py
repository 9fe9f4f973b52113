"""Draws of paths: slices leave finitely many transitions open, of which few can be reached.

Every position has random numbers of its own, and sums are added up in the order of positions, so
that threads change no draw.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.chain import beam
from structlearn._src.kernels.chain import pieces as kernels
from structlearn._src.kernels.chain.pieces import Pieces
from structlearn._src.kernels.team import make_board
from structlearn._src.sample import hdp
from structlearn._src.sample.factors import joint_densities
from structlearn._src.sample.hmm import HmmModel, HmmState, HmmStatistics
from structlearn._src.sample.tally import tally

_TAKEN = 4  # pieces that are worth a thread
_AT_ONCE = 32  # pieces for each thread in one call of a kernel: an interrupt waits for these
_LEAST = 1e-17  # below every uniform number but 0, which would open infinitely many states


class PathDraw(NamedTuple):
    """Paths that were drawn."""

    state: HmmState
    statistics: HmmStatistics
    n_open: int  #: states that were open
    log_density: float  #: of what is seen given the paths


def draw_paths(model: HmmModel, state: HmmState, rng: Generator) -> PathDraw:
    """Draw the paths of all sequences."""
    helpers = threads.few(model.n_jobs, len(model.borders) - 1, _TAKEN) - 1
    with model.memory.slices.lend() as slices:
        least = _cut(model, state, slices, helpers, rng)
        opened = _grown(model, state, least, rng)
        n = opened.process.n_states
        pieces = kernels.make_pieces(model.borders, n, model.n_positions)
        paths = np.empty_like(state.states)
        counts = _draw(model, opened, slices, _seed(rng), pieces, paths, helpers)
    given = make_board(1), model.offsets, pieces, paths
    threads.launch(kernels.arrange_in_threads, helpers, *given)
    sums = tuple(tally(emission, pieces.members, model.n_jobs) for emission in model.emissions)
    members = tuple(pieces.members.of(k) for k in range(n))
    found = HmmStatistics(counts, sums, members)
    occurring = np.flatnonzero(np.diff(pieces.members.starts))
    kept = hdp.keep(opened.process, occurring)
    parameters = tuple(tuple(a[occurring] for a in own) for own in opened.parameters)
    new = HmmState(paths, kept, parameters)
    return PathDraw(new, found.of(occurring), n, float(pieces.log_densities.sum()))


def _cut(model: HmmModel, state: HmmState, slices: Floats, helpers: int, rng: Generator) -> float:
    """Draw slices below the probabilities of all transitions; return the smallest."""
    smallest = np.empty(len(model.borders) - 1)
    given = state.states, model.offsets, model.borders, state.process.rows, _LEAST
    threads.launch(
        kernels.cut_in_threads, helpers, make_board(1), _seed(rng), *given, slices, smallest
    )
    return float(smallest.min())


def _draw(
    model: HmmModel,
    opened: HmmState,
    slices: Floats,
    seed: np.uint64,
    pieces: Pieces,
    paths: Ints,
    helpers: int,
) -> Ints:
    """Draw the states of all pieces; return how often each of them follows each row."""
    n = opened.process.n_states
    counts = np.zeros((helpers + 1, n + 1, n), np.int64)
    densities = joint_densities(model.emissions, opened.parameters)
    given = densities, beam.sorted_transitions(opened.process.rows), slices, seed, model.offsets
    end = len(model.borders) - 1
    step = _AT_ONCE * (helpers + 1)
    with model.memory.lend(helpers, n, densities) as spaces:
        for begin in range(0, end, step):
            some = make_board(1), begin, min(begin + step, end)
            threads.launch(
                kernels.draw_in_threads, helpers, *some, *given, pieces, *spaces, paths, counts
            )
    total: Ints = counts.sum(0)
    return total


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
