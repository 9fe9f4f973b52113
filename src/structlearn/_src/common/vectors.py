"""Operations of NumPy on long vectors and matrices, in threads over ranges of them.

The ranges depend on the length alone and sums are added up in their order, so that results do not
depend on the number of threads. Short vectors are one range, in the calling thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from operator import add
from typing import TypeVar

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints

_Numbers = TypeVar("_Numbers", Floats, Ints)


def over(
    work: Callable[[slice], None], size: int, n_jobs: int | None, grain: int | None = None
) -> None:
    """Call `work` on all ranges of a vector, of about `grain` numbers each."""
    threads.run(lambda first, last: work(slice(first, last)), ranges_of(size, grain), n_jobs)


def ranges_of(size: int, grain: int | None = None) -> list[tuple[int, int]]:
    """Cut a vector into ranges of about `grain` numbers each; there is at least one."""
    parts = max(1, round(size / (grain or threads.GRAIN["weights"])))
    return list(pairwise(size * i // parts for i in range(parts + 1)))


def summed(
    work: Callable[[slice], _Numbers], size: int, n_jobs: int | None, grain: int | None = None
) -> _Numbers:
    """Return the sum of what `work` returns for all ranges of a vector."""
    parts: dict[int, _Numbers] = {}

    def keep(part: slice) -> None:
        parts[part.start] = work(part)

    over(keep, size, n_jobs, grain)
    return reduce(add, (parts[start] for start in sorted(parts)))


def copy_into(out: Floats | Ints, values: Floats | Ints, n_jobs: int | None) -> None:
    """Copy a vector into another one, or rows into those of a matrix."""

    def work(part: slice) -> None:
        out[part] = values[part]

    over(work, len(out), n_jobs, _rows(out))


def _rows(matrix: Floats | Ints) -> int:
    """Return how many rows of a matrix make a range, or numbers of a vector."""
    return max(1, threads.GRAIN["entries"] * len(matrix) // max(matrix.size, 1))


def filled(size: int, value: float, n_jobs: int | None) -> Floats:
    """Return a vector of one number."""
    out = np.empty(size)
    over(lambda part: out[part].fill(value), size, n_jobs, threads.GRAIN["entries"])
    return out


def counted(size: int, n_jobs: int | None) -> Ints:
    """Return the numbers from 0 on."""
    out = np.empty(size, np.int64)

    def work(part: slice) -> None:
        out[part] = np.arange(part.start, part.stop)

    over(work, size, n_jobs, threads.GRAIN["entries"])
    return out


def taken(values: Floats, where: Ints, n_jobs: int | None) -> Floats:
    """Return the values at some places, in the shape of the places."""
    out = np.empty(where.shape)

    def work(part: slice) -> None:
        np.take(values, where[part], out=out[part], mode="clip")  # else it goes through a copy

    over(work, len(where), n_jobs, _rows(out))
    return out


def put(into: Floats, where: Ints, values: Floats, n_jobs: int | None) -> None:
    """Write rows of values, or one row for all, to their places, no two of which are the same."""
    each = len(values) == len(where)

    def work(part: slice) -> None:
        into[where[part]] = values[part] if each else values

    over(work, len(where), n_jobs, _rows(where))
