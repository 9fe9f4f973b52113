"""Small lower triangular factors of positive definite matrices, in place."""

from __future__ import annotations

import numpy as np

from structlearn.kernels.jit import part

_TINY = 1e-300


@part
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


@part
def forward(factor, vector):
    """Solve ``factor x = vector`` in place; return the squared length of x."""
    square = 0.0
    for i in range(vector.size):
        total = vector[i]
        for j in range(i):
            total -= factor[i, j] * vector[j]
        vector[i] = total / factor[i, i]
        square += vector[i] * vector[i]
    return square


@part
def backward(factor, vector):
    """Solve ``factor.T x = vector`` in place."""
    for i in range(vector.size - 1, -1, -1):
        vector[i] /= factor[i, i]
        for j in range(i):
            vector[j] -= factor[i, j] * vector[i]


@part
def update(factor, vector, sign):
    """Make it the factor of the matrix plus `sign` (1 or -1) times the square of a vector.

    Uses the vector up. Returns False, with the factor spoilt, where the result would not be
    positive definite.
    """
    n = vector.size
    for j in range(n):
        old, x = factor[j, j], vector[j]
        square = old * old + sign * x * x
        if not square > 1e-14 * old * old:
            return False
        new = np.sqrt(square)
        c, s = new / old, x / old
        factor[j, j] = new
        for i in range(j + 1, n):
            factor[i, j] = (factor[i, j] + sign * s * vector[i]) / c
            vector[i] = c * vector[i] - s * factor[i, j]
    return True


@part
def log_determinant(factor):
    """Log determinant of the matrix."""
    total = 0.0
    for i in range(factor.shape[0]):
        total += np.log(factor[i, i])
    return 2.0 * total
