"""Units of work in processes that may be killed, each of which keeps what it has done."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from papers.base import Experiment, Unit
from papers.units import Store

#: One process is one thread: as many processes as cores leave no core for more.
_ALONE = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "STRUCTLEARN_N_JOBS")


@dataclass(frozen=True, eq=False)
class Task:
    """A unit that is to be done."""

    experiment: Experiment
    given: dict[str, Any]


class Ended(NamedTuple):
    """How a unit ended: done, or with words that say why not."""

    task: Task
    unit: Unit | None
    failure: str = ""


def run(
    tasks: Sequence[Task],
    store: Store,
    jobs: int = 1,
    time_limit: float | None = None,
    catalogue: str = "papers.catalogue",
) -> Iterator[Ended]:
    """Do all tasks, and tell of each as it ends; after the time limit the others are left.

    One job without a limit works in this process; others find experiments in a catalogue, a module.
    """
    if jobs == 1 and time_limit is None:
        for task in tasks:
            yield _attempt(task, store)
    else:
        for name in _ALONE:  # read when a process loads its libraries
            os.environ.setdefault(name, "1")
        workers = [_Worker(store.folder, catalogue) for _ in range(min(jobs, len(tasks)))]
        yield from _in_processes(list(tasks), workers, _clock(time_limit))


def _attempt(task: Task, store: Store) -> Ended:
    try:
        return Ended(task, store.do(task.experiment, task.given))
    except Exception as error:
        return Ended(task, None, _words(error))


def _words(error: Exception) -> str:
    """Return the error, and the line of an experiment that it comes from."""
    places = [f for f in traceback.extract_tb(error.__traceback__) if "papers" in f.filename]
    where = f" ({Path(places[-1].filename).name}:{places[-1].lineno})" if places else ""
    return f"{type(error).__name__}: {error}{where}"


# ---- processes ---------------------------------------------------------------------------


class _Worker:
    """A process that does one task after the other."""

    def __init__(self, folder: Path, catalogue: str) -> None:
        self.home = folder, catalogue
        self.task: Task | None = None
        self.start()

    def start(self) -> None:
        """Start the process, or another one in its place."""
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, *self.home), daemon=True)
        self.process.start()
        theirs.close()  # so that its end is seen here

    def give(self, task: Task) -> None:
        """Send a task, by the name of its experiment."""
        if not self.process.is_alive():
            self.start()
        self.task = task
        self.pipe.send((task.experiment.name, task.given))

    def take(self) -> Ended:
        """Return how the task ended; a process that is gone has failed."""
        task, self.task = self.task, None
        assert task is not None
        try:
            unit, failure = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode
            return Ended(task, None, f"its process ended with code {code}; was there memory?")
        return Ended(task, unit, failure)


def _serve(pipe: Connection, folder: Path, catalogue: str) -> None:
    """Do what comes through the pipe until its other end is closed."""
    experiments = import_module(catalogue).EXPERIMENTS
    store = Store(folder)
    while True:
        try:
            name, given = pipe.recv()
        except (EOFError, OSError):  # the run that started us is over, or was killed
            return
        ended = _attempt(Task(experiments[name], given), store)
        pipe.send((ended.unit, ended.failure))


def _in_processes(
    tasks: list[Task], workers: list[_Worker], left: Callable[[], float | None]
) -> Iterator[Ended]:
    waiting = iter(tasks)
    try:
        for worker, task in zip(workers, waiting, strict=False):
            worker.give(task)
        while busy := {worker.pipe: worker for worker in workers if worker.task is not None}:
            ready = wait(list(busy), left())
            if not ready:  # the time is over
                return
            for worker in (busy[pipe] for pipe in busy if pipe in ready):
                yield worker.take()
                for task in islice(waiting, 1):
                    worker.give(task)
    finally:
        for worker in workers:
            worker.process.terminate()


def _clock(time_limit: float | None) -> Callable[[], float | None]:
    """Return what says how many seconds are left."""
    if time_limit is None:
        return lambda: None
    end = time.monotonic() + time_limit
    return lambda: max(end - time.monotonic(), 0.0)
