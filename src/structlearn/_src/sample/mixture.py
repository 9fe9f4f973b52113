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
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.watch import must_end
from structlearn._src.kernels.draw import mixture as kernels
from structlearn._src.sample.emission import Gaussian
from structlearn._src.sample.hdp import Concentration, Restaurant, draw_gamma, first_value
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.hmm import HmmModel, HmmState, statistics
from structlearn._src.sample.priors import Moments, NormalWishart
from structlearn._src.sample.split_merge import split_or_merge

_ROOM = 16  # components that arrays grow by: copies are rare, and idle ones cost little


class MixtureModel(HmmModel):
    """Rows, their labels and the priors: a chain model whose sequences are single rows."""

    emissions: tuple[Gaussian, LabelEmission]

    @staticmethod
    def of(points: Gaussian, labelled: LabelEmission, concentration: Concentration) -> MixtureModel:
        """Return the mixture of rows; it has no sticks."""
        offsets = np.arange(len(points.data) + 1)
        return MixtureModel(offsets, (points, labelled), concentration, 0.0)


class MixtureState(HmmState):
    """Component of every row, weights of their classifiers (K, L, M), and the concentration."""

    __slots__ = ()

    @staticmethod
    def of(assigned: Ints, weights: Floats, concentration: float) -> MixtureState:
        """Return a state; Gaussians are integrated out and have no parameters."""
        process: Any = Restaurant(concentration, len(weights))
        return MixtureState(assigned, process, ((), (weights,)))

    @property
    def assigned(self) -> Ints:
        """(rows,) Their components."""
        return self.states

    @property
    def weights(self) -> Floats:
        """(K, L, M) Of the classifiers."""
        return self.parameters[1][0]

    @property
    def concentration(self) -> float:
        """Of the Dirichlet process."""
        return self.process.alpha


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
    """Sweeps over a mixture: components row by row, then splits and merges, then all else.

    It begins with `n_start` components at random.
    """

    def __init__(self, model: MixtureModel, n_start: int = 1, n_moves: int = 0) -> None:
        self.model = model
        self.n_start = n_start
        self.n_moves = n_moves
        points, labelled = model.emissions
        assert isinstance(points.prior, NormalWishart)
        self.classifier = labelled.loss
        self.prior = points.prior
        self._kernel_prior = kernel_prior(self.prior, len(points.data), self.classifier)
        expected = self.classifier.log_expected_potential(labelled.features, labelled.n_labels)
        self._log_new = self.prior.log_predictive(points.data)
        self._log_new += np.where(labelled.labels < 0, 0.0, expected)

    def begin(self, rng: Generator) -> MixtureState:
        """Return a state with rows in components at random, and weights from their prior."""
        drawn = rng.integers(self.n_start, size=self.model.n_positions)
        _, assigned = np.unique(drawn, return_inverse=True)
        (weights,) = self.model.emissions[1].draw_prior(int(assigned.max()) + 1, rng)
        return MixtureState.of(assigned.astype(np.int64), weights, first_value(self.model.alpha))

    def step(
        self, state: MixtureState, rng: Generator, sweep: int = 0
    ) -> tuple[MixtureState, MixtureInfo]:
        """Draw components, weights and the concentration anew."""
        model = self.model
        moved: HmmState = self._assign(state, rng)
        found = statistics(model, moved)
        for i in range(self.n_moves):
            if i and must_end():
                break
            moved, found, _ = split_or_merge(model, moved, found, rng)
        (weights,) = model.emissions[1].draw(moved.states, moved.parameters[1], rng)
        alpha = draw_gamma(model.alpha, state.concentration, len(weights), model.n_positions, rng)
        new = MixtureState.of(moved.states, weights, alpha)
        return new, MixtureInfo(len(weights), alpha, self._log_potential(new))

    def _log_potential(self, state: MixtureState) -> float:
        """Return the mean log potential of the labels."""
        labelled = self.model.emissions[1]
        scores = np.einsum("tlm,tm->tl", state.weights[state.assigned], labelled.features)
        return float(self.classifier.log_potential(scores, labelled.labels).mean())

    def draw(self, state: MixtureState) -> MixtureDraw:
        """Return what predictions need."""
        points, _ = self.model.emissions
        given = Moments(*points.statistics(state.assigned, state.n_states))
        after = self.prior.posterior(given)
        return MixtureDraw(given.counts.astype(np.int64), after, state.weights, state.concentration)

    def _assign(self, state: MixtureState, rng: Generator) -> MixtureState:
        """Draw the components of all rows.

        The kernel returns whenever a row opens a component, whose weights are drawn here: with
        functions that compiled code does not have.
        """
        points, labelled = self.model.emissions
        assigned = state.assigned.copy()
        uniforms = rng.random(len(assigned))
        log_new = self._log_new + np.log(state.concentration)
        components = kernel_components(self.draw(state))
        scratch = np.empty(points.data.shape[1])
        K = state.n_states
        row = 0
        while row < len(assigned):
            if len(components.counts) == K:
                components = _with_room(components)
            row, K, opened = kernels.assign(
                self._kernel_prior, components, points.data, labelled.features, labelled.labels,
                log_new, assigned, uniforms, np.empty(len(components.counts) + 1), scratch, row, K,
            )  # fmt: skip
            if opened:
                components.weights[K - 1] = self._new_weights(row - 1, rng)
        return MixtureState.of(assigned, components.weights[:K].copy(), state.concentration)

    def _new_weights(self, row: int, rng: Generator) -> Floats:
        """Draw the weights of a component that a row has opened."""
        _, labelled = self.model.emissions
        label = int(labelled.labels[row])
        if label < 0:
            return labelled.draw_prior(1, rng)[0][0]
        v = labelled.features[row]
        return self.classifier.draw_new_weights(v, label, labelled.n_labels, rng)


def votes(
    draws: Sequence[MixtureDraw], prior: NormalWishart, classifier: Hinge, X: Floats, V: Floats
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


def student_constants(strength: float, degrees: float, width: int, rows: int) -> Floats:
    """(rows + 1,) Constants of the predictive densities after so many points, without volumes.

    That after n points is Student's t: by the squared distance d of a point from the mean in the
    scale matrix S, with N = strength + n, it is ``constant - log |S| / 2 - (degrees + n + 1) / 2 *
    log(1 + d N / (N + 1))``.
    """
    n = np.arange(rows + 1)
    shrunk: Floats = (
        0.5 * width * np.log((strength + n) / (strength + n + 1.0) / np.pi)
        + gammaln((degrees + n + 1.0) / 2)
        - gammaln((degrees + n + 1.0 - width) / 2)
    )
    return shrunk


def kernel_prior(prior: NormalWishart, rows: int, classifier: Hinge) -> kernels.Prior:
    """Return what kernels know of the priors, for components of up to so many rows."""
    strength = float(prior.strength)
    degrees = float(prior.degrees)
    constants = student_constants(strength, degrees, prior.width, rows)
    factor = np.linalg.cholesky(prior.scale)
    return kernels.Prior(prior.mean, factor, constants, strength, degrees, *classifier.code)


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
