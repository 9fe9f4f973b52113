"""CPU and wall time of a piece of work, best of several; and whether others disturbed it."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

_STAT = pathlib.Path("/proc/stat")


class Timing(NamedTuple):
    """Seconds; `result` is what the last run returned."""

    cpu: float  #: of all threads
    wall: float
    serial: float = 0.0  #: CPU time of the calling thread
    others: float = 0.0  #: CPU time that other programs took meanwhile, where that is known
    result: Any = None

    @property
    def quiet(self) -> bool:
        """Whether this program had the machine to itself; /proc/stat counts in 10 ms."""
        return self.others <= 0.03 + 0.03 * self.wall


def once(work: Callable[..., Any], *given: Any) -> Timing:
    """Time one run."""
    busy = _busy()
    wall = time.perf_counter()
    cpu = time.process_time()
    serial = time.thread_time()
    result = work(*given)
    serial, cpu = time.thread_time() - serial, time.process_time() - cpu
    wall = time.perf_counter() - wall
    return Timing(cpu, wall, serial, max(_busy() - busy - cpu, 0.0), result)


def least(timings: list[Timing]) -> Timing:
    """The least of every kind of time."""
    times = (min(column) for column in list(zip(*timings, strict=True))[:4])
    return Timing(*times, timings[-1].result)


def best(
    work: Callable[..., Any], repeats: int = 5, prepare: Callable[[], Any] | None = None
) -> Timing:
    """Least times of `work` over several runs, given what `prepare` makes afresh each time."""
    timings: list[Timing] = []
    for _ in range(repeats):
        # Results that stay alive would make every run pay for memory never used before.
        timings = [t._replace(result=None) for t in timings]
        timings.append(once(work, *(() if prepare is None else (prepare(),))))
    return least(timings)


def undisturbed(
    work: Callable[[Any], Any], cases: tuple[Any, ...], repeats: int = 8, limit: float = 40.0
) -> list[Timing]:
    """Least times of each case, run in turn, over the runs without others at work.

    If within `limit` seconds there was no such run of a case, all its runs count.
    """
    end = time.monotonic() + limit
    timings = [[] for _ in cases]
    while min(sum(t.quiet for t in row) for row in timings) < repeats and time.monotonic() < end:
        for case, row in zip(cases, timings, strict=True):
            _wait(end)
            row.append(once(work, case)._replace(result=None))
    return [least([t for t in row if t.quiet] or row) for row in timings]


def _wait(end: float) -> None:
    """Wait for a moment in which nobody else works."""
    while time.monotonic() < end:
        busy = _busy()
        time.sleep(0.2)
        if _busy() - busy <= 0.02:
            return


def _busy() -> float:
    """CPU seconds that all programs together have used since the machine started."""
    if not _STAT.exists():
        return 0.0
    ticks = [int(word) for word in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
