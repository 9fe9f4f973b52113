"""Labels as what states emit: a max-margin classifier in every state."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.draw import density
from structlearn._src.sample import hinge
from structlearn._src.sample.emission import Arrays, NonConjugate
from structlearn._src.sample.hinge import Hinge

_STEPS = 3  # of a rough fit, which is repeated as sides change


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

    def refined(self, states: Ints, n_states: int, before: Arrays | None) -> Arrays:
        """Fit weights to the positions of states, by a few steps from those before."""
        shape = (n_states, self.n_labels, self.features.shape[1])
        (weights,) = (np.zeros(shape),) if before is None else before
        own = [np.flatnonzero((states == k) & (self.labels >= 0)) for k in range(n_states)]
        fitted = [
            self.loss.fit_weights(self.features[rows], self.labels[rows], start, _STEPS)
            for rows, start in zip(own, weights, strict=True)
        ]
        return (np.array(fitted),)

    def propose(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Anneal weights from their prior to the posterior of one state that has all positions."""
        ((weights,),) = self.draw_prior(1, rng)
        weights, log_weight = self._annealed(weights, rng, up=True)
        return (weights[None],), log_weight

    def log_weight_of(self, parameters: Arrays, rng: np.random.Generator) -> float:
        """Anneal the weights of one state back to their prior: the log weight of that path."""
        return self._annealed(parameters[0][0], rng, up=False)[1]

    def _annealed(
        self, weights: Floats, rng: np.random.Generator, up: bool
    ) -> tuple[Floats, float]:
        known = self.labels >= 0
        return self.loss.anneal(self.features[known], self.labels[known], weights, rng, up)

    def relabelled(self, labels: Ints) -> LabelEmission:
        """Return the same emission with other labels."""
        return replace(self, labels=labels)
