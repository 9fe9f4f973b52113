"""Infinite hidden Markov models: their states, draws of these, and what draws say of sequences.

References
----------
J. Van Gael, Y. Saatci, Y. W. Teh and Z. Ghahramani, "Beam sampling for the infinite hidden Markov
model", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from threading import local
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.kernels.chain import beam
from structlearn._src.sample import hdp
from structlearn._src.kernels.draw.density import Densities
from structlearn._src.kernels.lanes import LANES
from structlearn._src.sample.emission import (
    NO_DENSITIES,
    Arrays,
    Conjugate,
    Emission,
    NonConjugate,
    lane_workspace,
)
from structlearn._src.sample.hdp import Concentration, Process
from structlearn._src.sample.hinge import LabelEmission

_BLOCK = 2**14  # positions whose statistics are summed at a time
_CUT = 2**15  # positions whose slices are drawn at a time: two tenths of a millisecond
_MOST = 2**22  # numbers that a thread keeps memory for: 32 megabytes
_LEAST = 1e-17  # below every uniform number but 0, which would open infinitely many states
_thread = local()


@dataclass(frozen=True, eq=False)
class HmmModel:
    """Sequences, what their states emit, and the priors of the concentrations."""

    offsets: Ints  #: (sequences + 1,) where sequences begin and end; none is empty
    emissions: tuple[Emission, ...]  #: factors of the density of a position given its state
    alpha: Concentration  #: of the rows
    gamma: Concentration  #: of the sticks
    n_jobs: int | None = 1  #: threads for the sequences; draws do not depend on it

    @property
    def n_positions(self) -> int:
        """Number of positions of all sequences."""
        return int(self.offsets[-1])

    @property
    def conjugate(self) -> list[Conjugate]:
        """Emissions whose parameters can be integrated out."""
        return [emission for emission in self.emissions if isinstance(emission, Conjugate)]

    @property
    def non_conjugate(self) -> list[tuple[int, NonConjugate]]:
        """Emissions whose parameters cannot be integrated out, with their places."""
        return [(i, e) for i, e in enumerate(self.emissions) if isinstance(e, NonConjugate)]


class HmmState(NamedTuple):
    """Everything that a sweep changes; also what is kept as a draw."""

    states: Ints  #: (positions,) all of 0 to ``n_states - 1`` occur
    process: Process
    parameters: tuple[Arrays, ...]  #: of every emission

    @property
    def n_states(self) -> int:
        """Number of states that occur."""
        return self.process.n_states


class HmmStatistics(NamedTuple):
    """Sufficient statistics of the paths."""

    counts: Ints  #: (states + 1, states) transitions
    emitted: tuple[Arrays, ...]  #: of every emission; empty where it is not conjugate

    def of(self, found: Ints) -> HmmStatistics:
        """Return those of some states, which are all that occur."""
        counts = self.counts[np.append(0, 1 + found)][:, found]
        emitted = tuple(tuple(a[found] for a in own) for own in self.emitted)
        return HmmStatistics(np.ascontiguousarray(counts), emitted)


class HmmInfo(NamedTuple):
    """What a sweep did."""

    n_states: int
    n_tried: int  #: states that were open while the paths were drawn
    n_moved: int  #: splits and merges that were accepted
    alpha0: float
    gamma0: float
    log_density: float  #: of what is seen given the paths


def start(model: HmmModel, states: Ints, rng: Generator, *, blank: bool = False) -> HmmState:
    """Return a state to begin with, from the states of all positions.

    Parameters that are not conjugate come from the prior, or are `blank`: such that tell no states
    apart.
    """
    _, states = np.unique(states, return_inverse=True)
    states = states.reshape(-1).astype(np.int64)
    n = int(states.max()) + 1
    alpha = hdp.first_value(model.alpha)
    gamma = hdp.first_value(model.gamma)
    sticks = np.append(np.full(n, 1.0 / (n + gamma)), gamma / (n + gamma))
    empty = Process(alpha, gamma, sticks, np.zeros((n + 1, n + 1)))
    parameters = tuple(
        e.blank(n) if blank and isinstance(e, NonConjugate) else e.draw_prior(n, rng)
        for e in model.emissions
    )
    return draw_given_paths(model, HmmState(states, empty, parameters), rng)


def statistics(model: HmmModel, state: HmmState) -> HmmStatistics:
    """Return the sufficient statistics of the paths of a state."""
    n = state.n_states
    pieces: dict[int, tuple[Arrays, ...]] = {}

    def work(first: int, last: int) -> None:
        pieces[first] = _emitted(model, state.states, n, first, last)

    ends = [*range(0, model.n_positions, _BLOCK), model.n_positions]
    threads.run(work, list(pairwise(ends)), model.n_jobs)
    counts = hdp.count_transitions(state.states, model.offsets, n, model.n_jobs)
    return HmmStatistics(counts, _added([pieces[i] for i in ends[:-1]]))


def _emitted(
    model: HmmModel, states: Ints, n_states: int, first: int, last: int
) -> tuple[Arrays, ...]:
    """Return the statistics of what positions from `first` to `last` emit."""
    return tuple(
        e.statistics(states, n_states, first, last) if isinstance(e, Conjugate) else ()
        for e in model.emissions
    )


def _added(pieces: Sequence[tuple[Arrays, ...]]) -> tuple[Arrays, ...]:
    """Add statistics up in their order, so that threads change no bit of the sums."""
    return tuple(
        tuple(reduce(np.add, arrays) for arrays in zip(*own, strict=True))
        for own in zip(*pieces, strict=True)
    )


def draw_given_paths(
    model: HmmModel, state: HmmState, rng: Generator, given: HmmStatistics | None = None
) -> HmmState:
    """Draw transitions, concentrations and parameters given the paths, or their statistics."""
    given = statistics(model, state) if given is None else given
    process = hdp.draw_process(
        state.process, given.counts, model.alpha, model.gamma, rng, model.n_jobs
    )
    parameters = tuple(
        emission.draw_posterior(own, rng)
        if isinstance(emission, Conjugate)
        else emission.draw(state.states, before, rng, model.n_jobs)
        for emission, own, before in zip(
            model.emissions, given.emitted, state.parameters, strict=True
        )
    )
    return HmmState(state.states, process, parameters)


class PathDraw(NamedTuple):
    """Paths that were drawn."""

    state: HmmState
    statistics: HmmStatistics
    n_open: int  #: states that were open
    log_density: float  #: of what is seen given the paths


def draw_paths(model: HmmModel, state: HmmState, rng: Generator) -> PathDraw:
    """Draw the paths of all sequences, with slices that leave finitely many transitions open.

    Every range of sequences has a random stream of its own, so that threads change no draw.
    """
    slices = _cut(model, state, rng)
    opened = _grown(model, state, slices.least, rng)
    n = opened.process.n_states
    pieces = _pieces(model)
    seeds = dict(zip(pieces, rng.integers(2**63, size=(len(pieces), 4)), strict=True))
    paths = np.empty_like(state.states)
    densities = _densities(model, opened)
    transitions = _transitions(opened.process)
    done: dict[int, tuple[float, Ints, tuple[Arrays, ...]]] = {}

    def work(first: int, last: int) -> None:
        own = np.random.default_rng(seeds[first, last])
        value = _draw_some(
            model, opened, densities, transitions, slices.values, own, first, last, paths
        )
        counts = hdp.count_some(paths, model.offsets, first, last, n)
        low, high = map(int, model.offsets[[first, last]])
        done[first] = value, counts, _emitted(model, paths, n, low, high)

    threads.run(work, pieces, model.n_jobs)
    values, counted, emitted = zip(*(done[first] for first, _ in pieces), strict=True)
    given = HmmStatistics(reduce(np.add, counted), _added(emitted))
    found = np.flatnonzero(given.counts.sum(0))
    new = _keep(opened._replace(states=paths), found, model.n_jobs)
    return PathDraw(new, given.of(found), n, sum(values))


class _Slices(NamedTuple):
    values: Floats  #: (positions,)
    least: float


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

    threads.run(work, ranges, model.n_jobs)
    return _Slices(slices, min(least))


def _draw_some(
    model: HmmModel,
    opened: HmmState,
    densities: Densities,
    transitions: beam.Transitions,
    slices: Floats,
    rng: Generator,
    first: int,
    last: int,
    paths: Ints,
) -> float:
    """Draw the paths of some sequences; return the log density of what is seen given these."""
    offsets = model.offsets
    uniforms = rng.random(int(offsets[last] - offsets[first]))
    longest = int(np.diff(offsets[first : last + 1]).max())
    n = opened.process.n_states
    reached, weights, logs = _workspace(3 * longest * n).reshape(3, -1)
    workspace = beam.BeamWorkspace(
        np.empty(longest + 1, np.int64), reached.view(np.int64), weights, logs, np.empty(n),
        np.empty(n, np.int64), np.empty((n, LANES)),
    )  # fmt: skip
    taken: float = beam.draw_paths(
        densities, transitions, slices, uniforms, offsets, first, last, lane_workspace(densities),
        workspace, paths,
    )  # fmt: skip
    return taken


def _densities(model: HmmModel, state: HmmState) -> Densities:
    """Return the log densities of all emissions as kernels find them."""
    found = NO_DENSITIES
    for emission, parameters in zip(model.emissions, state.parameters, strict=True):
        own = emission.densities(parameters)
        parts = zip(own, NO_DENSITIES, found, strict=True)
        found = Densities(*(before if part is none else part for part, none, before in parts))
    return found


def _transitions(process: Process) -> beam.Transitions:
    order = np.ascontiguousarray(np.argsort(process.rows[:, :-1], axis=1)[:, ::-1])
    return beam.Transitions(process.rows, order, np.take_along_axis(process.rows, order, axis=1))


def occupied(state: HmmState) -> HmmState:
    """Forget states that do not occur, and number the others from 0 in their order."""
    occurs = np.bincount(state.states, minlength=state.process.n_states) > 0
    return _keep(state, np.flatnonzero(occurs))


def _keep(state: HmmState, found: Ints, n_jobs: int | None = 1) -> HmmState:
    """Forget all states but those that were found; these are numbered in their order."""
    parameters = tuple(tuple(a[found] for a in arrays) for arrays in state.parameters)
    states = state.states
    if found[-1] >= len(found):
        numbers = np.zeros(state.process.n_states, np.int64)
        numbers[found] = np.arange(len(found))
        states = np.empty_like(state.states)

        def work(first: int, last: int) -> None:
            np.take(numbers, state.states[first:last], out=states[first:last], mode="clip")

        ends = [*range(0, len(states), _BLOCK), len(states)]
        threads.run(work, list(pairwise(ends)), n_jobs)
    return HmmState(states, hdp.keep(state.process, found), parameters)


def log_densities(model: HmmModel, state: HmmState) -> Floats:
    """Return the log densities of all positions in all states, (positions, states)."""
    logs = np.zeros((model.n_positions, state.n_states))

    def work(first: int, last: int) -> None:
        low, high = model.offsets[[first, last]]
        _add_log_densities(model, state, first, last, logs[low:high])

    threads.run(work, _pieces(model), model.n_jobs)
    return logs


def _pieces(model: HmmModel) -> list[tuple[int, int]]:
    """Return ranges of sequences that are worked on at a time; they depend on these alone."""
    grains = model.n_positions // threads.GRAIN["positions"]
    return threads.split(model.offsets, 2 ** grains.bit_length())  # which shares out evenly


def _add_log_densities(
    model: HmmModel, state: HmmState, first: int, last: int, out: Floats
) -> None:
    """Add the log densities of the positions of some sequences in all states."""
    low, high = int(model.offsets[first]), int(model.offsets[last])
    for emission, parameters in zip(model.emissions, state.parameters, strict=True):
        emission.add_log_densities(parameters, low, high, out)


def _workspace(size: int) -> Floats:
    """Return an array of this thread: fresh memory costs as much as the work that is done in it."""
    if size > _MOST:
        return np.empty(size)
    found: Floats | None = getattr(_thread, "workspace", None)
    if found is None or len(found) < size:
        found = _thread.workspace = np.empty(size)
    return found[:size]


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


# ---- what draws say of sequences ---------------------------------------------------------


def chains_of(model: HmmModel, draw: HmmState, logs: Floats) -> Chains:
    """Return the sequences as chains over the states of a draw, given log densities.

    The mass of states that a draw does not have is shared out among those that it has.
    """
    rows = draw.process.rows[:, :-1]
    with np.errstate(divide="ignore"):
        tables = np.log(rows / rows.sum(1, keepdims=True))
    nodes = logs.copy()
    nodes[model.offsets[:-1]] += tables[0]
    return Chains(nodes, np.ascontiguousarray(tables[None, 1:]), model.offsets, model.n_jobs)


def state_marginals(model: HmmModel, draw: HmmState) -> tuple[Floats, Floats]:
    """Log density of every sequence, and probabilities of states (positions, states)."""
    values, beliefs, _ = chains_of(model, draw, log_densities(model, draw)).marginals()
    return values, beliefs


def weighted_votes(
    model: HmmModel, features: Floats, draws: Sequence[tuple[HmmState, Floats]]
) -> Floats:
    """Return the shares of labels (positions, labels), voted for by states as likely as they are.

    The model has no emission of labels; the weights of classifiers, which see the `features`, come
    with the draws.
    """
    n_labels = draws[0][1].shape[1]
    votes = np.zeros((model.n_positions, n_labels))
    for draw, weights in draws:
        _, beliefs = state_marginals(model, draw)
        chosen = _best_labels(features, weights)
        for y in range(n_labels):
            votes[:, y] += (beliefs * (chosen == y)).sum(1)
    return votes / votes.sum(1, keepdims=True)


def iterated_votes(
    model: HmmModel,
    labelled: LabelEmission,
    draws: Sequence[tuple[HmmState, Floats]],
    n_rounds: int,
    rng: Generator,
) -> Floats:
    """Return the shares of labels by the paper's loop: states given labels, labels given states.

    For every draw, states are drawn without labels first, and then `n_rounds` times given the
    labels that the states before gave; the last labels are its vote.
    """
    votes = np.zeros((model.n_positions, labelled.n_labels))
    everywhere = np.arange(model.n_positions)
    for draw, weights in draws:
        logs = log_densities(model, draw)
        chosen = _best_labels(labelled.features, weights)
        labels = np.full(model.n_positions, -1)
        for _ in range(n_rounds + 1):
            biased = logs.copy()
            given = replace(labelled, labels=labels)
            given.add_log_densities((weights,), 0, model.n_positions, biased)
            states = chains_of(model, draw, biased).draw(1, rng)[0]
            labels = chosen[everywhere, states]
        votes[everywhere, labels] += 1.0
    return votes / len(draws)


def _best_labels(features: Floats, weights: Floats) -> Ints:
    """Return the label with the highest score of every position in every state."""
    n_states, n_labels, width = weights.shape
    scores = features @ weights.reshape(-1, width).T
    return scores.reshape(-1, n_states, n_labels).argmax(2)
