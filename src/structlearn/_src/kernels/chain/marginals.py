"""Marginals of one sequence in scratch arrays, for kernels that go through sequences one by one.

As in `kernels.chain`, sums run on scaled probabilities, and on logarithms where these could fail.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.exponential import exponentials
from structlearn._src.kernels.chain.forward_backward import NEGLIGIBLE, TINY, WIDE
from structlearn._src.kernels.jit import inner


class ChainWorkspace(NamedTuple):
    """Potentials of one sequence, its marginals, and scratch space."""

    nodes: np.ndarray  #: (longest, states) log potentials
    edges: np.ndarray  #: (states, states) log potentials
    table: np.ndarray  #: (1, states, states) the memory of `edges`
    soft: np.ndarray  #: (longest, states) marginals of nodes
    pairs: np.ndarray  #: (states, states) expected transitions
    alpha: np.ndarray  #: (longest, states)
    later: np.ndarray  #: (longest + 1, states)
    tables: np.ndarray  #: (2 states, states) exponentials of the edges, and the same turned
    tops: np.ndarray  #: (longest,)
    scales: np.ndarray  #: (longest,)
    flat_soft: np.ndarray  #: the memory of `soft`
    flat_table: np.ndarray  #: the memory of the first of the tables
    bits: np.ndarray  #: as many numbers as `soft` or a table have
    integers: np.ndarray  #: the memory of `bits`


@inner
def marginals(n, work):
    """Log partition function of ``work.nodes[:n]`` and ``work.edges``.

    The marginals go to ``work.soft`` and ``work.pairs``.
    """
    K, value, wide = work.nodes.shape[1], 0.0, False
    bits, integers = work.bits, work.integers
    for t in range(n):
        work.tops[t] = _top(work.nodes, t)
        wide |= _subtract(work.nodes, t, work.tops[t], work.soft)
    if n > 1:
        value, spread = _lower_table(work.edges, work.tables)
        value *= n - 1
        wide |= spread
    if not wide:
        exponentials(work.flat_soft, n * K, bits, integers)
        if n > 1:
            exponentials(work.flat_table, K * K, bits, integers)
        value += _filter(n, work.soft, work.tops, work.tables, work.alpha, work.scales)
    if wide or math.isnan(value):
        spare = work.alpha, work.later, work.tables
        return _with_logs(n, work.nodes, work.edges, work.soft, work.pairs, *spare)
    _smooth(n, work.alpha, work.scales, work.tables, work.later, work.soft)
    _join(n, work.alpha, work.later, work.tables, work.pairs)
    return value


@inner
def _top(rows, t):
    """Largest entry of a row, in four running maxima."""
    K = rows.shape[1]
    whole = K - K % 4
    p = q = r = s = rows[t, 0]
    for j in range(0, whole, 4):
        a, b, c, d = rows[t, j], rows[t, j + 1], rows[t, j + 2], rows[t, j + 3]
        p = a if a > p else p
        q = b if b > q else q
        r = c if c > r else r
        s = d if d > s else s
    for j in range(whole, K):
        a = rows[t, j]
        p = a if a > p else p
    p = p if p > q else q
    r = r if r > s else s
    return p if p > r else r


@inner
def _subtract(rows, t, top, out):
    """Write a row less `top` to `out`; return whether it spreads too wide."""
    wide = False
    for j in range(rows.shape[1]):
        low = rows[t, j] - top
        out[t, j] = low
        wide |= (low < -WIDE) & (low > -np.inf)
    return wide


@inner
def _lower_table(edges, tables):
    """Write the edges less their maximum to the first table; that, and whether they are wide."""
    top, wide = -np.inf, False
    for i in range(edges.shape[0]):
        most = _top(edges, i)
        top = most if most > top else top
    for i in range(edges.shape[0]):
        wide |= _subtract(edges, i, top, tables)
    return top, wide


@inner
def _push(rows, source, tables, base, out, target):
    """Write rows[source] @ the table whose rows begin at `base` to out[target]."""
    K = rows.shape[1]
    whole = K - K % 4
    for j in range(K):
        out[target, j] = 0.0
    for i in range(0, whole, 4):
        p, q, r, s = rows[source, i], rows[source, i + 1], rows[source, i + 2], rows[source, i + 3]
        e = base + i
        for j in range(K):
            out[target, j] += (p * tables[e, j] + q * tables[e + 1, j]) + (
                r * tables[e + 2, j] + s * tables[e + 3, j]
            )
    for i in range(whole, K):
        p, e = rows[source, i], base + i
        for j in range(K):
            out[target, j] += p * tables[e, j]


@inner
def _total(rows, t):
    """Sum of a row, in four running sums."""
    K = rows.shape[1]
    whole = K - K % 4
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    for j in range(0, whole, 4):
        p += rows[t, j]
        q += rows[t, j + 1]
        r += rows[t, j + 2]
        s += rows[t, j + 3]
    for j in range(whole, K):
        p += rows[t, j]
    return (p + q) + (r + s)


@inner
def _filter(n, soft, tops, tables, alpha, scales):
    """Filtered probabilities; the log partition function less the edges' maxima, NaN if small."""
    K, total, product, small = soft.shape[1], 0.0, 1.0, False
    for t in range(n):
        if t == 0:
            for j in range(K):
                alpha[0, j] = soft[0, j]
        else:
            _push(alpha, t - 1, tables, 0, alpha, t)
            for j in range(K):
                alpha[t, j] *= soft[t, j]
        scale = _total(alpha, t)
        inverse = 1.0 / scale
        for j in range(K):
            a = alpha[t, j] * inverse
            alpha[t, j] = a
            small |= (a < TINY) & (a > 0.0)
        scales[t] = inverse
        total += tops[t]
        product *= scale
        if product < 1e-30 or product > 1e30:
            total += math.log(product)
            product = 1.0
    return np.nan if small else total + math.log(product)


