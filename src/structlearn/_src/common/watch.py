"""Progress, time limits and interrupts for long work, in one place."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import ContextVar
from enum import StrEnum
from typing import Self

from structlearn._src.common.errors import ArgumentError

_QUICKEST = 1e-9  # seconds of a step, where the clock shows none

#: Called with the fraction done (0 to 1) and a few words on the state of the work.
Progress = Callable[[float, str], None]


class Ending(StrEnum):
    """How long work ended; a string as well, so that it prints and compares by its name."""

    sentence: str  #: what the ending means, in words

    DONE = "done", "completed"
    LIMIT = "limit", "iteration limit reached"
    TIME = "time", "time limit reached"
    INTERRUPTED = "interrupted", "interrupted"
    STOPPED = "stopped", "stopped by a callback"
    STUCK = "stuck", "no step lowers the objective, but the optimum is not reached"
    STALLED = "stalled", "the objective no longer falls, but the optimum is not reached"
    DIVERGED = "diverged", "the weights became too large"

    def __new__(cls, value: str, sentence: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.sentence = sentence
        return member

    @property
    def early(self) -> bool:
        """Whether a clock or a person ended the work, and what it had so far counts."""
        return self in (Ending.TIME, Ending.INTERRUPTED)


class TimeUpError(Exception):
    """Ends a step of some work because its time is over; the loop around it knows what to do."""


_end_of_all: ContextVar[float] = ContextVar("end_of_all", default=math.inf)
_end_of_step: ContextVar[float] = ContextVar("end_of_step", default=math.inf)


def heed_time() -> None:
    """Leave a long step whose time is over; the first step of every loop is always finished."""
    if time.monotonic() >= _end_of_step.get():
        raise TimeUpError


def time_left() -> float | None:
    """Return the seconds until the work around must end, None if it need not."""
    end = _end_of_all.get()
    return None if end == math.inf else max(end - time.monotonic(), 0.0)


class Watch:
    """Knows when to stop, and whom to tell how far the work is."""

    def __init__(self, time_limit: float | None = None, progress: Progress | None = None) -> None:
        if progress is not None and not callable(progress):
            raise ArgumentError(
                f"progress={progress!r} must be a function of a fraction and a text, or None"
            )
        self._end = None if time_limit is None else time.monotonic() + float(time_limit)
        self._progress = progress
        self._interrupted = False  # remembered, so that work around the interrupted part ends too

    @property
    def expired(self) -> bool:
        """Whether the time limit has passed, or the keyboard has interrupted."""
        return self._interrupted or (self._end is not None and time.monotonic() >= self._end)

    @property
    def left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        return math.inf if self._end is None else max(self._end - time.monotonic(), 0.0)

    def tell(self, fraction: float, words: str) -> None:
        """Report progress to whoever listens."""
        if self._progress is not None:
            self._progress(fraction, words)

    def repeat(self, step: Callable[[], bool], limit: int, words: Callable[[], str]) -> Ending:
        """Call `step` until it returns True; say why it ended.

        An interrupt from the keyboard ends the work here, so that the caller can return what it
        has.
        """
        end = math.inf if self._end is None else self._end
        # A loop inside the first step of another one belongs to that step, which is finished.
        end_of_step = min(_end_of_step.get(), end)
        outer = _end_of_all.set(min(_end_of_all.get(), end))
        outer_step = _end_of_step.set(math.inf)
        try:
            for i in range(limit):
                done = step()
                if self._interrupted:
                    return Ending.INTERRUPTED
                if done:
                    return Ending.DONE
                self.tell((i + 1) / limit, words())
                if self.expired:
                    return Ending.TIME
                _end_of_step.set(end_of_step)
        except KeyboardInterrupt:
            self._interrupted = True
            return Ending.INTERRUPTED
        except TimeUpError:
            if not self.expired:
                raise  # the time of the work around it
            return Ending.TIME
        finally:
            _end_of_step.reset(outer_step)
            _end_of_all.reset(outer)
        return Ending.LIMIT


class Pace:
    """How many steps of one kind fit into the time that is left, inside compiled loops too."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self._seconds = math.inf  # of one step; unknown before the first

    def some(self, take: Callable[[int], int], limit: int) -> int:
        """Call `take` with as many steps as there is time for, at least one.

        Return how many were left to take; none if it took fewer than it was given, being done.
        """
        left = self._watch.left
        most = limit if left == math.inf else max(1, min(limit, int(left / self._seconds)))
        began = time.monotonic()
        taken = take(most)
        self._seconds = max((time.monotonic() - began) / max(taken, 1), _QUICKEST)
        return limit - taken if taken == most else 0

    def all(self, take: Callable[[int], int], limit: int) -> None:
        """Go on until all steps are taken, there is no more to do, or time is up."""
        while (limit := self.some(take, limit)) and not self._watch.expired:
            pass
