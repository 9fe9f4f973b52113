r"""Steps of dual coordinate ascent for smooth losses, one sequence at a time.

Every sequence remembers its errors :math:`m_i`: expected counts of labels and transitions less the
true ones, of some time ago. The weights are always :math:`w = -\sum_i b_i \langle m_i, \phi_i
\rangle`. A visit moves :math:`m_i` a share of the way to the errors of the present weights. Where
nothing moves, the gradient is 0.
"""

from __future__ import annotations

from structlearn.kernels.jit import lean, part
from structlearn.kernels.sequence import differ, pull, score


@lean
def ascend(order, data, parts, by, shares, weights, table, nodes, steps, errors, slate):
    """Visit every sequence in `order`; return the weighted losses met on the way.

    Parameters
    ----------
    by : array (sequences,)
        Weight of every sequence's loss.
    shares : array (sequences,)
        By which share of the way the memory of every sequence moves.
    weights, table : arrays
        Weights of features, flat, and of transitions (states, states).
    nodes, steps : arrays (positions, states) and (sequences, states, states)
        The memory: errors of labels, and of transitions; no sequences if these have no weights.
    """
    K, met, learnt = table.shape[0], 0.0, steps.shape[0] > 0
    for i in range(order.size):
        c = order[i]
        if by[c] == 0.0:
            continue
        first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
        score(data, first, n, weights, 1.0, errors.scores)
        for r in range(K if n > 1 else 0):
            for s in range(K):
                errors.edges[r, s] = table[r, s] + data.bars[r, s]
        met += by[c] * differ(data, c, parts, errors, slate)
        for t in range(n):
            _move(shares[c], errors.nodes[t], nodes[first + t])
        pull(data, first, n, -by[c], errors.nodes, weights)
        for r in range(K if n > 1 and learnt else 0):
            _move(shares[c], errors.steps[r], steps[c, r])
            for s in range(K):
                if data.learnt[r, s]:
                    table[r, s] -= by[c] * errors.steps[r, s]
    return met


@part
def _move(share, new, kept):
    """Move what is kept a share of the way to what is new, which becomes the move itself."""
    for s in range(new.size):
        old = kept[s]
        kept[s] = old + share * (new[s] - old)
        # As stored, so that weights and memory never drift apart, whatever their precision.
        new[s] = kept[s] - old
