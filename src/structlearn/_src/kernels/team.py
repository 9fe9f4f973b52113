"""Threads that work together inside one kernel, phase by phase.

Some work comes in phases of microseconds, far less than a thread takes to be woken: so every thread
runs the whole kernel, and they meet inside. A phase has numbered tasks. Whoever is free takes the
next one; when all are done, everybody goes on to the next phase. How many threads there are does
not matter, and one that comes late finds the first phases done: the thread that waits for nobody
can finish alone. What a task computes depends on its number, never on who takes it.

    i = take(board, phase)
    while i < tasks:
        ...
        done(board, phase)
        i = take(board, phase)
    wait(board, phase, tasks)

The `board` counts the tasks of every phase that were taken and done: `make_board`, one per call.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.atomic import fetch_add, give_way, load, pause
from structlearn._src.kernels.jit import inner

_LINE = 8  # integers on a cache line: the counts of a phase lie on lines of their own
_SPINS = 100  # looks at a count, some microseconds, before the core is offered to others


def make_board(phases: int) -> Ints:
    """Return the counts of so many phases, all 0."""
    return np.zeros(2 * _LINE * phases, np.int64)


@inner
def take(board, phase):
    """Take the next task of a phase; a number beyond the last one says that none is left."""
    return fetch_add(board, 2 * _LINE * phase, 1)


@inner
def done(board, phase):
    """Say that a task is done, with all that it wrote."""
    fetch_add(board, 2 * _LINE * phase + _LINE, 1)


@inner
def unfinished(board, phase, tasks):
    """Tell whether some tasks of a phase are not done yet."""
    return load(board, 2 * _LINE * phase + _LINE) < tasks


@inner
def wait(board, phase, tasks):
    """Return when all tasks of a phase are done."""
    looks = 0
    while unfinished(board, phase, tasks):
        looks += 1
        pause()
        if looks > _SPINS:
            give_way()
