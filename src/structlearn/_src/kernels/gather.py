"""Many small arrays that Python holds, joined by threads that need no lock to look at them.

NumPy asks Python for every single array, which one thread at a time can do. But an array of NumPy
is a record in memory that begins with the head of every object, followed by where its numbers are:
so it is laid down for extensions in C.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

from structlearn._src.kernels.jit import inner, intrinsic, lean
from structlearn._src.kernels.launch import publish, task, withdraw
from structlearn._src.kernels.team import take

_HEAD = object.__basicsize__  # bytes of an object before what is its own
_NUMBER = 8  # bytes
# Where a record has the address of the numbers, how many axes there are, and where their sizes are.
_START, _AXES, _LENGTHS = _HEAD, _HEAD + _NUMBER, _HEAD + 2 * _NUMBER


@cache
def readable() -> bool:
    """Tell whether arrays of this Python lie where kernels look for their numbers."""
    probe = np.empty(3)
    if sys.implementation.name != "cpython":  # elsewhere the identity is no address
        return False
    start = ctypes.c_int64.from_address(id(probe) + _START).value
    axes = ctypes.c_int.from_address(id(probe) + _AXES).value
    if start != probe.ctypes.data or axes != 1:
        return False
    lengths = ctypes.c_int64.from_address(id(probe) + _LENGTHS).value
    return ctypes.c_int64.from_address(lengths).value == len(probe)


def _read(kind: str) -> Any:
    def typed(typing: Any, address: Any) -> Any:
        from numba import types

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            read = context.get_value_type(signature.return_type)
            return builder.load(builder.inttoptr(args[0], read.as_pointer()))

        return getattr(types, kind)(types.int64), emit

    return typed


@intrinsic(_read("int64"))
def integer_at(address):
    """Return the integer at an address."""
    return ctypes.c_int64.from_address(int(address)).value


@intrinsic(_read("float64"))
def number_at(address):
    """Return the floating-point number at an address."""
    return ctypes.c_double.from_address(int(address)).value


@inner
def join_arrays(number, board, ranges, objects, offsets, out, unlike):
    """Copy the numbers of arrays, which begin at `offsets`, in ranges that threads take.

    `objects` are the addresses of the arrays, contiguous and of one axis. One that has not as many
    numbers as offsets say is left out, and ``unlike[0]`` is set.
    """
    r = take(board, 0)
    while r < ranges.size - 1:
        for i in range(ranges[r], ranges[r + 1]):
            size = offsets[i + 1] - offsets[i]
            if integer_at(integer_at(objects[i] + _LENGTHS)) != size:
                unlike[0] = True  # beyond the end of an array nothing must be read
                continue
            start = integer_at(objects[i] + _START)
            for k in range(size):
                out[offsets[i] + k] = number_at(start + _NUMBER * k)
        r = take(board, 0)


@lean
def join_in_threads(box, helpers, *given):
    """Run `join_arrays` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(join_arrays, given))
    join_arrays(0, *given)
    withdraw(box, open_)
