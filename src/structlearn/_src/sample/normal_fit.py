r"""Normal densities near the posterior of the weights of one max-margin classifier.

The maximum in the hinge loss of row i is softened at a temperature :math:`\tau_i`,

.. math:: F(\eta) = \frac{|\eta|^2}{2 \nu^2} + 2 c \sum_i \Big( \tau_i \log \sum_y
          e^{(\ell [y \ne y_i] + s_{iy}) / \tau_i} - s_{i y_i} \Big) ,

where :math:`\tau_i` follows the deviation of the lead of label :math:`y_i` over its best rival, as
it is expected under the density itself: then the gradient is near the expected one, and the
minimum near the mean of the posterior instead of its mode, which lies on the edges of hinges. The
density is normal with this minimum and the inverse of the Hessian there. It depends on rows and
labels alone, so that moves in both directions know the same one.

References
----------
M. Opper and C. Archambeau, "The variational Gaussian approximation revisited", Neural Computation
2009.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.draw import soften as kernels
from structlearn._src.sample.curvature import Curvature

_FEW = 256  # rows that the first rounds see: the last one, with all rows, needs few steps then
_PER_WEIGHT = 3  # such rows for every weight, so that they are like all others
_ROUNDS = 3  # of temperatures, which hardly change after these
_LAST = 1  # rounds with all rows
_FASTEST = 8.0  # factor by which these fall between rounds: Newton steps must not lose their way
_STEPS = 6  # of Newton's method in each round
_ENOUGH = 1.0  # decrease of a Newton step: less does not matter to a density
_LEAST = 1e-3  # of its length
_SCALE = 1.0 / 1.7  # temperature by deviation: the logistic function is near the normal one


class NormalFit(NamedTuple):
    """A normal density of the weights of F labels: all, or the second of two."""

    centre: Floats  #: (F, M)
    curvature: Curvature  #: inverse of the covariance

    def draw(self, rng: Generator) -> Floats:
        """Draw weights (F, M)."""
        return self.centre + self.curvature.factor.draw(rng).reshape(self.centre.shape)

    def log_constant(self, variance: float) -> float:
        """Log normaliser of a normal prior with this variance, less that of the density."""
        half = self.curvature.factor.half_log_determinant
        return float(-0.5 * self.centre.size * np.log(variance) - half)


class Softened(NamedTuple):
    """Softened losses of rows, and a ridge."""

    V: Floats
    labels: Ints
    n_labels: int
    ridge: float
    weight: float  #: of a loss
    cost: float

    @property
    def low(self) -> int:
        """The first label that has weights."""
        return 1 if self.n_labels == 2 else 0

    def scores(self, weights: Floats) -> Floats:
        """(rows, L) Scores with costs."""
        scores = np.zeros((len(self.V), self.n_labels))
        scores[:, self.low :] = self.V @ weights.reshape(-1, self.V.shape[1]).T
        scores += self.cost
        scores[np.arange(len(scores)), self.labels] -= self.cost
        return scores

    def value(self, weights: Floats, taus: Floats) -> tuple[float, Floats]:
        """Return the value, and shares of labels (rows, L) in softened maxima."""
        scores = self.scores(weights)
        top = scores.max(1)
        own = scores[np.arange(len(scores)), self.labels]
        shares = np.exp((scores - top[:, None]) / taus[:, None])
        total = shares.sum(1)
        losses = top + taus * np.log(total) - own
        shares /= total[:, None]
        return float(self.weight * losses.sum() + 0.5 * self.ridge * (weights @ weights)), shares

    def gradient(self, weights: Floats, shares: Floats) -> Floats:
        """(F M,) Gradient."""
        away = shares.copy()
        away[np.arange(len(away)), self.labels] -= 1.0
        return self.weight * (away[:, self.low :].T @ self.V).ravel() + self.ridge * weights

    def curvature(self, taus: Floats, shares: Floats) -> Curvature:
        """Return the Hessian: sums of products of V by (diag(p) - p p') / tau, and the ridge."""
        return Curvature.of(self.V, shares[:, self.low :], self.weight / taus, self.ridge)

    def deviations(self, weights: Floats, inverse: Curvature) -> Floats:
        """(rows,) Deviation of the lead of the label of a row over its best rival."""
        if self.low:
            return np.sqrt((self.V * np.linalg.solve(inverse.matrix(), self.V.T).T).sum(1))
        scores = self.scores(weights)
        scores[np.arange(len(scores)), self.labels] = -np.inf
        return np.sqrt(inverse.factor.variances(self.V, self.labels, scores.argmax(1)))

    def minimise(self, weights: Floats, taus: Floats, steps: int) -> tuple[Floats, Curvature]:
        """Return the weights after some Newton steps, and the Hessian near them."""
        value, shares = self.value(weights, taus)
        inverse = self.curvature(taus, shares)
        for _ in range(steps):
            gradient = self.gradient(weights, shares)
            step = inverse.factor.solve(gradient)
            gain = float(gradient @ step)
            if gain < _ENOUGH:
                break
            length = 1.0
            after, new = self.value(weights - step, taus)
            while after > value and length > _LEAST:
                length *= 0.5
                after, new = self.value(weights - length * step, taus)
            if after > value:
                break
            weights = weights - length * step
            value = after
            shares = new
            inverse = self.curvature(taus, shares)
        return weights, inverse


def fit_normal(
    V: Floats, labels: Ints, n_labels: int, variance: float, c: float, cost: float
) -> NormalFit:
    """Fit the density to rows that all have a label; `variance` is that of the prior.

    The first rounds see some rows alone, with so much more weight.
    """
    n, M = V.shape
    low = 1 if n_labels == 2 else 0
    step = max(n // max(_FEW, _PER_WEIGHT * (n_labels - low) * M), 1)
    fit = _fit_pair if low else _fit_labels
    weights = np.zeros((n_labels - low) * M)
    taus = np.full(-(-n // step), cost)
    some = Softened(V[::step], labels[::step], n_labels, 1.0 / variance, 2.0 * c * step, cost)
    weights, inverse = fit(some, weights, taus, _ROUNDS)
    if step > 1:
        whole = Softened(V, labels, n_labels, 1.0 / variance, 2.0 * c, cost)
        taus = _SCALE * whole.deviations(weights, inverse)
        weights, inverse = fit(whole, weights, taus, _LAST)
    return NormalFit(weights.reshape(n_labels - low, M), inverse)


def _fit_labels(
    given: Softened, weights: Floats, taus: Floats, rounds: int
) -> tuple[Floats, Curvature]:
    """Return the minimum and the Hessian after rounds at falling temperatures."""
    weights, inverse = given.minimise(weights, taus, _STEPS)
    for _ in range(rounds - 1):
        taus = np.maximum(_SCALE * given.deviations(weights, inverse), taus / _FASTEST)
        weights, inverse = given.minimise(weights, taus, _STEPS)
    return weights, inverse


def _fit_pair(
    given: Softened, weights: Floats, taus: Floats, rounds: int
) -> tuple[Floats, Curvature]:
    """The same for two labels, in compiled code; no labels are linked there."""
    V = np.ascontiguousarray(given.V)
    settings = (given.ridge, given.weight, given.cost, _SCALE, _FASTEST)
    labels = np.ascontiguousarray(given.labels)
    factor = np.empty((len(weights), len(weights)))
    new = weights.copy()
    kernels.fit_pair(V, labels, new, factor, taus.copy(), settings, rounds, _STEPS)
    return new, Curvature(V, (factor @ factor.T)[None], np.zeros((len(V), 1)))
