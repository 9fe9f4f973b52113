"""Array types, and blocks of different lengths that lie one after another in a flat array."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

_PIECE = 2**20  # numbers that are counted together: some megabytes
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def offsets_of(sizes: Iterable[int]) -> Ints:
    """Return where each of many consecutive blocks begins, and where the last one ends."""
    counts = sizes if isinstance(sizes, np.ndarray) else np.fromiter(sizes, np.int64)
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def block_indices(offsets: Ints, which: Ints) -> Ints:
    """Return the indices of several blocks, one block after the other.

    Examples
    --------
    >>> block_indices(np.array([0, 2, 3, 6]), np.array([2, 0]))
    array([3, 4, 5, 0, 1])
    """
    sizes = np.diff(offsets)[which]
    starts = offsets_of(sizes)
    return np.arange(starts[-1]) + np.repeat(offsets[:-1][which] - starts[:-1], sizes)


def repeated(values: Floats, sizes: Ints) -> Floats:
    """Repeat the value of every block for its entries; once is enough if all are the same.

    `np.repeat` holds the lock of the interpreter, for which all other threads wait.
    """
    return values[:1] if (values == values[:1]).all() else np.repeat(values, sizes)


def cut(values: Any, offsets: Ints) -> list[Any]:
    """Return the blocks of a flat array, as views."""
    return [values[a:b] for a, b in pairwise(offsets.tolist())]


def locate(offsets: Ints, place: int) -> tuple[int, int]:
    """Return which block a place of the flat array is in, and where in it."""
    block = int(np.searchsorted(offsets, place, side="right")) - 1
    return block, place - int(offsets[block])


def as_array(part: Any) -> NDArray[Any]:
    """Return an array; of text, so that nobody takes it for numbers, if it would be ragged."""
    try:
        return np.asarray(part)
    except (TypeError, ValueError):
        return np.array("ragged")


def count_numbers(numbers: Ints, size: int, where: Bools | None = None) -> Ints:
    """Count how often each of the numbers below `size` occurs, piece by piece.

    `np.bincount` would first copy them all to a wider type.
    """
    counts = np.zeros(size, np.int64)
    piece = max(_PIECE, size)  # no shorter than what is added each time
    for first in range(0, len(numbers), piece):
        part = numbers[first : first + piece]
        if where is not None:
            part = part[where[first : first + piece]]
        counts += np.bincount(part, minlength=size)
    return counts
