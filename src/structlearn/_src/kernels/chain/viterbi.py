"""Best paths of a ragged batch of chains, laid out as in `forward_backward`."""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner, kernel, or_python


@or_python
@kernel
def max_product(nodes, edges, offsets, values, labels):
    """Best score and labels of every chain (Viterbi); ties go to the lowest label.

    Impossible chains get -inf and labels -1.
    """
    step = 0 if edges.shape[0] == 1 else 1
    delta = np.empty((_longest(offsets), nodes.shape[1]))
    for c in range(offsets.size - 1):
        start, stop = offsets[c] - offsets[0], offsets[c + 1] - offsets[0]
        values[c] = best_path(nodes, start, stop, edges, step * (start - c), step, delta, labels)
        if values[c] == -np.inf:
            for t in range(start, stop):
                labels[t] = -1


@inner
def _longest(offsets):
    """Length of the longest chain."""
    most = 0
    for c in range(offsets.size - 1):
        most = max(most, offsets[c + 1] - offsets[c])
    return most


@inner
def best_path(nodes, start, stop, edges, e, step, delta, labels):
    """Best score of one chain; its labels go to ``labels[start:stop]``.

    The first table is ``edges[e]``, and the following ones are `step` apart. `delta` has a row for
    every position.
    """
    K = nodes.shape[1]
    last = stop - start - 1
    for t in range(last + 1):
        _push_max(delta, t, edges, e + step * (t - 1))
        for j in range(K):
            delta[t, j] += nodes[start + t, j]
    best = 0
    for j in range(1, K):
        if delta[last, j] > delta[last, best]:
            best = j
    value = delta[last, best]
    labels[stop - 1] = best
    for t in range(last - 1, -1, -1):
        f = e + step * t
        next_ = best
        best = 0
        most = delta[t, 0] + edges[f, 0, next_]
        for i in range(1, K):
            v = delta[t, i] + edges[f, i, next_]
            if v > most:
                best, most = i, v
        labels[start + t] = best
    return value


@inner
def _push_max(rows, t, tables, e):
    """rows[t, j] = max over i of rows[t - 1, i] + tables[e, i, j]; zeros at t = 0."""
    for j in range(rows.shape[1]):
        rows[t, j] = 0.0 if t == 0 else -np.inf
    if t > 0:
        for i in range(rows.shape[1]):
            a = rows[t - 1, i]
            for j in range(rows.shape[1]):
                v = a + tables[e, i, j]
                rows[t, j] = v if v > rows[t, j] else rows[t, j]


@kernel
def k_best(nodes, edges, offsets, values, labels):
    """The k best distinct paths of every chain, best first.

    `values` is (chains, k) and `labels` (k, T); where a chain has fewer possible paths they hold
    -inf and -1. A state keeps its k best histories, found by a k-way merge over the states
    before it; one more merge behind the last position takes the best of all states (list
    Viterbi, Seshadri & Sundberg 1994).
    """
    K = nodes.shape[1]
    k = values.shape[1]
    step = 0 if edges.shape[0] == 1 else 1
    back = np.empty((_longest(offsets) + 1, K, k), np.int32)
    top = np.empty((2, K, k))
    heads = np.empty(K, np.int64)
    for c in range(offsets.size - 1):
        start, stop = offsets[c] - offsets[0], offsets[c + 1] - offsets[0]
        for j in range(K):
            for r in range(k):
                top[start % 2, j, r] = nodes[start, j] if r == 0 else -np.inf
        for t in range(start + 1, stop + 1):
            end = t == stop
            for j in range(1 if end else K):
                _merge(top, t % 2, edges, step * (t - 1 - c), j, end, heads, back, t - start)
                for r in range(k):
                    top[t % 2, j, r] += 0.0 if end else nodes[t, j]
        for r in range(k):
            values[c, r] = top[stop % 2, 0, r]
            at, rank = 0, r
            for t in range(stop - 1, start - 1, -1):
                labels[r, t] = -1
                if values[c, r] > -np.inf:
                    came = back[t + 1 - start, at, rank]
                    at, rank = came // k, came % k
                    labels[r, t] = at


@kernel
def _merge(top, now, edges, e, j, end, heads, back, row):
    """Best of ``top[1 - now, i, r] + edges[e, i, j]``; `back` gets ``i * k + r``."""
    K = top.shape[1]
    k = top.shape[2]
    for i in range(K):
        heads[i] = 0
    for r in range(k):
        best, most = 0, -np.inf
        for i in range(K):
            if heads[i] < k:
                value = top[1 - now, i, heads[i]] + (0.0 if end else edges[e, i, j])
                if value > most:
                    best, most = i, value
        top[now, j, r] = most
        back[row, j, r] = best * k + heads[best]
        if most > -np.inf:
            heads[best] += 1
