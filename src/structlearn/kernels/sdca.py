r"""Steps of dual coordinate ascent, one sequence at a time, for smooth losses.

The memory of a sequence holds old marginals less the true labels. The weights are always the sum
of all memories, turned into weights of features and transitions: what is taken from a memory is
added there to the last bit, although memories have single precision.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn.kernels.jit import lean, part
from structlearn.kernels.marginal import marginals
from structlearn.kernels.sequence import bar_ends, push_errors, score


class Memory(NamedTuple):
    """What every sequence adds to the weights and to the dual."""

    nodes: np.ndarray  #: (positions, states) float32
    edges: np.ndarray  #: (sequences, states, states) float32; no sequences if nothing is learnt
    bounds: np.ndarray  #: (sequences,) lower bounds on entropy and expected cost


class Primal(NamedTuple):
    """Weights, and the scores of one sequence."""

    weights: np.ndarray  #: of features, flat
    table: np.ndarray  #: (states, states) weights of transitions
    nodes: np.ndarray  #: (longest, states)


@part
def _free_value(data, first, n, eps, costly, primal, slate):
    """Value of the free world; its marginals go to the slate."""
    K = primal.table.shape[0]
    for t in range(n):
        for s in range(K):
            slate.nodes[t, s] = primal.nodes[t, s]
    if costly:
        push_errors(data, first, n, slate.nodes)
    bar_ends(data, n, slate.nodes)
    if eps != 1.0:
        for t in range(n):
            for s in range(K):
                slate.nodes[t, s] /= eps
    for r in range(K):
        for s in range(K):
            slate.edges[0, r, s] = (primal.table[r, s] + data.bars[r, s]) / eps
    return eps * marginals(n, slate)


@part
def _subtract_truth(data, first, n, primal, slate):
    """Turn marginals into their difference to the true labels; the score of these."""
    total = 0.0
    for t in range(n):
        s = data.labels[first + t]
        total += primal.nodes[t, s]
        slate.soft[t, s] -= 1.0
        if t > 0:
            r = data.labels[first + t - 1]
            total += primal.table[r, s]
            slate.pairs[r, s] -= 1.0
    return total


@part
def _mean_scores(c, first, n, primal, memory, slate):
    """Score of what is remembered, and of the new difference."""
    K, old, new = primal.table.shape[0], 0.0, 0.0
    for t in range(n):
        for s in range(K):
            old += primal.nodes[t, s] * memory.nodes[first + t, s]
            new += primal.nodes[t, s] * slate.soft[t, s]
    for r in range(K if n > 1 and memory.edges.shape[0] > 0 else 0):
        for s in range(K):
            old += primal.table[r, s] * memory.edges[c, r, s]
            new += primal.table[r, s] * slate.pairs[r, s]
    return old, new


@part
def _move(row, target, step, by):
    """Move a row of a memory towards a target, which becomes what that adds to the weights."""
    for s in range(row.size):
        old = np.float64(row[s])
        row[s] = old + step * (target[s] - old)
        target[s] = by * (old - np.float64(row[s]))


@part
def _pull(data, t, row, weights):
    """Add a row to the weights of the features of a position."""
    K = row.size
    ones, all_pairs = data.values.size == 0, data.pair_offsets.size == 0
    for e in range(data.rows[t], data.rows[t + 1]):
        d, x = data.columns[e], 1.0 if ones else data.values[e]
        if all_pairs:
            own = weights[d * K : (d + 1) * K]
            for s in range(K):
                own[s] += x * row[s]
        else:
            for k in range(data.pair_offsets[d], data.pair_offsets[d + 1]):
                weights[k] += x * row[data.pair_states[k]]


@part
def _remember(c, data, first, n, step, by, primal, memory, slate):
    """Move the memory of a sequence towards the slate, and the weights with it."""
    for t in range(n):
        _move(memory.nodes[first + t], slate.soft[t], step, by)
        _pull(data, first + t, slate.soft[t], primal.weights)
    for r in range(primal.table.shape[0] if n > 1 and memory.edges.shape[0] > 0 else 0):
        _move(memory.edges[c, r], slate.pairs[r], step, by)
        for s in range(primal.table.shape[0]):
            if data.learnt[r, s]:
                primal.table[r, s] += slate.pairs[r, s]


@lean
def ascend(order, data, eps, costly, by, steps, primal, memory, slate):
    r"""One step of dual coordinate ascent for every sequence in `order`.

    Parameters
    ----------
    eps : float
        Temperature of the free world, above 0.
    costly : bool
        Whether the task cost takes part.
    by : array (sequences,)
        Weight of every sequence's loss.
    steps : array (sequences,)
        By which share of the way to the present marginals its memory moves.

    Returns
    -------
    tuple of float
        The weighted losses met, and what the dual would have gained were it linear.

    Notes
    -----
    Shalev-Shwartz (2016), "SDCA without duality, regularization, and individual convexity".
    """
    met, gain = 0.0, 0.0
    for i in range(order.size):
        c = order[i]
        if by[c] == 0.0:
            continue
        first, n, step = data.offsets[c], data.offsets[c + 1] - data.offsets[c], steps[c]
        score(data, first, n, primal.weights, 1.0, primal.nodes)
        loss = _free_value(data, first, n, eps, costly, primal, slate)
        loss -= _subtract_truth(data, first, n, primal, slate)
        old, new = _mean_scores(c, first, n, primal, memory, slate)
        met += by[c] * loss
        gain += by[c] * step * (loss - old - memory.bounds[c])
        memory.bounds[c] += step * (loss - new - memory.bounds[c])
        _remember(c, data, first, n, step, by[c], primal, memory, slate)
    return met, gain
