"""Types of arrays, and blocks of different lengths one after another in a flat array."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def offsets_of(sizes: ArrayLike) -> Ints:
    """Return where each block begins, and where the last one ends."""
    return np.append(0, np.cumsum(sizes)).astype(np.int64)


def block_indices(offsets: Ints, which: Ints) -> Ints:
    """Return the indices of several blocks, one block after the other.

    Examples
    --------
    >>> block_indices(np.array([0, 2, 3, 6]), np.array([2, 0])).tolist()
    [3, 4, 5, 0, 1]
    """
    blocks = [np.arange(offsets[block], offsets[block + 1]) for block in which]
    return np.concatenate([np.arange(0), *blocks])
