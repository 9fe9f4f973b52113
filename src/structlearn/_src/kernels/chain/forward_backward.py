"""Sums, marginals and draws on a ragged batch of chains.

Every kernel takes one run of chains: `nodes` (T, K) are the log potentials of all positions, one
chain after the other, chain ``c`` from ``offsets[c] - offsets[0]`` on. `edges` (E, K, K) holds one
table for all edges (E = 1) or one per edge, E = T - chains: the table between positions ``t`` and
``t + 1`` of chain ``c`` has index ``t - c``. To work on a part of a batch, pass slices. States that
a variable does not have are ``-inf`` in its row of `nodes`.
"""

from __future__ import annotations

import math

import numpy as np

from structlearn._src.kernels.chain.passes import (
    WIDE,
    filter_chain,
    filter_chain_log,
    push,
    smooth_chain_log,
)
from structlearn._src.kernels.jit import inner, kernel


@kernel
def shift(tables, out, tops):
    """Subtract the maximum of every table (N, rows, K); `tops` is NaN where it spreads too wide."""
    rows = tables.shape[1]
    K = tables.shape[2]
    best = np.empty(K)  # by column, so that loops become vector instructions
    for n in range(tables.shape[0]):
        for j in range(K):
            best[j] = tables[n, 0, j]
        for i in range(1, rows):
            for j in range(K):
                best[j] = tables[n, i, j] if tables[n, i, j] > best[j] else best[j]
        top = -np.inf
        for j in range(K):
            top = max(top, best[j])
        tops[n] = top
        base = top if top > -np.inf else 0.0
        wide = False
        for i in range(rows):
            for j in range(K):
                low = tables[n, i, j] - base
                out[n, i, j] = low
                wide |= (low < -WIDE) & (low > -np.inf)
        if wide:
            tops[n] = np.nan


@kernel
def forward(offsets, soft, tops, tables, table_tops, alpha, inverses, values):
    """Log partition function and filtered probabilities of every chain.

    `soft` and `tables` are exponentials of what `shift` gave for nodes and edges, with their tops.
    Fills `alpha` and `inverses` for `backward` and `draw`; `values` are -inf for impossible chains,
    NaN for those that need logs (Rabiner, 1989, section V.A, with sums as scales).
    """
    step = 0 if tables.shape[0] == 1 else 1
    for c in range(offsets.size - 1):
        start, stop = offsets[c] - offsets[0], offsets[c + 1] - offsets[0]
        e = step * (start - c)
        values[c] = filter_chain(
            start, stop, soft, tops, tables, e, step, table_tops, alpha, inverses
        )


@inner
def _pull(rows, tables, e):
    """rows[1] = tables[e] @ rows[0], in four running sums, none of which waits for another."""
    K = rows.shape[1]
    whole = K - K % 4
    for i in range(K):
        p = q = r = s = 0.0
        for j in range(0, whole, 4):
            p += tables[e, i, j] * rows[0, j]
            q += tables[e, i, j + 1] * rows[0, j + 1]
            r += tables[e, i, j + 2] * rows[0, j + 2]
            s += tables[e, i, j + 3] * rows[0, j + 3]
        for j in range(whole, K):
            p += tables[e, i, j] * rows[0, j]
        rows[1, i] = (p + q) + (r + s)


@kernel
def backward(offsets, soft, tables, alpha, inverses, values, logs, weights, pairs):
    """Marginals after `forward` of all chains that do not need `logs`, times `weights` (chains,).

    `soft` becomes the node marginals, all 0 for impossible chains. Edge marginals are added to
    `pairs` (P, K, K): one table per edge, or their sum if P = 1, or nothing if P = 0. A state
    with ``alpha = 0`` is on no path, so its ``beta`` may be dropped before it overflows.
    """
    K = soft.shape[1]
    shared = tables.shape[0] == 1
    summed = shared and pairs.shape[0] == 1
    beta = np.empty((2, K))
    turned = np.empty((1, K, K))  # read by rows, which is faster than the table by columns
    for i in range(K if shared else 0):
        for j in range(K):
            turned[0, j, i] = tables[0, i, j]
    for c in range(offsets.size - 1):
        start, stop = offsets[c] - offsets[0], offsets[c + 1] - offsets[0]
        if logs[c]:
            continue
        possible = values[c] > -np.inf
        weight = weights[c]
        for j in range(K):
            beta[1, j] = 1.0
        for t in range(stop - 1, start - 1, -1):
            inverse = inverses[t] if possible else 0.0
            for j in range(K):
                b = beta[1, j] if possible and alpha[t, j] > 0.0 else 0.0
                beta[0, j] = b * soft[t, j] * inverse
                soft[t, j] = weight * (alpha[t, j] * b) if possible else 0.0
            if t == start or not possible:
                continue
            e = 0 if shared else t - 1 - c
            p = 0 if pairs.shape[0] == 1 else t - 1 - c
            if summed:
                _outer(alpha, t - 1, weight, beta, pairs)
            elif pairs.shape[0] > 0:
                for i in range(K):
                    a = weight * alpha[t - 1, i]
                    for j in range(K):
                        pairs[p, i, j] += a * (tables[e, i, j] * beta[0, j])
            if shared:
                push(beta, 0, 1, turned, 0)
            else:
                _pull(beta, tables, e)
    if summed:
        for i in range(K):
            for j in range(K):
                pairs[0, i, j] *= tables[0, i, j]


