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
    global _told
    try:
        return njit(cache=True, **_FLAGS)(function)
    except RuntimeError as reason:  # numba found no folder that it may write to
        if not _told:
            warnings.warn(
                f"compiled code is not kept between processes ({reason}); "
                f"set NUMBA_CACHE_DIR to a writable folder",
                CacheWarning,
                stacklevel=2,
            )
            _told = True
        return njit(**_FLAGS)(function)
