"""What a linear map reads: dense arrays, sparse rows, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structlearn.common.checks import Floats, Ints
from structlearn.data.rows import Index, Rows, take, transpose


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
    if features is None:
        rows = np.arange(len(position) + 1), position.astype(np.int32), np.empty(0), positions
        return Sparse(Rows(*rows))
    if not isinstance(features, Sparse):
        from_array = np.repeat(np.arange(features.shape[1], dtype=np.int32)[None], len(features), 0)
        starts = np.arange(len(features) + 1) * features.shape[1]
        flat = Rows(starts, from_array.ravel(), features.ravel(), features.shape[1])
        features = Sparse(flat)
    rows_, width = features.rows, features.rows.n_columns
    shift = np.repeat(position * width, np.diff(rows_.offsets)).astype(np.int32)
    return Sparse(rows_._replace(columns=rows_.columns + shift, n_columns=width * positions))
