"""What a linear map reads: dense arrays, sparse rows, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
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


def by_position(features: Features, position: Ints, positions: int) -> Sparse:
    """Give every position weights of its own: feature ``d`` at ``p`` becomes ``p * width + d``.

    Parameters
    ----------
    features
        What every row has; None stands for a constant 1.
    position
        (rows,) Position of every row, below `positions`.
    """
    rows = _rows(features, len(position))
    width = rows.n_columns
    if width * positions > _MOST_COLUMNS:
        raise ArgumentError(
            f"{width} features at each of {positions} positions make more than {_MOST_COLUMNS} "
            f"columns; use fewer features, or share them over positions"
        )
    shift = np.repeat(position * width, np.diff(rows.offsets)).astype(np.int32)
    return Sparse(rows._replace(columns=rows.columns + shift, n_columns=width * positions))


def _rows(features: Features, n_rows: int) -> Rows:
    if features is None:
        return Rows(np.arange(n_rows + 1), np.zeros(n_rows, np.int32), np.empty(0), 1)
    return features.rows if isinstance(features, Sparse) else from_dense(features)
