"""Marginals of one sequence in scratch arrays, for kernels that go through sequences one by one.

As in `kernels.chain`, sums run on scaled probabilities, and on logarithms where these could fail.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structlearn.kernels.chain import NEGLIGIBLE, TINY, WIDE
from structlearn.kernels.exponential import exponentials
from structlearn.kernels.jit import part


class Slate(NamedTuple):
    """Potentials of one sequence, its marginals, and scratch space."""

    nodes: np.ndarray  #: (longest, states) log potentials
    edges: np.ndarray  #: (1, states, states) log potentials
    soft: np.ndarray  #: (longest, states) marginals of nodes
    pairs: np.ndarray  #: (states, states) expected transitions
    alpha: np.ndarray  #: (longest, states)
    later: np.ndarray  #: (longest + 1, states)
    tables: np.ndarray  #: (2, states, states) exponentials of the edges, and the same turned
    tops: np.ndarray  #: (longest,)
    scales: np.ndarray  #: (longest,)
    flat_soft: np.ndarray  #: the memory of `soft`
    flat_table: np.ndarray  #: the memory of ``tables[0]``
    bits: np.ndarray  #: as many numbers as `soft` or a table have
    integers: np.ndarray  #: the memory of `bits`


@part
def marginals(n, slate):
    """Log partition function of ``slate.nodes[:n]`` and ``slate.edges``.

    The marginals go to ``slate.soft`` and ``slate.pairs``.
    """
    K, soft = slate.nodes.shape[1], slate.soft
    value, wide = 0.0, False
    for t in range(n):
        top = _top(slate.nodes[t])
        slate.tops[t] = top
        for j in range(K):
            low = slate.nodes[t, j] - top
            soft[t, j] = low
            wide |= (low < -WIDE) & (low > -np.inf)
    if n > 1:
        value, spread = _exponential_table(slate)
        value *= n - 1
        wide |= spread
    if not wide:
        exponentials(slate.flat_soft, n * K, slate.bits, slate.integers)
        value += _filter(n, slate)
    if wide or math.isnan(value):
        return _with_logs(n, slate)
    _smooth(n, slate)
    return value


@part
def _top(row):
    """Largest entry, in four running maxima."""
    K = row.size
    whole = K - K % 4
    p = q = r = s = row[0]
    for j in range(0, whole, 4):
        p = row[j] if row[j] > p else p
        q = row[j + 1] if row[j + 1] > q else q
        r = row[j + 2] if row[j + 2] > r else r
        s = row[j + 3] if row[j + 3] > s else s
    for j in range(whole, K):
        p = row[j] if row[j] > p else p
    return max(max(p, q), max(r, s))


@part
def _exponential_table(slate):
    """Exponentials of the edges less their maximum; that, and whether they spread too wide."""
    K, tables = slate.nodes.shape[1], slate.tables
    top, wide = -np.inf, False
    for i in range(K):
        top = max(top, _top(slate.edges[0, i]))
    for i in range(K):
        for j in range(K):
            low = slate.edges[0, i, j] - top
            tables[0, i, j] = low
            wide |= (low < -WIDE) & (low > -np.inf)
    exponentials(slate.flat_table, K * K, slate.bits, slate.integers)
    for i in range(K):
        for j in range(K):
            tables[1, j, i] = tables[0, i, j]
    return top, wide


@part
def _push(source, table, target):
    """target = source @ table, four source states at a time."""
    K = source.size
    whole = K - K % 4
    for j in range(K):
        target[j] = 0.0
    for i in range(0, whole, 4):
        p, q, r, s = source[i], source[i + 1], source[i + 2], source[i + 3]
        for j in range(K):
            target[j] += (p * table[i, j] + q * table[i + 1, j]) + (
                r * table[i + 2, j] + s * table[i + 3, j]
            )
    for i in range(whole, K):
        p = source[i]
        for j in range(K):
            target[j] += p * table[i, j]


@part
def _total(row):
    """Sum of the entries, in four running sums."""
    K = row.size
    whole = K - K % 4
    p, q, r, s = 0.0, 0.0, 0.0, 0.0
    for j in range(0, whole, 4):
        p += row[j]
        q += row[j + 1]
        r += row[j + 2]
        s += row[j + 3]
    for j in range(whole, K):
        p += row[j]
    return (p + q) + (r + s)


@part
def _filter(n, slate):
    """Filtered probabilities; the log partition function less the edges' maxima, NaN if small."""
    K, alpha, soft = slate.nodes.shape[1], slate.alpha, slate.soft
    total, product, small = 0.0, 1.0, False
    for t in range(n):
        if t == 0:
            for j in range(K):
                alpha[0, j] = soft[0, j]
        else:
            _push(alpha[t - 1], slate.tables[0], alpha[t])
            for j in range(K):
                alpha[t, j] *= soft[t, j]
        scale = _total(alpha[t])
        inverse = 1.0 / scale
        for j in range(K):
            a = alpha[t, j] * inverse
            alpha[t, j] = a
            small |= (a < TINY) & (a > 0.0)
        slate.scales[t] = inverse
        total += slate.tops[t]
        product *= scale
        if product < 1e-30 or product > 1e30:
            total += math.log(product)
            product = 1.0
    return np.nan if small else total + math.log(product)


@part
def _smooth(n, slate):
    """Marginals after `_filter`."""
    K, alpha, soft, later = slate.nodes.shape[1], slate.alpha, slate.soft, slate.later
    for j in range(K):
        later[n, j] = 1.0
    for t in range(n - 1, -1, -1):
        inverse = slate.scales[t]
        for j in range(K):
            b = later[n, j] if alpha[t, j] > 0.0 else 0.0
            later[t, j] = b * soft[t, j] * inverse
            soft[t, j] = alpha[t, j] * b
        if t > 0:
            _push(later[t], slate.tables[1], later[n])
    _join(n, slate)


@part
def _join(n, slate):
    """Expected transitions, four positions at a time."""
    K, alpha, later, pairs = slate.nodes.shape[1], slate.alpha, slate.later, slate.pairs
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
            pairs[i, j] *= slate.tables[0, i, j]


@part
def _with_logs(n, slate):
    """As `marginals`, on logarithms."""
    K, nodes, alpha, beta = slate.nodes.shape[1], slate.nodes, slate.alpha, slate.later
    edges, spare = slate.edges[0], slate.tables[1, 0]
    for t in range(n):
        for j in range(K):
            alpha[t, j] = nodes[t, j]
            if t > 0:
                for i in range(K):
                    spare[i] = alpha[t - 1, i] + edges[i, j]
                alpha[t, j] += _log_sum(spare)
    value = _log_sum(alpha[n - 1])
    slate.pairs[:] = 0.0
    for t in range(n - 1, -1, -1):
        for i in range(K):
            for j in range(K):
                spare[j] = 0.0
                if t < n - 1:
                    spare[j] = edges[i, j] + nodes[t + 1, j] + beta[t + 1, j]
                    slate.pairs[i, j] += math.exp(alpha[t, i] + spare[j] - value)
            beta[t, i] = _log_sum(spare) if t < n - 1 else 0.0
            slate.soft[t, i] = math.exp(alpha[t, i] + beta[t, i] - value)
    return value


@part
def _log_sum(row):
    """Log of the summed exponentials."""
    top, total = _top(row), 0.0
    if top == -np.inf:
        return top
    for j in range(row.size):
        if row[j] - top > NEGLIGIBLE:
            total += math.exp(row[j] - top)
    return top + math.log(total)
