"""Marginals of one sequence in scratch arrays, for kernels that go through sequences one by one.

As in `kernels.chain`, sums run on scaled probabilities, and on logarithms where these could fail.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.exponential import exponentials
from structlearn._src.kernels.chain.forward_backward import NEGLIGIBLE, TINY, WIDE
from structlearn._src.kernels.jit import part


class Slate(NamedTuple):
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


@part
def marginals(n, slate):
    """Log partition function of ``slate.nodes[:n]`` and ``slate.edges``.

    The marginals go to ``slate.soft`` and ``slate.pairs``.
    """
    K, value, wide = slate.nodes.shape[1], 0.0, False
    bits, integers = slate.bits, slate.integers
    for t in range(n):
        slate.tops[t] = _top(slate.nodes, t)
        wide |= _subtract(slate.nodes, t, slate.tops[t], slate.soft)
    if n > 1:
        value, spread = _lower_table(slate.edges, slate.tables)
        value *= n - 1
        wide |= spread
    if not wide:
        exponentials(slate.flat_soft, n * K, bits, integers)
        if n > 1:
            exponentials(slate.flat_table, K * K, bits, integers)
        value += _filter(n, slate.soft, slate.tops, slate.tables, slate.alpha, slate.scales)
    if wide or math.isnan(value):
        spare = slate.alpha, slate.later, slate.tables
        return _with_logs(n, slate.nodes, slate.edges, slate.soft, slate.pairs, *spare)
    _smooth(n, slate.alpha, slate.scales, slate.tables, slate.later, slate.soft)
    _join(n, slate.alpha, slate.later, slate.tables, slate.pairs)
    return value


@part
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


@part
def _subtract(rows, t, top, out):
    """Write a row less `top` to `out`; return whether it spreads too wide."""
    wide = False
    for j in range(rows.shape[1]):
        low = rows[t, j] - top
        out[t, j] = low
        wide |= (low < -WIDE) & (low > -np.inf)
    return wide


@part
def _lower_table(edges, tables):
    """Write the edges less their maximum to the first table; that, and whether they are wide."""
    top, wide = -np.inf, False
    for i in range(edges.shape[0]):
        most = _top(edges, i)
        top = most if most > top else top
    for i in range(edges.shape[0]):
        wide |= _subtract(edges, i, top, tables)
    return top, wide


@part
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


@part
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


@part
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


@part
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


@part
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


@part
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


@part
def _log_sum(rows, t):
    """Log of the summed exponentials of a row."""
    top, total = _top(rows, t), 0.0
    if top == -np.inf:
        return top
    for j in range(rows.shape[1]):
        if rows[t, j] - top > NEGLIGIBLE:
            total += math.exp(rows[t, j] - top)
    return top + math.log(total)
