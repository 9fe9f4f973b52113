"""Sums, marginals and draws on chains: passes over one chain, and kernels over a ragged batch.

A pass goes over the positions from `start` to `stop` of arrays (T, K). The tables of its chain lie
in an array (E, K, K): `e` is the index of the first, and `step`, 0 or 1, how far the next ones are
apart. A kernel takes one run of chains: `nodes` (T, K) are the log potentials of all positions, one
chain after the other, chain ``c`` from ``offsets[c] - offsets[0]`` on. `edges` (E, K, K) holds one
table for all edges (E = 1) or one per edge, E = T - chains: the table between positions ``t`` and
``t + 1`` of chain ``c`` has index ``t - c``. To work on a part of a batch, pass slices. States that
a variable does not have are ``-inf`` in its row of `nodes`.

Sums run on scaled probabilities. With finite potentials that spread less than `_WIDE` in every row
and table, a forward probability falls from above `_TINY` to zero only if it is zero exactly; chains
that are wider, or that go below `_TINY` (only hard constraints lead there), are done with logs.

The backward pass with scaled probabilities stands twice, here and in `marginals`. The first has a
workspace of its own, which the compiler then knows to overlap with nothing: as one function for
both it was 15 to 20 % slower at 5 and 9 states. The second keeps a whole chain, and so adds up
transitions four positions at a time. The beam sampler (`beam`) has other passes altogether: its
transitions are open or closed, not weighted.
"""

from __future__ import annotations

import math

import numpy as np

from structlearn._src.kernels.jit import inline, inner, kernel

_WIDE = 150.0  # two rows and a table of this spread stay above the smallest float, 1e-308
_TINY = 1e-140  # times two such factors, exp(-300) = 1e-130, still above the smallest float
_NEGLIGIBLE = -50.0  # as an exponent, beside 0: exp(-50) is below half a unit of the last digit
_BLOCK = 256  # terms summed before they join a long chain's total, to keep its digits
_FAR = 1e30  # a product of scales this far from 1 becomes a logarithm, long before it overflows

# ---- one chain -------------------------------------------------------------------------------


@inner
def push(rows, source, target, tables, e):
    """rows[target] = rows[source] @ tables[e], four source states at a time."""
    K = rows.shape[1]
    whole = K - K % 4
    for j in range(K):
        rows[target, j] = 0.0
    for i in range(0, whole, 4):
        p = rows[source, i]
        q = rows[source, i + 1]
        r = rows[source, i + 2]
        s = rows[source, i + 3]
        for j in range(K):
            rows[target, j] += (p * tables[e, i, j] + q * tables[e, i + 1, j]) + (
                r * tables[e, i + 2, j] + s * tables[e, i + 3, j]
            )
    for i in range(whole, K):
        p = rows[source, i]
        for j in range(K):
            rows[target, j] += p * tables[e, i, j]


@inner
def _log_sum(rows, t, edges, e, fixed, axis):
    """Log of the summed exponentials of ``rows[t]``; a column (1) or row (2) of a table added."""
    top = -np.inf
    total = 0.0
    for attempt in range(2):
        for i in range(rows.shape[1]):
            value = rows[t, i]
            if axis == 1:
                value += edges[e, i, fixed]
            elif axis == 2:
                value += edges[e, fixed, i]
            if attempt == 0:
                top = max(top, value)
            elif value - top > _NEGLIGIBLE:
                total += math.exp(value - top)
        if top == -np.inf:
            return top
    return top + math.log(total)


