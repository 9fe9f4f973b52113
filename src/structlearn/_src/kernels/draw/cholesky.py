"""Small lower triangular factors of positive definite matrices, in place."""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner

_TINY = 1e-300  # least square of a diagonal entry, where rounding made it 0 or negative
_SAFE = 1e-14  # least share of a square that must be left: less is rounding


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
                matrix[j, j] = np.sqrt(max(total, _TINY))
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
