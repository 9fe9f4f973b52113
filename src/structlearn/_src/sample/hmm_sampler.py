"""The sampler of infinite hidden Markov models: how a chain begins, and what a sweep draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structlearn._src.sample.hmm import (
    HmmInfo,
    HmmModel,
    HmmState,
    draw_given_paths,
    draw_paths,
    start,
    statistics,
)
from structlearn._src.sample.merge import dissolve_small, merge_alike
from structlearn._src.sample.split_merge import split_or_merge


@dataclass(frozen=True, eq=False)
class HmmSampler:
    """Sweeps over everything that an infinite hidden Markov model does not know.

    Sweeps in `merges` end with a search for states that are alike or small. They are no draws from
    the posterior, so that all of them must lie in burn-in.
    """

    model: HmmModel
    n_start: int = 1  #: states to begin with, at random
    n_moves: int = 0  #: splits and merges that a sweep proposes
    merges: range = range(0)

    def begin(self, rng: np.random.Generator) -> HmmState:
        """Return a state to begin with: every position in a random state."""
        states = rng.integers(self.n_start, size=self.model.n_positions)
        return start(self.model, states, rng)

    def step(
        self, state: HmmState, rng: np.random.Generator, sweep: int
    ) -> tuple[HmmState, HmmInfo]:
        """Draw paths, split and merge states, and draw everything else."""
        model = self.model
        state, n_tried, log_density = draw_paths(model, state, rng)
        given = statistics(model, state)
        n_moved = 0
        for _ in range(self.n_moves):
            state, given, accepted = split_or_merge(model, state, given, rng)
            n_moved += accepted
        if sweep in self.merges:
            state = dissolve_small(model, merge_alike(model, state, rng))
            given = statistics(model, state)
        state = draw_given_paths(model, state, rng, given)
        alpha, gamma, _, _ = state.process
        return state, HmmInfo(state.n_states, n_tried, n_moved, alpha, gamma, log_density)


def merge_sweeps(burn_in: int) -> range:
    """Return the sweeps of burn-in that search for states to merge.

    The first quarter has none, as states must find their places before; then every eighth has one.
    """
    return range(burn_in // 4, burn_in, max(burn_in // 8, 1))
