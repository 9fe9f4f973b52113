"""The sampler of infinite hidden Markov models: how a chain begins, and what a sweep draws.

Some sweeps of burn-in also search for states to merge or to dissolve. Such steps are no draws from
the posterior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common.arrays import Ints
from structlearn._src.sample import hmm, split_merge
from structlearn._src.sample.emission import Arrays, Conjugate
from structlearn._src.sample.hmm import HmmInfo, HmmModel, HmmState, HmmStatistics

_NEAREST = 3  # pairs that are tried for each state: those that gain lie among the best few


@dataclass(frozen=True, eq=False)
class HmmSampler:
    """Sweeps over everything that an infinite hidden Markov model does not know.

    Sweeps in `merges` end with a search for states that are alike or small; all of them must lie in
    burn-in.
    """

    model: HmmModel
    n_start: int = 1  #: states to begin with, at random
    n_moves: int = 0  #: splits and merges that a sweep proposes
    merges: range = range(0)

    def begin(self, rng: Generator) -> HmmState:
        """Return a state to begin with: every position in a random state.

        Classifiers from the prior are so firm that they choose the states, and take hundreds of
        sweeps to forget. So they begin blank where searches merge what is left alike.
        """
        states = rng.integers(self.n_start, size=self.model.n_positions)
        return hmm.start(self.model, states, rng, blank=bool(self.merges))

    def step(self, state: HmmState, rng: Generator, sweep: int) -> tuple[HmmState, HmmInfo]:
        """Draw paths, split and merge states, and draw everything else."""
        model = self.model
        state, counts, n_open, log_density = hmm.draw_paths(model, state, rng)
        given = hmm.statistics(model, state, counts)
        n_moved = 0
        for _ in range(self.n_moves):
            state, given, accepted = split_merge.split_or_merge(model, state, given, rng)
            n_moved += accepted
        if sweep in self.merges:
            state = dissolve_small(model, merge_alike(model, state, rng))
            given = hmm.statistics(model, state)
        state = hmm.draw_given_paths(model, state, rng, given)
        alpha, gamma, _, _ = state.process
        return state, HmmInfo(state.n_states, n_open, n_moved, alpha, gamma, log_density)


def merge_sweeps(burn_in: int) -> range:
    """Return the sweeps of burn-in that search for states to merge.

    The first quarter has none, as states must find their places before; then every eighth has one.
    """
    return range(burn_in // 4, burn_in, max(burn_in // 8, 1))


def merge_alike(model: HmmModel, state: HmmState, rng: Generator) -> HmmState:
    """Merge the two states that gain most by it, as long as any two gain.

    The gain is that of the log evidence of what was seen and of the paths given sticks; of
    non-conjugate emissions, that of the log weight of proposed parameters.
    """
    found = hmm.statistics(model, state)
    proposals = Proposals(model, rng)
    while state.n_states > 1:
        for gain, one, two in _likely(model, state, found):
            union = proposals.of(state, one, two)
            apart = proposals.of(state, one).log_weight + proposals.of(state, two).log_weight
            if gain + union.log_weight - apart > 0.0:
                break
        else:
            break
        state = split_merge.merge_states(state, one, two)
        found = split_merge.merge_statistics(found, one, two)
        for i, parameters in union.parameters.items():
            for array, row in zip(state.parameters[i], parameters, strict=True):
                array[one - (two < one)] = row[0]
    return state


class Proposed(NamedTuple):
    """Parameters of one state by the places of emissions, and their log weight in all."""

    parameters: dict[int, Arrays]
    log_weight: float


class Proposals:
    """Proposed parameters of non-conjugate emissions for sets of positions, once for each set."""

    def __init__(self, model: HmmModel, rng: Generator) -> None:
        self._model = model
        self._rng = rng
        self._known: dict[bytes, Proposed] = {}

    def of(self, state: HmmState, *states: int) -> Proposed:
        """Return what is proposed for the positions of some states together."""
        positions = np.flatnonzero(np.isin(state.states, states))
        key = positions.tobytes()
        if key not in self._known:
            made = {i: e.subset(positions).propose(self._rng) for i, e in self._model.non_conjugate}
            parameters = {i: own for i, (own, _) in made.items()}
            self._known[key] = Proposed(parameters, sum(value for _, value in made.values()))
        return self._known[key]


def _likely(model: HmmModel, state: HmmState, found: HmmStatistics) -> list[tuple[float, int, int]]:
    """Return gains and states of unions that may gain, by conjugate emissions and paths alone.

    The best comes first. Paths are looked at only for unions that explain best what was seen.
    """
    n = found.counts.shape[1]
    ones, twos = np.triu_indices(n, 1)
    gains = np.zeros(len(ones))
    for emission, own in zip(model.emissions, found.emitted, strict=True):
        if isinstance(emission, Conjugate):
            alone = emission.log_evidence(own)
            gains += emission.log_evidence(tuple(a[ones] + a[twos] for a in own))
            gains -= alone[ones] + alone[twos]
    before = state.process.log_probability(found.counts)
    paths = HmmStatistics(found.counts, ())
    unions = []
    for i in np.argsort(-gains)[: _NEAREST * n]:
        one, two = int(ones[i]), int(twos[i])
        joined = split_merge.merge_statistics(paths, one, two).counts
        gain = gains[i] + state.process.merge(one, two).log_probability(joined) - before
        unions.append((float(gain), one, two))
    return sorted((union for union in unions if union[0] > -split_merge.SLACK), reverse=True)


def dissolve_small(model: HmmModel, state: HmmState) -> HmmState:
    """Hand the positions of states below the mean size to other states, where that gains.

    For states that lie between others and have little of each: merging them with one gains nothing.
    """
    sizes = np.bincount(state.states)
    small = [k for k in np.argsort(sizes, kind="stable") if sizes[k] < sizes.mean()]
    gone: set[int] = set()
    value = _value(model, state)
    for k in small:
        left = np.array([j for j in range(state.n_states) if j != k and j not in gone])
        new = _without(model, state, int(k), left)
        after = _value(model, new)
        positions = np.flatnonzero(state.states == k)
        if after + _fit(model, new, positions) > value + _fit(model, state, positions):
            state = new
            value = after
            gone.add(int(k))
    return hmm.occupied(state)


def _without(model: HmmModel, state: HmmState, k: int, left: Ints) -> HmmState:
    """Let every position of state `k` take the best of the states that are `left`."""
    positions = np.flatnonzero(state.states == k)
    sizes = np.bincount(state.states, minlength=state.n_states)[left]
    logs = np.tile(np.log(sizes), (len(positions), 1))
    for emission, parameters in zip(model.emissions, _posterior_means(model, state), strict=True):
        chosen = tuple(a[left] for a in parameters)
        emission.subset(positions).add_log_densities(chosen, 0, len(positions), logs)
    states = state.states.copy()
    states[positions] = left[logs.argmax(1)]
    return state._replace(states=states)


def _posterior_means(model: HmmModel, state: HmmState) -> list[Arrays]:
    """Return the posterior means of parameters, and those of the state of non-conjugate ones."""
    return [
        emission.posterior_mean(emission.statistics(state.states, state.n_states))
        if isinstance(emission, Conjugate)
        else parameters
        for emission, parameters in zip(model.emissions, state.parameters, strict=True)
    ]


def _value(model: HmmModel, state: HmmState) -> float:
    """Log evidence of what was seen by conjugate emissions, and of the paths given sticks."""
    found = hmm.statistics(model, state)
    return state.process.log_probability(found.counts) + split_merge.log_evidence(model, found)


def _fit(model: HmmModel, state: HmmState, positions: Ints) -> float:
    """Log density of some positions in their states by non-conjugate emissions."""
    logs = np.zeros((len(positions), state.n_states))
    for i, emission in model.non_conjugate:
        own = emission.subset(positions)
        own.add_log_densities(state.parameters[i], 0, len(positions), logs)
    return float(np.take_along_axis(logs, state.states[positions, None], 1).sum())
