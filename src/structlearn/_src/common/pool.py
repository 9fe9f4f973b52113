"""Threads that stay alive between calls, and BLAS held to one thread while they run.

The caller takes part in its own work. So a call within a call cannot block: it is helped by the
threads that are idle, and does everything itself where there are none.

To wake a thread that sleeps takes some 80 microseconds on a machine with many cores, and the
interpreter's lock lets threads wake one after the other: with 16 of them more than a millisecond,
for work that often takes less. So a helper that is through first lingers for some tenths of a
millisecond, looking for the next job, and so does a caller whose helpers are not through.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Ints

#: Modules that bring a BLAS of their own, which the controller must have seen to hold it.
_WITH_BLAS = ("numpy", "scipy.linalg", "scipy.sparse.linalg", "sklearn.utils", "torch")
_CROWD = 3  # helpers from which on it pays to linger: few are woken in no time
_LOOKS = 400  # while lingering: half a millisecond where nobody else wants the core


#: Looks at a count until it has reached a value, so many times; returns the looks that are left.
Linger = Callable[[Ints, int, int], int]


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
        self._through = np.zeros(1, np.int64)  # helpers that have left
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
            self._through[0] += 1
        self._left.put(None)

    def wait(self, helpers: int, linger: Linger | None = None) -> None:
        """Return when the helpers are through; raise the first error, in the order of ranges.

        What is waited for is their number: an interrupt may lose an entry of the queue.
        """
        while self._through[0] < helpers:
            try:
                if linger is not None and linger(self._through, helpers, _LOOKS):
                    break
                linger = None
                self._left.get()
            except BaseException as error:  # from the keyboard, which comes before all others
                self._errors[-1] = error
                self.cancel()
        if self._errors:
            raise self._errors[min(self._errors)]


class Pool:
    """Threads that wait for jobs; as many as the largest call so far could use."""

    linger: Linger | None = None  #: compiled, from where kernels are

    def __init__(self) -> None:
        self.size = 0
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[tuple[Job, Context]] = SimpleQueue()
        self._sent = np.zeros(1, np.int64)  # calls so far
        self._idle = 0
        self._patient: Linger | None = None  # `linger`, once it is worth while

    def run(self, job: Job, threads: int) -> None:
        """Do a job with so many threads at most, the calling one included."""
        sent: list[None] = []
        engaged = self._engage(threads - 1)
        try:
            # Time limits and place hold in every thread.
            calls = [(job, copy_context()) for _ in range(engaged)]
            sent.extend(map(self._jobs.put, calls))  # one step, which no interrupt divides
            self._sent[0] += 1
            job.work()
        except BaseException:  # from the keyboard, between two ranges
            job.cancel()
            raise
        finally:
            try:
                job.wait(len(sent), self._patient)
            finally:
                self._free(engaged - len(sent))

    def _engage(self, wanted: int) -> int:
        """Return how many threads will help, which are then no longer idle."""
        if self._patient is None and self.linger and self.size >= _CROWD and "numba" in sys.modules:
            self.linger(self._sent, 0, 0)  # compiles it
            self._patient = self.linger
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
            job, context = self._next()
            context.run(job.work)
            self._free(1)  # before the caller goes on: its next call must find this thread
            job.leave()
            del job, context  # else their arrays would live until the next job

    def _next(self) -> tuple[Job, Context]:
        """Return the next job: lingers for a moment, then sleeps until there is one."""
        looks = _LOOKS
        while looks and self._patient is not None:
            seen = int(self._sent[0])  # before the queue: what comes later raises it
            with suppress(Empty):
                return self._jobs.get_nowait()
            looks = self._patient(self._sent, seen + 1, looks)
        return self._jobs.get()


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
