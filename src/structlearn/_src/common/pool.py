"""Threads that stay alive between calls, and BLAS held to one thread while they run.

The caller takes part in its own work. So a call within a call cannot block: it is helped by the
threads that are idle, and does everything itself where there are none.

To wake a thread that sleeps takes some 80 microseconds on a machine with many cores, and the
interpreter's lock lets threads wake one after the other: with 16 of them more than a millisecond,
for work that often takes less. So a helper that is through first lingers for a moment, looking for
the next job, and so does a caller whose helpers are not through. While they linger, helpers also
take part in kernels that are launched for many threads: see `kernels/launch`. A helper that was
woken for a kernel does not sleep before that has begun: Python may take longer to call it than a
helper lingers.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import Context, copy_context
from itertools import repeat
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Ints

#: Modules that bring a BLAS of their own, which the controller must have seen to hold it.
_WITH_BLAS = ("numpy", "scipy.linalg", "scipy.sparse.linalg", "sklearn.utils", "torch")
_CROWD = 3  # helpers from which on it pays to linger: few are woken in no time
_LOOKS = 1000  # while lingering: a millisecond or two where nobody else wants the core
_GLANCES = 50  # of few helpers, after they were woken and after a kernel
_ROUNDS = 20  # of looks for a kernel that does not begin: some milliseconds
_DOZE = 0.005  # seconds between later looks: what takes so long is being compiled, or loaded

#: Looks at a count until it has reached a value, so many times; returns the looks that are left.
Linger = Callable[[Ints, int, int], int]


class Compiled(NamedTuple):
    """What threads do without the interpreter's lock: compiled code, from where kernels are."""

    linger: Linger
    serve: Linger  #: in a box, see `kernels/launch`
    make_box: Callable[[], Ints]
    calls: int  #: where in the box the calls of the pool are counted
    begun: int  #: where in the box the kernels are counted that threads may take part in


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
        self._contexts: list[Context] = []  # one for each helper that may still come
        self._entered = 0  # helpers that have come
        self._through = np.zeros(1, np.int64)  # helpers that have left
        self._left: SimpleQueue[None] = SimpleQueue()  # wakes the caller when one of them does

    def open(self, helpers: int) -> None:
        """Let so many helpers in, which are to know the time limits and the place of the caller."""
        self._contexts = [copy_context() for _ in range(helpers)]

    def enter(self) -> Context | None:
        """Return the context in which a helper is to work, or None if none is needed."""
        with self._lock:
            if not self._contexts or self._begun >= len(self._ranges):
                return None
            self._entered += 1
            return self._contexts.pop()

    def close(self) -> None:
        """Let no more helpers in."""
        with self._lock:
            self._contexts = []

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

    def wait(self, linger: Linger | None = None) -> None:
        """Return when all helpers that came are through; raise the first error, by ranges.

        What is waited for is their number: an interrupt may lose an entry of the queue.
        """
        while self._through[0] < self._entered:
            try:
                if linger is not None and linger(self._through, self._entered, _LOOKS):
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

    compiled: Compiled | None = None

    def __init__(self) -> None:
        self.size = 0
        self._lock = threading.Lock()
        self._jobs: list[Job] = []  # that may need help, the newest last
        self._tokens: SimpleQueue[None] = SimpleQueue()  # each wakes a helper
        self._asleep = 0  # helpers that sleep and for whom no token has been put yet
        self._woken = 0  # how often helpers were woken
        self._summons = 0  # kernels that helpers were woken for: those that begin raise `_begun`
        self._callers: set[int] = set()  # threads that call such kernels now
        self._ready = False  # whether the compiled code is loaded
        self.box = self.compiled.make_box() if self.compiled else np.zeros(1, np.int64)

    def use(self, compiled: Compiled) -> None:
        """Have compiled code at hand from now on."""
        self.compiled = compiled
        self.box = compiled.make_box()

    def run(self, job: Job, threads: int) -> None:
        """Do a job with so many threads at most, the calling one included.

        Only helpers that have come in time are waited for: a short job is done without the others.
        """
        if self.size >= _CROWD and "numba" in sys.modules:
            self._load()
        try:
            job.open(threads - 1)
            with self._lock:
                self._grow(threads - 1)
                self._jobs.append(job)
                if self._ready and self.compiled:
                    self.box[self.compiled.calls] += 1
            self._wake(threads - 1)
            job.work()
        except BaseException:  # from the keyboard, between two ranges
            job.cancel()
            raise
        finally:
            try:
                self._finish(job)
            except KeyboardInterrupt:  # helpers must not go on with what the caller has left
                job.cancel()
                self._finish(job)
                raise

    def _finish(self, job: Job) -> None:
        """Return when all helpers are through with a job, or raise its error; maybe once more."""
        with self._lock:
            if job in self._jobs:  # not so after an early interrupt
                self._jobs.remove(job)
        job.close()
        patient = self.compiled if self._patient else None
        job.wait(patient and patient.linger)

    def summon(self, wanted: int) -> Ints:
        """Have so many threads look for kernels to take part in; returns the box they look at."""
        self._load()
        with self._lock:
            self._grow(wanted)
            self._callers.add(threading.get_ident())
            self._summons += 1
        self._wake(wanted)
        return self.box

    def dismiss(self) -> None:
        """Say that the kernel of this thread has ended, or could not begin."""
        with self._lock:
            self._callers.discard(threading.get_ident())
            if not self._callers:
                self._summons = self._begun

    def _load(self) -> None:
        """Load the compiled code, before several threads do."""
        if not self._ready and self.compiled:
            self.compiled.linger(self.box, 0, 0)
            self.compiled.serve(self.box, 0, 0)
            self._ready = True

    @property
    def _patient(self) -> bool:
        """Whether threads linger before they sleep."""
        return self._ready and self.size >= _CROWD

    def _grow(self, wanted: int) -> None:
        while self.size < wanted:
            name = f"structlearn-{self.size}"
            # No work of theirs outlives the call that waits for it: they may die with Python.
            helper = threading.Thread(target=self._serve, name=name, daemon=True)
            try:
                helper.start()
            except RuntimeError:  # a limit of processes, or Python ends: those there are will do
                return
            self.size += 1

    def _serve(self) -> None:
        while True:
            job, context = self._next()
            context.run(job.work)
            job.leave()
            del job, context  # else their arrays would live until the next job

    def _next(self) -> tuple[Job, Context]:
        """Return the next job: lingers for a moment, then sleeps until there may be one."""
        looks = max(self._patience, _GLANCES)
        rounds = 0  # since a kernel is awaited
        while True:
            # Before all looks: what comes raises them.
            calls, woken, begun = self._calls, self._woken, self._begun
            if found := self._enter():
                return found
            looks = self._look(calls, looks)
            if not looks:
                # After the last look this thread may have waited for the interpreter's lock.
                now = self._begun
                rounds = rounds + 1 if begun == now < self._summons else 0
                looks = max(self._patience, _GLANCES)
                if rounds > _ROUNDS:
                    time.sleep(_DOZE)
                    looks = 1
                elif begun == now >= self._summons and self._may_sleep(woken):
                    self._tokens.get()

    def _look(self, calls: int, looks: int) -> int:
        """Take part in kernels until there is a new job; returns the looks that are left."""
        if self._ready and self.compiled:
            return self.compiled.serve(self.box, calls, looks)
        return 0

    def _enter(self) -> tuple[Job, Context] | None:
        """Enter the newest job that needs help: others may wait for it."""
        for job in reversed(self._jobs.copy()):
            if (context := job.enter()) is not None:  # an empty one is false
                return job, context
        return None

    def _may_sleep(self, woken: int) -> bool:
        """Count one more helper that sleeps, unless some were woken since the count was `woken`."""
        with self._lock:
            if self._woken != woken:
                return False
            self._asleep += 1
            return True

    def _wake(self, wanted: int) -> None:
        """Have so many helpers look for work; those that do not sleep look before they do."""
        with self._lock:
            self._woken += 1
            asleep = min(self._asleep, wanted)
            # One step, which no interrupt divides. One too many wakes a helper for nothing.
            deque(map(self._tokens.put, repeat(None, asleep)), maxlen=0)
            self._asleep -= asleep

    @property
    def _patience(self) -> int:
        return _LOOKS if self._patient else 0

    @property
    def _calls(self) -> int:
        """Number of calls so far, once somebody may wait for it in compiled code."""
        return int(self.box[self.compiled.calls]) if self.compiled else 0

    @property
    def _begun(self) -> int:
        """Number of kernels that helpers were woken for and that have begun."""
        return int(self.box[self.compiled.begun]) if self.compiled else 0


