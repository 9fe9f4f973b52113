"""One sequence at a time: its scores, its marginals or best path, and the weights of its features.

`data` is a `Data`. The weights of features lie in one flat array: feature ``d`` and state ``s``
have weight ``d * K + s``, or, where only some pairs have a weight, the ``k`` from
``pair_offsets[d]`` to ``pair_offsets[d + 1]`` whose ``pair_states[k]`` is ``s``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn.kernels.jit import part


class Data(NamedTuple):
    """Sequences, their labels and the sparse features of their positions; only read."""

    offsets: np.ndarray  #: (sequences + 1,) where the positions of every sequence begin
    labels: np.ndarray  #: (positions,)
    rows: np.ndarray  #: (positions + 1,) where the entries of every position begin
    columns: np.ndarray  #: (entries,) feature of every entry, int32
    values: np.ndarray  #: (entries,) its value; empty if all are 1
    pair_offsets: np.ndarray  #: (features + 1,); empty if all pairs have a weight
    pair_states: np.ndarray  #: (pairs,) int32
    learnt: np.ndarray  #: (states, states) which transitions have a weight
    bars: np.ndarray  #: (states, states) -inf for forbidden transitions, else 0
    end_bars: np.ndarray  #: (2, states) the same for states that must not begin, or end
    costs: np.ndarray  #: (states, states) task cost, true labels in rows
    mean: bool  #: whether costs are divided by the length of the sequence


@part
def score(data, first, n, weights, scale, nodes):
    """Scores of the positions from `first` on: their features times `scale`, without bars."""
    K = nodes.shape[1]
    ones, all_pairs = data.values.size == 0, data.pair_offsets.size == 0
    for t in range(n):
        for s in range(K):
            nodes[t, s] = 0.0
        for e in range(data.rows[first + t], data.rows[first + t + 1]):
            d, x = data.columns[e], scale if ones else scale * data.values[e]
            if all_pairs:
                own = weights[d * K : (d + 1) * K]
                for s in range(K):
                    nodes[t, s] += x * own[s]
            else:
                for k in range(data.pair_offsets[d], data.pair_offsets[d + 1]):
                    nodes[t, data.pair_states[k]] += x * weights[k]


@part
def bar_ends(data, n, nodes):
    """Forbid the states that must not begin or end a sequence."""
    for s in range(nodes.shape[1]):
        nodes[0, s] += data.end_bars[0, s]
        nodes[n - 1, s] += data.end_bars[1, s]


@part
def unit_cost(data, n):
    """Return what costs are multiplied by in a sequence of length `n`."""
    return 1.0 / n if data.mean else 1.0


@part
def push_errors(data, first, n, nodes):
    """Add the task cost of every state."""
    by = unit_cost(data, n)
    for t in range(n):
        label = data.labels[first + t]
        for s in range(nodes.shape[1]):
            nodes[t, s] += by * data.costs[label, s]


@part
def find(data, d, s, K):
    """Weight of feature `d` and state `s`; -1 if there is none."""
    if data.pair_offsets.size == 0:
        return d * K + s
    for k in range(data.pair_offsets[d], data.pair_offsets[d + 1]):
        if data.pair_states[k] == s:
            return k
    return -1
