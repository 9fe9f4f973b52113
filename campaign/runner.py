"""Run checks in processes that may hang, crash or ask for too much memory."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from campaign.base import Check, HangError, at_most_memory
from campaign.catalogue import CHECKS

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "STRUCTLEARN_N_JOBS")


@dataclass
class Outcome:
    """What one call of a check came to."""

    check: str
    seed: int
    seconds: float
    kind: str = ""  #: empty, or how it failed: wrong, error, hang, crash
    error: str = ""

    @property
    def command(self) -> str:
        """The line that shows the failure again."""
        return f"python -m campaign --only {self.check} --seed {self.seed} --rounds 1"


def attempt(name: str, seed: int) -> Outcome:
    """Call a check once; what it raises becomes a record."""
    check = CHECKS[name]
    began = time.perf_counter()
    outcome = Outcome(name, seed, 0.0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with at_most_memory(int(check.memory * 2**30)):
                check.run(np.random.default_rng(seed))
    except AssertionError:
        outcome.kind = "wrong"
        outcome.error = traceback.format_exc()
    except HangError:
        outcome.kind = "hang"
        outcome.error = traceback.format_exc()
    except Exception:
        outcome.kind = "error"
        outcome.error = traceback.format_exc()
    outcome.seconds = time.perf_counter() - began
    return outcome


@contextmanager
def _alone() -> Iterator[None]:
    """Processes that start in the block have one thread, unless a check asks for more.

    There may be as many of them as cores, and BLAS and others ask when they are loaded.
    """
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _work(pipe: Any) -> None:
    for name, seed in iter(pipe.recv, None):
        pipe.send(attempt(name, seed))


class Worker:
    """One process, which is started anew after a hang or a crash."""

    def __init__(self, start: str = "spawn") -> None:
        self.start = start
        self.pipe: Any = None
        self.process: Any = None
        self.before = 0.0
        self.asked: tuple[str, int, float] | None = None

    def ask(self, name: str, seed: int) -> None:
        """Begin a call."""
        if self.process is None or not self.process.is_alive():
            context: Any = multiprocessing.get_context(self.start)
            self.pipe, end = context.Pipe()
            self.process = context.Process(target=_work, args=(end,))
            with _alone():
                self.process.start()
            end.close()
        self.asked = (name, seed, time.perf_counter())
        self.before = self._computed()
        self.pipe.send((name, seed))

    def answer(self) -> Outcome | None:
        """Return what came of the call, None while it goes on."""
        assert self.asked is not None
        name, seed, began = self.asked
        taken = time.perf_counter() - began
        if self.pipe.poll():
            try:
                return self.pipe.recv()
            except EOFError:
                self.process.join()
                code = self.process.exitcode
                return Outcome(name, seed, taken, "crash", f"the process ended with code {code}")
        most = CHECKS[name].seconds
        used = self._computed() - self.before
        if used > most or taken > 10.0 * most:
            self.stop()
            told = f"not done after {used:.0f} seconds of computing and {taken:.0f} in all"
            return Outcome(name, seed, taken, "hang", told)
        return None

    def _computed(self) -> float:
        """Seconds that the process has computed so far."""
        try:
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
                numbers = file.read().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End the process."""
        if self.process is not None and self.process.is_alive():
            self.process.kill()
            self.process.join()


@dataclass
class Tally:
    """What a run has seen of one check."""

    cases: int = 0
    calls: int = 0
    seconds: float = 0.0
    failures: int = 0

    def add(self, outcome: Outcome, check: Check) -> None:
        """Count one call."""
        self.cases += check.cases
        self.calls += 1
        self.seconds += outcome.seconds
        self.failures += bool(outcome.kind)

    def less(self, other: Tally) -> Tally:
        """What came since `other`."""
        return Tally(**{name: x - getattr(other, name) for name, x in asdict(self).items()})


@dataclass
class Campaign:
    """A run: which checks, from which seed, how long, on how many processes."""

    names: list[str]
    seed: int
    seconds: float
    rounds: int | None = None
    jobs: int = 1
    keep_going: bool = False
    tallies: dict[str, Tally] = field(default_factory=dict)

    def outcomes(self) -> Iterator[Outcome]:
        """Yield what comes of every call, until the time is over or something fails."""
        self.tallies = {name: Tally() for name in self.names}
        began = time.perf_counter()
        asked = dict.fromkeys(self.names, 0)
        workers = [Worker() for _ in range(self.jobs)]
        busy: list[Worker] = []
        try:
            while True:
                over = time.perf_counter() - began > self.seconds
                while workers and not over and (name := self._next(asked)):
                    busy.append(workers.pop())
                    busy[-1].ask(name, self.seed + asked[name])
                    asked[name] += 1
                if not busy:
                    return
                wait([worker.pipe for worker in busy], timeout=1.0)
                for worker in list(busy):
                    outcome = worker.answer()
                    if outcome is not None:
                        busy.remove(worker)
                        workers.append(worker)
                        self.tallies[outcome.check].add(outcome, CHECKS[outcome.check])
                        yield outcome
                        if outcome.kind and not self.keep_going:
                            return
        finally:
            for worker in [*busy, *workers]:
                worker.stop()

    def _next(self, asked: dict[str, int]) -> str | None:
        """The check that is furthest from its goal; each once before any of them twice."""
        left = [n for n in self.names if self.rounds is None or asked[n] < self.rounds]
        return min(left, key=lambda n: asked[n] * CHECKS[n].cases / CHECKS[n].goal, default=None)
