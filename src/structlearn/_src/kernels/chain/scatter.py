"""Features times weights, and back, for whole batches: the loops of every sparse linear map.

Entry ``e`` of row ``i`` has the feature ``columns[e]`` and the value ``values[e]``, 1 if `values`
is empty. Feature ``d`` has one weight for every state (`weights` (features, states)), or for the
states ``pair_states[k]`` with ``k`` from ``pair_offsets[d]`` to ``pair_offsets[d + 1]`` only
(`weights` (pairs,)). Adjoints go by column, so that threads never write to the same weight; the
solvers that visit one sequence at a time have loops by row in `sequence`.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import kernel, or_python


@or_python
@kernel
def multiply(offsets, columns, values, matrix, first, last, out):
    """out[i] = sum of value times ``matrix[column]`` over the entries of row ``i``.

    With weights it is the scores of rows; with marginals, and the entries sorted by column, its
    adjoint: the gradient of the weights of a feature.
    """
    S = matrix.shape[1]
    ones = values.size == 0
    for i in range(first, last):
        for s in range(S):
            out[i, s] = 0.0
        for e in range(offsets[i], offsets[i + 1]):
            d = columns[e]
            x = 1.0 if ones else values[e]
            for s in range(S):
                out[i, s] += x * matrix[d, s]


@or_python
@kernel
def push_pairs(offsets, columns, values, pair_offsets, pair_states, weights, first, last, out):
    """As `multiply` with weights for some states of every feature."""
    ones = values.size == 0
    for i in range(first, last):
        row = out[i]
        for s in range(row.size):
            row[s] = 0.0
        for e in range(offsets[i], offsets[i + 1]):
            d = columns[e]
            x = 1.0 if ones else values[e]
            for k in range(pair_offsets[d], pair_offsets[d + 1]):
                # Unsigned, for no check in this short loop whether they count from the end.
                at = np.uint64(k)
                row[np.uint64(pair_states[at])] += x * weights[at]


@kernel
def pull_pairs(offsets, rows, values, pair_offsets, pair_states, marginals, first, last, out):
    """As `multiply` with weights for some states of every feature."""
    ones = values.size == 0
    for d in range(first, last):
        low, high = pair_offsets[d], pair_offsets[d + 1]
        for k in range(low, high):
            out[k] = 0.0
        for e in range(offsets[d], offsets[d + 1]):
            i = rows[e]
            x = 1.0 if ones else values[e]
            for k in range(low, high):
                out[k] += x * marginals[i, pair_states[k]]


@kernel
def seen_pairs(offsets, rows, labels, seen, pair_offsets, pair_states):
    """Find the states seen with every feature, in ascending order.

    `seen` (states,) must be -1. Rows without a label count for no state. Fills `pair_offsets`, and
    `pair_states` unless it is empty: call twice, the first time to learn how many pairs there are.
    """
    count = 0
    fill = pair_states.size > 0
    for d in range(offsets.size - 1):
        pair_offsets[d] = count
        for e in range(offsets[d], offsets[d + 1]):
            s = labels[rows[e]]
            if s >= 0 and seen[s] != d:
                seen[s] = d
                count += 1
        k = pair_offsets[d]
        for s in range(seen.size if fill and k < count else 0):
            if seen[s] == d:
                pair_states[k] = s
                k += 1
    pair_offsets[offsets.size - 1] = count
