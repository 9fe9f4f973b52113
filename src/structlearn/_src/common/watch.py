"""Progress, time limits and interrupts for long work, in one place."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from contextvars import ContextVar
from enum import StrEnum
from typing import Any, Self

from structlearn._src.common.errors import ArgumentError

_QUICKEST = 1e-9  # seconds of a step, where the clock shows none

#: Called with the fraction done (0 to 1) and a few words on the state of the work. Where the end
#: is not known before, the fraction is the way of some number to its tolerance, on a log scale.
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


def must_end() -> bool:
    """Leave a long step whose time is over; say whether the first one, which counts, must end."""
    heed_time()
    return time_left() == 0.0


class Watch:
    """Knows when to stop, and whom to tell how far the work is."""

    def __init__(
        self, time_limit: float | None = None, progress: Progress | bool | None = None
    ) -> None:
        if not is_progress(progress):
            raise ArgumentError(
                f"progress={progress!r} must be a function of a fraction and a text, True for a "
                f"bar, or None"
            )
        self._begun = time.monotonic()
        self._end = None if time_limit is None else self._begun + float(time_limit)
        self._bar: Any = None
        if progress is True:
            from structlearn._src.common.bar import make_bar

            self._bar = make_bar()
        self._progress: Progress | None = self._bar if isinstance(progress, bool) else progress
        self._span = (0.0, 1.0)  # which part of all work the loop under way is
        self._told = 0.0  # the fraction told last
        self._depth = 0  # loops under way, one in the other
        self._interrupted = False  # remembered, so that work around the interrupted part ends too

    def __reduce__(self) -> tuple[type[Watch], tuple[float | None]]:
        # Clocks differ from machine to machine, and whoever listens to progress stays here.
        return Watch, (None if self._end is None else self.left,)

    @property
    def expired(self) -> bool:
        """Whether the time limit has passed, or the keyboard has interrupted."""
        return self._interrupted or (self._end is not None and time.monotonic() >= self._end)

    @property
    def idle(self) -> bool:
        """Whether there is no time limit and nobody to tell of progress."""
        return self._end is None and self._progress is None

    @property
    def left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        return math.inf if self._end is None else max(self._end - time.monotonic(), 0.0)

    def tell(self, fraction: float, words: str) -> None:
        """Report progress to whoever listens."""
        if self._progress is not None:
            self._progress(fraction, words)

    def _tell_share(
        self, share: float, words: Callable[[], str], near: Callable[[], float] | None
    ) -> None:
        """Report the share of the loop under way that is done, or of the time; it never falls."""
        if self._progress is None:
            return
        way = share if near is None else near()
        if math.isnan(way) and self._end is None and getattr(self._progress, "draws", False):
            self._progress(None, words())  # type: ignore[arg-type]  # a limit is no end to draw
            return
        share = way if way > share else share  # not so NaN
        start, stop = self._span
        fraction = start + (stop - start) * share
        if self._end is not None and self._end > self._begun:
            gone = (time.monotonic() - self._begun) / (self._end - self._begun)
            fraction = max(fraction, min(gone, 1.0))
        self._told = max(fraction, self._told)
        self.tell(self._told, words())

    def repeat(
        self,
        step: Callable[[], bool],
        limit: int,
        words: Callable[[], str],
        near: Callable[[], float] | None = None,
    ) -> Ending:
        """Call `step` until it returns True; say why it ended.

        An interrupt from the keyboard ends the work here, so that the caller can return what it
        has. Where `limit` is seldom reached, `near` says which part of the way is done; NaN if it
        cannot tell.
        """
        if not self._depth:
            self._told = 0.0
        if self._depth or self._bar is None:
            return self._repeat(step, limit, words, near)
        ended: Ending = self._bar.around(lambda: self._repeat(step, limit, words, near), words)
        return ended

    def _repeat(
        self,
        step: Callable[[], bool],
        limit: int,
        words: Callable[[], str],
        near: Callable[[], float] | None,
    ) -> Ending:
        whole = self._span
        width = (whole[1] - whole[0]) / max(limit, 1)
        self._depth += 1
        end = math.inf if self._end is None else self._end
        # A loop inside the first step of another one belongs to that step, which is finished.
        end_of_step = min(_end_of_step.get(), end)
        outer = _end_of_all.set(min(_end_of_all.get(), end))
        outer_step = _end_of_step.set(math.inf)
        try:
            for i in range(limit):
                self._span = (whole[0] + i * width, whole[0] + (i + 1) * width)
                done = step()
                if self._interrupted:
                    return Ending.INTERRUPTED
                if done:
                    return Ending.DONE
                self._span = whole
                self._tell_share((i + 1) / limit, words, near)
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
            self._depth -= 1
            self._span = whole
            _end_of_step.reset(outer_step)
            _end_of_all.reset(outer)
        return Ending.LIMIT


def is_progress(given: object) -> bool:
    """Tell whether something can be told of progress, or says that a bar is wanted, or nothing."""
    return given is None or isinstance(given, bool) or callable(given)


def brief(number: float) -> str:
    """Write the size of a small number, as 6e-4."""
    return re.sub(r"e([+-])0+(?=\d)", r"e\1", f"{number:.0e}").replace("e+", "e")


class Approach:
    """How near a number is to where it must fall to, on a log scale from 0 to 1."""

    def __init__(self) -> None:
        self._most = 1.0
        self._share = math.nan

    def share(self, times: float) -> float:
        """Take how many times too large the number is; NaN and infinity say nothing new.

        Returns NaN while nothing is known.
        """
        if math.isfinite(times):
            self._most = max(self._most, times)
            way = math.log(self._most)
            self._share = 1.0 if times <= 1.0 else 1.0 - math.log(times) / way
        return self._share


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
