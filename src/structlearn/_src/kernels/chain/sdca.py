r"""Steps of dual coordinate ascent for smooth losses, one sequence at a time.

Every sequence remembers its errors :math:`m_i`: expected counts of labels and transitions less the
true ones, of some time ago. The weights are always :math:`w = -\sum_i b_i \langle m_i, \phi_i
\rangle`. A visit moves :math:`m_i` a share of the way to the errors of the present weights. Where
nothing moves, the gradient is 0.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.chain.sequence import loss_and_errors
from structlearn._src.kernels.chain.split import load_potentials, pull_split
from structlearn._src.kernels.jit import inner, lean


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
        load_potentials(data, layout, first, n, primal, errors)
        loss = loss_and_errors(data, c, parts, errors, work)
        met += loss_weights[c] * loss
        bounds[c] += shares[c] * (loss - _product(n, errors) - bounds[c])
        for t in range(n):
            _move(nodes[first + t], errors.nodes[t], shares[c], loss_weights[c])
            pull_split(layout, first + t, errors.nodes[t], primal)
        for r in range(K if n > 1 and steps.shape[0] > 0 else 0):
            _move(steps[c, r], errors.steps[r], shares[c], loss_weights[c])
            for s in range(K):
                if data.learnt[r, s]:
                    table[r, s] += errors.steps[r, s]
    return met
