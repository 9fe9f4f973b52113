"""Made-up chains of hidden states, each of which has its own rule for the label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from papers import checks
from papers.arrays import Floats, Ints

_STATES = 3
_ALL = np.ones((_STATES, _STATES))
_SAME = np.eye(_STATES)

#: How states follow each other: mostly the same, mostly another, or almost any.
SETTINGS = {
    "positive": 0.05 * _ALL + 0.85 * _SAME,
    "negative": 0.45 * _ALL - 0.35 * _SAME,
    "vague": 0.30 * _ALL + 0.10 * _SAME,
}


class Steps(NamedTuple):
    """One sequence: features (steps, 1), labels 0 or 1, and the hidden states."""

    features: Floats
    labels: Ints
    states: Ints


@dataclass(frozen=True, eq=False)
class Switching:
    """Gaussian states of variance 1 on a line; the label says on which side of the mean a step is.

    Parameters
    ----------
    means
        (states,)
    signs
        (states,) 1 where label 1 is right of the mean, -1 where it is left.
    transitions
        (states, states) Probabilities of the next state; the first is drawn evenly.

    References
    ----------
    A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014, section
    5.2.1, which does not say on which sides the labels are.
    """

    means: Floats
    signs: Floats
    transitions: Floats

    @classmethod
    def draw(cls, setting: str, *, sides: str = "random", random_state: Any = None) -> Switching:
        """Draw the means from -3 to 3, and sides that are "random" or the "same" for all states.

        Examples
        --------
        >>> chain = Switching.draw("positive", random_state=0)
        >>> steps = chain.sample(5, random_state=1)
        >>> steps.features.shape, steps.labels.shape
        ((5, 1), (5,))
        """
        transitions = SETTINGS[checks.one_of("setting", setting, tuple(SETTINGS))]
        checks.one_of("sides", sides, ("random", "same"))
        rng = np.random.default_rng(random_state)
        means = rng.uniform(-3.0, 3.0, _STATES)
        signs = rng.choice([-1.0, 1.0], _STATES)
        return cls(means, signs if sides == "random" else np.ones(_STATES), transitions)

    def sample(self, n_steps: int, random_state: Any = None) -> Steps:
        """Draw one sequence."""
        checks.integer("n_steps", n_steps, low=1)
        rng = np.random.default_rng(random_state)
        uniforms = rng.random(n_steps)
        borders = self.transitions.cumsum(axis=1)
        states = np.empty(n_steps, np.int64)
        states[0] = rng.integers(len(self.means))
        for t in range(1, n_steps):
            states[t] = min((borders[states[t - 1]] < uniforms[t]).sum(), len(self.means) - 1)
        noise = rng.standard_normal(n_steps)
        labels = (noise * self.signs[states] > 0.0).astype(np.int64)
        return Steps((self.means[states] + noise)[:, None], labels, states)

    def label_probabilities(self, features: Floats, *, alone: bool = False) -> Floats:
        """(steps, 2) Probabilities of the labels for someone who knows all but the states.

        Parameters
        ----------
        alone
            See every step alone instead of the whole sequence.
        """
        shares = self.state_probabilities(features, alone=alone)
        ones = np.where((features - self.means) * self.signs > 0.0, shares, 0.0).sum(axis=1)
        return np.column_stack([1.0 - ones, ones])

    def state_probabilities(self, features: Floats, *, alone: bool = False) -> Floats:
        """(steps, states) Probabilities of the states given the whole sequence, or steps alone."""
        likely = np.exp(-0.5 * (features - self.means) ** 2)
        if alone:
            every: Floats = likely / likely.sum(axis=1, keepdims=True)
            return every
        ahead = likely.copy()
        behind = np.ones_like(likely)
        for t in range(len(likely)):
            ahead[t] *= ahead[t - 1] @ self.transitions if t else 1.0
            ahead[t] /= ahead[t].sum()
        for t in range(len(likely) - 2, -1, -1):
            behind[t] = self.transitions @ (likely[t + 1] * behind[t + 1])
            behind[t] /= behind[t].sum()
        both = ahead * behind
        shares: Floats = both / both.sum(axis=1, keepdims=True)
        return shares
