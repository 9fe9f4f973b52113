"""The decorators of compiled code, with fixed flags.

`kernel` is the plain case; `lean` is for entries that create no arrays; `inner` is for what only
lean kernels call, and `inline` for what they call in their innermost loops; `intrinsic` is for
single instructions. None of them may be put on one function twice: Numba would load the code of
the first.

Numba takes longer to import, and to get ready for its first kernel, than many a small job takes.
So it is imported when the first kernel is called, and small calls of the kernels that are marked
`or_python` do without it altogether, as long as they do not add up.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import update_wrapper
from types import ModuleType
from typing import Any

import numpy as np

from structlearn._src.kernels.cache import compiled

# Threads run kernels side by side, and a division by zero gives infinity, as everywhere in NumPy.
_FLAGS = {"nogil": True, "error_model": "numpy"}
_SMALL = 2**13  # numbers in the arrays of a call up to which Python takes some milliseconds
_PATIENCE = 0.1  # seconds of such calls after which Numba, ready in about 0.6, is the better choice
_HOLDERS = ("structlearn.", "papers.")  # packages whose modules hold kernels under some name
_spent = 0.0  # seconds in small calls so far
_lock = threading.RLock()  # no thread compiles while another runs a kernel in plain Python
_thread = threading.local()  # `plain`: within such a call, where all that it calls is plain too


def kernel(function: Callable[..., Any]) -> Any:
    """Compile `function` on first call, keep the machine code on disk where that is possible."""
    return Kernel(function, _FLAGS)


def lean(function: Callable[..., Any]) -> Any:
    """Compile a kernel that creates no arrays, and so need not count references to any.

    In loops over records of many arrays that counting costs several times what the work does.
    """
    return Kernel(function, {**_FLAGS, "_nrt": False})


def inner(function: Callable[..., Any]) -> Any:
    """Compile what only lean kernels call: quicker, as it has no entry from Python."""
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return Kernel(function, {**_FLAGS, "_nrt": False, **wrappers})


def inline(function: Callable[..., Any]) -> Any:
    """Compile what only lean kernels call, into each of its callers.

    A call copies all fields of all records of arrays, which costs more than a message does. But
    every place where it is called is compiled anew: for few places in innermost loops.
    """
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": True}
    return Kernel(function, {**_FLAGS, "_nrt": False, **wrappers})


def intrinsic(emitter: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Give kernels an instruction that Numba has no words for.

    `emitter` is what Numba calls an intrinsic, and is called when a kernel is compiled; the
    function that is decorated does the same in plain Python.
    """
    return lambda function: Intrinsic(function, emitter)


def or_python(kernel: Kernel) -> Kernel:
    """Let small calls run in plain Python while Numba is not loaded.

    For kernels that give the same bits in both: sums in the order of the loop, no powers and
    exponentials, no integers that wrap around.
    """
    kernel.plain = True
    return kernel


class Kernel:
    """Stands for a compiled function until it is called, and then gives way to it.

    Modules that hold it under some name hold the compiled function from then on, so that later
    calls cost nothing more; Numba, too, must find compiled functions where a kernel calls others.
    """

    plain = False

    def __init__(self, function: Callable[..., Any], flags: dict[str, Any]) -> None:
        self._flags = flags
        self._compiled: Any = None
        update_wrapper(self, function)

    def __call__(self, *args: Any) -> Any:
        if self._compiled is not None:
            return self._compiled(*args)
        if getattr(_thread, "plain", False):
            return self.__wrapped__(*args)
        if self.plain and _spent < _PATIENCE and _size(args) <= _SMALL:
            return _run_plain(self, args)
        return self.compiled(*args)

    @property
    def compiled(self) -> Any:
        """The compiled function."""
        if self._compiled is None:
            _compile(self)
        return self._compiled

    def make(self) -> Any:
        """Return a new function of Numba's, which compiles on its first call."""
        return compiled(self.__wrapped__, self._flags)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copies and pictures ask for is no reason to compile
            raise AttributeError(name)
        return getattr(self.compiled, name)


class Intrinsic(Kernel):
    """Stands for an instruction until a kernel that uses it is compiled."""

    def __init__(self, function: Callable[..., Any], emitter: Callable[..., Any]) -> None:
        super().__init__(function, {})
        self._emitter = emitter

    def make(self) -> Any:
        """Return the intrinsic, or the plain function where the compiler is disabled."""
        from numba import config, extending

        return self.__wrapped__ if config.DISABLE_JIT else extending.intrinsic(self._emitter)


# ---- in plain Python ---------------------------------------------------------------------


def _size(args: tuple[Any, ...]) -> int:
    """Numbers in all arrays of a call, those in records included."""
    return sum(
        _size(each) if isinstance(each, tuple) else getattr(each, "size", 1) for each in args
    )


def _run_plain(kernel: Kernel, args: tuple[Any, ...]) -> Any:
    global _spent
    with _lock:
        if "numba" in sys.modules:
            return kernel.compiled(*args)
        began = time.thread_time()
        _thread.plain = True
        try:
            with np.errstate(all="ignore"):  # as compiled code does
                return kernel.__wrapped__(*args)
        finally:
            _thread.plain = False
            _spent += time.thread_time() - began


# ---- compiled ----------------------------------------------------------------------------


def _compile(kernel: Kernel) -> None:
    """Make the compiled functions of a kernel and of all that it calls, and put them in place."""
    with _lock:
        new = {id(each): each for each in _reached(kernel, set())}
        for each in new.values():
            each._compiled = each.make()
        for name, module in list(sys.modules.items()):
            if name.startswith(_HOLDERS) and isinstance(module, ModuleType):
                for key, value in list(vars(module).items()):
                    if id(value) in new:
                        setattr(module, key, new[id(value)]._compiled)


def _reached(kernel: Kernel, seen: set[int]) -> Iterator[Kernel]:
    """All kernels that one calls by their names, or by those of their modules, and itself."""
    if id(kernel) in seen or kernel._compiled is not None:
        return
    seen.add(id(kernel))
    yield kernel
    code, known = kernel.__wrapped__.__code__, kernel.__wrapped__.__globals__
    found = [known.get(name) for name in code.co_names]
    modules = [vars(each) for each in found if isinstance(each, ModuleType)]
    found += [module.get(name) for module in modules for name in code.co_names]
    for each in found:
        if isinstance(each, Kernel):
            yield from _reached(each, seen)
