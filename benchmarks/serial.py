"""What bounds the speed-up of some work by threads, found on a machine with few cores.

All parallel work goes through `threads.run`, as ranges, or through `threads.launch`, as kernels
that threads join. Here the CPU time of every range and of every such kernel is taken, and all that
the calling thread does beside them is serial. With `T` threads that take the ranges in order, the
work cannot be quicker than its serial part and the time by which the last range of every call is
done. Costs of waking threads, of the interpreter's lock, and of memory that they share, are not in
this bound.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from unittest import mock


@dataclass
class Observed:
    """CPU seconds beside the ranges, and of the ranges of every call that could use threads."""

    serial: float = 0.0
    calls: list[list[float]] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)  #: functions that the ranges called

    @property
    def total(self) -> float:
        """Seconds in all, without what waking the threads takes."""
        return self.serial + sum(map(sum, self.calls))

    def words(self, threads: int) -> str:
        """Say how much is serial, and by how much so many threads could speed the work up."""
        ends = [_makespan(ranges, threads) for ranges in self.calls]
        bound = self.total / (self.serial + sum(ends))
        idle: Counter[str] = Counter()
        for owner, ranges, end in zip(self.owners, self.calls, ends, strict=True):
            idle[owner] += end - sum(ranges) / threads  # type: ignore[assignment]
        lines = [
            f"{self.total:.3f} s of CPU time, {self.serial:.3f} s ({self.serial / self.total:.1%}) "
            f"serial, {len(self.calls)} calls; {threads} threads bring at most {bound:.1f}"
        ]
        lines += [
            f"    {late:.4f} s lost by uneven ranges of {owner}"
            for owner, late in idle.most_common(3)
        ]
        return "\n".join(lines)


def observe(work: Callable[[], Any]) -> Observed:
    """Run some work and note its ranges; calls within ranges count as part of these.

    A kernel that threads would join is run by one thread here, and each would do an equal share:
    what they wait for each other is not in the bound either.
    """
    from structlearn._src.common import threads

    found = Observed()
    inside = threading.local()
    plain, joined = threads.run, threads.launch

    def run(
        function: Callable[[int, int], None],
        ranges: Sequence[tuple[int, int]],
        n_jobs: int | None = None,
    ) -> None:
        if len(ranges) <= 1 or getattr(inside, "range", False):
            for first, last in ranges:
                function(first, last)
            return
        seconds: list[float] = [0.0] * len(ranges)

        def timed(number: int, _: int) -> None:
            inside.range = True
            begun = time.thread_time()
            try:
                function(*ranges[number])
            finally:
                seconds[number] = time.thread_time() - begun
                inside.range = False

        begun = time.thread_time()
        plain(timed, [(i, i + 1) for i in range(len(ranges))], n_jobs)
        found.serial -= time.thread_time() - begun
        found.calls.append(seconds)
        found.owners.append(f"{function.__module__}.{function.__qualname__}")

    def launch(kernel: Callable[..., Any], helpers: int, *given: Any) -> Any:
        begun = time.thread_time()
        result = joined(kernel, 0, *given)
        seconds = time.thread_time() - begun
        if helpers > 0 and not getattr(inside, "range", False):
            found.serial -= seconds
            found.calls.append([seconds / (helpers + 1)] * (helpers + 1))
            found.owners.append(f"{kernel.__module__}.{kernel.__name__}")
        return result

    patch = mock.patch.object
    with patch(threads, "run", run), patch(threads, "launch", launch):
        begun = time.thread_time()
        work()
        found.serial += time.thread_time() - begun
    return found


def _makespan(ranges: list[float], threads: int) -> float:
    """Return when the last of some ranges ends, each of which the first free thread takes."""
    free = [0.0] * threads
    for seconds in ranges:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)
