"""How far the work is, on standard error."""

from __future__ import annotations

import math
import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from structlearn._src.solve.loop import Event

_TERMINAL, _LOG = 0.1, 1.0  # seconds between two reports
_WIDTH = 78


def say(text: str) -> None:
    """Write to standard error; if that is full or closed, go on in silence."""
    try:
        print(text, end="", file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 -- for as long as the program runs


class ProgressLine:
    """One line that a terminal overwrites; elsewhere a line every second, or every `every` seconds.

    An instance is a `structlearn._src.common.watch.Progress`.
    """

    def __init__(self, wanted: bool, quiet: bool = False, every: float = _LOG) -> None:
        self.terminal = sys.stderr.isatty()
        self.shown = not quiet and (wanted or self.terminal)
        self._pause = _TERMINAL if self.terminal else every
        self._next = 0.0
        self._dirty = False

    def __call__(self, fraction: float | None, words: str) -> None:
        """Report, unless the last report was a moment ago; the fraction done may be unknown."""
        now = time.monotonic()
        if not self.shown or now < self._next:
            return
        self._next = now + self._pause
        line = (words if fraction is None else f"{fraction:4.0%} {words}")[:_WIDTH]
        text = f"\r{line:<{_WIDTH}}" if self.terminal else f"{line}\n"
        say(text)
        self._dirty = self.terminal

    def clear(self) -> None:
        """Leave an empty line on a terminal."""
        if self._dirty:
            say(f"\r{' ' * _WIDTH}\r")
        self._dirty = False

    def iteration(self, event: Event) -> None:
        """Report what is known after an iteration, and the time so far: a callback of fits."""
        known = {"objective": event.value, "gap": event.gap, "gradient": event.gradient}
        facts = [f"{name} {x:.6g}" for name, x in known.items() if math.isfinite(x)]
        seconds = f"{event.history.seconds[-1]:.1f} s"
        self(None, f"iteration {event.iteration}: {', '.join([*facts, seconds])}")
