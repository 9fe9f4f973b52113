r"""The classifiers of components: max-margin ones, and multinomial logit ones.

Both have normal weights a priori, and one potential for each label given the scores. That of the
second is its probability,

.. math:: \phi = p(y \mid s) = \frac{e^{s_y}}{\sum_{y'} e^{s_{y'}}}.

References
----------
B. Shahbaba and R. Neal, "Nonlinear models using Dirichlet process mixtures", JMLR 2009.
I. Murray, R. Adams and D. MacKay, "Elliptical slice sampling", AISTATS 2010.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import log_softmax

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.draw.mixture import HINGE, LOGIT
from structlearn._src.sample import hinge
from structlearn._src.sample import new_component as fresh
from structlearn._src.sample.hinge import Hinge

_SLICES = 5  # elliptical slices in a sweep, which are shorter steps than those of the hinge


class Classifier(Protocol):
    """What a mixture asks of its classifiers."""

    @property
    def variance(self) -> float:
        """Prior variance of the weights."""

    @property
    def code(self) -> tuple[int, float, float]:
        """Kind, weight and cost, as kernels know them."""

    def log_potential(self, scores: Floats, labels: Ints) -> Floats:
        """(rows,) Log potential of labels given scores (rows, L); 0 without a label."""

    def log_fresh(self, V: Floats, n_labels: int) -> Floats:
        """(rows,) Log of the potential of any label, expected over the prior of the weights."""

    def draw_fresh(self, v: Floats, label: int, n_labels: int, rng: np.random.Generator) -> Floats:
        """Draw weights (L, M) from their prior times the potential of one label, exactly."""

    def draw_weights(
        self, V: Floats, labels: Ints, assigned: Ints, weights: Floats, rng: np.random.Generator
    ) -> Floats:
        """Return new weights (K, L, M), given the components of all rows."""


class MaxMargin(Hinge):
    """Classifiers by the hinge loss."""

    __slots__ = ()

    @property
    def code(self) -> tuple[int, float, float]:
        """Kind, weight and cost, as kernels know them."""
        return HINGE, self.c, self.cost

    def log_potential(self, scores: Floats, labels: Ints) -> Floats:
        """(rows,) Log potential of labels given scores (rows, L); 0 without a label."""
        return hinge.log_potential(self, scores, labels)

    def log_fresh(self, V: Floats, n_labels: int) -> Floats:
        """(rows,) Log of the potential of any label, expected over the prior of the weights."""
        return fresh.log_fresh(self, V, n_labels)

    def draw_fresh(self, v: Floats, label: int, n_labels: int, rng: np.random.Generator) -> Floats:
        """Draw weights (L, M) from their prior times the potential of one label, exactly."""
        return fresh.draw_fresh(self, v, label, n_labels, rng)

    def draw_weights(
        self, V: Floats, labels: Ints, assigned: Ints, weights: Floats, rng: np.random.Generator
    ) -> Floats:
        """Return new weights (K, L, M), given the components of all rows."""
        return hinge.draw_weights(self, V, labels, assigned, weights, rng)


class Logit(NamedTuple):
    """Classifiers by the multinomial logit."""

    variance: float = 100.0

    @property
    def code(self) -> tuple[int, float, float]:
        """Kind, weight and cost, as kernels know them."""
        return LOGIT, 1.0, 0.0

    def log_potential(self, scores: Floats, labels: Ints) -> Floats:
        """(rows,) Log probability of labels given scores (rows, L); 0 without a label."""
        own = log_softmax(scores, axis=1)[np.arange(len(labels)), np.maximum(labels, 0)]
        return np.where(labels >= 0, own, 0.0)

    def log_fresh(self, V: Floats, n_labels: int) -> Floats:
        """(rows,) Log probability of any label a priori: all are alike."""
        return np.full(len(V), -np.log(n_labels))

    def draw_fresh(self, v: Floats, label: int, n_labels: int, rng: np.random.Generator) -> Floats:
        """Draw weights (L, M) from their prior times the probability of one label, exactly.

        All labels are alike a priori: so scores from the prior draw a label, which changes places
        with the one that is given.
        """
        scores = np.sqrt(self.variance * (v @ v)) * rng.standard_normal(n_labels)
        drawn = int((scores + rng.gumbel(size=n_labels)).argmax())
        scores[[drawn, label]] = scores[[label, drawn]]
        return fresh.weights_given(self.variance, v, scores, rng)

    def draw_weights(
        self, V: Floats, labels: Ints, assigned: Ints, weights: Floats, rng: np.random.Generator
    ) -> Floats:
        """Return new weights (K, L, M) by elliptical slices, all components side by side."""
        for _ in range(_SLICES):
            weights = self._slice(V, labels, assigned, weights, rng)
        return weights

    def _slice(
        self, V: Floats, labels: Ints, assigned: Ints, weights: Floats, rng: np.random.Generator
    ) -> Floats:
        K = len(weights)

        def value(given: Floats) -> Floats:
            scores = np.einsum("tlm,tm->tl", given[assigned], V)
            logs = np.bincount(assigned, self.log_potential(scores, labels), K)
            return logs.astype(np.float64)

        other = hinge.prior_weights(self.variance, weights.shape, rng)
        bar = value(weights) + np.log(rng.random(K))
        angle = 2.0 * np.pi * rng.random(K)
        low, high = angle - 2.0 * np.pi, angle.copy()
        while True:
            new = np.cos(angle)[:, None, None] * weights + np.sin(angle)[:, None, None] * other
            short = value(new) < bar
            if not short.any():
                return new
            low = np.where(short & (angle < 0.0), angle, low)
            high = np.where(short & (angle >= 0.0), angle, high)
            angle = np.where(short, low + (high - low) * rng.random(K), angle)
