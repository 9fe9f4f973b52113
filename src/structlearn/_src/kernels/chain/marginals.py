"""Marginals of one sequence in a workspace, for kernels that go through sequences one by one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.forward_backward import (
    filter_chain,
    filter_chain_log,
    lower,
    push,
    smooth_chain_log,
)
from structlearn._src.kernels.jit import inner

_LOWEST = -700.0  # below this the exponential counts as 0
_LOG2_E = 1.4426950408889634  # 1 / ln 2
_LOG_2 = 6.93147180369123816490e-01  # ln 2 in two parts, the first with a short mantissa
_LOG_2_REST = 1.90821492927058770002e-10  # so that k ln 2 is exact to the last digit
_ROUND = 6755399441055744.0  # 1.5 * 2**52: adding it rounds, and leaves the integer in the low bits


class ChainWorkspace(NamedTuple):
    """Potentials of one sequence, its marginals, and what these are made in."""

    nodes: np.ndarray  #: (longest, states) log potentials
    edges: np.ndarray  #: (1, states, states) log potentials
    soft: np.ndarray  #: (longest, states) marginals of nodes
    pairs: np.ndarray  #: (1, states, states) expected transitions
    alpha: np.ndarray  #: (longest, states)
    later: np.ndarray  #: (longest + 1, states)
    tables: np.ndarray  #: (2, states, states) exponentials of the edges, and their transpose
    tops: np.ndarray  #: (longest,)
    table_tops: np.ndarray  #: (1,)
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
    value = _filter(n, work)
    work.pairs[:] = 0.0
    if np.isnan(value):
        nodes = work.nodes
        edges = work.edges
        alpha = work.alpha
        scales = work.scales
        value = filter_chain_log(0, n, nodes, edges, 0, 0, alpha, scales)
        rest = alpha, scales, work.later, work.soft, work.pairs, 0
        smooth_chain_log(0, n, 1.0, nodes, edges, 0, 0, *rest)
        return value
    _smooth(n, work.alpha, work.scales, work.tables, work.later, work.soft)
    _join(n, work.alpha, work.later, work.tables, work.pairs)
    return value


@inner
def log_partition(n, work):
    """Log partition function of ``work.nodes[:n]`` and ``work.edges`` alone."""
    value = _filter(n, work)
    if not np.isnan(value):
        return value
    return filter_chain_log(0, n, work.nodes, work.edges, 0, 0, work.alpha, work.scales)


@inner
def _filter(n, work):
    """Filtered probabilities; the log partition function, NaN if it needs logs."""
    K = work.nodes.shape[1]
    wide = False
    for t in range(n):
        work.tops[t] = lower(work.nodes, t, t + 1, work.soft, work.bits)
        wide |= np.isnan(work.tops[t])
    if n > 1:
        work.table_tops[0] = lower(work.edges[0], 0, K, work.tables[0], work.bits)
        wide |= np.isnan(work.table_tops[0])
    if wide:
        return np.nan
    exponentials(work.flat_soft, n * K, work.bits, work.integers)
    if n > 1:
        exponentials(work.flat_table, K * K, work.bits, work.integers)
    tables = work.tables
    tops = work.table_tops
    return filter_chain(0, n, work.soft, work.tops, tables, 0, 0, tops, work.alpha, work.scales)


@inner
def _smooth(n, alpha, inverses, tables, later, soft):
    """Marginals of nodes after `_filter`; `later` keeps what follows every state.

    A state with ``alpha = 0`` is on no path, so that what follows it may be dropped before it
    overflows.
    """
    K = soft.shape[1]
    for i in range(K if n > 1 else 0):
        for j in range(K):
            tables[1, j, i] = tables[0, i, j]
    for j in range(K):
        later[n, j] = 1.0
    for t in range(n - 1, -1, -1):
        inverse = inverses[t]
        for j in range(K):
            b = later[n, j] if alpha[t, j] > 0.0 else 0.0
            later[t, j] = b * soft[t, j] * inverse
            soft[t, j] = alpha[t, j] * b
        if t > 0:
            push(later, t, n, tables, 1)


@inner
def _join(n, alpha, later, tables, pairs):
    """Expected transitions after `_smooth`, four positions at a time."""
    K = alpha.shape[1]
    whole = 1 + (n - 1) // 4 * 4
    for i in range(K):
        for t in range(1, whole, 4):
            p, q, r, s = alpha[t - 1, i], alpha[t, i], alpha[t + 1, i], alpha[t + 2, i]
            for j in range(K):
                pairs[0, i, j] += (p * later[t, j] + q * later[t + 1, j]) + (
                    r * later[t + 2, j] + s * later[t + 3, j]
                )
        for t in range(whole, n):
            p = alpha[t - 1, i]
            for j in range(K):
                pairs[0, i, j] += p * later[t, j]
        for j in range(K if n > 1 else 0):
            pairs[0, i, j] *= tables[0, i, j]


@inner
def exponentials(x, n, bits, integers):
    r"""Replace the first `n` numbers of `x`, none above 0, by their exponentials.

    With :math:`x = k \ln 2 + r` and :math:`|r| \le \frac{1}{2} \ln 2`, the power of two comes from
    the bits of ``k`` and :math:`e^r` from its series up to :math:`r^{12}`, which is exact to the
    last digit. Loops without calls become vector instructions; this is twice as fast as the
    library's function. `bits` and `integers` are the same memory, as float64 and as int64.
    """
    for i in range(n):
        v = x[i] if x[i] > _LOWEST else _LOWEST
        shifted = v * _LOG2_E + _ROUND
        bits[i] = shifted
        k = shifted - _ROUND
        r = v - k * _LOG_2 - k * _LOG_2_REST
        r2 = r * r
        r4 = r2 * r2
        low = (1.0 + r) + r2 * (1.0 / 2.0 + r * (1.0 / 6.0))
        middle = (1.0 / 24.0 + r * (1.0 / 120.0)) + r2 * (1.0 / 720.0 + r * (1.0 / 5040.0))
        high = (1.0 / 40320.0 + r * (1.0 / 362880.0)) + r2 * (
            1.0 / 3628800.0 + r * (1.0 / 39916800.0)
        )
        series = low + r4 * (middle + r4 * (high + r4 * (1.0 / 479001600.0)))
        x[i] = series if x[i] > _LOWEST else 0.0
    for i in range(n):
        integers[i] = (integers[i] + 1023) << 52
    for i in range(n):
        x[i] *= bits[i]
