"""What threads inside one kernel share: counters that they raise and read, one at a time.

Numba has no atomic operations on the CPU; these are the instructions themselves. With the compiler
disabled a lock takes their place.
"""

from __future__ import annotations

import platform
import sys
import threading
import time
from typing import Any

from structlearn._src.kernels.jit import intrinsic

_lock = threading.Lock()
#: What lets another thread of the machine run, in the library that every process has loaded.
_YIELD = "SwitchToThread" if sys.platform == "win32" else "sched_yield"
#: What leaves the core to the other thread on it for some tens of nanoseconds, by processor: an
#: instruction that LLVM knows, and its argument if it has one. Others wait without it.
_PAUSES: dict[str, tuple[str, tuple[int, ...]]] = {
    "x86_64": ("llvm.x86.sse2.pause", ()),
    "amd64": ("llvm.x86.sse2.pause", ()),
    "aarch64": ("llvm.aarch64.hint", (1,)),
    "arm64": ("llvm.aarch64.hint", (1,)),
}
_WRITE = 1, 3, 1  # a prefetch of data that will be written, into all caches


def _pointer(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """Address of an entry of an array of integers."""
    array = context.make_array(signature.args[0])(context, builder, value=args[0])
    return builder.gep(array.data, [args[1]])


def _raise(typing: Any, array: Any, index: Any, by: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = _pointer(context, builder, signature, args)
        return builder.atomic_rmw("add", at, args[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), emit


def _replace(typing: Any, array: Any, index: Any, value: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = _pointer(context, builder, signature, args)
        return builder.atomic_rmw("xchg", at, args[2], "seq_cst")

    return types.int64(array, types.int64, types.int64), emit


def _read(typing: Any, array: Any, index: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        at = _pointer(context, builder, signature, args)
        return builder.load_atomic(at, "acquire", 8)  # bytes of an integer

    return types.int64(array, types.int64), emit


def _yield(typing: Any) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, _YIELD), [])
        return context.get_dummy_value()

    return types.void(), emit


def _pause(typing: Any) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if told := _PAUSES.get(platform.machine().lower()):
            name, numbers = told
            given = [ir.Constant(ir.IntType(32), number) for number in numbers]
            kind = ir.FunctionType(ir.VoidType(), [number.type for number in given])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), given)
        return context.get_dummy_value()

    return types.void(), emit


def emit_prefetch(builder: Any, place: Any, purpose: tuple[int, int, int]) -> None:
    """Ask for the cache line at an address: to write or only read, how near, and data or code."""
    from llvmlite import ir
    from numba.core import cgutils

    number = ir.IntType(32)
    place = builder.bitcast(place, ir.IntType(8).as_pointer())  # one declaration for all arrays
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    builder.call(call, [place, *map(number, purpose)])


def _claim(typing: Any, array: Any, index: Any) -> Any:
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        emit_prefetch(builder, _pointer(context, builder, signature, args), _WRITE)
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


@intrinsic(_raise)
def fetch_add(array, index, by):
    """Raise an entry, and return what it was before."""
    with _lock:
        before = int(array[index])
        array[index] = before + by
    return before


@intrinsic(_replace)
def exchange(array, index, value):
    """Write an entry, and return what it was before."""
    with _lock:
        before = int(array[index])
        array[index] = value
    return before


@intrinsic(_read)
def load(array, index):
    """Return an entry as the last thread left it, with all that this thread wrote before."""
    with _lock:
        return int(array[index])


@intrinsic(_yield)
def give_way():
    """Let another thread run, if one waits for this core."""
    time.sleep(0.0)


@intrinsic(_pause)
def pause():
    """Wait for a moment, in which this thread takes nothing from another one on its core."""


@intrinsic(_claim)
def claim(array, index):
    """Ask for the cache line of an entry before it is written to, and go on meanwhile."""
