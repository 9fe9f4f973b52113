"""Kernels that many threads run at once, without the interpreter's lock to begin them.

A thread that calls a kernel from Python needs the lock for some tens of microseconds, and threads
get it one after the other: to have 16 of them begin takes several tenths of a millisecond. So
threads of the pool wait inside compiled code, in `serve`, where a caller's kernel finds them:

    def solve_in_threads(box, helpers, *given):
        open_ = publish(box, helpers, task(solve, given))
        solve(0, *given)
        withdraw(box, open_)

The caller writes down where its code and its arguments are, lets so many helpers in, takes part in
the work as number 0, and waits until the helpers have left. Work must be such that any number of
threads can do it, the caller alone included: they take numbered tasks, see `team`. The first
argument of the kernel is the number of the thread, for `own` workspaces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.atomic import exchange, fetch_add, give_way, load, pause
from structlearn._src.kernels.jit import inner, intrinsic, lean
from structlearn._src.kernels.team import make_board

# Entries of a box, on cache lines of their own where threads write to them.
_CALLERS, _SEATS, _INSIDE, CALLS, BEGUN, _CODE, _GIVEN = 0, 8, 16, 24, 32, 40, 41
_PAUSES = 20  # a microsecond in which the core is left to the other thread on it


def make_box() -> Ints:
    """Return where callers and helpers find each other: nothing is published."""
    return np.zeros(48, np.int64)


def over(kernel: Callable[..., Any], calls: list[Ints], n_jobs: int | None, *given: Any) -> None:
    """Let threads take ranges of work, of one call of a kernel after the other.

    The first arguments of the kernel are the board on which ranges are counted, and their borders,
    as `threads.calls_of` returns them.
    """
    for ranges in calls:
        helpers = threads.helpers(n_jobs, len(ranges) - 1)
        threads.launch(kernel, helpers, make_board(1), ranges, *given)


# ---- code and arguments as addresses -----------------------------------------------------


def _address(typing: Any, function: Any, given: Any) -> Any:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils

    signature = function.get_call_type(typing, (types.int64, *given.types), {})
    dispatcher = function.dispatcher
    word, byte = ir.IntType(64), ir.IntType(8).as_pointer()

    def emit(context: Any, builder: Any, own: Any, args: Any) -> Any:
        compiled = dispatcher.overloads[tuple(signature.args)]
        context.active_code_library.add_linking_library(compiled.library)
        values = cgutils.unpack_tuple(builder, args[1], len(given.types))
        record = ir.LiteralStructType([value.type for value in values])
        # It lives as long as the kernel that calls: until all helpers have left.
        place = cgutils.alloca_once(builder, record)
        builder.store(cgutils.make_anonymous_struct(builder, values, record), place)
        # A function of one type for all kernels: reads the arguments and calls.
        module = builder.module
        name = module.get_unique_name("structlearn_task")
        code = ir.Function(module, ir.FunctionType(ir.VoidType(), [byte, word]), name=name)
        code.linkage = "internal"
        body = ir.IRBuilder(code.append_basic_block())
        held = body.load(body.bitcast(code.args[0], record.as_pointer()))
        each = [code.args[1], *(body.extract_value(held, i) for i in range(len(values)))]
        called, kinds = context.declare_function(module, compiled.fndesc), compiled.fndesc
        context.call_conv.call_function(body, called, kinds.restype, kinds.argtypes, each)
        body.ret_void()
        both = [builder.ptrtoint(code, word), builder.ptrtoint(place, word)]
        return context.make_tuple(builder, own.return_type, both)

    return types.UniTuple(types.int64, 2)(function, given), emit


@intrinsic(_address)
def task(function, given):
    """Return the addresses of code that calls a kernel, and of its arguments but for the first.

    They hold until the kernel that asks for them returns. Without the compiler there are none, and
    nobody helps.
    """
    return 0, 0


def _call(typing: Any, code: Any, given: Any, number: Any) -> Any:
    from llvmlite import ir
    from numba import types

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte, ir.IntType(64)])
        function = builder.inttoptr(args[0], kind.as_pointer())
        builder.call(function, [builder.inttoptr(args[1], byte), args[2]])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), emit


@intrinsic(_call)
def _call_task(code, given, number):
    """Call what is at two addresses, as thread `number`."""
    raise AssertionError("without the compiler there are no addresses")


def _relocate(typing: Any, record: Any, places: Any, number: Any) -> Any:
    from numba import types
    from numba.core import cgutils

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        found = []
        table = context.make_array(signature.args[1])(context, builder, value=args[1])
        row = builder.mul(args[2], args[2].type(len(record.types)))
        for i, kind in enumerate(record.types):
            old = builder.extract_value(args[0], i)
            array = context.make_array(kind)(context, builder, value=old)
            place = builder.load(builder.gep(table.data, [builder.add(row, row.type(i))]))
            array.data = builder.inttoptr(place, array.data.type)
            found.append(array._getvalue())
        return cgutils.make_anonymous_struct(builder, found, context.get_value_type(record))

    return record(record, places, types.int64), emit


@intrinsic(_relocate)
def own(workspace, places, number):
    """Return the workspace of a thread: like that of the first one, but at its own addresses.

    `places` (threads, arrays) are those of the arrays of `threads.Workspaces`.
    """
    return workspace  # without the compiler there is one thread


# ---- the caller's side -------------------------------------------------------------------


@inner
def publish(box, helpers, where):
    """Let so many helpers do a task; tells whether they may, as there is one caller at a time."""
    if helpers == 0:
        return False
    compiled = where[0] != 0
    open_ = compiled and fetch_add(box, _CALLERS, 1) == 0
    if open_:
        box[_CODE], box[_GIVEN] = where
        exchange(box, _SEATS, helpers)  # all that was written before is seen by who takes a seat
    elif compiled:  # somebody else's work is there: this caller does its own
        fetch_add(box, _CALLERS, -1)
    fetch_add(box, BEGUN, 1)  # after the seats: who sees it looks once more
    return open_


@inner
def withdraw(box, open_):
    """Let no more helpers in, and wait until all have left, with all that they wrote."""
    if open_:
        exchange(box, _SEATS, 0)
        looks = 0
        while load(box, _INSIDE) > 0:
            pause()
            looks += 1
            if looks > _PAUSES:
                give_way()
        fetch_add(box, _CALLERS, -1)


# ---- the helpers' side -------------------------------------------------------------------


@inner
def _help(box):
    """Take a seat, if one is left, and do the work; tells whether there was one."""
    # First inside, then seated: a caller that has taken the seats away sees who got one.
    fetch_add(box, _INSIDE, 1)
    seat = fetch_add(box, _SEATS, -1)
    if seat > 0:
        _call_task(load(box, _CODE), load(box, _GIVEN), seat)
    fetch_add(box, _INSIDE, -1)
    return seat > 0


@lean
def serve(box, seen, patience):
    """Help whoever publishes work, until nobody has for so many looks, a microsecond or two each.

    Returns before that, with the looks that are left, when the number of calls of the pool is no
    longer the one that was `seen`: these are in Python.
    """
    looks = patience
    while looks > 0 and load(box, CALLS) == seen:
        if load(box, _SEATS) > 0 and _help(box):
            looks = patience
            continue
        for _ in range(_PAUSES):
            pause()
        give_way()
        looks -= 1
    return looks
