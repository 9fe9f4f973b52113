"""Labels as what states emit: a max-margin classifier in every state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.draw import density
from structlearn._src.sample import hinge
from structlearn._src.sample.emission import Arrays, NonConjugate
from structlearn._src.sample.hinge import Hinge
from structlearn._src.sample.proposal import WeightProposal


@dataclass(frozen=True, eq=False)
class LabelEmission(NonConjugate):
    """Labels that every state gives by a classifier of its own.

    Parameters are the weights (states, labels, features) alone.
    """

    features: Floats  #: (positions, features) a constant among them
    labels: Ints  #: (positions,) -1 where not known
    n_labels: int
    loss: Hinge

    def __post_init__(self) -> None:
        object.__setattr__(self, "_columns", np.ascontiguousarray(self.features.T))

    def draw_prior(self, n_states: int, rng: np.random.Generator) -> Arrays:
        """Draw the weights of new states from their prior."""
        shape = (n_states, self.n_labels, self.features.shape[1])
        return (hinge.prior_weights(self.loss.variance, shape, rng),)

    def draw(
        self, states: Ints, parameters: Arrays, rng: np.random.Generator, n_jobs: int | None = 1
    ) -> Arrays:
        """Draw the weights given the state of every position and the weights so far."""
        (weights,) = parameters
        new = self.loss.draw_weights(self.features, self.labels, states, weights, rng, n_jobs)
        return (new,)

    def add_log_densities(self, parameters: Arrays, first: int, last: int, out: Floats) -> None:
        """Add the log potentials of positions `first` to `last` in every state to `out`."""
        columns: Floats = self._columns  # type: ignore[attr-defined]
        factor = -2.0 * self.loss.c
        density.add_hinges(
            columns, self.labels, parameters[0], factor, self.loss.cost, first, last, out
        )

    def subset(self, positions: Ints) -> LabelEmission:
        """Return the same emission for some of the positions."""
        return replace(self, features=self.features[positions], labels=self.labels[positions])

    def propose(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Draw the weights of one state that has all positions; also return their log weight."""
        proposal = self._proposal()
        differences = proposal.draw(rng)
        weights = _from_first(differences)
        if self.n_labels > 2:  # the mean over labels does not matter: drawn from the prior
            deviation = np.sqrt(self.loss.variance / self.n_labels)
            weights += deviation * rng.standard_normal(weights.shape[1]) - weights.mean(0)
        return (weights[None],), self._log_weight(differences, proposal)

    def log_weight_of(self, parameters: Arrays) -> float:
        """Return the log weight of the weights of one state, had they been proposed."""
        (weights,) = parameters[0]
        return self._log_weight(weights[1:] - weights[0], self._proposal())

    def fitted(self) -> tuple[Arrays, float]:
        """Return the mean of the proposal, and its log weight."""
        proposal = self._proposal()
        weights = _from_first(proposal.means)
        return (weights[None],), self._log_weight(proposal.means, proposal)

    def _proposal(self) -> WeightProposal:
        known = self.labels >= 0
        return WeightProposal.fit(
            self.loss, self.features[known], self.labels[known], self.n_labels
        )

    def _log_weight(self, differences: Floats, proposal: WeightProposal) -> float:
        return self._log_posterior(differences) - proposal.log_density(differences)

    def _log_posterior(self, differences: Floats) -> float:
        """Log of the prior of differences to the first label, and the potentials of all labels."""
        weights = _from_first(differences)
        L, width = weights.shape
        variance = self.loss.variance
        fit = self.loss.log_potential(self.features @ weights.T, self.labels).sum()
        around = ((weights - weights.mean(0)) ** 2).sum() / variance
        constant = (L - 1) * np.log(2.0 * np.pi * variance) + np.log(L)
        return float(fit - 0.5 * (around + width * constant))

    def relabelled(self, labels: Ints) -> LabelEmission:
        """Return the same emission with other labels."""
        return replace(self, labels=labels)


def _from_first(differences: Floats) -> Floats:
    """Return weights with these differences to those of the first label, which are 0."""
    return np.vstack([np.zeros(differences.shape[1]), differences])
