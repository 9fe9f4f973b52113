r"""Forward-backward and Viterbi of many chains in the log domain (Triton).

One program takes a few chains through all positions, with a tile (C, K, K) of all transitions of
every step. Slower than products of matrices by the exponentials of the tile, but safe for any
potentials, and good for all else: temperature 0, edges with tables of their own, double precision.

.. math:: \alpha_t(j) = s_t(j) + \operatorname{softmax}_i (\alpha_{t-1}(i) + A_t(i, j)), \qquad
          \beta_{t-1}(i) = \operatorname{softmax}_j (A_t(i, j) + s_t(j) + \beta_t(j))

where the soft maximum is the logarithm of the sum of exponentials, or the maximum.
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


@triton.jit(do_not_specialize=["B", "T"])  # one compilation for batches of all sizes
def log_chains(
    scores, edges, starts, ends, labels, mask, lengths, order, bases, costs, cost_scales,
    factors, alphas, by_scores, by_edges, parts, values, flags, B, T, inv_eps, share,
    K: tl.constexpr, BK: tl.constexpr, C: tl.constexpr, ENDS: tl.constexpr, COST: tl.constexpr,
    UNEQUAL: tl.constexpr, PACKED: tl.constexpr, MASKED: tl.constexpr, FACTORS: tl.constexpr,
    CLAMP: tl.constexpr, EACH: tl.constexpr, MAX: tl.constexpr,
):  # fmt: skip
    """Values and gradients of one part of a loss for C chains; `fused_chain` has the arrays."""
    KIND: tl.constexpr = scores.dtype.element_ty
    block = tl.program_id(0)
    rows, base, counted, weight, cost_scale = block_of(
        lengths, order, bases, cost_scales, factors, block, B, T, C, UNEQUAL, PACKED, FACTORS, COST,
        KIND,
    )  # fmt: skip
    factor = weight * share
    n = tl.max(counted, 0)
    begin, end = end_rows(starts, ends, K, BK, ENDS, KIND)
    store = alphas + block.to(tl.int64) * T * (C * BK)
    fine = tl.full((C,), 1, tl.int32) > 0
    full = tl.full((C,), 0, tl.int32) > 0
    value = tl.zeros((C,), tl.float64)
    G = tl.zeros((BK, BK), KIND)
    adding = n * 0
    if CLAMP:
        label_score, hidden, wrong, _counts = label_scores(
            scores, edges, starts, ends, labels, mask, rows, base, counted, weight, n, K, BK, C,
            ENDS, MASKED, EACH, False, "ieee",
        )  # fmt: skip
        some_hidden = tl.max(hidden, 0)
        fine = (wrong == 0) & (label_score > float("-inf"))
        full = (hidden == 0) & (some_hidden == 0)
        value = -label_score
        if some_hidden > 0:
            clamped, last = _forward(
                scores, edges, labels, begin, end, costs, cost_scale, store, rows, base, counted,
                n, inv_eps, K, BK, C, False, True, EACH, MAX, KIND,
            )  # fmt: skip
            value = -clamped / inv_eps
            fine = (wrong == 0) & (clamped > float("-inf"))
            G = _backward(
                scores, edges, labels, begin, end, costs, cost_scale, -factor, store, last,
                by_scores, by_edges, rows, base, counted, full, n, inv_eps, adding, K, BK, C, False,
                True, False, EACH, MAX, KIND,
            )  # fmt: skip
        adding = some_hidden
    free, last = _forward(
        scores, edges, labels, begin, end, costs, cost_scale, store, rows, base, counted, n,
        inv_eps, K, BK, C, COST, False, EACH, MAX, KIND,
    )  # fmt: skip
    more = _backward(
        scores, edges, labels, begin, end, costs, cost_scale, factor, store, last, by_scores,
        by_edges, rows, base, counted, full, n, inv_eps, adding, K, BK, C, COST, False, CLAMP,
        EACH, MAX, KIND,
    )  # fmt: skip
    value += free / inv_eps
    fine = fine & (free > float("-inf")) & (free < float("inf"))
    write_sums(
        by_scores, parts, values, flags, block, rows, base, counted, value * share, fine,
        G + more, B, K, BK, C,
    )  # fmt: skip


@triton.jit
def _tables(edges, rows, base, t, lengths, inv_eps, K: tl.constexpr, BK: tl.constexpr,
            EACH: tl.constexpr):  # fmt: skip
    """Return the tables (C or 1, BK, BK) of the edges that lead to position t."""
    k = tl.arange(0, BK)
    both = ((k < K)[:, None] & (k < K)[None, :])[None, :, :]
    place = (k[:, None] * K + k[None, :])[None, :, :]
    if EACH:
        inside = ((t < lengths) & (lengths * 0 + t > 0))[:, None, None]
        place += ((base - rows + t - 1) * (K * K))[:, None, None]
        both = both & inside
    return tl.load(edges + place, mask=both, other=float("-inf")) * inv_eps


@triton.jit
def _soft_max(x, axis: tl.constexpr):
    """Return the logarithm of the sum of exponentials over an axis; -inf of nothing."""
    top = tl.max(x, axis)
    top = tl.where(top == float("-inf"), 0.0, top)
    return top + tl.log(tl.sum(tl.exp(x - tl.expand_dims(top, axis)), axis))


@triton.jit
def _forward(
    scores, edges, labels, begin, end, costs, cost_scale, store, rows, base, lengths, n, inv_eps,
    K: tl.constexpr, BK: tl.constexpr, C: tl.constexpr, COST: tl.constexpr, CLAMPED: tl.constexpr,
    EACH: tl.constexpr, MAX: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Write alphas, or where the best paths come from; return values (C,) and the last alphas."""
    tl.debug_barrier()  # threads write what other threads have read
    tile = tl.arange(0, C)[:, None] * BK + tl.arange(0, BK)[None, :]
    USED: tl.constexpr = COST or CLAMPED
    raw, label = read(scores, labels, base, 0, lengths, K, BK, USED)
    raw_1, label_1 = read(scores, labels, base, 1, lengths, K, BK, USED)
    alpha = log_nodes(
        raw, 0, lengths, begin, end, label, costs, cost_scale, inv_eps, K, BK, COST, CLAMPED, True
    )
    tl.store(store + tile, alpha)
    scale = tl.zeros((C,), tl.float64)
    A = _tables(edges, rows, base, 1, lengths, inv_eps, K, BK, EACH)
    for t in range(1, n):
        raw = raw_1
        label = label_1
        raw_1, label_1 = read(scores, labels, base, t + 1, lengths, K, BK, USED)
        node = log_nodes(
            raw, t, lengths, begin, end, label, costs, cost_scale, inv_eps, K, BK, COST, CLAMPED,
            False,
        )  # fmt: skip
        x = alpha[:, :, None] + A
        if EACH:
            A = _tables(edges, rows, base, t + 1, lengths, inv_eps, K, BK, EACH)
        kept = alpha
        if MAX:
            best, source = tl.max(x, 1, return_indices=True)
            new = best + node
            kept = source.to(KIND)
        else:
            new = _soft_max(x, 1) + node
        top = tl.max(new, 1)
        top = tl.where((top > float("-inf")) & (t < lengths), top, 0.0)
        scale += top.to(tl.float64)
        alpha = tl.where((t < lengths)[:, None], new - top[:, None], alpha)
        if MAX == 0:
            kept = alpha
        tl.store(store + t * (C * BK) + tile, kept)
    value = tl.max(alpha, 1) if MAX else _soft_max(alpha, 1)
    return scale + value.to(tl.float64), alpha


