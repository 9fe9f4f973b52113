"""The one decorator of every compiled kernel, with its fixed flags."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from numba import njit

from structlearn.common.errors import CacheWarning

_FLAGS = {"nogil": True, "error_model": "numpy"}
_told = False


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first call, keep the machine code on disk where that is possible."""
    return _compiled(function, _FLAGS)


def part(function: Callable[..., Any]) -> Any:
    """Compile a function that kernels call inside their loops. It must not create arrays.

    It does not count references to the arrays it is handed. In a function over records of many
    arrays that counting would cost several times what the work does.
    """
    return _compiled(function, {**_FLAGS, "_nrt": False})


def _compiled(function: Callable[..., Any], flags: dict[str, Any]) -> Any:
    global _told
    try:
        return njit(cache=True, **flags)(function)
    except RuntimeError as reason:  # numba found no folder that it may write to
        if not _told:
            warnings.warn(
                f"compiled code is not kept between processes ({reason}); "
                f"set NUMBA_CACHE_DIR to a writable folder",
                CacheWarning,
                stacklevel=3,
            )
            _told = True
        return njit(**flags)(function)
