"""The sampler of infinite hidden Markov models: how a chain begins, and what a sweep draws.

Some sweeps of burn-in also try to merge all states that are alike. They try more merges than
splits, so that they are no draws from the posterior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from structlearn._src.common.watch import must_end
from structlearn._src.sample import hmm, paths, split_merge
from structlearn._src.sample.emission import Conjugate
from structlearn._src.sample.hmm import HmmInfo, HmmModel, HmmState, HmmStatistics

_NEAREST = 3  # pairs that are tried for each state: those that gain lie among the best few


@dataclass(frozen=True, eq=False)
class HmmSampler:
    """Sweeps over everything that an infinite hidden Markov model does not know.

    Sweeps in `merges` end with a search for states that are alike; all of them must lie in burn-in.
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
        state, given, n_open, log_density = paths.draw_paths(model, state, rng)
        state, given, n_moved = split_merge.split_and_merge(model, state, given, self.n_moves, rng)
        if sweep in self.merges:
            state, given = merge_alike(model, state, given, rng)
        state = hmm.draw_given_paths(model, state, rng, given)
        alpha, gamma, _, _ = state.process
        return state, HmmInfo(state.n_states, n_open, n_moved, alpha, gamma, log_density)


def merge_sweeps(burn_in: int) -> range:
    """Return the sweeps of burn-in that search for states to merge.

    The first quarter has none, as states must find their places before; then every eighth has one.
    """
    return range(burn_in // 4, burn_in, max(burn_in // 8, 1))


def merge_alike(
    model: HmmModel, state: HmmState, found: HmmStatistics, rng: Generator
) -> tuple[HmmState, HmmStatistics]:
    """Propose to merge pairs of states, the most alike first, until none of them is accepted.

    Proposals are accepted as those of exact moves are, with the probability of the split back. A
    gain of evidence alone would not do: of states that overlap, any one way to share positions out
    is less likely than their union, but there are many ways.
    """
    pairs = _likely(model, state, found)
    while pairs and not must_end():
        moved = split_merge.propose_merge(model, state, found, pairs.pop(0), rng)
        if moved is not None:
            state, found = moved
            pairs = _likely(model, state, found)
    return state, found


def _likely(model: HmmModel, state: HmmState, found: HmmStatistics) -> list[tuple[int, int]]:
    """Return pairs of states whose unions may gain, by conjugate emissions and paths alone.

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
    likely = sorted((union for union in unions if union[0] > -split_merge.SLACK), reverse=True)
    return [(one, two) for _, one, two in likely]
