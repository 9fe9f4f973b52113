"""Pieces of the kernels over chains (Triton): what a program reads of its block of chains."""

from __future__ import annotations

import triton
import triton.language as tl

SPAN = tl.constexpr(8)  # positions whose labels are read at once: with 16 chains 128 in a product


@triton.jit
def block_of(
    lengths, order, bases, cost_scales, factors, block, B, T, C: tl.constexpr,
    UNEQUAL: tl.constexpr, PACKED: tl.constexpr, FACTORS: tl.constexpr, COST: tl.constexpr,
    KIND: tl.constexpr,
):  # fmt: skip
    """Return a program's chains: numbers, beginnings, lengths, factors and scales of the cost."""
    rows = block * C + tl.arange(0, C)
    here = rows < B
    counted = tl.where(here, T, 0)
    if UNEQUAL:
        rows = tl.load(order + rows, mask=here, other=0)
        counted = tl.load(lengths + rows, mask=here, other=0).to(tl.int32)
    rows = rows.to(tl.int64)
    base = rows * T
    if PACKED:
        base = tl.load(bases + rows, mask=here, other=0)
    factor = tl.full((C,), 1.0, KIND)
    if FACTORS:
        factor *= tl.load(factors + rows, mask=here, other=0.0)
    cost_scale = tl.full((C,), 1.0, KIND)
    if COST:
        cost_scale = tl.load(cost_scales + rows, mask=here, other=1.0)
    return rows, base, counted, factor, cost_scale


@triton.jit
def label_scores(
    scores, edges, starts, ends, labels, mask, rows, base, lengths, factor, n, K: tl.constexpr,
    BK: tl.constexpr, C: tl.constexpr, ENDS: tl.constexpr, MASKED: tl.constexpr,
    EACH: tl.constexpr, COUNT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Return scores of labels (C,), whether some are hidden, whether wrong, and pairs counted."""
    k = tl.arange(0, BK)
    counts = tl.zeros((BK, BK), tl.float32)
    total = tl.zeros((C,), tl.float64)
    hidden = tl.zeros((C,), tl.int32)
    wrong = tl.zeros((C,), tl.int32)
    for begin in range(0, n, SPAN):
        t = begin + tl.arange(0, SPAN)
        inside = t[None, :] < lengths[:, None]
        place = base[:, None] + t[None, :]
        label = tl.load(labels + place, mask=inside, other=0)
        before = tl.load(labels + place - 1, mask=inside & (t > 0)[None, :], other=-1)
        there = inside & (label >= 0) & (label < K)
        each = tl.load(scores + place * K + label, mask=there, other=0.0)
        pair = there & (before >= 0) & (before < K)
        table = edges + before * K + label
        if EACH:
            table += ((base - rows)[:, None] + t[None, :] - 1) * (K * K)
        each += tl.load(table, mask=pair, other=0.0)
        if ENDS:
            each += tl.load(starts + label, mask=there & (t == 0)[None, :], other=0.0)
            last = t[None, :] == lengths[:, None] - 1
            each += tl.load(ends + label, mask=there & last, other=0.0)
        total += tl.sum(each.to(tl.float64), 1)
        hidden = tl.maximum(hidden, tl.max((inside & (label == -1)).to(tl.int32), 1))
        bad = inside & ((label < -1) | (label >= K))
        if MASKED:
            bad = bad | (inside & (tl.load(mask + place, mask=inside, other=1) == 0))
        wrong = tl.maximum(wrong, tl.max(bad.to(tl.int32), 1))
        if COUNT:
            left = tl.reshape(tl.where(pair, before, BK), (1, C * SPAN))
            right = tl.reshape(label, (C * SPAN, 1))
            amount = tl.reshape(tl.broadcast_to(factor[:, None], (C, SPAN)), (1, C * SPAN))
            counts += tl.dot(
                tl.where(left == k[:, None], amount, 0.0), (right == k[None, :]).to(tl.float32),
                input_precision=PRECISION,
            )  # fmt: skip
    return total, hidden, wrong, counts


@triton.jit
def read(scores, labels, base, t, lengths, K: tl.constexpr, BK: tl.constexpr,
          USED: tl.constexpr):  # fmt: skip
    """Return scores (C, BK) and labels (C,) of one position; labels of -1 where none are used."""
    k = tl.arange(0, BK)
    inside = (t < lengths) & (lengths * 0 + t >= 0)
    place = base + t
    raw = tl.load(
        scores + place[:, None] * K + k[None, :],
        mask=inside[:, None] & (k < K)[None, :], other=0.0,
    )  # fmt: skip
    label = base * 0 - 1
    if USED:
        label = tl.load(labels + place, mask=inside, other=-1)
    return raw, label


@triton.jit
def log_nodes(
    raw, t, lengths, begin, end, label, costs, cost_scale, inv_eps, K: tl.constexpr,
    BK: tl.constexpr, COST: tl.constexpr, CLAMPED: tl.constexpr, FIRST: tl.constexpr,
):  # fmt: skip
    """Return scores over the temperature of one position (C, BK), -inf outside chains."""
    k = tl.arange(0, BK)
    x = raw + tl.where((lengths - 1 == t)[:, None], end[None, :], 0.0)
    if FIRST:
        x += begin[None, :]
    if CLAMPED:
        shut = (label >= 0)[:, None] & (label[:, None] != k[None, :])
        x = tl.where(shut, float("-inf"), x)
    elif COST:
        there = ((label >= 0) & (label < K))[:, None] & (k < K)[None, :]
        row = tl.load(costs + label[:, None] * K + k[None, :], mask=there, other=0.0)
        x += row * cost_scale[:, None]
    return tl.where((k < K)[None, :] & (t < lengths)[:, None], x * inv_eps, float("-inf"))


@triton.jit
def end_rows(
    starts, ends, K: tl.constexpr, BK: tl.constexpr, ENDS: tl.constexpr, KIND: tl.constexpr
):
    """Return what first and last labels are worth (BK,)."""
    k = tl.arange(0, BK)
    begin = tl.zeros((BK,), KIND)
    end = tl.zeros((BK,), KIND)
    if ENDS:
        begin += tl.load(starts + k, mask=k < K, other=0.0)
        end += tl.load(ends + k, mask=k < K, other=0.0)
    return begin, end


@triton.jit
def write_sums(
    by_scores, parts, values, flags, block, rows, base, lengths, value, fine, by_edges, B,
    K: tl.constexpr, BK: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """Write values and flags, and a program's sums of gradients by edges, starts and ends."""
    tl.debug_barrier()  # threads read what other threads have written
    k = tl.arange(0, BK)
    here = block * C + tl.arange(0, C) < B
    tl.store(values + rows, value, mask=here)
    tl.store(flags + rows, tl.where(fine, 0, 1), mask=here)
    part = parts + block.to(tl.int64) * ((K + 2) * K)
    inner = (k < K)[:, None] & (k < K)[None, :]
    tl.store(part + k[:, None] * K + k[None, :], by_edges, mask=inner)
    there = (lengths > 0)[:, None] & (k < K)[None, :]
    first = by_scores + base[:, None] * K + k[None, :]
    last = first + ((lengths - 1) * K)[:, None]
    tl.store(part + K * K + k, tl.sum(tl.load(first, mask=there, other=0.0), 0), mask=k < K)
    tl.store(part + (K + 1) * K + k, tl.sum(tl.load(last, mask=there, other=0.0), 0), mask=k < K)
