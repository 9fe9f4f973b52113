"""Forward and backward passes over one chain, for every kernel that sums over paths.

The chain has the positions from `start` to `stop` of arrays (T, K). Its tables lie in an array
(E, K, K): `e` is the index of the first, and `step`, 0 or 1, how far the next ones are apart.

Sums run on scaled probabilities. With finite potentials that spread less than `WIDE` in every row
and table, a forward probability falls from above `TINY` to zero only if it is zero exactly; chains
that are wider, or that go below `TINY` (only hard constraints lead there), are done with logs.

The backward pass with scaled probabilities stands twice, in `forward_backward` and `marginals`. The
first has scratch of its own, which the compiler then knows to overlap with nothing: as one function
for both it was 15 to 20 % slower at 5 and 9 states. The second keeps a whole chain, and so adds up
transitions four positions at a time. The beam sampler (`beam`) has other passes altogether: its
transitions are open or closed, not weighted.
"""

from __future__ import annotations

import math

import numpy as np

from structlearn._src.kernels.jit import inner

WIDE = 150.0  # two rows and a table of this spread stay above the smallest float, 1e-308
TINY = 1e-140  # times two such factors, exp(-300) = 1e-130, still above the smallest float
NEGLIGIBLE = -50.0  # as an exponent, beside 0: exp(-50) is below half a unit of the last digit
_BLOCK = 256  # terms summed before they join a long chain's total, to keep its digits
_FAR = 1e30  # a product of scales this far from 1 becomes a logarithm, long before it overflows


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
            elif value - top > NEGLIGIBLE:
                total += math.exp(value - top)
        if top == -np.inf:
            return top
    return top + math.log(total)


@inner
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
            small |= (a < TINY) & (a > 0.0)
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
    """Marginals times `weight` after `filter_chain_log`, with `beta` (2 or more, K) for scratch.

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
