"""Machine code on disk, and what is told of it.

Code that cannot be kept, or was damaged, is compiled anew: a warning, never an error. The first
compilation of a process is told to the log ``structlearn``, as it takes seconds, and where nobody
listens to that, to whoever sits at a terminal or a notebook.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from structlearn._src.common.bar import is_watched, write
from structlearn._src.common.errors import CacheWarning, warn

_HELP = "; set NUMBA_CACHE_DIR to a folder that can be written"
_told: set[str] = set()  # one warning of a kind is enough, however many kernels there are


def compiled(function: Callable[..., Any], flags: dict[str, Any]) -> Any:
    """Return a function that compiles on first call, or finds its code on disk."""
    import numba

    _listen()
    dispatcher = numba.njit(**flags)(function)
    try:
        dispatcher._cache = _cache_class()(function)
    except RuntimeError as reason:  # numba found no folder that it may write to
        _warn(f"compiled code is not kept between processes ({reason}){_HELP}", "folder")
    return dispatcher


@cache
def _cache_class() -> Any:
    from numba.core.caching import FunctionCache

    class Cache(FunctionCache):
        """Numba's cache of one function, without errors about files."""

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """Return the code for a signature, or None."""
            try:
                return super().load_overload(sig, target_context)
            except Exception as reason:
                where = f"compiled code in {self.cache_path}"
                _warn(f"{where} is damaged ({reason!r}) and made anew", "load")
                with suppress(Exception):
                    self.flush()
                return None

        def save_overload(self, sig: Any, data: Any) -> None:
            """Keep the code for a signature, if possible."""
            try:
                super().save_overload(sig, data)
            except Exception as reason:
                where = f"compiled code cannot be kept in {self.cache_path}"
                _warn(f"{where} ({reason}), so that every process compiles anew{_HELP}", "save")

    return Cache


def _warn(words: str, kind: str) -> None:
    if kind not in _told:
        _told.add(kind)
        warn(words, CacheWarning)


@cache
def _listen() -> None:
    """Tell the log when the first function is compiled."""
    from numba.core import event

    class Listener(event.Listener):
        """Waits for the first compilation."""

        def on_start(self, event: Any) -> None:
            """Tell once."""
            if "log" not in _told:
                _told.add("log")
                told = "compiling (first run only; 'structlearn warm-up' does all of it in advance)"
                log = logging.getLogger("structlearn")
                log.info(told)
                if not log.hasHandlers() and is_watched():
                    write(f"structlearn: {told}\n")

        def on_end(self, event: Any) -> None:
            """Do nothing."""

    event.register("numba:compile", Listener())
