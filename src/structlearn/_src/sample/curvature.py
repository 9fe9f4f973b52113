r"""Curvatures of softened hinge losses of many labels, and what a normal density needs of them.

With shares :math:`p_{iy}` of labels in the softened maximum of row i at temperature
:math:`\tau_i`, the Hessian over the weights of all labels is

.. math:: H = D - U U^\top, \qquad D_y = \rho I + \sum_i \frac{a}{\tau_i} p_{iy} v_i v_i^\top,
          \qquad u_i = \sqrt{a / \tau_i} \; p_i \otimes v_i .

:math:`D` has one block for each label, and :math:`U` one column for each row. Where there are fewer
rows than weights, only matrices as wide as there are features or rows are factorised: with
:math:`D = R R^\top` and :math:`Y = R^{-1} U`,

.. math:: H^{-1} = R^{-\top} \big( I + Y (I - Y^\top Y)^{-1} Y^\top \big) R^{-1} .
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.linalg import cho_solve, solve_triangular

from structlearn._src.common.arrays import Floats, Ints

_BLOCK = 2**12  # rows whose products are summed up at a time: some megabytes


class DenseFactor(NamedTuple):
    """Factor of a Hessian as one matrix: for more rows than weights."""

    root: Floats  #: (F M, F M) lower

    @property
    def half_log_determinant(self) -> float:
        """Half of the log determinant of the Hessian."""
        return float(np.log(np.diagonal(self.root)).sum())

    def solve(self, given: Floats) -> Floats:
        """(F M,) Product of the inverse with a vector."""
        found: Floats = cho_solve((self.root, True), given, check_finite=False)
        return found

    def draw(self, rng: Generator) -> Floats:
        """(F M,) Draw from the normal density with this inverse covariance around 0."""
        noise = rng.standard_normal(len(self.root))
        away: Floats = solve_triangular(self.root, noise, lower=True, trans="T", check_finite=False)
        return away

    def variances(self, V: Floats, labels: Ints, rivals: Ints) -> Floats:
        """(rows,) Variances of the leads of labels over their rivals."""
        M = V.shape[1]
        F = len(self.root) // M
        covariance = self.solve(np.eye(F * M)).reshape(F, M, F, M)
        pairs = labels * F + rivals
        out = np.empty(len(pairs))
        for pair in np.unique(pairs):
            a, b = divmod(int(pair), F)
            lead = covariance[a, :, a] + covariance[b, :, b]
            lead -= covariance[a, :, b] + covariance[b, :, a]
            X = V[pairs == pair]
            out[pairs == pair] = ((X @ lead) * X).sum(1)
        return out


class RowFactor(NamedTuple):
    """Factors of a Hessian by labels and rows: for fewer rows than weights."""

    halves: Floats  #: (F, M, M) inverses of the lower factors of blocks
    linked: Floats  #: (F, M, rows) Y
    root: Floats  #: (rows, rows) lower factor of I - Y'Y

    @property
    def half_log_determinant(self) -> float:
        """Half of the log determinant of the Hessian."""
        blocks = -np.log(np.diagonal(self.halves, axis1=1, axis2=2)).sum()
        return float(blocks + np.log(np.diagonal(self.root)).sum())

    def solve(self, given: Floats) -> Floats:
        """(F M,) Product of the inverse with a vector."""
        F, M, n = self.linked.shape
        Y = self.linked.reshape(F * M, n)
        inner = (self.halves @ given.reshape(F, M, 1)).ravel()
        inner += Y @ cho_solve((self.root, True), Y.T @ inner, check_finite=False)
        return self._outer(inner)

    def draw(self, rng: Generator) -> Floats:
        """(F M,) Draw from the normal density with this inverse covariance around 0."""
        F, M, n = self.linked.shape
        noise = rng.standard_normal(F * M)
        rows = solve_triangular(
            self.root, rng.standard_normal(n), lower=True, trans="T", check_finite=False
        )
        return self._outer(noise + self.linked.reshape(F * M, n) @ rows)

    def variances(self, V: Floats, labels: Ints, rivals: Ints) -> Floats:
        """(rows,) Variances of the leads of labels over their rivals."""
        n = len(V)
        out = np.zeros(n)
        shared = np.zeros((n, n))
        for numbers, sign in ((labels, 1.0), (rivals, -1.0)):
            for f in np.unique(numbers):
                rows = np.flatnonzero(numbers == f)
                half = self.halves[f] @ V[rows].T
                out[rows] += (half * half).sum(0)
                shared[:, rows] += sign * (self.linked[f].T @ half)
        shared = solve_triangular(self.root, shared, lower=True, check_finite=False)
        return out + (shared * shared).sum(0)

    def _outer(self, inner: Floats) -> Floats:
        F, M, _ = self.halves.shape
        return (inner.reshape(F, 1, M) @ self.halves).ravel()


@dataclass(frozen=True, eq=False)
class Curvature:
    """The Hessian of softened losses and a ridge."""

    V: Floats  #: (rows, M)
    own: Floats  #: (F, M, M) D
    links: Floats  #: (rows, F) Roots of weights over temperatures, times shares

    @staticmethod
    def of(V: Floats, shares: Floats, stiffness: Floats, ridge: float) -> Curvature:
        """Return that of shares (rows, F) and weights over temperatures (rows,)."""
        own = np.array([(V * column[:, None]).T @ V for column in (shares.T * stiffness)])
        own += ridge * np.eye(V.shape[1])
        return Curvature(V, own, shares * np.sqrt(stiffness)[:, None])

    @cached_property
    def factor(self) -> DenseFactor | RowFactor:
        """Factors of the Hessian, by whatever is fewer: weights, or rows."""
        F, M, _ = self.own.shape
        if len(self.V) >= F * M:
            return DenseFactor(_lower(self.matrix()))
        halves: Floats = np.linalg.inv(_lower(self.own)).astype(float, copy=False)
        linked = halves @ (self.V.T * self.links.T[:, None, :])
        Y = linked.reshape(F * M, -1)
        return RowFactor(halves, linked, _lower(np.eye(Y.shape[1]) - Y.T @ Y))

    def blocks(self) -> Floats:
        """(F, M, M) Blocks of the Hessian on its diagonal."""
        squares = self.links.T**2
        return self.own - np.array([(self.V * column[:, None]).T @ self.V for column in squares])

    def matrix(self) -> Floats:
        """(F M, F M) The Hessian."""
        F, M, _ = self.own.shape
        out = np.zeros((F * M, F * M))
        for f, block in enumerate(self.own):
            out[f * M : (f + 1) * M, f * M : (f + 1) * M] = block
        for first in range(0, len(self.V), _BLOCK):
            rows = slice(first, first + _BLOCK)
            columns = (self.links[rows, :, None] * self.V[rows, None, :]).reshape(-1, F * M)
            out -= columns.T @ columns
        return out


def _lower(matrices: Floats) -> Floats:
    """Return lower triangular factors."""
    return np.linalg.cholesky(matrices).astype(float, copy=False)
