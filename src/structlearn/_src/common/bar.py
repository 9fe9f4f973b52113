"""How far long work is, on standard error: a line that a terminal overwrites, elsewhere a log."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

TERMINAL, LOG = 0.1, 5.0  # seconds between two reports: for the eye, and for a file
_CELLS = 16  # of the bar, which leaves most of 80 columns to the words
_KNOWN = 0.5  # seconds after which rate and time left are more than a guess
_LITTLE = 0.01  # share of the work that must be done before its end is foretold
_COUNTED = re.compile(r"(\w+) (\d+)\b")  # words such as "iteration 20"


def write(text: str) -> None:
    """Write to standard error; if that is full or closed, go on in silence."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 -- for as long as the program runs


def is_watched() -> bool:
    """Tell whether somebody may be looking: standard error is a terminal, or a notebook's."""
    return sys.stderr is not None and (sys.stderr.isatty() or in_notebook())


def in_notebook() -> bool:
    """Tell whether this process computes for a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def make_bar() -> ProgressBar:
    """Return a bar: in a notebook a widget where tqdm is installed, elsewhere a line of text."""
    if in_notebook():
        try:
            from tqdm.notebook import tqdm

            return NotebookBar(tqdm)
        except ImportError:  # of tqdm, or of the widgets that it needs
            pass
    return ProgressBar()


class ProgressBar:
    """Shows the share of the work that is done, what is known of it, its rate and the time left.

    An instance is a `structlearn._src.common.watch.Progress`. Words that begin with a unit and a
    number, such as "iteration 20", give the rate. On a terminal one line is overwritten, elsewhere
    a line with the time of day is added `every` few seconds.
    """

    draws = True  #: it can be told that the share is not known: by None

    def __init__(self, every: float = LOG) -> None:
        self.terminal = sys.stderr is not None and sys.stderr.isatty()
        self._every = every
        self.begin()

    def begin(self) -> None:
        """Start the clock."""
        self._begun = time.monotonic()
        self._next = self._begun + (0.0 if self.terminal else self._every)
        self._first: tuple[float, float, int] | None = None  # time, share and count
        self._share: float | None = None
        self._drawn = 0  # characters on the line of the terminal

    def __call__(self, share: float | None, words: str) -> None:
        """Report, unless the last report was a moment ago; the share done may be unknown."""
        now = time.monotonic()
        if self._first is None or (share or 0.0) < (self._share or 0.0):  # or other work has begun
            self._first = now, share or 0.0, _count(words)
        self._share = share
        if now >= self._next:
            self._next = now + (TERMINAL if self.terminal else self._every)
            self._show(share, words, self._rest(now, share, words))

    def clear(self) -> None:
        """Leave an empty line on a terminal."""
        if self._drawn:
            write(f"\r{' ' * self._drawn}\r")
        self._drawn = 0

    def around(self, work: Callable[[], Any], words: Callable[[], str]) -> Any:
        """Do some work that reports here; leave a last line, with the bar full if all is done."""
        self.begin()
        try:
            with shown_log(self.line):
                ended = work()
        except BaseException:
            self.clear()
            raise
        seconds = spell(time.monotonic() - self._begun)
        self._show(1.0 if ended == "done" else self._share, words(), [seconds])
        if self.terminal:
            write("\n")
        self._drawn = 0
        return ended

    # ---- one line ------------------------------------------------------------------------

    def _rest(self, now: float, share: float | None, words: str) -> list[str]:
        """Time so far and, where they are known, the rate and the time left."""
        assert self._first is not None
        start, first, count = self._first
        parts = [spell(now - self._begun)]
        if now - start < _KNOWN:
            return parts
        if count >= 0 and _count(words) > count:
            parts.insert(0, f"{(_count(words) - count) / (now - start):.3g}/s")
        if share is not None and share - first > _LITTLE:
            left = (now - start) * (1.0 - share) / (share - first)
            parts.append(f"about {spell(left)} left")
        return parts

    def _show(self, share: float | None, words: str, rest: list[str]) -> None:
        tail = f"  {', '.join(rest)}"
        if not self.terminal:
            known = "" if share is None else f"{share:4.0%} "
            self.line(f"{time.strftime('%H:%M:%S')} {known}{words}{tail}")
            return
        width = shutil.get_terminal_size().columns - 1
        line = f"{draw(share)}{words}"[: max(width - len(tail), 0)] + tail
        line = line[:width]
        write(f"\r{line:<{self._drawn}}")
        self._drawn = len(line)

    def line(self, text: str) -> None:
        """Write a line that stays."""
        self.clear()
        write(f"{text}\n")


class NotebookBar(ProgressBar):
    """The same as a widget of a notebook, by tqdm."""

    def __init__(self, tqdm: Callable[..., Any]) -> None:
        self._tqdm = tqdm
        self._widget: Any = None
        super().__init__(TERMINAL)

    def clear(self) -> None:
        """Close the widget, which stays as it is."""
        if self._widget is not None:
            self._widget.close()
        self._widget = None

    def line(self, text: str) -> None:
        """Write a line that stays, below the widget."""
        write(f"{text}\n")

    def around(self, work: Callable[[], Any], words: Callable[[], str]) -> Any:
        """Do some work that reports here."""
        try:
            return super().around(work, words)
        finally:
            self.clear()

    def _show(self, share: float | None, words: str, rest: list[str]) -> None:
        if self._widget is None:
            self._widget = self._tqdm(total=1.0, bar_format="{bar} {desc}")
        self._widget.n = self._widget.n if share is None else round(share, 3)
        self._widget.set_description_str(f"{words}  {', '.join(rest)}")
        self._widget.refresh()


@contextmanager
def shown_log(show: Callable[[str], None]) -> Iterator[None]:
    """Show what the library tells its log, such as that it compiles, unless somebody else does."""
    import logging

    class Shown(logging.Handler):
        """Shows messages."""

        def emit(self, record: logging.LogRecord) -> None:
            """Show one."""
            show(f"structlearn: {record.getMessage()}")

    log = logging.getLogger("structlearn")
    handlers = log.handlers
    level = log.level
    if not handlers:
        log.handlers = [Shown()]
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.handlers = handlers
        log.setLevel(level)


def draw(share: float | None) -> str:
    """Draw a bar; nothing where the share is not known."""
    if share is None:
        return ""
    full = min(max(int(_CELLS * share), 0), _CELLS)
    return f"{'#' * full}{'-' * (_CELLS - full)}  "


def spell(seconds: float) -> str:
    """Write a time so that it is read at a glance."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"


def _count(words: str) -> int:
    found = _COUNTED.match(words)
    return int(found[2]) if found else -1