@triton.jit
def _backward(
    scores, edges, labels, begin, end, costs, cost_scale, factor, store, last, by_scores, by_edges,
    rows, base, lengths, full, n, inv_eps, adding, K: tl.constexpr, BK: tl.constexpr,
    C: tl.constexpr, COST: tl.constexpr, CLAMPED: tl.constexpr, KNOWN: tl.constexpr,
    EACH: tl.constexpr, MAX: tl.constexpr, KIND: tl.constexpr,
):  # fmt: skip
    """Write gradients by scores, and by edges that differ; return sums by edges that do not.

    With `KNOWN`, chains that are `full` of labels have their counts taken off.
    """
    tl.debug_barrier()  # threads read what other threads have written
    USED: tl.constexpr = COST or CLAMPED or KNOWN
    G = tl.zeros((BK, BK), KIND)
    beta = tl.zeros((C, BK), KIND)
    state = tl.zeros((C,), tl.int32)
    if MAX:
        state = tl.argmax(last, 1)
    raw_0 = tl.zeros((C, BK), KIND)  # of the position after the present one
    label_0 = base * 0 - 1
    raw, label = read(scores, labels, base, n - 1, lengths, K, BK, USED)
    for back in range(n):
        t = n - 1 - back
        raw_1, label_1 = read(scores, labels, base, t - 1, lengths, K, BK, USED)
        scale = tl.where(t < lengths, factor, 0.0)
        if MAX:
            grad, pairs, state = _step_back(store, state, t, lengths, scale, BK, C)
        else:
            node = log_nodes(
                raw_0, t + 1, lengths, begin, end, label_0, costs, cost_scale, inv_eps, K, BK,
                COST, CLAMPED, False,
            )  # fmt: skip
            A = _tables(edges, rows, base, t + 1, lengths, inv_eps, K, BK, EACH)
            grad, pairs, beta = _spread(store, A, node + beta, t, lengths, scale, BK, C)
        if KNOWN:
            here, used = _marks(label, label_0, t, lengths, tl.where(full, scale, 0.0), BK)
            grad -= here
            pairs -= used
        more = (base * 0 + adding > 0)[:, None]
        if EACH:
            _add_pairs(by_edges, pairs, more, rows, base, t, lengths, K, BK)
        else:
            G += tl.sum(pairs, 0)
        k = tl.arange(0, BK)
        spot = by_scores + (base + t)[:, None] * K + k[None, :]
        written = (t < lengths)[:, None] & (k < K)[None, :]
        grad += tl.load(spot, mask=written & more, other=0.0)
        tl.store(spot, grad, mask=written)
        raw_0 = raw
        label_0 = label
        raw = raw_1
        label = label_1
    return G


