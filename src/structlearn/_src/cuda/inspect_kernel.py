"""What is wrong with a batch of chains, and where answers have to be looked at (Triton)."""

from __future__ import annotations

import triton
import triton.language as tl

HOLES = tl.constexpr(1)  # masks with holes, or without a first position
LABELS = tl.constexpr(2)  # labels that do not exist
NUMBERS = tl.constexpr(4)  # scores or tables that are NaN or plus infinity
LOOSE = tl.constexpr(8)  # paths may be lost: minus infinity, huge numbers, tables far apart
HIDDEN = tl.constexpr(16)  # labels of -1
MARKS = tl.constexpr(5)  # how many there are
HUGE = tl.constexpr(1e30)  # sums of many numbers below stay finite


@triton.jit(do_not_specialize=["rows", "T"])
def inspect_chains(
    scores, edges, starts, ends, labels, mask, out, rows, T, most,
    K: tl.constexpr, BK: tl.constexpr, ROWS: tl.constexpr, ENDS: tl.constexpr,
    MASKED: tl.constexpr, LABELLED: tl.constexpr, SHARED: tl.constexpr,
):  # fmt: skip
    """Write 1 to `out`, one word for each mark, for what is found at some positions.

    The first program looks at the tables too.
    """
    block = tl.program_id(0)
    row = block.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    here = row < rows
    counted = here
    told = block * 0
    if MASKED:
        first = row % T == 0
        counted = here & (tl.load(mask + row, mask=here, other=0) != 0)
        before = tl.load(mask + row - 1, mask=here & (row % T > 0), other=1) != 0
        hole = (counted & (before == 0)) | (here & first & (counted == 0))
        told |= tl.max(hole.to(tl.int32), 0) * HOLES
    if LABELLED:
        label = tl.load(labels + row, mask=counted, other=0)
        told |= tl.max(((label < -1) | (label >= K)).to(tl.int32), 0) * LABELS
        told |= tl.max((label == -1).to(tl.int32), 0) * HIDDEN
    k = tl.arange(0, BK)
    used = counted[:, None] & (k < K)[None, :]
    x = tl.load(scores + row[:, None] * K + k[None, :], mask=used, other=0.0)
    told |= _numbers(tl.max(_finite(x) ^ 1), tl.max(tl.abs(x)))
    if block == 0:
        if ENDS:
            a = tl.load(starts + k, mask=k < K, other=0.0)
            b = tl.load(ends + k, mask=k < K, other=0.0)
            told |= _numbers(tl.max(_finite(a) ^ 1), tl.max(tl.abs(a)))
            told |= _numbers(tl.max(_finite(b) ^ 1), tl.max(tl.abs(b)))
        if SHARED:
            both = (k < K)[:, None] & (k < K)[None, :]
            A = tl.load(edges + k[:, None] * K + k[None, :], mask=both, other=float("-inf"))
            none = both & (_finite(A) == 0)
            told |= tl.max(tl.max(none.to(tl.int32), 1), 0) * NUMBERS
            low = tl.min(tl.min(tl.where(both, A, float("inf")), 1), 0)
            far = (tl.max(tl.max(A, 1), 0) - low <= most) == 0  # of NaN too
            told |= far.to(tl.int32) * LOOSE
    for mark in tl.static_range(MARKS):  # in memory of the host, which takes stores only
        tl.store(out + mark, 1, mask=(told & (1 << mark)) != 0)


@triton.jit
def _numbers(none, largest):
    """Return the marks of numbers: NaN or plus infinity among them, and their largest size."""
    loose = (largest < HUGE) == 0
    return none * NUMBERS | loose.to(tl.int32) * LOOSE


@triton.jit
def _finite(x):
    """Return 1 for numbers below infinity, 0 for NaN and plus infinity."""
    return (x < float("inf")).to(tl.int32)
