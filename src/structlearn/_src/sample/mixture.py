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
from structlearn._src.sample.hdp import Concentration, draw_gamma, first_value
from structlearn._src.sample.new_component import MaxMargin
from structlearn._src.sample.normal_wishart import Moments, NormalWishart

_ROOM = 16  # components that arrays grow by: copies are rare, and idle ones cost little


@dataclass(frozen=True, eq=False)
class MixtureData:
    """What is given: features and labels of rows, and the priors."""

    X: Floats  #: (rows, D) what the Gaussians see
    V: Floats  #: (rows, M) what the classifiers see
    labels: Ints  #: (rows,) from 0; -1 where missing
    n_labels: int
    prior: NormalWishart
    classifier: MaxMargin  #: of every component; a subclass may have another potential
    concentration: Concentration = 1.0


class MixtureState(NamedTuple):
    """Component of every row, weights of their classifiers (K, L, M), and the concentration."""

    assigned: Ints
    weights: Floats
    concentration: float


class MixtureInfo(NamedTuple):
    """What one sweep tells: number of components, concentration, mean log potential of labels."""

    n_components: int
    concentration: float
    log_potential: float


class MixtureDraw(NamedTuple):
    """What predictions need of a state: sizes, posteriors and weights of the components."""

    counts: Ints
    after: NormalWishart
    weights: Floats
    concentration: float


class MixtureSampler:
    """Sweeps over a mixture, which begins with `n_start` components at random."""

    def __init__(self, data: MixtureData, n_start: int = 1) -> None:
        self.data = data
        self.n_start = n_start
        self._prior = kernel_prior(data.prior, len(data.X), data.classifier)
        expected = data.classifier.log_expected_potential(data.V, data.n_labels)
        self._log_new = data.prior.log_predictive(data.X) + np.where(data.labels < 0, 0.0, expected)

    def begin(self, rng: np.random.Generator) -> MixtureState:
        """Return a state with rows in components at random, and weights from their prior."""
        data = self.data
        drawn = rng.integers(self.n_start, size=len(data.X))
        _, assigned = np.unique(drawn, return_inverse=True)
        shape = (int(assigned.max()) + 1, data.n_labels, data.V.shape[1])
        weights = hinge.prior_weights(data.classifier.variance, shape, rng)
        return MixtureState(assigned.astype(np.int64), weights, first_value(data.concentration))

    def step(
        self, state: MixtureState, rng: np.random.Generator, sweep: int = 0
    ) -> tuple[MixtureState, MixtureInfo]:
        """Draw components, weights and the concentration anew."""
        data = self.data
        assigned, weights = self._assign(state, rng)
        weights = data.classifier.draw_weights(data.V, data.labels, assigned, weights, rng)
        alpha = draw_gamma(
            data.concentration, state.concentration, len(weights), len(assigned), rng
        )
        new = MixtureState(assigned, weights, alpha)
        return new, MixtureInfo(len(weights), alpha, self._log_potential(new))

    def _log_potential(self, state: MixtureState) -> float:
        """Return the mean log potential of the labels."""
        scores = np.einsum("tlm,tm->tl", state.weights[state.assigned], self.data.V)
        return float(self.data.classifier.log_potential(scores, self.data.labels).mean())

    def draw(self, state: MixtureState) -> MixtureDraw:
        """Return what predictions need."""
        given = moments(self.data.X, state.assigned, len(state.weights))
        after = self.data.prior.posterior(given)
        return MixtureDraw(given.counts.astype(np.int64), after, state.weights, state.concentration)

    def _assign(self, state: MixtureState, rng: np.random.Generator) -> tuple[Ints, Floats]:
        """Draw the components of all rows.

        The kernel returns whenever a row opens a component, whose weights are drawn here: with
        functions that compiled code does not have.
        """
        data = self.data
        assigned = state.assigned.copy()
        uniforms = rng.random(len(assigned))
        log_new = self._log_new + np.log(state.concentration)
        components = kernel_components(self.draw(state))
        scratch = np.empty(data.X.shape[1])
        K = len(state.weights)
        row = 0
        while row < len(assigned):
            if len(components.counts) == K:
                components = _with_room(components)
            row, K, opened = kernels.assign(
                self._prior, components, data.X, data.V, data.labels, log_new, assigned, uniforms,
                np.empty(len(components.counts) + 1), scratch, row, K,
            )  # fmt: skip
            if opened:
                components.weights[K - 1] = self._new_weights(row - 1, rng)
        return assigned, components.weights[:K].copy()

    def _new_weights(self, row: int, rng: np.random.Generator) -> Floats:
        """Draw the weights of a component that a row has opened."""
        data = self.data
        label = int(data.labels[row])
        if label >= 0:
            return data.classifier.draw_new_weights(data.V[row], label, data.n_labels, rng)
        shape = (1, data.n_labels, data.V.shape[1])
        return hinge.prior_weights(data.classifier.variance, shape, rng)[0]


def votes(
    draws: Sequence[MixtureDraw],
    prior: NormalWishart,
    classifier: MaxMargin,
    X: Floats,
    V: Floats,
) -> Floats:
    r"""(rows, L) Mean over draws of the label probabilities of rows.

    A row belongs to component k with a probability proportional to :math:`n_k t_k(x)`, and to one
    that has not been seen with :math:`\alpha t_0(x)`, whose vote all labels share. Max-margin
    components vote for their best label.
    """
    out = np.zeros((len(X), draws[0].weights.shape[1]))
    scratch = np.empty(X.shape[1])
    alone = prior.log_predictive(X)
    known = kernel_prior(prior, max(int(draw.counts.max()) for draw in draws), classifier)
    for draw in draws:
        values = np.empty(len(draw.counts) + 1)
        log_new = alone + np.log(draw.concentration)
        kernels.votes(known, kernel_components(draw), X, V, log_new, values, scratch, out)
    return out / len(draws)


def kernel_prior(prior: NormalWishart, rows: int, classifier: MaxMargin) -> kernels.Prior:
    """Return what kernels know of the priors, for components of up to so many rows."""
    strength = float(prior.strength)
    degrees = float(prior.degrees)
    width = prior.width
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
    sums = np.stack([part.sum(axis=0) for part in parts])
    outers = np.stack([part.T @ part for part in parts])
    return Moments(np.diff(borders).astype(np.float64), sums, outers)


def kernel_components(draw: MixtureDraw) -> kernels.Components:
    """Return the components of a draw as kernels take them: with factors of scale matrices."""
    factors = np.linalg.cholesky(draw.after.scale)
    logs = 2.0 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    return kernels.Components(
        draw.counts.copy(), draw.after.mean.copy(), factors, logs, draw.weights.copy()
    )


def _with_room(components: kernels.Components) -> kernels.Components:
    """Return a copy with room for more components."""
    room = len(components.counts) + _ROOM
    return kernels.Components(*(np.resize(a, (room, *a.shape[1:])) for a in components))
