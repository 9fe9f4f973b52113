"""Threads over ranges of independent work: the one place where parallelism lives.

Kernels release the interpreter's lock, so plain threads scale and clash with nothing (joblib,
Dask and forks stay safe). To make results independent of the number of threads, choose the
ranges from the work alone. The threads stay alive between calls, in `pool`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from itertools import accumulate, pairwise
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.lib.array_utils import byte_bounds

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.pool import BLAS, POOL, Job
from structlearn._src.common.reuse import empty

VARIABLE = "STRUCTLEARN_N_JOBS"
#: How much of each kind of work makes one range: it fits the cache, and is worth a thread.
GRAIN = {
    "arrays": 2**18,  # entries of a flat array that NumPy goes through
    "chains": 2**16,  # entries of the tables of chains: some tenths of a millisecond
    "entries": 2**16,  # of flat arrays that kernels go through: some tenths of a millisecond
    "features": 2**16,  # entries of a sparse matrix
    "few graphs": 2**11,  # table entries of graphs: some tens of microseconds of a kernel
    "graphs": 20_000,  # table entries of graphs below which threads cost more than they bring
    "margins": 2**15,  # rows times labels: some milliseconds
    "orders": 2**12,  # variables of small graphs that are ordered together
    "places": 2**13,  # read and written one by one, far apart: some tenths of a millisecond
    "parts of vectors": 2**15,  # numbers in kernels: some tens of microseconds
    "pairs": 2**17,  # steps of a solver times weights: a megabyte, of which threads take a few
    "positions": 2**13,  # of sequences that are sampled: some milliseconds
    "products": 2**23,  # of two numbers, by BLAS: a millisecond, as long as it takes to wake 16
    "sequences": 2**16,  # states of all positions of labelled sequences
    "strings": 2**14,  # to be looked up
    "tokens": 2**13,  # whose text stays in the cache
    "weights": 2**18,  # of a model, in vector operations of a solver: some tenths of a millisecond
    "whole graphs": 2**12,  # table entries, for all sweeps: some tenths of a millisecond
    "worlds": 2**15,  # table entries of graphs: inference in them takes some milliseconds
}
_RANGES = 8  # per worker: they even out graphs that need different numbers of sweeps
_TASKS = 2**13  # in a call of a kernel: a second or two of work on one thread
_WHOLE = 2**9  # the same of tasks that solve graphs from the first sweep to the last
_LINES = 128  # bytes of two lines of the cache, which processors fetch together
_LINE = 16  # numbers that keep two arrays on different cache lines
_most: ContextVar[int | None] = ContextVar(
    "most", default=None
)  # threads, where none are asked for


@contextmanager
def at_most(n_jobs: int) -> Iterator[None]:
    """Let `workers` say so many inside the block, where no other number is given."""
    outer = _most.set(n_jobs)
    try:
        yield
    finally:
        _most.reset(outer)


def workers(n_jobs: int | None = None) -> int:
    """Return the number of threads to use.

    None means what the block of `at_most` around or the environment variable STRUCTLEARN_N_JOBS
    says, and without these all cores that this process may run on.
    """
    if n_jobs is not None:
        return checks.integer("n_jobs", n_jobs, low=1)
    if (most := _most.get()) is not None:
        return most
    given = os.environ.get(VARIABLE, "")
    if not given:
        here = getattr(os, "sched_getaffinity", None)  # not on every system
        return len(here(0)) if here else os.cpu_count() or 1
    if not given.isdecimal() or int(given) < 1:
        raise ArgumentError(
            f"the environment variable {VARIABLE}={given!r} must be a whole number of at least 1; "
            f"unset it to use all cores"
        )
    return int(given)


def few(n_jobs: int | None, ranges: int, each: int) -> int:
    """Return so many threads that each has about `each` ranges to do.

    Where these are so small that to wake one more thread takes longer than it would help.
    """
    return max(1, min(workers(n_jobs), ranges // each))


def split(offsets: Ints, parts: int) -> list[tuple[int, int]]:
    """Cut items into at most `parts` contiguous ranges of about equal weight.

    Item ``i`` weighs ``offsets[i + 1] - offsets[i]``; every range has at least one item.

    Examples
    --------
    >>> split(np.array([0, 1, 2, 3, 9, 10]), 2)
    [(0, 3), (3, 5)]
    """
    return list(pairwise(_borders(offsets, parts).tolist()))


def _borders(offsets: Ints, parts: int) -> Ints:
    """Return where the ranges of `split` begin, and the end."""
    n = len(offsets) - 1
    if parts <= 1 or n <= 1:
        return np.unique([0, n])
    targets = offsets[0] + (offsets[-1] - offsets[0]) * (np.arange(1, parts) / parts)
    # Whole numbers, as the offsets are: to look for others, NumPy would first convert them all.
    above = np.searchsorted(offsets, np.ceil(targets).astype(offsets.dtype))
    np.maximum(above, 1, out=above)
    np.minimum(above, n, out=above)
    nearer_below = targets - offsets[above - 1] < offsets[above] - targets
    borders = np.concatenate(([0], above - nearer_below, [n]))
    return borders[np.append(True, borders[1:] > borders[:-1])]


def over_items(
    work: Callable[[int, int], None],
    offsets: Ints,
    kind: str,
    n_jobs: int | None,
    size: int | None = None,
) -> None:
    """Call ``work(first, last)`` on ranges of items, which depend on the items alone.

    `kind` is that of the work, in `GRAIN`; `size` that of all items, by default the last offset.
    """
    entries = int(offsets[-1]) if size is None else size
    run(work, split(offsets, 1 + entries // GRAIN[kind]), n_jobs)


def over_graphs(
    work: Callable[[int, int], None], offsets: Ints, n_jobs: int | None, each: int = _RANGES
) -> None:
    """Call ``work(first, last)`` on ranges of graphs, given where the tables of each begin.

    There are `each` of them per worker: few where all graphs cost the same. But there are never so
    few that one takes long: between two of them interrupts are heeded.
    """
    parts = 1
    if len(offsets) > 2 and offsets[-1] > GRAIN["graphs"]:
        count = workers(n_jobs)
        least = 1 + int(offsets[-1]) // GRAIN["arrays"]
        parts = min(max(count * each if count > 1 else 1, least), len(offsets) - 1)
    run(work, split(offsets, parts), n_jobs)


def run(
    function: Callable[[int, int], None],
    ranges: Sequence[tuple[int, int]],
    n_jobs: int | None = None,
) -> None:
    """Call ``function(first, last)`` for every range, in threads if there are several.

    The calling thread takes part; others know its time limits and its place. The first exception,
    in the order of the ranges, is raised here; ranges not yet begun are then dropped. The function
    may call `run` itself: it then gets the help of the threads that are idle.
    """
    threads = min(workers(n_jobs), len(ranges))
    if threads <= 1:
        for first, last in ranges:
            function(first, last)
        return
    with BLAS.alone():
        POOL.run(Job(function, ranges), threads)


def together(works: Sequence[Callable[[], Any]], size: int, n_jobs: int | None = None) -> None:
    """Do some pieces of work that do not depend on each other: at once, if on so many numbers."""
    pieces = [(i, i + 1) for i in range(len(works))]
    run(lambda i, _: works[i](), pieces, n_jobs if size > GRAIN["entries"] else 1)


def launch(kernel: Callable[..., Any], helpers: int, *given: Any) -> Any:
    """Call a kernel in which so many helpers may join the calling thread: see `kernels/launch`."""
    if helpers <= 0:
        return kernel(POOL.box, 0, *given)
    with BLAS.alone():
        try:
            return kernel(POOL.summon(helpers), helpers, *given)
        finally:
            POOL.dismiss()


def one_blas_thread() -> AbstractContextManager[None]:
    """Hold BLAS to one thread in a block that works in threads of ours, or asks for just one.

    The threads of BLAS wait for its next call by spinning: many short calls keep all cores busy.
    """
    return BLAS.alone()


def worker_arrays(*shapes: tuple[int, ...]) -> list[Floats]:
    """Return the workspace of one worker, on cache lines that no other worker writes to."""
    ends = list(accumulate(map(math.prod, shapes), initial=_LINE))
    whole = np.empty(ends[-1] + _LINE)
    return [whole[a:b].reshape(s) for (a, b), s in zip(pairwise(ends), shapes, strict=True)]


def calls_of(offsets: Ints, kind: str) -> list[Ints]:
    """Cut items into ranges of work of some kind in `GRAIN`, which depend on the items alone.

    Returns where the ranges begin, and the end, for one call of a kernel that threads join after
    the other: between two of them interrupts are heeded. There are more of them where whole graphs
    are solved in one call, and not a sweep.
    """
    most = _WHOLE if kind == "whole graphs" else _TASKS
    borders = _borders(offsets, 1 + int(offsets[-1]) // GRAIN[kind])
    calls = range(0, max(len(borders) - 1, 1), most)
    return [borders[i : i + most + 1] for i in calls]


def helpers(n_jobs: int | None, tasks: int) -> int:
    """Return how many threads may help the calling one with so many tasks."""
    return min(workers(n_jobs), tasks) - 1 if tasks > 1 else 0


Record = TypeVar("Record", bound=tuple[Any, ...])


class Workspaces(Generic[Record]):
    """Workspaces of the threads of a kernel: records of arrays, which `make` returns.

    Calls at the same time have some each. Records are copied to where they share no cache line,
    unless they lie `alone` already, as those of `worker_arrays`.
    """

    def __init__(self, make: Callable[[], Record], alone: bool = False) -> None:
        self._make = make
        self._alone = alone
        self._spare: list[tuple[list[Record], Ints]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        return Workspaces, (self._make, self._alone)

    @contextmanager
    def lend(self, helpers: int) -> Iterator[tuple[Record, Ints]]:
        """Lend those of a thread and so many helpers, as `kernels.launch.own` takes them."""
        try:
            records, places = self._spare.pop()
        except IndexError:
            records, places = [], np.empty((0, 0), np.int64)
        if len(records) <= helpers:
            made = [self._make() for _ in range(helpers + 1 - len(records))]
            records = records + (made if self._alone else [*map(apart, made)])
            places = np.array([[array.ctypes.data for array in record] for record in records])
        try:
            yield records[0], places
        finally:
            self._spare.append((records, places))


def apart(record: Record) -> Record:
    """Return a copy of a record of arrays that shares no cache line with anything else.

    Small arrays that are made one after the other may lie side by side, and threads that write to
    them would wait for each other. Arrays that share memory still do.
    """
    bounds = [byte_bounds(array) for array in record]
    order = sorted(range(len(record)), key=bounds.__getitem__)
    offsets = dict.fromkeys(order, 0)
    shift = end = reached = 0  # from addresses to places in the copy; its end; the last address
    for i in order:
        low, high = bounds[i]
        if low >= reached:  # shares nothing with those before
            shift = (end + _LINES) // _LINES * _LINES - low
        offsets[i] = low + shift
        reached = max(reached, high)
        end = reached + shift
    block = np.zeros(end + 2 * _LINES, np.uint8)
    start = -block.ctypes.data % _LINES  # the block itself need not begin with a line

    def copied(array: Any, offset: int) -> Any:
        copy = np.ndarray(array.shape, array.dtype, block, start + offset, array.strides)
        copy[...] = array
        return copy

    return type(record)(*(copied(array, offsets[i]) for i, array in enumerate(record)))


class Scratch:
    """A flat array that calls use one after the other; calls at the same time have one each."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._spare: list[Floats] = []

    def __reduce__(self) -> tuple[type[Scratch], tuple[int]]:
        return Scratch, (self.size,)  # what is in it is worth nothing to others

    def take(self) -> Floats:
        """Return an array that nobody else uses."""
        try:
            return self._spare.pop()
        except IndexError:
            return empty(self.size)

    def give(self, array: Floats) -> None:
        """Put an array back."""
        self._spare.append(array)

    @contextmanager
    def lend(self) -> Iterator[Floats]:
        """Take an array, and put it back at the end."""
        array = self.take()
        try:
            yield array
        finally:
            self.give(array)
