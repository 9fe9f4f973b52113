"""What commands tell on standard error: a bar while they work, a few lines on what came out."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from structlearn._src.common.bar import LOG, ProgressBar, spell, write

BAD_INPUT = 2  # exit code
_CODES = {"bold": 1, "red": 31, "green": 32}
_WORD = 10  # columns of the word that a line begins with
_drawn: ProgressLine | None = None  # whose bar other lines must not run into


def say(text: str) -> None:
    """Write to standard error, over the bar if there is one, and to the log of the command."""
    if _drawn is not None:
        _drawn.clear()
        _drawn.note(text.rstrip("\n"))
    write(text)


def finish() -> None:
    """Leave no bar, and close the log: the command is over."""
    global _drawn
    if _drawn is not None:
        _drawn.clear()
        if _drawn.log is not None:
            _drawn.log.close()
    _drawn = None


def fail(message: str, code: int = BAD_INPUT) -> int:
    """Write one line about what went wrong, the word before its colon in colour; return `code`."""
    kind, colon, rest = " ".join(message.split()).partition(": ")
    told = kind in ("error", "warning")
    say(f"structlearn: {paint(kind + ':', 'red') + ' ' if told else kind + colon}{rest}\n")
    return code


def tell(word: str, text: str) -> None:
    """Write a line of the verdict of the command under way."""
    (_drawn or ProgressLine(wanted=False)).tell(word, text)


def paint(text: str, colour: str) -> str:
    """Colour a text on a terminal, unless NO_COLOR or the terminal itself is against it."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or sys.stderr is None or not sys.stderr.isatty():
        return text
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


class ProgressLine(ProgressBar):
    """The bar of a command, the lines of its verdict, and the file to which both may go too.

    Without a terminal there is a bar only if it is `wanted`: a line every few seconds. A `log`
    gets all lines, be there a terminal or not, and even if the command is `quiet`.
    """

    def __init__(
        self, wanted: bool, quiet: bool = False, every: float = LOG, log: Path | None = None
    ) -> None:
        global _drawn
        super().__init__(every)
        self.quiet = quiet
        self._visible = not quiet and (wanted or self.terminal)
        self.shown = self._visible or log is not None
        self._logged = self._next_log = time.monotonic()
        self.log = None if log is None else log.open("w", encoding="utf-8")
        _drawn = self

    def __call__(self, share: float | None, words: str) -> None:
        """Report, unless the last report was a moment ago; the share done may be unknown."""
        if self._visible:
            super().__call__(share, words)
        now = time.monotonic()
        if self.log is not None and now >= self._next_log + LOG:
            self._next_log = now
            known = "" if share is None else f"{share:4.0%} "
            self.note(f"{known}{words}  {spell(now - self._logged)}")

    def tell(self, word: str, text: str, seconds: float | None = None) -> None:
        """Write a line of the verdict: what was done, what came out, how long it took."""
        text = text if seconds is None else f"{text}, {spell(seconds)}"
        self.note(f"{word:<{_WORD}}{text}")
        if not self.quiet:
            coloured = text.replace("converged", paint("converged", "green"), 1)
            self.line(f"{paint(f'{word:<{_WORD}}', 'bold')}{coloured}")

    def note(self, text: str) -> None:
        """Write a line to the log, with the time of day."""
        if self.log is not None:
            self.log.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
            self.log.flush()
