"""CPU and wall time of a piece of work, best of several."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple


class Timing(NamedTuple):
    """Seconds; `result` is what the last run returned."""

    cpu: float  #: of all threads
    wall: float
    serial: float = 0.0  #: CPU time of the calling thread
    result: Any = None


def once(work: Callable[..., Any], *given: Any) -> Timing:
    """Time one run."""
    wall, cpu, serial = time.perf_counter(), time.process_time(), time.thread_time()
    result = work(*given)
    return Timing(
        time.process_time() - cpu,
        time.perf_counter() - wall,
        time.thread_time() - serial,
        result,
    )


def least(timings: list[Timing]) -> Timing:
    """The least of every kind of time."""
    cpu, wall, serial = (min(times) for times in list(zip(*timings, strict=True))[:3])
    return Timing(cpu, wall, serial, timings[-1].result)


def best(
    work: Callable[..., Any], repeats: int = 5, prepare: Callable[[], Any] | None = None
) -> Timing:
    """Least times of `work` over several runs, given what `prepare` makes afresh each time."""
    return least([once(work, *(() if prepare is None else (prepare(),))) for _ in range(repeats)])
