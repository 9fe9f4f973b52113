"""Kernels of Triton over rows in slices: products, and both halves of a step of ADMM."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from structlearn._src.cuda.slices import Slices, add_pieces

ROLL = 4  # entries of long rows that are read at once
KEEP = False  # whether caches are told what is read again
WARPS = 4  # a thread for each row of a slice
SQUARED = tl.constexpr(1)  # sorts of forms, as in kernels.field.admm
AT_MOST = tl.constexpr(2)
EQUAL = tl.constexpr(3)


@triton.jit
def _entry(
    columns, values, vector, at, SIGNS: tl.constexpr, KEEP: tl.constexpr, SQUARES: tl.constexpr
):
    """One entry of every row of a slice, times the vector; `KEEP` what is read again."""
    once: tl.constexpr = "evict_first" if KEEP else ""
    again: tl.constexpr = "evict_last" if KEEP else ""
    column = tl.load(columns + at, eviction_policy=once)
    if SIGNS:
        where = tl.where(column < 0, -1 - column, column)
        found = tl.load(vector + where, eviction_policy=again)
        return found if SQUARES else tl.where(column < 0, -found, found)
    value = tl.load(values + at, eviction_policy=once)
    if SQUARES:
        value *= value
    return value * tl.load(vector + column, eviction_policy=again)


@triton.jit
def _sums(
    starts, columns, values, vector, s, lane,
    SIGNS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, ROLL: tl.constexpr,
    KEEP: tl.constexpr, SQUARES: tl.constexpr = False,
):  # fmt: skip
    """Sums of the rows of slice `s`."""
    first = tl.load(starts + s).to(tl.int64)
    total = tl.zeros((ROWS,), vector.dtype.element_ty)
    if WIDTH >= 0:
        for k in tl.static_range(WIDTH):
            total += _entry(
                columns, values, vector, (first + k) * ROWS + lane, SIGNS, KEEP, SQUARES
            )
    else:
        last = tl.load(starts + s + 1).to(tl.int64)
        for block in tl.range(first, last, loop_unroll_factor=ROLL):
            total += _entry(columns, values, vector, block * ROWS + lane, SIGNS, KEEP, SQUARES)
    return total


@triton.jit
def _row_sums_kernel(
    starts, columns, values, vector, out, shift,
    SIGNS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, ROLL: tl.constexpr,
    KEEP: tl.constexpr, SQUARES: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(0) + shift
    lane = tl.arange(0, ROWS)
    total = _sums(starts, columns, values, vector, s, lane, SIGNS, WIDTH, ROWS, ROLL, KEEP, SQUARES)
    tl.store(out + s.to(tl.int64) * ROWS + lane, total)


@triton.jit
def _local_kernel(
    starts, columns, values, ahead, multipliers, constants, lengths, tags, weights, told, shift,
    rate, relaxation,
    SIGNS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, ROLL: tl.constexpr,
    KEEP: tl.constexpr, EACH: tl.constexpr, TELL: tl.constexpr,
):  # fmt: skip
    """Move the local copies of a slice of forms, see kernels.field.admm; `rate` is 1 / step."""
    s = tl.program_id(0) + shift
    lane = tl.arange(0, ROWS)
    row = s.to(tl.int64) * ROWS + lane
    old = tl.load(multipliers + row)
    size = tl.load(lengths + row)
    tag = tl.load(tags + row) if EACH else tl.load(tags + s)
    value = tl.load(constants + row)
    value += _sums(starts, columns, values, ahead, s, lane, SIGNS, WIDTH, ROWS, ROLL, KEEP)
    weight = tl.load(weights + (tag >> 2))
    sort = tag & 3
    length = size * rate
    value += old * length
    above = tl.maximum(value, 0.0)
    slope = tl.where(sort == EQUAL, value, above) / length
    slope = tl.where(sort < SQUARED, tl.minimum(slope, weight), slope)
    squared = 2.0 * weight * above / (1.0 + 2.0 * weight * length)
    slope = tl.where(sort == SQUARED, squared, slope)
    change = relaxation * (slope - old)
    tl.store(multipliers + row, old + change)
    if TELL:
        hinge = tl.maximum(value - slope * length, 0.0)
        hinge = tl.where(sort == SQUARED, hinge * hinge, tl.where(sort < SQUARED, hinge, 0.0))
        tl.store(told + 2 * row, hinge)
        tl.store(told + 2 * row + 1, change * change * size)


@triton.jit
def _consensus_kernel(
    starts, columns, values, multipliers, consensus, lags, ahead, pull, shares, told, shift,
    rate, relaxation,
    SIGNS: tl.constexpr, WIDTH: tl.constexpr, ROWS: tl.constexpr, ROLL: tl.constexpr,
    KEEP: tl.constexpr,
    TELL: tl.constexpr,
):  # fmt: skip
    """Average the copies of a slice of variables, see kernels.field.admm."""
    s = tl.program_id(0) + shift
    lane = tl.arange(0, ROWS)
    row = s.to(tl.int64) * ROWS + lane
    total = _sums(starts, columns, values, multipliers, s, lane, SIGNS, WIDTH, ROWS, ROLL, KEEP)
    old = tl.load(consensus + row)
    lag = tl.load(lags + row)
    share = tl.load(shares + row)
    kept = old + (1.0 - relaxation) * lag
    new = tl.minimum(tl.maximum(kept - total * share * rate, 0.0), 1.0)
    new = tl.where(share > 0.0, new, old)
    rest = tl.where(share > 0.0, kept - new, 0.0)
    tl.store(consensus + row, new)
    tl.store(lags + row, rest)
    tl.store(ahead + row, new - rest)
    if TELL:
        copies = tl.where(share > 0.0, 1.0 / tl.maximum(share, 1e-30), 0.0)
        change = rest - lag
        tl.store(told + 3 * row, change * (total - tl.load(pull + row)))
        tl.store(told + 3 * row + 1, change * change * copies)
        tl.store(told + 3 * row + 2, (new - old) * (new - old) * copies)
    tl.store(pull + row, total)


def _common(rows: Slices, vector: Tensor) -> tuple[tuple[Tensor, ...], dict[str, int | bool]]:
    entries = rows.entries(vector.dtype)
    signs = entries is None
    arrays = rows.starts, rows.columns, rows.columns if signs else entries
    return arrays, {
        "SIGNS": signs,
        "ROWS": rows.columns.shape[1],
        "ROLL": ROLL,
        "KEEP": KEEP,
        "num_warps": WARPS,
    }


def row_sums(rows: Slices, vector: Tensor, squares: bool = False) -> Tensor:
    """Return the products of all rows with a vector."""
    out = vector.new_empty(rows.n_rows)
    arrays, facts = _common(rows, vector)
    for first, last, width in rows.spans:
        if last > first:
            _row_sums_kernel[(last - first,)](
                *arrays, vector, out, first, WIDTH=width, SQUARES=squares, **facts
            )
    return out


def advance(consensus: Any, weights: Tensor, state: Any, tell: bool) -> Any:
    """Take one step of ADMM; on request return what its residuals are made of."""
    t = consensus.tensors
    rate = 1.0 / state.step
    by_form = weights.new_zeros((t.n_forms if tell else 1, 2))
    by_variable = weights.new_zeros((t.n_variables if tell else 1, 3))
    add_pieces(t.by_form, state.ahead)
    arrays, facts = _common(t.by_form.rows, state.ahead)
    for first, last, width in t.by_form.rows.spans:
        if last > first:
            _local_kernel[(last - first,)](
                *arrays, state.ahead, state.multipliers, consensus._constants, consensus._lengths,
                t.tags, weights, by_form, first, rate, consensus.relaxation,
                WIDTH=width, EACH=not t.aligned, TELL=tell, **facts,
            )  # fmt: skip
    add_pieces(t.by_variable, state.multipliers)
    arrays, facts = _common(t.by_variable.rows, state.multipliers)
    for first, last, width in t.by_variable.rows.spans:
        if last > first:
            _consensus_kernel[(last - first,)](
                *arrays, state.multipliers, state.consensus, state.lags, state.ahead, state.pull,
                consensus._shares, by_variable, first, rate, consensus.relaxation,
                WIDTH=width, TELL=tell, **facts,
            )  # fmt: skip
    return (by_form, by_variable) if tell else None
