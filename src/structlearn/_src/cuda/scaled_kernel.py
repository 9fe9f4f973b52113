r"""Forward-backward of many chains at once, as products of small matrices (Triton).

One program takes a block of chains through all positions. In the scaled probability domain a step
is one product, with :math:`E = \exp(A - \max A)` and :math:`n_t = \exp(s_t - \max s_t)`:

.. math:: \alpha_t = (\alpha_{t-1} E) \odot n_t / r_t, \qquad
          \beta_{t-1} = E (n_t \odot \beta_t) / r_t

with :math:`r_t = \sum \alpha_{t-1}`, which is found beside the product, not after it. The log
partition function is the sum of the logarithms of what was taken out, and as both recursions
divide by the same numbers, :math:`\langle \alpha_t, \beta_t \rangle` is the same everywhere: with
1 at the end, :math:`\alpha_t \odot \beta_t` are the marginals.

What is lost to underflow is bounded: a product that vanishes is below :math:`10^{-37}`. Where all
:math:`r_t` are at least `LEAST_STEP` and no :math:`\beta` is above `MOST_BETA`, the relative error
of the partition function is below :math:`10^{-9}` times the number of states, for each position.
Chains where that does not hold are flagged, and the batch belongs to the kernel in the log domain;
so are NaN, labels that do not exist and masks with holes.
"""

from __future__ import annotations

import triton
import triton.language as tl

from structlearn._src.cuda.pieces import (
    block_of,
    end_rows,
    label_scores,
    log_nodes,
    read,
    write_sums,
)

LEAST_STEP = tl.constexpr(1e-12)  # see above
MOST_BETA = tl.constexpr(1e16)  # see above
DEEP = tl.constexpr(64)  # rows of a product over positions: several steps at once
MOST_DRIFT = tl.constexpr(1e-3)  # of the sum of marginals from 1: rounding alone gives 1e-5


