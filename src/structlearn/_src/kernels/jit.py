"""The three decorators of compiled code, with fixed flags.

`kernel` is the plain case; `lean` is for entries that create no arrays; `inner` is for what only
lean kernels call. None of them may be put on one function twice: Numba would load the code of the
first.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from numba import njit

from structlearn._src.common.errors import CacheWarning

# Threads run kernels side by side, and a division by zero gives infinity, as everywhere in NumPy.
_FLAGS = {"nogil": True, "error_model": "numpy"}
_told = False  # one warning is enough, however many kernels there are


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first call, keep the machine code on disk where that is possible."""
    return _compiled(function, _FLAGS)


def lean(function: Callable[..., Any]) -> Any:
    """Compile a kernel that creates no arrays, and so need not count references to any.

    In loops over records of many arrays that counting costs several times what the work does.
    """
    return _compiled(function, {**_FLAGS, "_nrt": False})


def inner(function: Callable[..., Any]) -> Any:
    """Compile what only lean kernels call: quicker, as it has no entry from Python."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return _compiled(function, {**_FLAGS, "_nrt": False, **wrappers})


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