@triton.jit
def _step_back(store, state, t, lengths, scale, BK: tl.constexpr, C: tl.constexpr):
    """Go from the state at t + 1 to the one at t, which its pointer names; return its marks."""
    after = t + 1 < lengths
    place = store + (t + 1) * (C * BK) + tl.arange(0, C) * BK + state
    before = tl.where(after, tl.load(place, mask=after, other=0.0).to(tl.int32), state)
    here, pairs = _marks(before, state, t, lengths, scale, BK)
    return here, pairs, before


@triton.jit
def _marks(label, later, t, lengths, scale, BK: tl.constexpr):
    """Return the scale where labels are (C, BK), and where pairs of labels are (C, BK, BK)."""
    k = tl.arange(0, BK)
    here = tl.where(label[:, None] == k[None, :], scale[:, None], 0.0)
    next_to = (later[:, None] == k[None, :]) & (t + 1 < lengths)[:, None]
    return here, tl.where(next_to[:, None, :], here[:, :, None], 0.0)


@triton.jit
def _spread(store, A, weight, t, lengths, scale, BK: tl.constexpr, C: tl.constexpr):
    """Return marginals of states at t and of pairs, times the scale, and the betas at t."""
    tile = tl.arange(0, C)[:, None] * BK + tl.arange(0, BK)[None, :]
    alpha = tl.load(store + t * (C * BK) + tile)
    after = t + 1 < lengths
    y = A + weight[:, None, :]
    beta = tl.where(after[:, None], _soft_max(y, 2), 0.0)
    both = alpha + beta
    total = _soft_max(both, 1)
    total = tl.where(total > float("-inf"), total, 0.0)
    grad = tl.exp(both - total[:, None]) * scale[:, None]
    pairs = tl.exp(alpha[:, :, None] + y - total[:, None, None]) * scale[:, None, None]
    top = tl.max(beta, 1)
    beta = beta - tl.where(top > float("-inf"), top, 0.0)[:, None]
    return grad, tl.where(after[:, None, None], pairs, 0.0), beta


@triton.jit
def _add_pairs(
    by_edges, pairs, more, rows, base, t, lengths, K: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """Write the gradient of the edges from t to t + 1, or add to it where there is `more`."""
    k = tl.arange(0, BK)
    spot = by_edges + ((base - rows + t) * (K * K))[:, None, None]
    spot += (k[:, None] * K + k[None, :])[None, :, :]
    both = ((k < K)[:, None] & (k < K)[None, :])[None, :, :]
    written = both & (t + 1 < lengths)[:, None, None]
    pairs += tl.load(spot, mask=written & more[:, :, None], other=0.0)
    tl.store(spot, pairs, mask=written)
