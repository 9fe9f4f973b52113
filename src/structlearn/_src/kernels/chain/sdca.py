r"""Steps of dual coordinate ascent for smooth losses, one sequence at a time.

Every sequence remembers its errors :math:`m_i`: expected counts of labels and transitions less the
true ones, of some time ago. The weights are always :math:`w = -\sum_i b_i \langle m_i, \phi_i
\rangle`. A visit moves :math:`m_i` a share of the way to the errors of the present weights. Where
nothing moves, the gradient is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.sequence import loss_and_errors
from structlearn._src.kernels.jit import inner, lean


class SplitFeatures(NamedTuple):
    """Entries of all positions in the order in which they are read.

    Features with many states have a row of weights. The weights of all others come one by one, so
    that nothing has to be looked up, unlike in `sequence.score`: the solver that makes the most
    passes can pay for a copy of the entries.
    """

    rows: np.ndarray  #: (positions + 1,) where the entries of every position begin
    columns: np.ndarray  #: (entries,) the row of weights, int32
    values: np.ndarray  #: (entries,) empty if all are 1
    kept: np.ndarray  #: (rows of weights, states) 1 where there is a weight, else 0; empty if all
    single_rows: np.ndarray  #: the same for single weights
    singles: np.ndarray  #: number of the weight, int32
    single_states: np.ndarray  #: int32
    single_values: np.ndarray


class SdcaWeights(NamedTuple):
    """All weights."""

    wide: np.ndarray  #: (rows of weights, states)
    singles: np.ndarray
    table: np.ndarray  #: (states, states) transitions


@inner
def _score(layout, t, primal, row):
    """Scores of the states of a position; plain features four at a time."""
    K = row.size
    wide = primal.wide
    columns = layout.columns
    ones = layout.values.size == 0
    e = layout.rows[t]
    stop = layout.rows[t + 1]
    for s in range(K):
        row[s] = 0.0
    while ones and e + 4 <= stop:
        a, b = wide[columns[e]], wide[columns[e + 1]]
        c, d = wide[columns[e + 2]], wide[columns[e + 3]]
        for s in range(K):
            row[s] += (a[s] + b[s]) + (c[s] + d[s])
        e += 4
    for f in range(e, stop):
        x = 1.0 if ones else layout.values[f]
        own = wide[columns[f]]
        for s in range(K):
            row[s] += x * own[s]
    for e in range(layout.single_rows[t], layout.single_rows[t + 1]):
        x = 1.0 if ones else layout.single_values[e]
        row[layout.single_states[e]] += x * primal.singles[layout.singles[e]]


@inner
def _pull(layout, t, row, primal):
    """Add a row to the weights of the features of a position."""
    K = row.size
    ones = layout.values.size == 0
    all_kept = layout.kept.size == 0
    for e in range(layout.rows[t], layout.rows[t + 1]):
        d = layout.columns[e]
        x = 1.0 if ones else layout.values[e]
        own = primal.wide[d]
        if all_kept:
            for s in range(K):
                own[s] += x * row[s]
        else:
            kept = layout.kept[d]
            for s in range(K):
                own[s] += x * (row[s] * kept[s])
    for e in range(layout.single_rows[t], layout.single_rows[t + 1]):
        x = 1.0 if ones else layout.single_values[e]
        primal.singles[layout.singles[e]] += x * row[layout.single_states[e]]


@inner
def _move(memory, errors, share, factor):
    """Move a row of a memory towards the errors, which become the change of the weights."""
    for s in range(errors.size):
        old = np.float64(memory[s])
        memory[s] = old + share * (errors[s] - old)
        # As stored, so that weights and memory never drift apart, whatever its precision.
        errors[s] = factor * (old - np.float64(memory[s]))


@inner
def _product(n, errors):
    """Product of the errors of a sequence with the scores that they are the gradient by."""
    K = errors.edges.shape[0]
    total = 0.0
    for t in range(n):
        for s in range(K):
            total += errors.nodes[t, s] * errors.scores[t, s]
    for r in range(K if n > 1 else 0):
        for s in range(K):
            if errors.steps[r, s] != 0.0:  # else the score may be infinite
                total += errors.steps[r, s] * errors.edges[r, s]
    return total


@lean
def ascend(
    order, data, layout, parts, loss_weights, shares, primal, nodes, steps, bounds, errors, work
):
    r"""Visit every sequence in `order`; return the weighted losses met on the way.

    The memory of a sequence, which moves by its share of the way, are errors of labels (positions,
    states) and of transitions (sequences, states, states), in single precision; the latter are
    empty where transitions have no weights. With its bound :math:`c_i`, of the same mixture of old
    tangents, :math:`\ell_i(v) \ge c_i + \langle m_i, v \rangle` for all weights :math:`v`.
    """
    K = errors.edges.shape[0]
    table = primal.table
    met = 0.0
    for i in range(order.size):
        c = order[i]
        if loss_weights[c] == 0.0:
            continue
        first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
        for t in range(n):
            _score(layout, first + t, primal, errors.scores[t])
        for r in range(K if n > 1 else 0):
            for s in range(K):
                errors.edges[r, s] = table[r, s] + data.bars[r, s]
        loss = loss_and_errors(data, c, parts, errors, work)
        met += loss_weights[c] * loss
        bounds[c] += shares[c] * (loss - _product(n, errors) - bounds[c])
        for t in range(n):
            _move(nodes[first + t], errors.nodes[t], shares[c], loss_weights[c])
            _pull(layout, first + t, errors.nodes[t], primal)
        for r in range(K if n > 1 and steps.shape[0] > 0 else 0):
            _move(steps[c, r], errors.steps[r], shares[c], loss_weights[c])
            for s in range(K):
                if data.learnt[r, s]:
                    table[r, s] += errors.steps[r, s]
    return met
