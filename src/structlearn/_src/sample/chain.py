"""Draws of hidden Markov chains with any number of states: one sweep after another.

References
----------
J. Van Gael, Y. Saatci, Y. W. Teh and Z. Ghahramani, "Beam sampling for the infinite hidden Markov
model", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.chain import beam
from structlearn._src.sample import hdp
from structlearn._src.sample.emission import Arrays, Conjugate, Part
from structlearn._src.sample.hdp import Concentration, Process

_GRAIN = 2**13  # positions per range of sequences, at most
_BLOCK = 2**14  # positions that are summed up at a time
_LEAST = 1e-17  # below all uniform numbers but 0, which would leave everything open


@dataclass(frozen=True, eq=False)
class Model:
    """Sequences, what their states emit, and the priors of the concentrations.

    Parameters
    ----------
    offsets : array (sequences + 1,)
        Where sequences begin and end; none is empty.
    parts
        Factors of the density of a position given its state.
    alpha, gamma
        Concentration of the rows and of the sticks: given, or with a prior.
    n_jobs
        Number of threads for the sequences; draws do not depend on it.
    """

    offsets: Ints
    parts: tuple[Part, ...]
    alpha: Concentration
    gamma: Concentration
    n_jobs: int | None = 1

    @property
    def n_positions(self) -> int:
        """Number of positions of all sequences."""
        return int(self.offsets[-1])


class State(NamedTuple):
    """Everything that a sweep changes; also what is kept as a draw."""

    states: Ints  #: (positions,) all of 0 to ``n_states - 1`` occur
    process: Process
    parameters: tuple[Arrays, ...]  #: of every part

    @property
    def n_states(self) -> int:
        """Number of states that occur."""
        return self.process.n_states


class Tally(NamedTuple):
    """What a state is learnt from, summed up."""

    counts: Ints  #: (states + 1, states) transitions
    statistics: tuple[Arrays, ...]  #: of every part; empty where parameters are not conjugate


class Info(NamedTuple):
    """What a sweep did."""

    n_states: int
    n_tried: int  #: states that were open while the paths were drawn
    n_moved: int  #: splits and unions that were accepted
    alpha0: float
    gamma0: float
    log_density: float  #: of what is seen given the paths


def start(model: Model, states: Ints, rng: np.random.Generator) -> State:
    """Return a state to begin with, from the states of all positions."""
    _, states = np.unique(states, return_inverse=True)
    states = states.reshape(-1).astype(np.int64)
    n = int(states.max()) + 1
    alpha, gamma = map(hdp.first_value, (model.alpha, model.gamma))
    sticks = np.append(np.full(n, 1.0 / (n + gamma)), gamma / (n + gamma))
    empty = Process(alpha, gamma, sticks, np.zeros((n + 1, n + 1)))
    parameters = tuple(part.prior(n, rng) for part in model.parts)
    return learn(model, State(states, empty, parameters), rng)


def tally(model: Model, state: State) -> Tally:
    """Sum up what the paths of a state say."""
    n, parts = state.n_states, [part for part in model.parts if isinstance(part, Conjugate)]
    pieces: dict[int, list[Arrays]] = {}

    def work(first: int, last: int) -> None:
        pieces[first] = [part.statistics(state.states, n, first, last) for part in parts]

    # Blocks of positions, summed in their order, so that threads change no bit of the sums.
    ends = [*range(0, model.n_positions, _BLOCK), model.n_positions]
    threads.run(work, list(pairwise(ends)), model.n_jobs)
    sums = map(_added, zip(*(pieces[i] for i in ends[:-1]), strict=True))
    counts = hdp.count_transitions(state.states, model.offsets, n)
    return Tally(counts, tuple(next(sums) if part in parts else () for part in model.parts))


def learn(
    model: Model, state: State, rng: np.random.Generator, found: Tally | None = None
) -> State:
    """Draw transitions, concentrations and parameters given the paths, or what they say."""
    found = tally(model, state) if found is None else found
    process = hdp.draw_process(state.process, found.counts, model.alpha, model.gamma, rng)
    parameters = tuple(
        part.draw_given(own, rng)
        if isinstance(part, Conjugate)
        else part.draw(state.states, state.n_states, before, rng, model.n_jobs)
        for part, own, before in zip(model.parts, found.statistics, state.parameters, strict=True)
    )
    return State(state.states, process, parameters)


def spread(model: Model, work: Callable[[int, int], None]) -> None:
    """Call `work` for ranges of sequences, in threads; the ranges depend on the sequences alone."""
    pieces = 2 ** (model.n_positions // _GRAIN).bit_length()  # as many for each thread
    threads.run(work, threads.split(model.offsets, pieces), model.n_jobs)


def draw_paths(model: Model, state: State, rng: np.random.Generator) -> tuple[State, int, float]:
    """Draw the paths of all sequences, with slices that leave finitely many transitions open.

    Returns how many states were open, and the log density of what is seen given the paths.
    """
    slices = np.maximum(rng.random(model.n_positions), _LEAST)
    beam.follow(state.states, model.offsets, state.process.rows, slices)
    open_states = _grown(model, state, float(slices.min()), rng)
    rows, n = open_states.process.rows, open_states.process.n_states
    uniforms, paths = rng.random(model.n_positions), np.empty_like(state.states)
    taken: dict[int, float] = {}

    def work(first: int, last: int) -> None:
        logs = _logs(model, open_states, first, last)
        given = logs, rows, slices, uniforms, model.offsets, first, last
        taken[first] = beam.draw_paths(*given, np.empty_like(logs), paths)

    spread(model, work)
    total = sum(taken[i] for i in sorted(taken))
    return occupied(open_states._replace(states=paths)), n, total


def occupied(state: State) -> State:
    """Forget states that do not occur, and number the others from 0 in their order."""
    occurs = np.bincount(state.states, minlength=state.process.n_states) > 0
    found, numbers = np.flatnonzero(occurs), np.cumsum(occurs) - 1
    parameters = tuple(tuple(a[found] for a in arrays) for arrays in state.parameters)
    states = state.states if found[-1] < len(found) else numbers[state.states]
    return State(states, hdp.keep(state.process, found), parameters)


def log_densities(model: Model, state: State) -> Floats:
    """Return the log densities of all positions in all states, (positions, states)."""
    logs = np.empty((model.n_positions, state.n_states))

    def work(first: int, last: int) -> None:
        low, high = model.offsets[[first, last]]
        logs[low:high] = _logs(model, state, first, last)

    spread(model, work)
    return logs


def _logs(model: Model, state: State, first: int, last: int) -> Floats:
    """Return the log densities of the positions of some sequences in all states."""
    low, high = int(model.offsets[first]), int(model.offsets[last])
    logs = np.zeros((high - low, state.process.n_states))
    for part, parameters in zip(model.parts, state.parameters, strict=True):
        part.add_logs(parameters, low, high, logs)
    return logs


def _grown(model: Model, state: State, least: float, rng: np.random.Generator) -> State:
    """Add states, with parameters from their priors, until none beyond them can be reached."""
    process = hdp.grow(state.process, least, rng)
    new = process.n_states - state.n_states
    if new == 0:
        return state
    parameters = tuple(
        _joined(arrays, part.prior(new, rng))
        for part, arrays in zip(model.parts, state.parameters, strict=True)
    )
    return State(state.states, process, parameters)


def _added(pieces: Sequence[Arrays]) -> Arrays:
    return tuple(np.sum(arrays, axis=0) for arrays in zip(*pieces, strict=True))


def _joined(arrays: Arrays, more: Arrays) -> Arrays:
    return tuple(np.concatenate(pair) for pair in zip(arrays, more, strict=True))
