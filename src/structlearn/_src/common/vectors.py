"""Operations on vectors as long as the weights, and on matrices, in threads over ranges of them.

The ranges depend on the length alone and sums are added up in their order, so that results do not
depend on the number of threads. Short vectors are one range, in the calling thread. What is no
array of NumPy, as a tensor on a card, does its own work whole.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats


def over(
    work: Callable[[slice], None], size: int, n_jobs: int | None, grain: int | None = None
) -> None:
    """Call `work` on all ranges of a vector, of about `grain` numbers each."""
    parts = _count(size, grain)
    if parts == 1:
        work(slice(0, size))
        return
    ends = [size * i // parts for i in range(parts + 1)]
    threads.run(
        lambda first, last: work(slice(first, last)),
        list(pairwise(ends)),
        n_jobs,
    )


def _count(size: int, grain: int | None) -> int:
    return max(1, round(size / (grain or threads.GRAIN["weights"])))


def summed(
    work: Callable[[slice], Floats], size: int, n_jobs: int | None, grain: int | None = None
) -> Floats:
    """Return the sum of what `work` returns for all ranges of a vector."""
    if _count(size, grain) == 1:
        return work(slice(0, size))
    parts: dict[int, Floats] = {}

    def keep(part: slice) -> None:
        parts[part.start] = work(part)

    over(keep, size, n_jobs, grain)
    first, *rest = (parts[start] for start in sorted(parts))
    return sum(rest, first)


def dot(a: Floats, b: Floats, n_jobs: int | None) -> float:
    """Return the dot product."""
    if not isinstance(a, np.ndarray):
        return float(a @ b)
    return float(summed(lambda part: a[part] @ b[part], len(a), n_jobs))


def multiply(matrix: Floats, vector: Floats, n_jobs: int | None) -> Floats:
    """Return the product of a matrix of few long rows with a long vector."""
    return summed(lambda part: matrix[:, part] @ vector[part], len(vector), n_jobs)


def moved(start: Floats, length: float, direction: Floats, n_jobs: int | None) -> Floats:
    """Return where a step of some length along a direction ends."""
    if not isinstance(start, np.ndarray):
        return start + length * direction
    out = np.empty_like(start)

    def work(part: slice) -> None:
        np.multiply(direction[part], length, out=out[part])
        out[part] += start[part]

    over(work, len(start), n_jobs)
    return out


def add_multiple(into: Floats, factor: float, more: Floats, n_jobs: int | None) -> None:
    """Add a multiple of one vector to another, in place."""

    def work(part: slice) -> None:
        into[part] += factor * more[part]

    over(work, len(into), n_jobs)
