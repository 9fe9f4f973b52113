r"""Dirichlet process mixtures of classifiers: a collapsed Gibbs sampler.

Row :math:`d` belongs to component :math:`z_d`, which has a Gaussian for its features and a
classifier for its label. The Gaussians are integrated out. With :math:`n_k` other rows in
component :math:`k`, the row goes to

.. math:: k: \; n_k \, t_k(x_d) \, \phi_d(\eta_k), \qquad
          \text{a new one: } \; \alpha \, t_0(x_d) \int \phi_d(\eta) \, p(\eta) \, d\eta,

where :math:`t` are Student densities and :math:`\phi` is the potential of the label. The integral
is exact, and so is the draw of the weights of a new component.

References
----------
A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014, section 4.1.
M. Escobar and M. West, "Bayesian density estimation and inference using mixtures", JASA 1995.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.draw import mixture as kernels
from structlearn._src.sample import hinge
from structlearn._src.sample.classifier import Classifier
from structlearn._src.sample.hdp import Concentration, draw_gamma, first_value
from structlearn._src.sample.normal_wishart import Moments, NormalWishart

_ROOM = 16  # components for which there is room beyond those that are there


@dataclass(frozen=True, eq=False)
class Rows:
    """What is given: features and labels of rows, and the priors.

    Parameters
    ----------
    X
        (rows, D) What the Gaussians see.
    V
        (rows, M) What the classifiers see.
    labels
        (rows,) From 0; -1 where missing.
    n_labels
        Number of labels.
    prior
        Of means and covariances.
    classifier
        Of every component.
    concentration
        What is given of it: a number, or a prior.
    """

    X: Floats
    V: Floats
    labels: Ints
    n_labels: int
    prior: NormalWishart
    classifier: Classifier
    concentration: Concentration = 1.0


class State(NamedTuple):
    """Component of every row, weights of their classifiers (K, L, M), and the concentration."""

    assigned: Ints
    weights: Floats
    concentration: float


class Info(NamedTuple):
    """What one sweep tells: number of components, concentration, mean log potential of labels."""

    n_components: int
    concentration: float
    log_potential: float


class Draw(NamedTuple):
    """What predictions need of a state: sizes, posteriors and weights of the components."""

    counts: Ints
    after: NormalWishart
    weights: Floats
    concentration: float


def start(rows: Rows, components: int, rng: np.random.Generator) -> State:
    """Return a state with rows in components at random, and weights from their prior."""
    _, assigned = np.unique(rng.integers(components, size=len(rows.X)), return_inverse=True)
    shape = (int(assigned.max()) + 1, rows.n_labels, rows.V.shape[1])
    weights = hinge.prior_weights(rows.classifier.variance, shape, rng)
    return State(assigned.astype(np.int64), weights, first_value(rows.concentration))


class Sampler:
    """Sweeps over a mixture: pure steps, from a state to the next."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._prior = _prior(rows.prior, len(rows.X), rows.classifier)
        known = rows.classifier.log_fresh(rows.V, rows.n_labels)
        self._fresh = rows.prior.log_predictive(rows.X) + np.where(rows.labels < 0, 0.0, known)

    def step(self, state: State, rng: np.random.Generator) -> tuple[State, Info]:
        """Draw components, weights and the concentration anew."""
        rows = self.rows
        assigned, weights = self._assign(state, rng)
        weights = rows.classifier.draw_weights(rows.V, rows.labels, assigned, weights, rng)
        before, counts = state.concentration, (len(weights), len(assigned))
        alpha = draw_gamma(rows.concentration, before, *counts, rng)
        new = State(assigned, weights, alpha)
        return new, Info(len(weights), alpha, self.log_potential(new))

    def log_potential(self, state: State) -> float:
        """Return the mean log potential of the labels."""
        scores = np.einsum("tlm,tm->tl", state.weights[state.assigned], self.rows.V)
        return float(self.rows.classifier.log_potential(scores, self.rows.labels).mean())

    def draw(self, state: State) -> Draw:
        """Return what predictions need."""
        given = moments(self.rows.X, state.assigned, len(state.weights))
        after = self.rows.prior.posterior(given)
        return Draw(given.counts.astype(np.int64), after, state.weights, state.concentration)

    def _assign(self, state: State, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Draw the components of all rows, stopping for the weights of every new one."""
        rows, assigned, vector = self.rows, state.assigned.copy(), np.empty(self.rows.X.shape[1])
        uniforms, log_new = rng.random(len(assigned)), self._fresh + np.log(state.concentration)
        parts, K, at, new = _components(self.draw(state)), len(state.weights), 0, False
        while at < len(assigned):
            if len(parts.counts) == K:
                parts = _roomier(parts)
            at, K, new = kernels.assign(
                self._prior, parts, rows.X, rows.V, rows.labels, log_new, assigned, uniforms,
                np.empty(len(parts.counts) + 1), vector, at, K,
            )  # fmt: skip
            if new:
                parts.weights[K - 1] = self._new_weights(at - 1, rng)
        return assigned, parts.weights[:K].copy()

    def _new_weights(self, t: int, rng: np.random.Generator) -> Floats:
        """Draw the weights of a component that row `t` has opened."""
        rows, label = self.rows, int(self.rows.labels[t])
        if label >= 0:
            return rows.classifier.draw_fresh(rows.V[t], label, rows.n_labels, rng)
        shape = (1, rows.n_labels, rows.V.shape[1])
        return hinge.prior_weights(rows.classifier.variance, shape, rng)[0]


def votes(draws: Sequence[Draw], prior: NormalWishart, classifier: Classifier, X: Floats,
          V: Floats) -> Floats:  # fmt: skip
    r"""(rows, L) Mean over draws of the label probabilities of rows.

    A row belongs to component k with a probability proportional to :math:`n_k t_k(x)`, and to one
    that has not been seen with :math:`\alpha t_0(x)`, whose vote all labels share. Max-margin
    components vote for their best label.
    """
    L = draws[0].weights.shape[1]
    out, vector, alone = np.zeros((len(X), L)), np.empty(X.shape[1]), prior.log_predictive(X)
    known = _prior(prior, max(int(draw.counts.max()) for draw in draws), classifier)
    for draw in draws:
        values = np.empty(len(draw.counts) + 1)
        log_new = alone + np.log(draw.concentration)
        kernels.votes(known, _components(draw), X, V, log_new, values, vector, out)
    return out / len(draws)


def _prior(prior: NormalWishart, rows: int, classifier: Classifier) -> kernels.Prior:
    """Return what kernels know of the priors, for components of up to so many rows."""
    strength, degrees, width = float(prior.strength), float(prior.degrees), prior.width
    n = np.arange(rows + 1)
    constants = (
        0.5 * width * np.log((strength + n) / (strength + n + 1.0) / np.pi)
        + gammaln((degrees + n + 1.0) / 2)
        - gammaln((degrees + n + 1.0 - width) / 2)
    )
    factor = np.linalg.cholesky(prior.scale)
    return kernels.Prior(prior.mean, factor, constants, strength, degrees, *classifier.code)


def moments(X: Floats, assigned: Ints, components: int) -> Moments:
    """Return number, sums and sums of outer products of the rows of every component."""
    order = np.argsort(assigned, kind="stable")
    borders = np.searchsorted(assigned[order], np.arange(components + 1))
    parts = np.split(X[order], borders[1:-1])
    sums, outers = (part.sum(axis=0) for part in parts), (part.T @ part for part in parts)
    return Moments(np.diff(borders).astype(np.float64), np.stack([*sums]), np.stack([*outers]))


def _components(draw: Draw) -> kernels.Components:
    factors = np.linalg.cholesky(draw.after.scale)
    logs = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return kernels.Components(
        draw.counts.copy(), draw.after.mean.copy(), factors, logs, draw.weights.copy()
    )


def _roomier(parts: kernels.Components) -> kernels.Components:
    """Return a copy with room for more components."""
    room = len(parts.counts) + _ROOM
    return kernels.Components(*(np.resize(array, (room, *array.shape[1:])) for array in parts))
