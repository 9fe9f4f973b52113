"""Log densities of many positions in many states, and the sums that states are learnt from.

Positions lie in columns where sums run over them: eight at a time, with no sum that depends on the
one before. A triangular matrix is kept as bands: entry ``(i, i + j)`` of the upper triangle at
``[i, j]``. One band alone is a diagonal matrix. Below are the lower triangular factors of small
positive definite matrices, which whoever draws needs too.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structlearn._src.kernels import lanes
from structlearn._src.kernels.jit import inline, inner, lean
from structlearn._src.kernels.lanes import LANES

_TINY = 1e-300  # least square of a diagonal entry, where rounding made it 0 or negative
_ROUNDED = 1e-16  # of a diagonal entry: where less is left of it, rounding has made that
_SAFE = 1e-14  # least share of a square that must be left: less is rounding


class PointDensities(NamedTuple):
    """Gaussians: log densities ``constants[k] - |R (x - mean)|^2 / 2``; 0 where not `seen`."""

    columns: np.ndarray  #: (features, positions)
    seen: np.ndarray  #: (positions,)
    means: np.ndarray  #: (states, features)
    bands: np.ndarray  #: (states, features, bands) the upper triangles ``R``
    constants: np.ndarray  #: (states,)


class SymbolDensities(NamedTuple):
    """Log probabilities of symbols; 0 where they are missing."""

    data: np.ndarray  #: (positions,) -1 where missing
    logs: np.ndarray  #: (states, symbols)


class LabelDensities(NamedTuple):
    """Hinge losses times a factor; 0 where there is no label."""

    columns: np.ndarray  #: (features, positions)
    labels: np.ndarray  #: (positions,) -1 where missing
    weights: np.ndarray  #: (states, labels, features)
    factor: float
    cost: float


class Densities(NamedTuple):
    """Log densities of positions in states: a sum of parts, of which those without states are 0."""

    points: PointDensities
    symbols: SymbolDensities
    labels: LabelDensities


class LaneWorkspace(NamedTuple):
    """Features of some positions, and scratch space: all in lanes."""

    points: np.ndarray  #: (features, LANES)
    away: np.ndarray  #: the same
    features: np.ndarray  #: (features of labels, LANES)
    scores: np.ndarray  #: (labels, LANES)
    row: np.ndarray  #: (LANES,)
    values: np.ndarray  #: (LANES,)


_NO_NUMBERS = np.zeros(0, np.int64)  # positions without symbols or labels
_NO_ROWS = np.zeros((0, 0))  # features and parameters of what is not there
#: Every position is as likely in every state.
NO_DENSITIES = Densities(
    PointDensities(_NO_ROWS, np.zeros(0, bool), _NO_ROWS, np.zeros((0, 0, 0)), np.zeros(0)),
    SymbolDensities(_NO_NUMBERS, _NO_ROWS),
    LabelDensities(_NO_ROWS, _NO_NUMBERS, np.zeros((0, 0, 0)), 0.0, 0.0),
)


def lane_workspace(densities: Densities) -> LaneWorkspace:
    """Return workspace for some positions at a time."""
    width = densities.points.means.shape[1]
    _, labels, features = densities.labels.weights.shape
    rows = (np.empty((n, LANES)) for n in (width, width, features, labels))
    return LaneWorkspace(*rows, np.empty(LANES), np.empty(LANES))


@inner
def combine(weights, rows, n, out):
    """out[b] = sum over ``m`` of ``weights[m] rows[m, b]``, four rows at a time."""
    width = weights.size
    whole = width - width % 4
    for b in range(n):
        out[b] = 0.0
    for m in range(0, whole, 4):
        w0, w1, w2, w3 = weights[m], weights[m + 1], weights[m + 2], weights[m + 3]
        r0, r1, r2, r3 = rows[m], rows[m + 1], rows[m + 2], rows[m + 3]
        for b in range(n):
            out[b] += (w0 * r0[b] + w1 * r1[b]) + (w2 * r2[b] + w3 * r3[b])
    for m in range(whole, width):
        weight = weights[m]
        row = rows[m]
        for b in range(n):
            out[b] += weight * row[b]


@inner
def take_better(scores, labels, label, cost, best):
    """best[b] = max(best[b], score of one label), plus the cost of a wrong label where it is one.

    Over all labels it is the first term of the hinge loss, max_y (cost [y != label] + score_y).
    """
    for b in range(best.size):
        score = scores[b] + (0.0 if labels[b] == label else cost)
        best[b] = score if score > best[b] else best[b]


@inner
def _load(columns, start, n, out):
    for m in range(columns.shape[0]):
        for b in range(n):
            out[m, b] = columns[m, start + b]


@inline
def load(densities, start, n, workspace):
    """Copy the features of up to `LANES` positions."""
    if densities.points.constants.size > 0:
        _load(densities.points.columns, start, n, workspace.points)
    if densities.labels.weights.size > 0:
        _load(densities.labels.columns, start, n, workspace.features)


@inner
def _add_hinges(labels, start, n, k, workspace, out):
    """Add `factor` times max_y (cost [y != label] + score_y) - score_label."""
    own = labels.labels[start : start + n]
    best = workspace.row[:n]
    best[:] = -np.inf
    for y in range(labels.weights.shape[1]):
        lanes.combine(labels.weights[k, y], workspace.features, workspace.scores[y])
        take_better(workspace.scores[y], own, y, labels.cost, best)
    for b in range(n):
        if own[b] >= 0:
            out[b] += labels.factor * (best[b] - workspace.scores[own[b], b])


@inline
def weigh(densities, start, n, k, workspace, out):
    """Find the log densities of the positions from `start` on, which are loaded, in one state."""
    points = densities.points
    symbols = densities.symbols
    for b in range(LANES):
        out[b] = 0.0
    if points.constants.size > 0:
        squares = workspace.row
        lanes.measure(workspace.points, points.means[k], points.bands[k], workspace.away, squares)
        for b in range(LANES):
            out[b] = points.constants[k] - 0.5 * squares[b]
        for b in range(n):
            if not points.seen[start + b]:
                out[b] = 0.0
    if symbols.logs.size > 0:
        for b in range(n):
            if symbols.data[start + b] >= 0:
                out[b] += symbols.logs[k, symbols.data[start + b]]
    if densities.labels.weights.size > 0:
        _add_hinges(densities.labels, start, n, k, workspace, out)


@lean
def add_densities(densities, first, last, workspace, out):
    """Add the log densities of some positions in all states to ``out[t - first, k]``."""
    values = workspace.values
    for start in range(first, last, LANES):
        n = min(LANES, last - start)
        load(densities, start, n, workspace)
        for k in range(out.shape[1]):
            weigh(densities, start, n, k, workspace, values)
            for b in range(n):
                out[start - first + b, k] += values[b]


@lean
def add_moments(points, seen, states, first, last, counts, sums, outers):
    """Add numbers, sums and products ``x_i x_j`` of the points of every state, first to last.

    `points` (positions, features); `outers` (states, features, features), or (states, features, 1)
    of the squares alone.
    """
    _, D, width = outers.shape
    for t in range(first, last):
        if not seen[t]:
            continue
        k = states[t]
        x = points[t]
        counts[k] += 1.0
        lanes.add_multiple(1.0, x, sums[k])
        for i in range(D):
            if width == 1:
                outers[k, i, 0] += x[i] * x[i]
            else:
                lanes.add_multiple(x[i], x, outers[k, i])


# ---- triangular factors, in place --------------------------------------------------------


@inner
def factorise(matrix):
    """Turn the lower triangle into its factor; what lies above the diagonal is not touched."""
    n = matrix.shape[0]
    for j in range(n):
        for i in range(j, n):
            total = matrix[i, j]
            for m in range(j):
                total -= matrix[i, m] * matrix[j, m]
            if i == j:
                matrix[j, j] = np.sqrt(max(total, _ROUNDED * matrix[j, j], _TINY))
            else:
                matrix[i, j] = total / matrix[j, j]


@inner
def product(left, right, n):
    """Sum of the products of the first `n` entries, in four sums that need not wait for another."""
    a = b = c = d = 0.0
    i = 0
    while i + 4 <= n:
        a += left[i] * right[i]
        b += left[i + 1] * right[i + 1]
        c += left[i + 2] * right[i + 2]
        d += left[i + 3] * right[i + 3]
        i += 4
    while i < n:
        a += left[i] * right[i]
        i += 1
    return (a + b) + (c + d)


@inner
def forward(factor, vector, limit):
    """Solve ``factor x = vector`` in place; return the squared length of x.

    Stops where that passes the `limit`, with a length above it and the rest of x unsolved.
    """
    square = 0.0
    for i in range(vector.size):
        row = factor[i]
        vector[i] = (vector[i] - product(row, vector, i)) / row[i]
        square += vector[i] * vector[i]
        if square > limit:
            break
    return square


@inner
def backward(factor, vector):
    """Solve ``factor.T x = vector`` in place."""
    for i in range(vector.size - 1, -1, -1):
        vector[i] /= factor[i, i]
        for j in range(i):
            vector[j] -= factor[i, j] * vector[i]


@inner
def update(factor, vector, sign):
    """Make it the factor of the matrix plus `sign` (1 or -1) times the square of a vector.

    Uses the vector up. Returns False, with the factor spoilt, where the result would not be
    positive definite.
    """
    n = vector.size
    for j in range(n):
        old = factor[j, j]
        x = vector[j]
        square = old * old + sign * x * x
        if not square > _SAFE * old * old:
            return False
        new = np.sqrt(square)
        c, s = new / old, x / old  # a rotation, or a hyperbolic one where sign is -1
        factor[j, j] = new
        for i in range(j + 1, n):
            factor[i, j] = (factor[i, j] + sign * s * vector[i]) / c
            vector[i] = c * vector[i] - s * factor[i, j]
    return True


@inner
def log_determinant(factor):
    """Log determinant of the matrix."""
    total = 0.0
    for i in range(factor.shape[0]):
        total += np.log(factor[i, i])
    return 2.0 * total


# ---- normal-inverse-Wishart evidences -------------------------------------------------------


@lean
def log_evidences(counts, sums, outers, mean, scale, strength, degrees, matrix, centre, out):
    """Find log marginal likelihoods of points, up to the log normaliser of their prior."""
    D = mean.size
    for k in range(counts.size):
        after = strength + counts[k]
        for i in range(D):
            centre[i] = (strength * mean[i] + sums[k, i]) / after
            for j in range(i + 1):
                spread = strength * mean[i] * mean[j] - after * centre[i] * centre[j]
                matrix[i, j] = scale[i, j] + outers[k, i, j] + spread
        factorise(matrix)
        half = 0.5 * (degrees + counts[k])
        out[k] = -half * log_determinant(matrix) - 0.5 * D * (
            np.log(after) + np.log(np.pi) * counts[k]
        )
        for i in range(D):
            out[k] += math.lgamma(half - 0.5 * i)


@inner
def _invert_upper(scale, inverse):
    """Write a matrix as U U' with an upper triangle U, and find the inverse of that."""
    D = scale.shape[0]
    for j in range(D - 1, -1, -1):  # U, in the place of its inverse
        for i in range(j, -1, -1):
            total = scale[i, j]
            for m in range(j + 1, D):
                total -= inverse[i, m] * inverse[j, m]
            inverse[i, j] = np.sqrt(max(total, _TINY)) if i == j else total / inverse[j, j]
    for j in range(D - 1, -1, -1):  # columns before are still those of U
        for i in range(j, -1, -1):
            total = 1.0 if i == j else 0.0
            for m in range(i + 1, j + 1):
                total -= inverse[i, m] * inverse[m, j]
            inverse[i, j] = total / inverse[i, i]


@lean
def precision_roots(scales, lower, noise, inverse, roots, means):
    """Find roots ``R`` of precisions ``R' R``, upper triangles, from scale matrices.

    The precision is the inverse of the scale matrix with ``lower lower'`` in between: what a
    Wishart draw has there. Adds ``R^-1 noise`` to the means. `inverse` (D, D) is workspace.
    """
    D = inverse.shape[0]
    for k in range(scales.shape[0]):
        _invert_upper(scales[k], inverse)
        root = roots[k]
        for i in range(D - 1, -1, -1):
            for j in range(D):
                total = 0.0
                for m in range(i, j + 1):
                    total += lower[k, m, i] * inverse[m, j]
                root[i, j] = total
            left = noise[k, i]
            for j in range(i + 1, D):
                left -= root[i, j] * noise[k, j]
            noise[k, i] = left / root[i, i]
            means[k, i] += noise[k, i]
