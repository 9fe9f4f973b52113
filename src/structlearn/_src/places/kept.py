"""What the workers of a cluster keep for one run, and what happens where they die."""

from __future__ import annotations

import time
import uuid
import weakref
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from structlearn._src.common.errors import PlaceError
from structlearn._src.places.independent import PartsPlace
from structlearn._src.places.worker import Failure, Total, Tree, Work, keep

RETURN = 20.0  #: seconds that a worker may take to be started again: imports, on a busy machine
PAUSE = 0.1  #: seconds between two looks at who is there
DEATHS = 3  #: workers that may die over the same piece of work before it is to blame


class KeepingPlace(PartsPlace):
    """A place whose workers keep things, and work on them."""

    @abstractmethod
    def living(self) -> list[str]:
        """Return the workers that answer."""

    @abstractmethod
    def ask(self, work: Work, shared: Any, tree: Tree) -> Total:
        """Let workers do some work on what they keep; return the sum of their answers."""

    @abstractmethod
    def forget(self, homes: Sequence[str], keys: Sequence[str]) -> None:
        """Let workers drop what they keep, without waiting for them."""


def raise_failure(failure: Failure, what: str, deaths: int = 1) -> None:
    """Raise what a worker could not do, with its name."""
    where = f"on worker {failure.worker}, with {what}"
    if failure.lost:
        raise PlaceError(
            f"{deaths} workers in a row died over {what}, the last one {failure.worker} "
            f"({failure.error}); if they ran out of memory, use more workers or a larger "
            f"memory limit for each"
        )
    if isinstance(failure.error, MemoryError):
        raise PlaceError(
            f"a worker ran out of memory {where} ({failure.error}); use more workers or a "
            f"larger memory limit for each"
        ) from failure.error
    if isinstance(failure.error, PlaceError):
        raise PlaceError(f"{where}: {failure.error}") from failure.error
    failure.error.add_note(where)
    raise failure.error


class Kept:
    """Pieces that workers keep, one each; those of workers that die are loaded again.

    `make` returns a piece by its number, as often as it is needed.
    """

    def __init__(self, place: KeepingPlace, make: Callable[[int], Any], n: int) -> None:
        self.place = place
        self.make = make
        self.workers = place.workers()
        run = uuid.uuid4().hex
        self.keys = [f"{run}-{i}" for i in range(n)]
        self.homes = [self.workers[i % len(self.workers)] for i in range(n)]
        self.deaths = [0] * n
        for i in range(n):
            self._load(i)
        weakref.finalize(self, place.forget, self.homes, self.keys).atexit = False

    def ask(self, work: Any, shared: Any) -> Any:
        """Let all pieces take part in some work; return the sum of their answers."""
        while True:
            reply = self.place.ask(work, shared, list(zip(self.homes, self.keys, strict=True)))
            if not reply.failures:
                self.deaths = [0] * len(self.keys)
                return reply.sum
            self._mend(reply.failures)

    def ask_each(self, work: Any, shared: Sequence[Any]) -> list[Any]:
        """Give every piece something of its own to work with; return all answers."""
        return [self._ask_one(work, each, i) for i, each in enumerate(shared)]

    def _ask_one(self, work: Any, shared: Any, i: int) -> Any:
        while True:
            reply = self.place.ask(work, shared, [(self.homes[i], self.keys[i])])
            if not reply.failures:
                return reply.sum
            self._mend(reply.failures)

    def _load(self, i: int) -> None:
        """Send a piece to its home; to another one if that dies."""
        piece = self.make(i)
        while failures := self.place.ask(keep, piece, [(self.homes[i], self.keys[i])]).failures:
            self._blame(i, failures[0])
            self.homes[i] = self._new_home()

    def _mend(self, failures: Sequence[Failure]) -> None:
        """Load again what is lost, once it is known that nothing else went wrong."""
        for failure in sorted(failures, key=lambda each: each.lost):
            self._blame(self.keys.index(failure.key), failure)
        for failure in failures:
            i = self.keys.index(failure.key)
            self.homes[i] = self._new_home()
            self._load(i)

    def _blame(self, i: int, failure: Failure) -> None:
        """Count a death; an error, or one death too many, ends the run."""
        self.deaths[i] += 1
        if not failure.lost or self.deaths[i] == DEATHS:
            raise_failure(failure, f"shard {i} of {len(self.keys)}", self.deaths[i])

    def _new_home(self) -> str:
        """Return the worker with the fewest pieces; wait for one that is being started again."""
        end = time.monotonic() + RETURN
        while True:
            present = self.place.living()
            late = time.monotonic() > end
            if present and (late or len(present) >= len(self.workers)):
                return min(present, key=self.homes.count)
            if late:
                raise PlaceError(f"no worker has answered for {RETURN:g} s; start some")
            time.sleep(PAUSE)
