r"""Linear maps from weights to tables, each with its adjoint.

A term turns its weights and the features of ``n`` factors into tables (n, size), linearly in the
weights; `pull` is the adjoint of `push`, so that for all weights ``w`` and marginals ``m``

.. math:: \langle \text{push}(w), m \rangle = \langle w, \text{pull}(m) \rangle .
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.vectors import over, summed
from structlearn._src.kernels.chain import scatter
from structlearn._src.text.rows import Index, Rows, from_dense, take, transpose

_MOST_COLUMNS = int(np.iinfo(np.int32).max)


@dataclass(frozen=True, eq=False)
class Sparse:
    """Sparse rows together with the same entries by column, which adjoints read."""

    rows: Rows

    @cached_property
    def columns(self) -> tuple[Ints, Index, Floats]:
        """The entries by column: offsets, rows, values."""
        return transpose(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return self.rows.n_rows, self.rows.n_columns

    @property
    def binary(self) -> bool:
        """Whether all entries are 1."""
        return not len(self.rows.values)

    @classmethod
    def by_position(cls, features: Features, position: Ints, positions: int) -> Sparse:
        """Give every position weights of its own: feature ``d`` at ``p`` becomes ``p * width + d``.

        `position` is that of every row; `features` are as `rows_of` takes them.
        """
        rows = rows_of(features, len(position))
        width = rows.n_columns
        if width * positions > _MOST_COLUMNS:
            raise ArgumentError(
                f"{width} features at each of {positions} positions make more than {_MOST_COLUMNS} "
                f"columns; use fewer features, or share them over positions"
            )
        shift = np.repeat(position * width, np.diff(rows.offsets)).astype(np.int32)
        return cls(rows._replace(columns=rows.columns + shift, n_columns=width * positions))


#: Features of the factors of one group: an array (rows, features), sparse rows, or None where a
#: term needs none.
Features = Floats | Sparse | None


def take_rows(features: Features, which: Ints) -> Features:
    """Return the features of some rows."""
    if features is None:
        return None
    if isinstance(features, Sparse):
        return Sparse(take(features.rows, which))
    return features[which]


def power(features: Features, exponent: int) -> Features:
    """Return a power of every entry that is not 0, of those that are 0 nothing but 0."""
    if features is None or (isinstance(features, Sparse) and features.binary):
        return features
    if isinstance(features, Sparse):
        return Sparse(features.rows._replace(values=features.rows.values**exponent))
    return features**exponent if exponent else (features != 0.0).astype(np.float64)


def rows_of(features: Features, n_rows: int) -> Rows:
    """Return features as sparse rows; None stands for a constant 1 in each of `n_rows`."""
    if features is None:
        return Rows(np.arange(n_rows + 1), np.zeros(n_rows, np.int32), np.empty(0), 1)
    return features.rows if isinstance(features, Sparse) else from_dense(features)


@dataclass(frozen=True)
class TableTerm:
    """One table, the same for every factor.

    `ties` (size,) says which weight each entry uses, -1 for entries that are always 0; by default
    each has its own.
    """

    size: int
    ties: tuple[int, ...] | None = None

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.size if self.ties is None else max(self.ties) + 1

    def push(self, weights: Floats, features: Features, n_jobs: int | None = None) -> Floats:
        """One row."""
        return (weights if self.ties is None else np.append(weights, 0.0)[list(self.ties)])[None]

    def pull(self, marginals: Floats, features: Features, n_jobs: int | None = None) -> Floats:
        """Sum over rows, and over entries that share a weight."""
        total: Floats = marginals.sum(axis=0)
        if self.ties is None:
            return total
        tied = np.bincount(np.array(self.ties) + 1, total, self.n_weights + 1)[1:]
        return tied.astype(np.float64)

    @classmethod
    def symmetric(cls, states: int) -> TableTerm:
        """Table over two variables that does not care which is which."""
        low, high = np.indices((states, states))
        ties = np.minimum(low, high) * states + np.maximum(low, high)
        _, numbers = np.unique(ties, return_inverse=True)
        return cls(states * states, tuple(int(i) for i in np.ravel(numbers)))

    @classmethod
    def potts(cls, states: int) -> TableTerm:
        """Table over two variables with one weight, for being equal."""
        return cls(states * states, tuple(int(i) - 1 for i in np.eye(states).ravel()))


@dataclass(frozen=True)
class LinearTerm:
    """Every feature has a weight for every entry of the table: ``features @ weights``."""

    n_features: int
    size: int

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.n_features * self.size

    def push(self, weights: Floats, features: Features, n_jobs: int | None = None) -> Floats:
        """Product of the features and the weights."""
        matrix = weights.reshape(self.n_features, self.size)
        features = self._checked(features)
        if not isinstance(features, Sparse):
            return _times(features, matrix, n_jobs)
        out = np.empty((features.rows.n_rows, self.size))
        return _in_threads(scatter.multiply, (*features.rows[:3], matrix), out, n_jobs)

    def pull(self, marginals: Floats, features: Features, n_jobs: int | None = None) -> Floats:
        """Product of the transposed features and the marginals."""
        features = self._checked(features)
        if not isinstance(features, Sparse):
            return _transposed_times(features, marginals, n_jobs).ravel()
        out = np.empty((self.n_features, self.size))
        arrays = *features.columns, marginals
        return _in_threads(scatter.multiply, arrays, out, n_jobs).ravel()

    def _checked(self, features: Features) -> Floats | Sparse:
        if features is None or features.shape[1] != self.n_features:
            raise ArgumentError(_unfit(features, f"features with {self.n_features} columns"))
        return features


@dataclass(frozen=True, eq=False)
class PairsTerm:
    """As `LinearTerm` on sparse features, with weights for chosen pairs of feature and state.

    Feature ``d`` has weights for the states ``states[offsets[d]:offsets[d + 1]]``.
    """

    offsets: Ints
    states: Index
    size: int

    @classmethod
    def seen(cls, features: Sparse, labels: Ints, size: int) -> PairsTerm:
        """Return the pairs that occur in training; rows labelled -1 count for none."""
        columns = features.columns
        offsets = np.empty(len(columns[0]), np.int64)
        states = np.empty(0, np.int32)
        for _ in range(2):
            seen = np.full(size, -1, np.int64)
            scatter.seen_pairs(columns[0], columns[1], labels, seen, offsets, states)
            states = np.empty(offsets[-1], np.int32) if not len(states) else states
        return cls(offsets, states, size)

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return len(self.states)

    def push(self, weights: Floats, features: Features, n_jobs: int | None = None) -> Floats:
        """Sum of the weights of the pairs of every row."""
        rows = self._sparse(features).rows
        out = np.empty((rows.n_rows, self.size))
        arrays = *rows[:3], self.offsets, self.states, weights
        return _in_threads(scatter.push_pairs, arrays, out, n_jobs)

    def pull(self, marginals: Floats, features: Features, n_jobs: int | None = None) -> Floats:
        """Sum of the marginals of the states of every pair."""
        arrays = *self._sparse(features).columns, self.offsets, self.states, marginals
        return _in_threads(scatter.pull_pairs, arrays, np.empty(self.n_weights), n_jobs)

    def _sparse(self, features: Features) -> Sparse:
        if not isinstance(features, Sparse) or features.shape[1] != len(self.offsets) - 1:
            need = f"sparse features with {len(self.offsets) - 1} columns"
            raise ArgumentError(_unfit(features, need))
        return features


#: One linear map; `push` returns tables (rows, size), or one row if all factors have the same.
Term = TableTerm | LinearTerm | PairsTerm


def _in_threads(
    kernel: Callable[..., None], arrays: tuple[NDArray[Any], ...], out: Floats, n_jobs: int | None
) -> Floats:
    """Let a kernel fill `out`, row by row or column by column; the first array has the offsets."""

    def work(first: int, last: int) -> None:
        kernel(*arrays, first, last, out)

    threads.over_items(work, arrays[0], "features", n_jobs)
    return out


def _times(features: Floats, matrix: Floats, n_jobs: int | None) -> Floats:
    """Product of dense features and weights, rows in ranges."""
    out = np.empty((len(features), matrix.shape[1]))

    def work(part: slice) -> None:
        np.matmul(features[part], matrix, out=out[part])

    over(work, len(features), _threads(features, matrix, n_jobs), _rows(features))
    return out


def _transposed_times(features: Floats, marginals: Floats, n_jobs: int | None) -> Floats:
    """Product of transposed dense features and marginals, the sum of those of ranges of rows."""
    return summed(
        lambda part: features[part].T @ marginals[part],
        len(features),
        _threads(features, marginals, n_jobs),
        _rows(features),
    )


def _rows(features: Floats) -> int:
    """Rows of dense features that make one range."""
    return max(1, threads.GRAIN["arrays"] // max(features.shape[1], 1))


def _threads(features: Floats, other: Floats, n_jobs: int | None) -> int:
    """Threads that are worth being woken for a product with as many columns as `other` has."""
    return threads.few(n_jobs, features.size * other.shape[1], threads.GRAIN["products"])


def _unfit(features: Features, need: str) -> str:
    given = "no features were given"
    if features is not None:
        kind = "a sparse matrix" if isinstance(features, Sparse) else "an array"
        given = f"{kind} of shape {features.shape} was given"
    return f"{given}, but these weights need {need}; give those that the model was made for"
