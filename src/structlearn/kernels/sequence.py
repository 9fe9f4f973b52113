"""One sequence at a time: the scores of its positions, and which weights its features have.

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


@part
def score(data, first, n, weights, scale, nodes):
    """Scores of the positions from `first` on, from their features times `scale`."""
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
def find(data, d, s, K):
    """Weight of feature `d` and state `s`; -1 if there is none."""
    if data.pair_offsets.size == 0:
        return d * K + s
    for k in range(data.pair_offsets[d], data.pair_offsets[d + 1]):
        if data.pair_states[k] == s:
            return k
    return -1


@part
def add_rows(rows, n, added, first):
    """Add rows of `added` from `first` on to the first `n` of `rows`, if there are any."""
    for t in range(n if added.shape[0] > 0 else 0):
        for s in range(rows.shape[1]):
            rows[t, s] += added[first + t, s]