@triton.jit(do_not_specialize=["B", "T"])  # one compilation for batches of all sizes
def scaled_chains(
    scores, edges, starts, ends, labels, mask, lengths, order, bases, costs, cost_scales,
    factors, alphas, by_scores, parts, values, flags, B, T, inv_eps, share,
    K: tl.constexpr, BK: tl.constexpr, C: tl.constexpr, ENDS: tl.constexpr, COST: tl.constexpr,
    UNEQUAL: tl.constexpr, PACKED: tl.constexpr, MASKED: tl.constexpr, FACTORS: tl.constexpr,
    CLAMP: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Values and gradients of one part of a loss for C chains; `fused_chain` has the arrays."""
    block = tl.program_id(0)
    rows, base, counted, weight, cost_scale = block_of(
        lengths, order, bases, cost_scales, factors, block, B, T, C, UNEQUAL, PACKED, FACTORS, COST,
        tl.float32,
    )  # fmt: skip
    factor = weight * share
    n = tl.max(counted, 0)
    E, shift = _exponentials(edges, inv_eps, K, BK)
    begin, end = end_rows(starts, ends, K, BK, ENDS, tl.float32)
    store = alphas + block.to(tl.int64) * T * (2 * C * BK)
    fine = tl.full((C,), 1, tl.int32) > 0
    full = tl.full((C,), 0, tl.int32) > 0
    value = tl.zeros((C,), tl.float64)
    counts = tl.zeros((BK, BK), tl.float32)
    adding = n * 0
    if CLAMP:
        label_score, hidden, wrong, counts = label_scores(
            scores, edges, starts, ends, labels, mask, rows, base, counted, weight, n, K, BK, C,
            ENDS, MASKED, False, True, PRECISION if FACTORS else "tf32",
        )  # fmt: skip
        counts *= share
        some_hidden = tl.max(hidden, 0)
        fine = (wrong == 0) & (label_score > float("-inf"))
        full = (hidden == 0) & (some_hidden == 0)
        value = -label_score
        if some_hidden > 0:
            clamped, total, first = _forward(
                scores, labels, begin, end, costs, cost_scale, store, E, shift, base, counted,
                n, inv_eps, K, BK, C, False, True, PRECISION,
            )  # fmt: skip
            value = -clamped / inv_eps
            less, second = _backward(
                scores, labels, begin, end, costs, cost_scale, -factor, store, by_scores, E,
                total, base, counted, full, n, T, inv_eps, adding, K, BK, C, False, True, False,
                PRECISION,
            )  # fmt: skip
            counts = -less * E  # those of the labels are not all
            fine = fine & first & second
        adding = some_hidden
    free, total, first = _forward(
        scores, labels, begin, end, costs, cost_scale, store, E, shift, base, counted, n,
        inv_eps, K, BK, C, COST, False, PRECISION,
    )  # fmt: skip
    value += free / inv_eps
    more, second = _backward(
        scores, labels, begin, end, costs, cost_scale, factor, store, by_scores, E, total, base,
        counted, full, n, T, inv_eps, adding, K, BK, C, COST, False, CLAMP, PRECISION,
    )  # fmt: skip
    write_sums(
        by_scores, parts, values, flags, block, rows, base, counted, value * share,
        fine & first & second, more * E - counts, B, K, BK, C,
    )  # fmt: skip


@triton.jit
def _exponentials(edges, inv_eps, K: tl.constexpr, BK: tl.constexpr):
    """Return exp(A - max A), 0 for states that are padding, and the maximum."""
    k = tl.arange(0, BK)
    both = (k < K)[:, None] & (k < K)[None, :]
    A = tl.load(edges + k[:, None] * K + k[None, :], mask=both, other=float("-inf")) * inv_eps
    top = tl.max(tl.max(A, 1), 0)
    top = tl.where(top == float("-inf"), 0.0, top)
    return tl.exp(A - top), top


@triton.jit
def _forward(
    scores, labels, begin, end, costs, cost_scale, store, E, shift, base, lengths, n, inv_eps,
    K: tl.constexpr, BK: tl.constexpr, C: tl.constexpr, COST: tl.constexpr, CLAMPED: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """Write all alphas; return log partition functions (C,), last sums, and which to trust."""
    tl.debug_barrier()  # threads write what other threads have read
    tile = tl.arange(0, C)[:, None] * BK + tl.arange(0, BK)[None, :]
    USED: tl.constexpr = COST or CLAMPED
    # What is read lies two positions ahead: memory takes longer than a step.
    raw, label = read(scores, labels, base, 0, lengths, K, BK, USED)
    raw_1, label_1 = read(scores, labels, base, 1, lengths, K, BK, USED)
    raw_2, label_2 = read(scores, labels, base, 2, lengths, K, BK, USED)
    x = log_nodes(
        raw, 0, lengths, begin, end, label, costs, cost_scale, inv_eps, K, BK, COST, CLAMPED, True
    )
    top = _finite_max(x)
    alpha = tl.exp(x - top[:, None])
    tl.store(store + tile, alpha)
    # Two sums, as numbers that lie in different threads would have to be brought together.
    tops = top.to(tl.float64)
    totals = tl.zeros((C,), tl.float64)
    least = tl.full((C,), 1.0, tl.float32)
    for t in range(1, n):
        raw = raw_1
        label = label_1
        raw_1 = raw_2
        label_1 = label_2
        raw_2, label_2 = read(scores, labels, base, t + 2, lengths, K, BK, USED)
        x = log_nodes(
            raw, t, lengths, begin, end, label, costs, cost_scale, inv_eps, K, BK, COST, CLAMPED,
            False,
        )  # fmt: skip
        top = _finite_max(x)
        tops += tl.where(t < lengths, top + shift, 0.0).to(tl.float64)
        node = tl.exp(x - top[:, None])
        total = tl.sum(alpha, 1)
        totals += tl.where(t < lengths, tl.log(total), 0.0).to(tl.float64)
        least = tl.where(total > LEAST_STEP, least, 0.0)  # of NaN too
        new = tl.dot(alpha, E, input_precision=PRECISION) * node * (1.0 / total)[:, None]
        alpha = tl.where((t < lengths)[:, None], new, alpha)
        tl.store(store + t * (C * BK) + tile, alpha)
    total = tl.sum(alpha, 1)
    fine = ((total > LEAST_STEP) & (least > 0.0)) | (lengths == 0)
    value = tops + totals + tl.log(total).to(tl.float64)
    return value, tl.where(lengths > 0, total, 1.0), fine


@triton.jit
def _finite_max(x):
    """Return the maximum of every row, 0 where all is minus infinity."""
    top = tl.max(x, 1)
    return tl.where(top == float("-inf"), 0.0, top)


@triton.jit
def _backward(
    scores, labels, begin, end, costs, cost_scale, factor, store, by_scores, E, total, base,
    lengths, full, n, T, inv_eps, adding, K: tl.constexpr, BK: tl.constexpr, C: tl.constexpr,
    COST: tl.constexpr, CLAMPED: tl.constexpr, KNOWN: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Write gradients by scores; return those by edges (over E), and which to trust.

    Betas are divided by what alphas were divided by, so that their products are marginals. With
    `KNOWN`, chains that are `full` of labels have their counts taken off.
    """
    tl.debug_barrier()  # threads read what other threads have written
    k = tl.arange(0, BK)
    tile = tl.arange(0, C)[:, None] * BK + k[None, :]
    USED: tl.constexpr = COST or CLAMPED or KNOWN
    Et = tl.trans(E)
    last = 1.0 / total
    beta = tl.zeros((C, BK), tl.float32)
    peak = tl.zeros((C, BK), tl.float32)
    raw_0 = tl.zeros((C, BK), tl.float32)  # of the position after the present one
    label_0 = base * 0 - 1
    raw, label = read(scores, labels, base, n - 1, lengths, K, BK, USED)
    alpha = tl.load(store + (n - 1) * (C * BK) + tile)
    pairs = store + T * (C * BK)  # what meets alphas in the gradient by edges
    for back in range(n):
        t = n - 1 - back
        ahead = tile * 0 + t > 0
        alpha_1 = tl.load(store + (t - 1) * (C * BK) + tile, mask=ahead, other=0.0)
        raw_1, label_1 = read(scores, labels, base, t - 1, lengths, K, BK, USED)
        after = t + 1 < lengths
        x = log_nodes(
            raw_0, t + 1, lengths, begin, end, label_0, costs, cost_scale, inv_eps, K, BK, COST,
            CLAMPED, False,
        )  # fmt: skip
        less = tl.where(after, 1.0 / tl.sum(alpha, 1), 0.0)
        node = tl.exp(x - _finite_max(x)[:, None]) * less[:, None]
        weight = node * beta
        moved = tl.dot(weight, Et, input_precision=PRECISION)
        beta = tl.where(after[:, None], moved, last[:, None])  # nothing comes behind the last
        peak = tl.maximum(peak, beta)
        counted = tl.where(t < lengths, factor, 0.0)
        grad = alpha * beta * counted[:, None]
        tl.store(pairs + t * (C * BK) + tile, weight * counted[:, None])
        if KNOWN:
            mark = tl.where(full, counted, 0.0)
            grad -= tl.where(label[:, None] == k[None, :], mark[:, None], 0.0)
        spot = by_scores + (base + t)[:, None] * K + k[None, :]
        written = (t < lengths)[:, None] & (k < K)[None, :]
        grad += tl.load(spot, mask=written & (base * 0 + adding > 0)[:, None], other=0.0)
        tl.store(spot, grad, mask=written)
        raw_0 = raw
        label_0 = label
        raw = raw_1
        label = label_1
        alpha = alpha_1
    drift = tl.abs(tl.sum(tl.load(store + tile) * beta, 1) - 1.0)
    fine = (drift <= MOST_DRIFT) & (tl.max(peak, 1) <= MOST_BETA)
    G = _gram(store, pairs, n * C, BK, PRECISION)
    return G, fine | (lengths == 0)


@triton.jit
def _gram(left, right, height, BK: tl.constexpr, PRECISION: tl.constexpr):
    """Return the product (BK, BK) of two matrices with so many rows, the first transposed."""
    tl.debug_barrier()  # threads read what other threads have written
    k = tl.arange(0, BK)
    out = tl.zeros((BK, BK), tl.float32)
    for begin in range(0, height, DEEP):
        row = begin + tl.arange(0, DEEP)
        there = (row < height)[:, None] & (k < BK)[None, :]
        a = tl.load(left + row[:, None] * BK + k[None, :], mask=there, other=0.0)
        b = tl.load(right + row[:, None] * BK + k[None, :], mask=there, other=0.0)
        out += tl.dot(tl.trans(a), b, input_precision=PRECISION)
    return out
