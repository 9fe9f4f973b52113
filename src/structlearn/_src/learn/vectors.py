"""Operations on vectors as long as the weights, by kernels that threads join.

Ranges depend on the length alone and sums are added up in their order, so that results do not
depend on the number of threads. Short vectors are left to NumPy. What is no array of NumPy, as a
tensor on a card, does its own work.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.vectors import ranges_of
from structlearn._src.kernels.team import make_board
from structlearn._src.kernels.vectors import add_multiple_in_threads, dots_in_threads


def dot(a: Floats, b: Floats, n_jobs: int | None) -> float:
    """Return the dot product."""
    borders = _borders(a)
    if borders is None:
        return float(a @ b)
    sums = np.empty(len(borders) - 1)
    helpers = threads.helpers(n_jobs, len(sums))
    threads.launch(dots_in_threads, helpers, make_board(1), borders, plain(a), plain(b), sums)
    return float(sums.cumsum()[-1])


def moved(start: Floats, length: float, direction: Floats, n_jobs: int | None) -> Floats:
    """Return where a step of some length along a direction ends."""
    if _borders(start) is None:
        return start + length * direction
    out = np.empty_like(start)
    _add(start, length, direction, n_jobs, out)
    return out


def add_multiple(into: Floats, factor: float, more: Floats, n_jobs: int | None) -> None:
    """Add a multiple of one vector to another, in place."""
    if _borders(into) is None:
        into += factor * more
    else:
        _add(into, factor, more, n_jobs, into)


def plain(vector: Floats) -> Floats:
    """Return a vector as kernels are compiled for."""
    return np.require(vector, np.float64, ("C", "W"))


def _add(start: Floats, factor: float, more: Floats, n_jobs: int | None, out: Floats) -> None:
    borders = _borders(start)
    assert borders is not None
    helpers = threads.helpers(n_jobs, len(borders) - 1)
    given = plain(start), float(factor), plain(more), out
    threads.launch(add_multiple_in_threads, helpers, make_board(1), borders, *given)


def _borders(vector: Floats) -> Ints | None:
    """Return where ranges of a long vector begin, and the end."""
    if not isinstance(vector, np.ndarray):
        return None
    ranges = ranges_of(len(vector), threads.GRAIN["parts of vectors"])
    return np.array([0, *(last for _, last in ranges)]) if len(ranges) > 1 else None
