"""Divide the graphs of a wiring, or the blocks of a flat array, among threads."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.wiring import Wiring

_WORTH = 20_000  # table entries below which a thread costs more than it brings
_GRAIN = 2**18  # entries of a flat array: a good part of the cache, and worth a thread
_LINE = 16  # numbers that keep two arrays on different cache lines


def over_graphs(work: Callable[[int, int], None], wiring: Wiring, n_jobs: int | None) -> None:
    """Call ``work(first, last)`` on ranges of graphs that cover them all."""
    entries = wiring.table_offsets[wiring.graph_factors]
    # Several ranges per worker even out graphs that need different numbers of sweeps.
    parts = 1
    if wiring.n_graphs > 1 and entries[-1] > _WORTH:
        count = threads.workers(n_jobs)
        parts = min(count * 8, wiring.n_graphs) if count > 1 else 1
    threads.run(work, threads.split(entries, parts), n_jobs)


def over_blocks(work: Callable[[int, int], None], offsets: Ints, n_jobs: int | None) -> None:
    """Call ``work(first, last)`` on ranges of the blocks of a flat array, fit for the cache."""
    threads.run(work, threads.split(offsets, 1 + int(offsets[-1]) // _GRAIN), n_jobs)


def scratch(*shapes: tuple[int, ...]) -> list[Floats]:
    """Return scratch arrays of one worker, on cache lines that no other worker writes to."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    whole = np.empty(int(ends[-1]) + 2 * _LINE)[_LINE:-_LINE]
    parts = np.split(whole, ends[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
