"""A step of ADMM whose sums over variables are atomic additions, to compare with."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _local(
    starts, columns, ahead, multipliers, constants, lengths, tags, weights, pull, rate, relaxation,
    WIDTH: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    s = tl.program_id(0)
    lane = tl.arange(0, ROWS)
    row = s.to(tl.int64) * ROWS + lane
    first = tl.load(starts + s).to(tl.int64)
    old = tl.load(multipliers + row)
    length = tl.load(lengths + row) * rate
    tag = tl.load(tags + s)
    value = tl.load(constants + row) + old * length
    for k in tl.static_range(WIDTH):
        c = tl.load(columns + (first + k) * ROWS + lane)
        x = tl.load(ahead + tl.where(c < 0, -1 - c, c))
        value += tl.where(c < 0, -x, x)
    weight = tl.load(weights + (tag >> 2))
    above = tl.maximum(value, 0.0)
    linear = tl.minimum(above / length, weight)
    squared = 2.0 * weight * above / (1.0 + 2.0 * weight * length)
    new = old + relaxation * (tl.where((tag & 3) == 1, squared, linear) - old)
    tl.store(multipliers + row, new)
    for k in tl.static_range(WIDTH):
        c = tl.load(columns + (first + k) * ROWS + lane)
        tl.atomic_add(
            pull + tl.where(c < 0, -1 - c, c), tl.where(c < 0, -new, new), mask=new != 0.0,
            sem="relaxed",
        )  # fmt: skip


def advance_by_atomics(consensus, weights, state):
    t = consensus.tensors
    rows = t.by_form.rows
    pull = weights.new_zeros(t.by_form.room)
    ((first, last, width),) = rows.spans
    _local[(last - first,)](
        rows.starts, rows.columns, state.ahead, state.multipliers, consensus._constants,
        consensus._lengths, t.tags, weights, pull, 1.0 / state.step, consensus.relaxation,
        WIDTH=width, ROWS=rows.columns.shape[1],
    )  # fmt: skip
    consensus._average(state, pull[: t.n_variables])