@inner
def _outer(alpha, t, weight, beta, pairs):
    for i in range(alpha.shape[1]):
        a = weight * alpha[t, i]
        for j in range(alpha.shape[1]):
            pairs[0, i, j] += a * beta[0, j]


@inner
def longest(offsets):
    """Length of the longest chain."""
    most = 0
    for c in range(offsets.size - 1):
        most = max(most, offsets[c + 1] - offsets[c])
    return most


@kernel
def forward_log(nodes, edges, offsets, alpha, scales, logs, values):
    """As `forward` for the chains that need `logs`; `alpha` and `scales` are logs there."""
    step = 0 if edges.shape[0] == 1 else 1
    for c in range(offsets.size - 1):
        start, stop = offsets[c] - offsets[0], offsets[c + 1] - offsets[0]
        if logs[c]:
            e = step * (start - c)
            values[c] = filter_chain_log(start, stop, nodes, edges, e, step, alpha, scales)


@kernel
def backward_log(nodes, edges, offsets, soft, alpha, scales, values, logs, weights, pairs):
    """As `backward` for the chains that need `logs`, after `forward_log`."""
    beta = np.empty((2, nodes.shape[1]))
    step = 0 if edges.shape[0] == 1 else 1
    for c in range(offsets.size - 1):
        start, stop = offsets[c] - offsets[0], offsets[c + 1] - offsets[0]
        if logs[c] and values[c] == -np.inf:
            soft[start:stop] = 0.0
        elif logs[c]:
            e = step * (start - c)
            p = 0 if pairs.shape[0] == 1 else start - c
            rest = alpha, scales, beta, soft, pairs, p
            smooth_chain_log(start, stop, weights[c], nodes, edges, e, step, *rest)


@kernel
def draw(offsets, edges, tables, alpha, values, logs, uniforms, labels):
    """Exact draws of whole paths after the forward pass: sample from the last position back.

    `uniforms` and `labels` are (draws, T). Impossible chains get -1.
    """
    K = alpha.shape[1]
    sums = np.empty((K, K))
    for c in range(offsets.size - 1):
        start, stop = offsets[c] - offsets[0], offsets[c + 1] - offsets[0]
        possible = values[c] > -np.inf
        for t in range(stop - 1, start - 1, -1):
            end = t == stop - 1
            if possible and logs[c]:
                _running_sums(alpha, t, edges, t - c, end, True, sums)
            elif possible:
                _running_sums(alpha, t, tables, t - c, end, False, sums)
            for d in range(labels.shape[0]):
                i = 0
                if possible:
                    j = 0 if end else labels[d, t + 1]
                    target = uniforms[d, t] * sums[K - 1, j]
                    while i < K - 1 and sums[i, j] <= target:
                        i += 1
                labels[d, t] = i if possible else -1


@kernel
def _running_sums(alpha, t, tables, e, end, logs, sums):
    """Weight of the states up to ``i`` when the next one is ``j``, for all ``i`` and ``j``."""
    K = sums.shape[0]
    if tables.shape[0] == 1:
        e = 0
    for j in range(K):
        top = -np.inf if logs else 0.0
        if logs:
            for i in range(K):
                top = max(top, alpha[t, i] + (0.0 if end else tables[e, i, j]))
        if top == -np.inf:
            continue
        total = 0.0
        for i in range(K):
            if logs:
                total += math.exp(alpha[t, i] + (0.0 if end else tables[e, i, j]) - top)
            else:
                total += alpha[t, i] * (1.0 if end else tables[e, i, j])
            sums[i, j] = total
