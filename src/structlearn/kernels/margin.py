r"""Draws of the weights of max-margin classifiers, one for each component, by augmentation.

With :math:`\zeta` the best score of another label, costs included, and :math:`\kappa = \pm 1`,

.. math:: e^{-2 c (\kappa (\zeta - f))_+} = \int_0^\infty \frac{1}{\sqrt{2 \pi w}}
          e^{-(w + c \kappa (\zeta - f))^2 / (2 w)} \, dw,

which is normal in the score :math:`f = \langle \eta, v \rangle` given :math:`w`.
"""

from __future__ import annotations

import numpy as np

from structlearn.kernels.cholesky import backward, factorise, forward
from structlearn.kernels.jit import lean, part

_LARGEST = 1e10  # mean of the inverse Gaussian where a row lies on its margin


@part
def inverse_gaussian(mean, normal, uniform):
    """Draw from the inverse Gaussian of shape 1, by Michael, Schucany and Haas."""
    s = mean * normal * normal
    root = 2.0 * mean / (2.0 + s + np.sqrt(4.0 * s + s * s))
    return root if uniform * (mean + root) <= mean else mean * mean / root


@part
def _dot(a, b):
    total = 0.0
    for m in range(a.size):
        total += a[m] * b[m]
    return total


@part
def rival(scores, label, y, cost):
    """Best score of another label than `y`, costs included, less the cost of `y`."""
    best = -np.inf
    for other in range(scores.size):
        if other != y:
            best = max(best, scores[other] + (cost if other != label else 0.0))
    return best - (cost if y != label else 0.0)


@part
def _condition(V, labels, rows, scores, y, c, cost, normals, uniforms, precision, linear):
    """Add what the rows say about the weights of label `y`, their augmentation drawn anew."""
    M = V.shape[1]
    for i in range(rows.size):
        t = rows[i]
        if labels[t] < 0:
            continue
        zeta = rival(scores[t], labels[t], y, cost)
        gap = c * abs(zeta - scores[t, y])
        inverse = inverse_gaussian(min(1.0 / gap, _LARGEST), normals[t], uniforms[t])
        pull = c * (1.0 if labels[t] == y else -1.0) + c * c * zeta * inverse
        stiff = c * c * inverse
        for a in range(M):
            linear[a] += pull * V[t, a]
            x = stiff * V[t, a]
            for b in range(a + 1):
                precision[a, b] += x * V[t, b]


@part
def _solve(precision, linear, noise, out):
    """Draw from the normal distribution with this precision and linear term."""
    factorise(precision)
    forward(precision, linear)
    for m in range(linear.size):
        linear[m] += noise[m]
    backward(precision, linear)
    for m in range(linear.size):
        out[m] = linear[m]


@lean
def draw_weights(
    V, labels, order, borders, weights, ridge, c, cost, normals, uniforms, noise, scores, work,
    first, last,
):  # fmt: skip
    """Draw the weights (K, L, M) of the components from `first` up to `last` anew, in place.

    Component k has the rows ``order[borders[k]:borders[k + 1]]``; labels of -1 say nothing. With
    two labels only the second has weights, with half the `ridge`: only their difference matters.
    `scores` (rows, L) and `work` (K, M + 1, M) are scratch.
    """
    L, M = weights.shape[1], weights.shape[2]
    low = 1 if L == 2 else 0
    for k in range(first, last):
        rows = order[borders[k] : borders[k + 1]]
        for i in range(rows.size):
            for y in range(L):
                scores[rows[i], y] = _dot(weights[k, y], V[rows[i]])
        precision, linear = work[k, :M], work[k, M]
        for y in range(low, L):
            for a in range(M):
                linear[a] = 0.0
                for b in range(M):
                    precision[a, b] = 0.0
                precision[a, a] = ridge * (0.5 if low else 1.0)
            _condition(
                V, labels, rows, scores, y, c, cost, normals[y], uniforms[y], precision, linear
            )
            _solve(precision, linear, noise[k, y], weights[k, y])
            for i in range(rows.size):
                scores[rows[i], y] = _dot(weights[k, y], V[rows[i]])
