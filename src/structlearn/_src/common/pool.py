"""Threads that stay alive between calls, and BLAS held to one thread while they run.

The caller takes part in its own work. So a call within a call cannot block: it is helped by the
threads that are idle, and does everything itself where there are none.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any

#: Modules that bring a BLAS of their own, which the controller must have seen to hold it.
_WITH_BLAS = ("numpy", "scipy.linalg", "scipy.sparse.linalg", "sklearn.utils", "torch")


class Job:
    """Ranges that the caller and its helpers take one after the other."""

    def __init__(
        self, function: Callable[[int, int], None], ranges: Sequence[tuple[int, int]]
    ) -> None:
        self._function = function
        self._ranges = ranges
        self._begun = 0
        self._lock = threading.Lock()
        self._errors: dict[int, BaseException] = {}
        self._through = 0  # helpers that have left
        self._left: SimpleQueue[None] = SimpleQueue()  # wakes the caller when one of them does

    def work(self) -> None:
        """Take ranges, in order, until none is left."""
        while (i := self._take()) >= 0:
            try:
                self._function(*self._ranges[i])
            except BaseException as error:  # the caller raises it, whichever thread met it
                self._errors[i] = error
                self.cancel()

    def _take(self) -> int:
        with self._lock:
            i = self._begun
            if i >= len(self._ranges):
                return -1
            self._begun = i + 1
            return i

    def cancel(self) -> None:
        """Drop the ranges that have not begun."""
        with self._lock:
            self._begun = len(self._ranges)

    def leave(self) -> None:
        """Say that a helper is through."""
        with self._lock:
            self._through += 1
        self._left.put(None)

    def wait(self, helpers: int) -> None:
        """Return when the helpers are through; raise the first error, in the order of ranges.

        What is waited for is their number: an interrupt may lose an entry of the queue.
        """
        while self._through < helpers:
            try:
                self._left.get()
            except BaseException as error:  # from the keyboard, which comes before all others
                self._errors[-1] = error
                self.cancel()
        if self._errors:
            raise self._errors[min(self._errors)]


class Pool:
    """Threads that wait for jobs; as many as the largest call so far could use."""

    def __init__(self) -> None:
        self.size = 0
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[tuple[Job, Context]] = SimpleQueue()
        self._idle = 0

    def run(self, job: Job, threads: int) -> None:
        """Do a job with so many threads at most, the calling one included."""
        sent: list[None] = []
        engaged = self._engage(threads - 1)
        try:
            # Time limits and place hold in every thread.
            calls = [(job, copy_context()) for _ in range(engaged)]
            sent.extend(map(self._jobs.put, calls))  # one step, which no interrupt divides
            job.work()
        except BaseException:  # from the keyboard, between two ranges
            job.cancel()
            raise
        finally:
            try:
                job.wait(len(sent))
            finally:
                self._free(engaged - len(sent))

    def _engage(self, wanted: int) -> int:
        """Return how many threads will help, which are then no longer idle."""
        with self._lock:
            while self.size < wanted:
                name = f"structlearn-{self.size}"
                # No work of theirs outlives the call that waits for it: they may die with Python.
                threading.Thread(target=self._serve, name=name, daemon=True).start()
                self.size += 1
                self._idle += 1
            found = min(wanted, self._idle)
            self._idle -= found
            return found

    def _free(self, count: int) -> None:
        with self._lock:
            self._idle += count

    def _serve(self) -> None:
        while True:
            job, context = self._jobs.get()
            context.run(job.work)
            self._free(1)  # before the caller goes on: its next call must find this thread
            job.leave()
            del job, context  # else their arrays would live until the next job


class Blas:
    """Holds the threads of BLAS, which spin between its calls, to one while ours work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._limit: Any = None
        self._controller: Any = None
        self._known: tuple[str, ...] = ()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold BLAS to one thread; within others that do so it costs nothing."""
        with self._lock:
            self._holders += 1
            if self._holders == 1:
                self._limit = self._look().limit(limits=1, user_api="blas")
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if self._holders == 0:
                    self._limit.restore_original_limits()
                    self._limit = None

    def _look(self) -> Any:
        """Return the controller of all libraries that are loaded: a search of a millisecond."""
        loaded = tuple(name for name in _WITH_BLAS if name in sys.modules)
        if loaded != self._known:
            from threadpoolctl import ThreadpoolController

            self._controller = ThreadpoolController()
            self._known = loaded
        return self._controller


POOL = Pool()
BLAS = Blas()


def _begin_anew() -> None:
    """Forget the threads of the parent, which a fork does not copy, and its locks."""
    POOL.__init__()  # type: ignore[misc]  # the object that modules hold stays
    BLAS._lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
