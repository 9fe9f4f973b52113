"""Labels as a part of what states emit: a max-margin classifier in every state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.draw import density
from structlearn._src.sample import hinge
from structlearn._src.sample import proposal as guess
from structlearn._src.sample.emission import Arrays, Proposing
from structlearn._src.sample.hinge import Hinge
from structlearn._src.sample.proposal import Guess


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
    """

    features: Floats
    labels: Ints
    n_labels: int
    loss: Hinge

    def __post_init__(self) -> None:
        object.__setattr__(self, "_columns", np.ascontiguousarray(self.features.T))

    def prior(self, n_states: int, rng: np.random.Generator) -> Arrays:
        """Draw the weights of states that nothing is known of."""
        shape = (n_states, self.n_labels, self.features.shape[1])
        return (hinge.prior_weights(self.loss.variance, shape, rng),)

    def draw(
        self,
        states: Ints,
        n_states: int,
        parameters: Arrays,
        rng: np.random.Generator,
        n_jobs: int | None = 1,
    ) -> Arrays:
        """Draw the weights given the state of every position and the weights so far."""
        given = self.features, self.labels, states, parameters[0]
        return (hinge.draw_weights(self.loss, *given, rng, n_jobs),)

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
        proposal = self._guess()
        differences = proposal.draw(rng)
        weights = _from_first(differences)
        if self.n_labels > 2:  # what all labels share is free: drawn from the prior
            spread = np.sqrt(self.loss.variance / self.n_labels)
            weights += spread * rng.standard_normal(weights.shape[1]) - weights.mean(0)
        return (weights[None],), self._worth(differences, proposal)

    def appraise(self, parameters: Arrays) -> float:
        """Return the worth of the weights of one state, had they been proposed."""
        (weights,) = parameters[0]
        return self._worth(weights[1:] - weights[0], self._guess())

    def fitted(self) -> tuple[Arrays, float]:
        """Return the weights in the middle of what is proposed, and their worth."""
        proposal = self._guess()
        return (_from_first(proposal.means)[None],), self._worth(proposal.means, proposal)

    def _guess(self) -> Guess:
        known = self.labels >= 0
        return guess.fit(self.loss, self.features[known], self.labels[known], self.n_labels)

    def _worth(self, differences: Floats, proposal: Guess) -> float:
        return self._log_posterior(differences) - proposal.log_density(differences)

    def _log_posterior(self, differences: Floats) -> float:
        """Log of the prior of differences to the first label, and the potentials of all labels."""
        weights = _from_first(differences)
        fit = hinge.log_potential(self.loss, self.features @ weights.T, self.labels).sum()
        (L, width), variance = weights.shape, self.loss.variance
        around = ((weights - weights.mean(0)) ** 2).sum() / variance
        constant = (L - 1) * np.log(2.0 * np.pi * variance) + np.log(L)
        return float(fit - 0.5 * (around + width * constant))

    def relabelled(self, labels: Ints) -> Labelled:
        """Return the same part with other labels."""
        return replace(self, labels=labels)


def _from_first(differences: Floats) -> Floats:
    """Return weights with these differences to those of the first label, which are 0."""
    return np.vstack([np.zeros(differences.shape[1]), differences])
