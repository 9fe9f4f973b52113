"""Sparse rows of features, the form in which every sparse path of the library has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.checks import MOST
from structlearn._src.common.errors import ArgumentError
from structlearn._src.kernels.text import rows as kernels

Index = NDArray[np.int32]

_MOST_COLUMNS = 2**31 - 1  # columns are int32


class Rows(NamedTuple):
    """Row ``i`` holds the entries ``offsets[i]:offsets[i + 1]``."""

    offsets: Ints  #: (rows + 1,)
    columns: Index  #: (entries,) column of every entry
    values: Floats  #: (entries,) value of every entry; an empty array if all of them are 1
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1


def from_csr(matrix: Any) -> Rows:
    """Return the rows of a SciPy sparse matrix or array: sorted, duplicates summed, no zeros."""
    if matrix.shape[1] > _MOST_COLUMNS:
        raise ArgumentError(
            f"the matrix has {matrix.shape[1]} columns; at most {_MOST_COLUMNS} are possible"
        )
    csr = matrix.tocsr().astype(np.float64, copy=True)
    csr.sum_duplicates()
    csr.eliminate_zeros()
    offsets = csr.indptr.astype(np.int64, copy=False)
    _check_finite(offsets, csr.indices, csr.data)
    return binary_if_ones(Rows(offsets, csr.indices.astype(np.int32), csr.data, csr.shape[1]))


def from_dense(array: Any) -> Rows:
    """Return the rows of a two-dimensional array, without its zeros.

    Examples
    --------
    >>> from_dense([[0, 2, 1], [0, 0, 0]])
    Rows(offsets=array([0, 2, 2]), columns=array([1, 2], dtype=int32), values=array([2., 1.]), n_columns=3)
    """  # noqa: E501
    dense = np.asarray(array)
    places, columns = np.nonzero(dense)
    values = dense[places, columns].astype(np.float64)
    offsets = np.searchsorted(places, np.arange(len(dense) + 1)).astype(np.int64, copy=False)
    _check_finite(offsets, columns, values)
    return binary_if_ones(Rows(offsets, columns.astype(np.int32), values, dense.shape[1]))


def stack(parts: Sequence[Rows], n_columns: int) -> Rows:
    """Put the rows of all parts under one another.

    Examples
    --------
    >>> stack([from_dense([[0, 2]]), from_dense([[1, 0]])], 2)
    Rows(offsets=array([0, 1, 2]), columns=array([1, 0], dtype=int32), values=array([2., 1.]), n_columns=2)
    """  # noqa: E501
    starts = offsets_of(len(part.columns) for part in parts)
    offsets = [part.offsets[1:] + start for part, start in zip(parts, starts, strict=False)]
    values = [part.values for part in parts]
    if any(map(len, values)):
        values = [
            v if len(v) else np.ones(len(p.columns)) for p, v in zip(parts, values, strict=True)
        ]
    return Rows(
        np.concatenate([np.zeros(1, np.int64), *offsets]),
        np.concatenate([np.empty(0, np.int32), *(part.columns for part in parts)]),
        np.concatenate([np.empty(0), *values]),
        n_columns,
    )


def take(rows: Rows, which: Any) -> Rows:
    """Return some of the rows, by their numbers, in the order given."""
    chosen = np.ascontiguousarray(which, dtype=np.int64)
    offsets = offsets_of(np.diff(rows.offsets)[chosen])
    columns = np.empty(offsets[-1], np.int32)
    values = np.empty(offsets[-1] if len(rows.values) else 0)
    kernels.take(rows.offsets, rows.columns, rows.values, chosen, offsets, columns, values)
    return Rows(offsets, columns, values, rows.n_columns)


def transpose(rows: Rows) -> tuple[Ints, Index, Floats]:
    """Return the same entries by column, for adjoints: offsets, rows (which go up), values."""
    offsets = np.zeros(rows.n_columns + 2, np.int64)
    places = np.empty(len(rows.columns), np.int32)
    values = np.empty_like(rows.values)
    kernels.transpose(rows.offsets, rows.columns, rows.values, offsets, places, values)
    return offsets[:-1], places, values


def binary_if_ones(rows: Rows) -> Rows:
    """Leave out the values if all of them are 1."""
    return rows._replace(values=np.empty(0)) if np.all(rows.values == 1) else rows


def _check_finite(offsets: Ints, columns: NDArray[Any], values: Floats) -> None:
    bad = np.flatnonzero(~(np.abs(values) < MOST))  # also NaN
    if len(bad):
        row = int(np.searchsorted(offsets, bad[0], side="right")) - 1
        raise ArgumentError(
            f"the feature in row {row}, column {columns[bad[0]]} is {values[bad[0]]}; "
            f"NaN, infinity and what is beyond {MOST:g} are not allowed: drop, replace or scale it"
        )
