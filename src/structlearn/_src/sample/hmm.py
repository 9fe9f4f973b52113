"""Infinite hidden Markov models: their states, draws of these, and what draws say of sequences.

References
----------
J. Van Gael, Y. Saatci, Y. W. Teh and Z. Ghahramani, "Beam sampling for the infinite hidden Markov
model", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.sample import hdp
from structlearn._src.sample.emission import (
    Arrays,
    Conjugate,
    Emission,
    NonConjugate,
)
from structlearn._src.sample.hdp import Concentration, Process
from structlearn._src.sample.hinge import LabelEmission
from structlearn._src.sample.memory import PathMemory

_PIECE = 2**11  # positions whose states are drawn together: half a millisecond
_PIECES = 2**10  # pieces of so many or more at most
_BLOCK = 2**14  # positions whose statistics are summed at a time


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

    @cached_property
    def borders(self) -> Ints:
        """The sequences where pieces begin that are worked on at a time, and the end.

        These depend on the sequences alone, and are small: nobody has anything to do while the last
        ones are drawn.
        """
        n = min(1 + self.n_positions // _PIECE, _PIECES)
        return np.array([0, *(last for _, last in threads.split(self.offsets, n))])

    @cached_property
    def memory(self) -> PathMemory:
        """What draws of paths use again."""
        return PathMemory(self.offsets, self.borders)

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
    members: tuple[Ints, ...] = ()  #: the positions of every state in their order, where known

    def add(self, more: HmmStatistics) -> None:
        """Add those of other positions."""
        np.add(self.counts, more.counts, out=self.counts)
        for own, other in zip(self.emitted, more.emitted, strict=True):
            for total, array in zip(own, other, strict=True):
                np.add(total, array, out=total)

    def of(self, found: Ints) -> HmmStatistics:
        """Return those of some states, which are all that occur."""
        counts = self.counts[np.append(0, 1 + found)][:, found]
        emitted = tuple(tuple(a[found] for a in own) for own in self.emitted)
        members = tuple(self.members[k] for k in found) if self.members else ()
        return HmmStatistics(np.ascontiguousarray(counts), emitted, members)

    def places(self, states: Ints, k: int) -> Ints:
        """Return the positions of a state, given the `states` of all."""
        return self.members[k] if self.members else np.flatnonzero(states == k)


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


class RunningStatistics:
    """Statistics that are added up in the order of their ranges: threads change no bit of them."""

    def __init__(self) -> None:
        self.total: HmmStatistics | None = None
        self._lock = Lock()
        self._waiting: dict[int, HmmStatistics] = {}
        self._added = 0

    def add(self, number: int, given: HmmStatistics) -> None:
        """Add those of a range as soon as all before it are there."""
        with self._lock:
            self._waiting[number] = given
            while (following := self._waiting.pop(self._added, None)) is not None:
                if self.total is None:
                    self.total = following
                else:
                    self.total.add(following)
                self._added += 1


def statistics(model: HmmModel, state: HmmState) -> HmmStatistics:
    """Return the sufficient statistics of the paths of a state."""
    n = state.n_states
    found = RunningStatistics()

    def work(i: int, _: int) -> None:
        own = emitted(model, state.states, n, _BLOCK * i, min(_BLOCK * (i + 1), model.n_positions))
        found.add(i, HmmStatistics(np.zeros((0, 0), np.int64), own))

    blocks = range(-(-model.n_positions // _BLOCK))
    threads.run(work, [(i, i + 1) for i in blocks], model.n_jobs)
    counts = hdp.count_transitions(state.states, model.offsets, n, model.n_jobs)
    assert found.total is not None  # there is at least one position
    return found.total._replace(counts=counts)


def emitted(
    model: HmmModel, states: Ints, n_states: int, first: int, last: int
) -> tuple[Arrays, ...]:
    """Return the statistics of what positions from `first` to `last` emit."""
    return tuple(
        e.statistics(states, n_states, first, last) if isinstance(e, Conjugate) else ()
        for e in model.emissions
    )


def draw_given_paths(
    model: HmmModel, state: HmmState, rng: Generator, given: HmmStatistics | None = None
) -> HmmState:
    """Draw transitions, concentrations and parameters given the paths, or their statistics."""
    given = statistics(model, state) if given is None else given
    process = hdp.draw_process(state.process, given.counts, model.alpha, model.gamma, rng)
    parameters = tuple(
        emission.draw_posterior(own, rng)
        if isinstance(emission, Conjugate)
        else emission.draw(state.states, before, rng, model.n_jobs)
        for emission, own, before in zip(
            model.emissions, given.emitted, state.parameters, strict=True
        )
    )
    return HmmState(state.states, process, parameters)


def log_densities(model: HmmModel, state: HmmState) -> Floats:
    """Return the log densities of all positions in all states, (positions, states)."""
    logs = np.zeros((model.n_positions, state.n_states))

    def work(first: int, last: int) -> None:
        low, high = model.offsets[[first, last]]
        _add_log_densities(model, state, first, last, logs[low:high])

    threads.run(work, pieces(model), model.n_jobs)
    return logs


def pieces(model: HmmModel) -> list[tuple[int, int]]:
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
