"""Labels as a part of what states emit: a max-margin classifier in every state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.stats import norm

from structlearn.common.checks import Floats, Ints
from structlearn.kernels import density
from structlearn.sample import hinge
from structlearn.sample.emission import Arrays, Proposing
from structlearn.sample.hinge import Hinge

_SWEEPS = 4  # before the one whose density is known
_LEAST = 1e-10  # gap to the margin, whose inverse is a mean


@dataclass(frozen=True, eq=False)
class Labelled(Proposing):
    """Labels that every state gives by a classifier of its own.

    Parameters are the weights (states, labels, features) alone.

    Parameters
    ----------
    features : array (positions, features)
        Of the classifiers, a constant among them.
    labels : array (positions,)
        -1 where not known.
    n_labels
        Number of labels.
    loss
        Choices about the potential of labels.
    n_jobs
        Number of threads for the draws of the weights; they do not depend on it.
    """

    features: Floats
    labels: Ints
    n_labels: int
    loss: Hinge
    n_jobs: int | None = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "_columns", np.ascontiguousarray(self.features.T))

    def prior(self, n_states: int, rng: np.random.Generator) -> Arrays:
        """Draw the weights of states that nothing is known of."""
        shape = (n_states, self.n_labels, self.features.shape[1])
        return (hinge.prior_weights(self.loss.variance, shape, rng),)

    def draw(
        self, states: Ints, n_states: int, parameters: Arrays, rng: np.random.Generator
    ) -> Arrays:
        """Draw the weights given the state of every position and the weights so far."""
        given = self.features, self.labels, states, parameters[0]
        return (hinge.draw_weights(self.loss, *given, rng, self.n_jobs),)

    def add_logs(self, parameters: Arrays, first: int, last: int, out: Floats) -> None:
        """Add the log potentials of positions `first` to `last` in every state to `out`."""
        columns: Floats = self._columns  # type: ignore[attr-defined]
        by, cost = -2.0 * self.loss.c, self.loss.cost
        density.add_hinges(columns, self.labels, parameters[0], by, cost, first, last, out)

    def at(self, positions: Ints) -> Labelled:
        """Return the same part for some of the positions."""
        return replace(self, features=self.features[positions], labels=self.labels[positions])

    def propose(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Draw the weights of one state that has all positions; also return their worth."""
        weights, log_density = self._step(None, rng)
        return (weights[None],), self._log_posterior(weights) - log_density

    def appraise(self, parameters: Arrays, rng: np.random.Generator) -> float:
        """Return the worth of the weights of one state, had they been proposed."""
        weights, log_density = self._step(parameters[0][0], rng)
        return self._log_posterior(weights) - log_density

    def _step(self, given: Floats | None, rng: np.random.Generator) -> tuple[Floats, float]:
        """Draw weights by one more sweep after a few, or take those `given`; and their density.

        Given the scales that the sweep draws: these are drawn in the same way in both cases, and
        so cancel in the ratio of a move.
        """
        states = np.zeros(len(self.labels), np.int64)
        (weights,) = self.prior(1, rng)
        for _ in range(_SWEEPS):
            (weights,) = self.draw(states, 1, (weights,), rng)
        return self._last(weights[0], given, rng)

    def _last(
        self, weights: Floats, given: Floats | None, rng: np.random.Generator
    ) -> tuple[Floats, float]:
        known = self.labels >= 0
        features, labels, (c, cost, _) = self.features[known], self.labels[known], self.loss
        weights, total = weights.copy(), 0.0
        scores = features @ weights.T
        for y in range(self._first_free, self.n_labels):
            costs = cost * (np.arange(self.n_labels) != labels[:, None])
            rival = np.delete(scores + costs, y, 1).max(1) - costs[:, y]
            inverse = _inverse_gaussian(c * np.abs(rival - scores[:, y]), rng)
            pulls = c * np.where(labels == y, 1.0, -1.0) + c * c * rival * inverse
            precision = (features * (c * c * inverse)[:, None]).T @ features
            precision += np.eye(features.shape[1]) / self._spread
            root = np.linalg.cholesky(precision)
            mean = cho_solve((root, True), pulls @ features)
            noise = rng.standard_normal(len(mean))
            weights[y] = solve_triangular(root.T, noise) + mean if given is None else given[y]
            away = root.T @ (weights[y] - mean)
            total += np.log(np.diag(root)).sum() - 0.5 * (away @ away)
            total -= 0.5 * len(mean) * np.log(2.0 * np.pi)
            scores[:, y] = features @ weights[y]
        return weights, float(total)

    def _log_posterior(self, weights: Floats) -> float:
        """Log of the prior of weights (labels, features), and of the potentials of all labels."""
        scores = self.features @ weights.T
        fit = hinge.log_potential(self.loss, scores, self.labels).sum()
        free = weights[self._first_free :]
        return float(fit + norm.logpdf(free, scale=np.sqrt(self._spread)).sum())

    @property
    def _first_free(self) -> int:
        """Of two labels only the second has weights."""
        return 1 if self.n_labels == 2 else 0

    @property
    def _spread(self) -> float:
        return self.loss.variance * (2.0 if self.n_labels == 2 else 1.0)

    def relabelled(self, labels: Ints) -> Labelled:
        """Return the same part with other labels."""
        return replace(self, labels=labels)


def _inverse_gaussian(distances: Floats, rng: np.random.Generator) -> Floats:
    """Draw with means ``1 / distances`` and shape 1, as `kernels.margin` does."""
    means = 1.0 / np.maximum(distances, _LEAST)
    spreads = means * rng.standard_normal(len(means)) ** 2
    roots = 2.0 * means / (2.0 + spreads + np.sqrt(4.0 * spreads + spreads**2))
    smaller = rng.random(len(means)) * (means + roots) <= means
    return np.where(smaller, roots, means * (means / roots))