@inline
def filter_chain(start, stop, soft, tops, tables, e, step, table_tops, alpha, inverses):
    """Filtered probabilities `alpha` of one chain, and one over the sums that scaled them.

    `soft` and `tables` are exponentials of potentials less their maxima, the `tops`, NaN where
    potentials are wide. Returns the log partition function: -inf if the chain is impossible, NaN if
    it needs logs.
    """
    K = soft.shape[1]
    total = part = 0.0
    product = 1.0
    small = False
    for t in range(start, stop):
        part += tops[t]
        if t == start:
            for j in range(K):
                alpha[t, j] = 1.0
        else:
            part += table_tops[e]
            push(alpha, t - 1, t, tables, e)
            e += step
        if math.isnan(part):
            return part
        scale = 0.0
        for j in range(K):
            alpha[t, j] *= soft[t, j]
            scale += alpha[t, j]
        if scale == 0.0:
            return np.nan if small else -np.inf
        inverse = 1.0 / scale
        for j in range(K):
            a = alpha[t, j] * inverse
            alpha[t, j] = a
            small |= (a < _TINY) & (a > 0.0)
        inverses[t] = inverse
        product *= scale
        if product < 1.0 / _FAR or product > _FAR:
            part += math.log(product)
            product = 1.0
        if t % _BLOCK == 0:
            total += part
            part = 0.0
    return np.nan if small else total + (part + math.log(product))


@inner
def filter_chain_log(start, stop, nodes, edges, e, step, alpha, scales):
    """As `filter_chain`, on logarithms from end to end."""
    total = part = 0.0
    for t in range(start, stop):
        for j in range(nodes.shape[1]):
            alpha[t, j] = nodes[t, j]
            if t > start:
                alpha[t, j] += _log_sum(alpha, t - 1, edges, e, j, 1)
        e += step if t > start else 0
        scales[t] = _log_sum(alpha, t, edges, 0, 0, 0)
        part += scales[t]
        if part == -np.inf:
            return part
        for j in range(nodes.shape[1]):
            alpha[t, j] -= scales[t]
        if t % _BLOCK == 0:
            total += part
            part = 0.0
    return total + part


@inner
def smooth_chain_log(
    start, stop, weight, nodes, edges, e, step, alpha, scales, beta, soft, pairs, p
):
    """Marginals times `weight` after `filter_chain_log`, with the workspace `beta` (2+, K).

    Adds whole edge marginals to ``pairs[p]`` if all edges share it, or to those from there on.
    """
    K = nodes.shape[1]
    e += step * (stop - start - 2)
    p += stop - start - 2 if pairs.shape[0] > 1 else 0
    for j in range(K):
        beta[1, j] = 0.0
    for t in range(stop - 1, start - 1, -1):
        for j in range(K):
            soft[t, j] = weight * math.exp(alpha[t, j] + beta[1, j])
            beta[0, j] = beta[1, j] + nodes[t, j] - scales[t]
        if t == start:
            break
        for i in range(K):
            beta[1, i] = _log_sum(beta, 0, edges, e, i, 2)
            for j in range(K if pairs.shape[0] > 0 else 0):
                pair = math.exp(alpha[t - 1, i] + edges[e, i, j] + beta[0, j])
                pairs[p, i, j] += weight * pair
        e -= step
        p -= 1 if pairs.shape[0] > 1 else 0


# ---- a batch ---------------------------------------------------------------------------------


@inline
def lower(rows, first, last, out, best):
    """Write some rows less their maximum to `out`; return it, or NaN if they spread too wide.

    `best` is a workspace for maxima by column, so that loops become vector instructions.
    """
    K = rows.shape[1]
    for j in range(K):
        best[j] = rows[first, j]
    for i in range(first + 1, last):
        for j in range(K):
            best[j] = rows[i, j] if rows[i, j] > best[j] else best[j]
    top = -np.inf
    for j in range(K):
        top = max(top, best[j])
    base = top if top > -np.inf else 0.0
    wide = False
    for i in range(first, last):
        for j in range(K):
            low = rows[i, j] - base
            out[i, j] = low
            wide |= (low < -_WIDE) & (low > -np.inf)
    return np.nan if wide else top


@kernel
def shift(rows, out, tops):
    """Subtract the maximum of every table; `tops` (N,) is NaN where it spreads too wide.

    The tables lie one below the other in `rows`, all with as many of them.
    """
    best = np.empty(rows.shape[1])
    n = rows.shape[0] // max(tops.size, 1)
    for t in range(tops.size):
        tops[t] = lower(rows, t * n, (t + 1) * n, out, best)


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
