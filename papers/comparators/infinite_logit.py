r"""Mixtures of any number of multinomial logit models, to compare `InfiniteSVM` with.

The potential of a label given the scores of its component is its probability,

.. math:: \phi = p(y \mid s) = \frac{e^{s_y}}{\sum_{y'} e^{s_{y'}}}.

References
----------
B. Shahbaba and R. Neal, "Nonlinear models using Dirichlet process mixtures", JMLR 2009.
I. Murray, R. Adams and D. MacKay, "Elliptical slice sampling", AISTATS 2010.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import log_softmax

from papers.arrays import Floats, Ints
from structlearn._src.estimators.bayesian.infinite_svm import MixtureClassifier
from structlearn._src.kernels.draw.mixture import LOGIT
from structlearn._src.sample.hinge import Hinge, prior_weights, weights_given

_SLICES = 5  # elliptical slices in a sweep, which are shorter steps than those of the hinge


class Logit(Hinge):
    """Classifiers by the multinomial logit: their potential in the place of the hinge."""

    __slots__ = ()

    def __new__(cls, variance: float = 100.0) -> Self:
        """Weights have this variance a priori; there is no margin, and no weight of the loss."""
        return super().__new__(cls, 1.0, 0.0, variance)

    @property
    def code(self) -> tuple[int, float, float]:
        """Kind, weight and cost, as kernels know them."""
        return LOGIT, 1.0, 0.0

    def log_potential(self, scores: Floats, labels: Ints) -> Floats:
        """(rows,) Log probability of labels given scores (rows, L); 0 without a label."""
        own = log_softmax(scores, axis=1)[np.arange(len(labels)), np.maximum(labels, 0)]
        return np.where(labels >= 0, own, 0.0)

    def log_expected_potential(self, V: Floats, n_labels: int) -> Floats:
        """(rows,) Log probability of any label a priori: all are alike."""
        return np.full(len(V), -np.log(n_labels))

    def draw_new_weights(
        self, v: Floats, label: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        """Draw weights (L, M) from their prior times the probability of one label, exactly.

        All labels are alike a priori: so scores from the prior draw a label, which changes places
        with the one that is given.
        """
        scores = np.sqrt(self.variance * (v @ v)) * rng.standard_normal(n_labels)
        drawn = int((scores + rng.gumbel(size=n_labels)).argmax())
        scores[[drawn, label]] = scores[[label, drawn]]
        return weights_given(self.variance, v, scores, rng)

    def draw_weights(
        self,
        V: Floats,
        labels: Ints,
        assigned: Ints,
        weights: Floats,
        rng: np.random.Generator,
        n_jobs: int | None = 1,
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

        other = prior_weights(self.variance, weights.shape, rng)
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


@dataclass(kw_only=True, eq=False, repr=False)
class InfiniteLogit(MixtureClassifier):
    r"""Mixture of any number of multinomial logit models (DPMNL).

    As `InfiniteSVM`, with :math:`p(y \mid x, z) \propto \exp \langle \eta_z^y, x \rangle` in the
    place of the hinge. Covariances are full, where the paper has diagonal ones.

    All parameters and attributes are those of `InfiniteSVM`.

    References
    ----------
    B. Shahbaba and R. Neal, "Nonlinear models using Dirichlet process mixtures", JMLR 2009.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> y = np.abs(X[:, 0]) > 1
    >>> model = InfiniteLogit(burn_in=30, n_draws=10, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.85
    True
    """

    def _classifier(self) -> Logit:
        return Logit(float(self.variance))