@inner
def _smooth(n, alpha, scales, tables, later, soft):
    """Marginals of nodes after `_filter`; `later` keeps what follows every state."""
    K = soft.shape[1]
    for i in range(K if n > 1 else 0):
        for j in range(K):
            tables[K + j, i] = tables[i, j]
    for j in range(K):
        later[n, j] = 1.0
    for t in range(n - 1, -1, -1):
        inverse = scales[t]
        for j in range(K):
            b = later[n, j] if alpha[t, j] > 0.0 else 0.0
            later[t, j] = b * soft[t, j] * inverse
            soft[t, j] = alpha[t, j] * b
        if t > 0:
            _push(later, t, tables, K, later, n)


@inner
def _join(n, alpha, later, tables, pairs):
    """Expected transitions after `_smooth`, four positions at a time."""
    K = alpha.shape[1]
    whole = 1 + (n - 1) // 4 * 4
    for i in range(K):
        for j in range(K):
            pairs[i, j] = 0.0
        for t in range(1, whole, 4):
            p, q, r, s = alpha[t - 1, i], alpha[t, i], alpha[t + 1, i], alpha[t + 2, i]
            for j in range(K):
                pairs[i, j] += (p * later[t, j] + q * later[t + 1, j]) + (
                    r * later[t + 2, j] + s * later[t + 3, j]
                )
        for t in range(whole, n):
            p = alpha[t - 1, i]
            for j in range(K):
                pairs[i, j] += p * later[t, j]
        for j in range(K if n > 1 else 0):
            pairs[i, j] *= tables[i, j]


@inner
def _with_logs(n, nodes, edges, soft, pairs, alpha, beta, spare):
    """As `marginals`, on logarithms; `spare` has a row to use."""
    K = nodes.shape[1]
    for t in range(n):
        for j in range(K):
            alpha[t, j] = nodes[t, j]
            if t > 0:
                for i in range(K):
                    spare[0, i] = alpha[t - 1, i] + edges[i, j]
                alpha[t, j] += _log_sum(spare, 0)
    value = _log_sum(alpha, n - 1)
    for i in range(K):
        for j in range(K):
            pairs[i, j] = 0.0
    for t in range(n - 1, -1, -1):
        for i in range(K):
            beta[t, i] = 0.0
            for j in range(K if t < n - 1 else 0):
                spare[0, j] = edges[i, j] + nodes[t + 1, j] + beta[t + 1, j]
                pairs[i, j] += math.exp(alpha[t, i] + spare[0, j] - value)
            if t < n - 1:
                beta[t, i] = _log_sum(spare, 0)
            soft[t, i] = math.exp(alpha[t, i] + beta[t, i] - value)
    return value


@inner
def _log_sum(rows, t):
    """Log of the summed exponentials of a row."""
    top, total = _top(rows, t), 0.0
    if top == -np.inf:
        return top
    for j in range(rows.shape[1]):
        if rows[t, j] - top > NEGLIGIBLE:
            total += math.exp(rows[t, j] - top)
    return top + math.log(total)
