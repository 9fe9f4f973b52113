r"""Dual coordinate steps for smooth losses, one sequence at a time.

Every sequence keeps expected counts :math:`m_i`, and the weights are always
:math:`w = \sum_i b_i (\phi(y_i) - \langle m_i, \phi \rangle)`. A visit moves :math:`m_i` a share of
the way to the counts that the weights now expect. Where nothing moves, the slope is 0.
"""

from __future__ import annotations

from structlearn.kernels.jit import lean, part
from structlearn.kernels.sequence import differ, pull, score


@lean
def sdca(order, data, parts, by, shares, weights, table, nodes, steps, errors, slate):
    """Visit every sequence in `order`; return the weighted losses met on the way.

    Parameters
    ----------
    by : array (sequences,)
        Weight of every sequence's loss.
    shares : array (sequences,)
        How far the counts of every sequence move.
    weights, table : arrays
        Weights of features, flat, and of transitions (states, states).
    nodes, steps : arrays (positions, states) and (sequences, states, states)
        Expected less true counts of all sequences.
    """
    K, met = table.shape[0], 0.0
    for i in range(order.size):
        c = order[i]
        first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
        score(data, first, n, weights, 1.0, errors.scores)
        for r in range(K if n > 1 else 0):
            for s in range(K):
                errors.edges[r, s] = table[r, s] + data.bars[r, s]
        met += by[c] * differ(data, c, parts, errors, slate)
        for t in range(n):
            _move(shares[c], errors.nodes[t], nodes[first + t])
        pull(data, first, n, -by[c], errors.nodes, weights)
        for r in range(K if n > 1 else 0):
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
        # As stored, so that weights and counts never drift apart, whatever their precision.
        new[s] = kept[s] - old
