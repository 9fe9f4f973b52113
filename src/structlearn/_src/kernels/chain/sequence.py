"""One sequence at a time: its scores, its marginals or best path, and the weights of its features.

`data` is a `ChainData`. The weights of features lie in one flat array: feature ``d`` and state
``s`` have weight ``d * K + s``, or, where only some pairs have a weight, the ``k`` from
``pair_offsets[d]`` to ``pair_offsets[d + 1]`` whose ``pair_states[k]`` is ``s``. A feature with
many of the states has room for all of them, so that its weights are read in one go; those it does
not have are not `kept` and stay 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.marginals import log_partition, marginals
from structlearn._src.kernels.chain.viterbi import best_path
from structlearn._src.kernels.jit import inline, inner


class ChainData(NamedTuple):
    """Sequences, their labels and the sparse features of their positions; only read."""

    offsets: np.ndarray  #: (sequences + 1,) where the positions of every sequence begin
    labels: np.ndarray  #: (positions,)
    rows: np.ndarray  #: (positions + 1,) where the entries of every position begin
    columns: np.ndarray  #: (entries,) feature of every entry, int32
    values: np.ndarray  #: (entries,) its value; empty if all are 1
    pair_offsets: np.ndarray  #: (features + 1,); empty if all pairs have a weight
    pair_states: np.ndarray  #: (pairs,) int32
    kept: np.ndarray  #: (pairs,) 1 for pairs that have a weight, 0 for mere room
    learnt: np.ndarray  #: (states, states) which transitions have a weight
    bars: np.ndarray  #: (states, states) -inf for forbidden transitions, else 0
    end_bars: np.ndarray  #: (2, states) the same for states that must not begin, or end
    costs: np.ndarray  #: (states, states) task cost, true labels in rows
    mean: bool  #: whether costs are divided by the length of the sequence


class LossParts(NamedTuple):
    """The parts of a loss."""

    shares: np.ndarray  #: how much each counts
    eps: np.ndarray  #: temperatures
    with_cost: np.ndarray  #: whether the task cost takes part


class ChainErrors(NamedTuple):
    """Expected counts less true ones, the gradient of a loss by the potentials."""

    scores: np.ndarray  #: (longest, states)
    edges: np.ndarray  #: (states, states) transitions, -inf where forbidden
    nodes: np.ndarray  #: (longest, states)
    steps: np.ndarray  #: (states, states)
    labels: np.ndarray  #: (longest,) a best path


@inner
def span(data, d, K):
    """Where the weights of feature `d` begin and end."""
    if data.pair_offsets.size == 0:
        return d * K, (d + 1) * K
    return data.pair_offsets[d], data.pair_offsets[d + 1]


@inner
def begin(data, e, K):
    """Where the weights of an entry begin if all pairs have one.

    Unsigned, since every signed index costs a check of its sign, a third of the time of a loop.
    """
    return np.uint64(data.columns[e]) * np.uint64(K)


@inline
def score(data, first, n, weights, nodes):
    """Scores of the positions from `first` on by their features alone, without bars.

    No scale of the weights comes in here: it doubled the time on dense features. A call to it would
    cost a tenth of a step of Frank-Wolfe on short sequences.
    """
    if data.pair_offsets.size == 0:
        _score_all(data, first, n, weights, nodes)
    else:
        _score_pairs(data, first, n, weights, nodes)


@inner
def _score_all(data, first, n, weights, nodes):
    """As `score` where all pairs have a weight: two features at a time, for fewer stores."""
    K = nodes.shape[1]
    ones = data.values.size == 0
    for t in range(n):
        row = nodes[t]
        stop = data.rows[first + t + 1]
        for s in range(K):
            row[s] = 0.0
        for e in range(data.rows[first + t], stop, 2):
            f = min(e + 1, stop - 1)
            x = 1.0 if ones else data.values[e]
            y = 0.0 if f == e else 1.0 if ones else data.values[f]
            j, k = data.columns[e] * K, data.columns[f] * K
            a, b = weights[j : j + K], weights[k : k + K]
            for s in range(K):
                row[s] += x * a[s] + y * b[s]


@inner
def _score_pairs(data, first, n, weights, nodes):
    K = nodes.shape[1]
    ones = data.values.size == 0
    for t in range(n):
        for s in range(K):
            nodes[t, s] = 0.0
        for e in range(data.rows[first + t], data.rows[first + t + 1]):
            d = data.columns[e]
            x = 1.0 if ones else data.values[e]
            start, stop = span(data, d, K)
            if stop - start == K:
                own = weights[start:stop]
                for s in range(K):
                    nodes[t, s] += x * own[s]
            else:
                for k in range(start, stop):
                    nodes[t, data.pair_states[k]] += x * weights[k]


@inner
def bar_ends(data, n, nodes):
    """Forbid the states that must not begin or end a sequence."""
    for s in range(nodes.shape[1]):
        nodes[0, s] += data.end_bars[0, s]
        nodes[n - 1, s] += data.end_bars[1, s]


@inner
def unit_cost(data, n):
    """Return what costs are multiplied by in a sequence of length `n`."""
    return 1.0 / n if data.mean else 1.0


@inner
def add_costs(data, first, n, nodes):
    """Add the task cost of every state."""
    factor = unit_cost(data, n)
    for t in range(n):
        label = data.labels[first + t]
        for s in range(nodes.shape[1]):
            nodes[t, s] += factor * data.costs[label, s]


@inner
def find(data, d, s, K):
    """Weight of feature `d` and state `s`; -1 if there is none."""
    start, stop = span(data, d, K)
    if stop - start == K:
        return start + s if data.kept.size == 0 or data.kept[start + s] != 0.0 else -1
    for k in range(start, stop):
        if data.pair_states[k] == s:
            return k
    return -1


@inner
def pull(data, first, n, factor, nodes, out):
    """Add `factor` times the features of every position times its row of `nodes` to `out`."""
    K = nodes.shape[1]
    ones = data.values.size == 0
    all_kept = data.kept.size == 0
    for t in range(n):
        if not _any(nodes[t]):
            continue
        for e in range(data.rows[first + t], data.rows[first + t + 1]):
            d = data.columns[e]
            x = factor if ones else factor * data.values[e]
            start, stop = span(data, d, K)
            if stop - start < K:
                for k in range(start, stop):
                    out[k] += x * nodes[t, data.pair_states[k]]
                continue
            own = out[start:stop]
            if all_kept:
                for s in range(K):
                    own[s] += x * nodes[t, s]
            else:
                kept = data.kept[start:stop]
                for s in range(K):
                    own[s] += x * nodes[t, s] * kept[s]


@inner
def pull_node(data, t, s, factor, out, K):
    """Add `factor` times the features of one node to `out`; return what that adds to its square."""
    if data.pair_offsets.size > 0:  # asked once, not for every feature
        return _pull_node_pairs(data, t, s, factor, out, K)
    ones = data.values.size == 0
    own = out[s:]
    total = 0.0
    for e in range(data.rows[t], data.rows[t + 1]):
        k = begin(data, e, K)
        x = factor if ones else factor * data.values[e]
        total += x * (2.0 * own[k] + x)
        own[k] += x
    return total


@inner
def _pull_node_pairs(data, t, s, factor, out, K):
    """As `pull_node` where only some pairs have a weight."""
    ones = data.values.size == 0
    total = 0.0
    for e in range(data.rows[t], data.rows[t + 1]):
        k = find(data, data.columns[e], s, K)
        if k >= 0:
            x = factor if ones else factor * data.values[e]
            total += x * (2.0 * out[k] + x)
            out[k] += x
    return total


@inner
def _any(row):
    """Whether an entry is not 0."""
    for s in range(row.size):
        if row[s] != 0.0:
            return True
    return False


@inner
def loss_and_errors(data, c, parts, errors, work):
    """Loss of sequence `c` from ``errors.scores`` and ``errors.edges``; fills the other errors."""
    first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
    errors.nodes[:n] = 0.0
    errors.steps[:] = 0.0
    loss = 0.0
    total = 0.0
    for p in range(parts.shares.size):
        share = parts.shares[p]
        eps = parts.eps[p]
        _load_potentials(
            data, first, n, parts.with_cost[p], eps if eps > 0.0 else 1.0, errors, work
        )
        if eps > 0.0:
            loss += share * eps * marginals(n, work)
            _add_marginals(n, share, errors, work)
        else:
            path = work.alpha, errors.labels
            loss += share * best_path(work.nodes, 0, n, work.edges, 0, 0, *path)
            _add_path(n, share, errors.labels, 0, errors)
        total += share
    _add_path(n, -total, data.labels, first, errors)
    return loss - total * _true_score(data, first, n, errors)


@inner
def loss_alone(data, c, parts, errors, work):
    """Loss of sequence `c` from ``errors.scores`` and ``errors.edges``."""
    first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
    loss = 0.0
    total = 0.0
    for p in range(parts.shares.size):
        share = parts.shares[p]
        eps = parts.eps[p]
        _load_potentials(
            data, first, n, parts.with_cost[p], eps if eps > 0.0 else 1.0, errors, work
        )
        if eps > 0.0:
            loss += share * eps * log_partition(n, work)
        else:
            path = work.alpha, errors.labels
            loss += share * best_path(work.nodes, 0, n, work.edges, 0, 0, *path)
        total += share
    return loss - total * _true_score(data, first, n, errors)


@inner
def _load_potentials(data, first, n, with_cost, eps, errors, work):
    """Put the potentials of one part of the loss, at its temperature, into `work`."""
    K = errors.scores.shape[1]
    for t in range(n):
        for s in range(K):
            work.nodes[t, s] = errors.scores[t, s]
    if with_cost:
        add_costs(data, first, n, work.nodes)
    bar_ends(data, n, work.nodes)
    inverse = 1.0 / eps
    for t in range(n if eps != 1.0 else 0):
        for s in range(K):
            work.nodes[t, s] *= inverse
    for r in range(K if n > 1 else 0):
        for s in range(K):
            work.edges[0, r, s] = errors.edges[r, s] * inverse


@inner
def _add_marginals(n, share, errors, work):
    K = errors.nodes.shape[1]
    for t in range(n):
        for s in range(K):
            errors.nodes[t, s] += share * work.soft[t, s]
    for r in range(K if n > 1 else 0):
        for s in range(K):
            errors.steps[r, s] += share * work.pairs[0, r, s]


@inner
def _add_path(n, share, labels, first, errors):
    for t in range(n):
        errors.nodes[t, labels[first + t]] += share
        if t > 0:
            errors.steps[labels[first + t - 1], labels[first + t]] += share


@inner
def _true_score(data, first, n, errors):
    total = 0.0
    for t in range(n):
        label = data.labels[first + t]
        total += errors.scores[t, label]
        if t > 0:
            total += errors.edges[data.labels[first + t - 1], label]
    return total