class Blas:
    """Holds the threads of BLAS, which spin between its calls, to one while ours work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[object, int] = {}  # the thread of each
        self._before: list[tuple[Any, int]] = []  # libraries that are held, and their threads
        self._libraries: list[Any] = []
        self._known: tuple[str, ...] = ()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold BLAS to one thread; within others that do so it costs nothing."""
        holder = object()
        try:
            self._hold(holder)
            yield
        finally:
            try:
                self._free(holder)
            except KeyboardInterrupt:  # which may come at any step, but not twice
                self._free(holder)
                raise

    def _hold(self, holder: object) -> None:
        with self._lock:
            if not self._holders:
                # Written down before anything changes, as an interrupt may come in between.
                self._before = self._before or [(each, each.num_threads) for each in self._look()]
                self._limit()
            self._holders[holder] = threading.get_ident()

    def _limit(self) -> None:
        for library, _ in self._before:
            library.set_num_threads(1)

    def _free(self, holder: object | None) -> None:
        with self._lock:
            self._holders.pop(holder, None)
            if not self._holders:
                for library, count in self._before:
                    library.set_num_threads(count)
                self._before = []

    def begin_anew(self) -> None:
        """Forget those who hold BLAS in threads that a fork does not copy."""
        self._lock = threading.Lock()
        here = threading.get_ident()
        self._holders = {each: own for each, own in self._holders.items() if own == here}
        self._limit()  # a fork may undo it
        self._free(None)

    def _look(self) -> list[Any]:
        """Return all libraries of BLAS that are loaded: a search of a millisecond."""
        loaded = tuple(name for name in _WITH_BLAS if name in sys.modules)
        if loaded != self._known:
            from threadpoolctl import ThreadpoolController

            found = ThreadpoolController().lib_controllers
            self._libraries = [each for each in found if each.user_api == "blas"]
            self._known = loaded
        return self._libraries


POOL = Pool()
BLAS = Blas()


def _begin_anew() -> None:
    """Forget the threads of the parent, which a fork does not copy, and its locks."""
    POOL.__init__()  # type: ignore[misc]  # the object that modules hold stays
    BLAS.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
