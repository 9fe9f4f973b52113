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
from scipy.linalg import solve_triangular

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.draw import soften as kernels

_FEW = 256  # rows that the first rounds see: the last one, with all rows, needs few steps then
_PER_WEIGHT = 3  # such rows for every weight, so that they are like all others
_ROUNDS = 3  # of temperatures, which hardly change after these
_LAST = 1  # rounds with all rows
_FASTEST = 8.0  # factor by which these fall between rounds: Newton steps must not lose their way
_STEPS = 6  # of Newton's method in each round
_ENOUGH = 1.0  # decrease of a Newton step: less does not matter to a density
_LEAST = 1e-3  # of its length
_SCALE = 1.0 / 1.7  # temperature by deviation: the logistic function is near the normal one
_BLOCK = 2**12  # rows whose products are summed up at a time: some megabytes


class NormalFit(NamedTuple):
    """A normal density of the weights of F labels: all, or the second of two."""

    centre: Floats  #: (F, M)
    inverse: Floats  #: (F, M, F, M) inverse of the covariance
    root: Floats  #: (F M, F M) lower factor of the inverse

    def draw(self, rng: Generator) -> Floats:
        """Draw weights (F, M)."""
        noise = rng.standard_normal(self.centre.size)
        away = solve_triangular(self.root, noise, lower=True, trans="T", check_finite=False)
        return self.centre + away.reshape(self.centre.shape)

    def log_constant(self, variance: float) -> float:
        """Log normaliser of a normal prior with this variance, less that of the density."""
        half = np.log(np.diagonal(self.root)).sum()
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

    def hessian(self, taus: Floats, shares: Floats) -> Floats:
        """(F M, F M) Sums of products of V by (diag(p) - p p') / tau, and the ridge."""
        n, M = self.V.shape
        p = shares[:, self.low :]
        F = p.shape[1]
        out = np.zeros((F * M, F * M))
        out.flat[:: F * M + 1] = self.ridge
        for first in range(0, n, _BLOCK):
            rows = slice(first, first + _BLOCK)
            X = self.V[rows]
            root = np.sqrt(self.weight / taus[rows])[:, None]
            products = ((p[rows] * root)[:, :, None] * X[:, None, :]).reshape(len(X), F * M)
            out -= products.T @ products
            own = p[rows] * root**2
            for f in range(F):
                place = slice(f * M, (f + 1) * M)
                out[place, place] += (X * own[:, f : f + 1]).T @ X
        return out

    def deviations(self, weights: Floats, inverse: Floats) -> Floats:
        """(rows,) Deviation of the lead of the label of a row over its best rival."""
        M = self.V.shape[1]
        covariance = np.linalg.inv(inverse)
        if self.low:
            return np.sqrt(((self.V @ covariance) * self.V).sum(1))
        scores = self.scores(weights)
        scores[np.arange(len(scores)), self.labels] = -np.inf
        pairs = self.labels * self.n_labels + scores.argmax(1)
        blocks = covariance.reshape(self.n_labels, M, self.n_labels, M)
        squares = np.empty(len(pairs))
        for pair in np.unique(pairs):
            a, b = divmod(int(pair), self.n_labels)
            rows = pairs == pair
            X = self.V[rows]
            lead = blocks[a, :, a] + blocks[b, :, b] - blocks[a, :, b] - blocks[b, :, a]
            squares[rows] = ((X @ lead) * X).sum(1)
        return np.sqrt(squares)

    def minimise(self, weights: Floats, taus: Floats, steps: int) -> tuple[Floats, Floats]:
        """Return the weights after some Newton steps, and the Hessian near them."""
        value, shares = self.value(weights, taus)
        inverse = self.hessian(taus, shares)
        for _ in range(steps):
            gradient = self.gradient(weights, shares)
            step = np.linalg.solve(inverse, gradient)
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
            inverse = self.hessian(taus, shares)
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
    shape = (n_labels - low, M)
    root: Floats = np.linalg.cholesky(inverse).astype(float, copy=False)
    return NormalFit(weights.reshape(shape), inverse.reshape(shape + shape), root)


def _fit_labels(
    given: Softened, weights: Floats, taus: Floats, rounds: int
) -> tuple[Floats, Floats]:
    """Return the minimum and the Hessian after rounds at falling temperatures."""
    weights, inverse = given.minimise(weights, taus, _STEPS)
    for _ in range(rounds - 1):
        taus = np.maximum(_SCALE * given.deviations(weights, inverse), taus / _FASTEST)
        weights, inverse = given.minimise(weights, taus, _STEPS)
    return weights, inverse


def _fit_pair(given: Softened, weights: Floats, taus: Floats, rounds: int) -> tuple[Floats, Floats]:
    """The same for two labels, in compiled code."""
    V = np.ascontiguousarray(given.V)
    settings = (given.ridge, given.weight, given.cost, _SCALE, _FASTEST)
    labels = np.ascontiguousarray(given.labels)
    factor = np.empty((len(weights), len(weights)))
    new = weights.copy()
    kernels.fit_pair(V, labels, new, factor, taus.copy(), settings, rounds, _STEPS)
    return new, factor @ factor.T
