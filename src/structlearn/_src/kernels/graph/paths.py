"""Find the paths in a wiring and carry its tables to the layout of `kernels.chain` and back."""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import kernel

BRANCH, CYCLE = -1, -2


@kernel
def find_paths(scope_offsets, scopes, near, order, position, offsets):
    """Line up the variables of every path, in one pass.

    Two variables are neighbours if some factor holds both. Paths begin at their end of lower
    index and follow each other by that index. Returns the number of paths and 0; or BRANCH or
    CYCLE and a variable that shows it.

    Parameters
    ----------
    near, position
        (variables, 2) and (variables,)
        Neighbours and position of every variable; full of -1 at the start.
    order, offsets
        (variables,) and (variables + 1,)
        Variable at every position, and where paths begin; one more than there are paths is used.
    """
    for f in range(scope_offsets.size - 1):
        first = scope_offsets[f]
        if scope_offsets[f + 1] - first == 2:
            a, b = scopes[first], scopes[first + 1]
            if not _link(near, a, b):
                return BRANCH, a
            if not _link(near, b, a):
                return BRANCH, b
    count = 0
    t = 0
    for v in range(order.size):
        if position[v] >= 0 or near[v, 1] >= 0:
            continue
        offsets[count] = t
        count += 1
        before, at = -1, v
        while at >= 0:
            order[t] = at
            position[at] = t
            t += 1
            ahead = near[at, 1] if near[at, 0] == before else near[at, 0]
            before, at = at, ahead
    offsets[count] = t
    for v in range(order.size if t < order.size else 0):
        if position[v] < 0:
            return CYCLE, v
    return count, 0


@kernel
def _link(near, a, b):
    """Note that `b` is a neighbour of `a`; False if `a` has two others."""
    for side in range(2):
        if near[a, side] == b:
            return True
        if near[a, side] < 0:
            near[a, side] = b
            return True
    return False


@kernel
def _place(wiring, f, position, chains):
    """Row of factor `f`: in `nodes` (0), or in `edges` as it is (1) or transposed (-1)."""
    first = wiring.scope_offsets[f]
    a = wiring.scopes[first]
    if wiring.scope_offsets[f + 1] - first == 1:
        return position[a], 0
    b = wiring.scopes[first + 1]
    if position[a] < position[b]:
        return position[a] - chains[position[a]], 1
    return position[b] - chains[position[b]], -1


@kernel
def gather(wiring, potentials, position, chains, nodes, edges):
    """Add the tables of every variable to `nodes` and of every pair to `edges`."""
    for f in range(wiring.table_offsets.size - 1):
        row, way = _place(wiring, f, position, chains)
        k = wiring.table_offsets[f]
        B = wiring.cards[wiring.scopes[wiring.scope_offsets[f + 1] - 1]]
        A = (wiring.table_offsets[f + 1] - k) // B
        for i in range(A):
            if way == 0:
                for j in range(B):
                    nodes[row, j] += potentials[k + j]
            elif way > 0:
                for j in range(B):
                    edges[row, i, j] += potentials[k + j]
            else:
                for j in range(B):
                    edges[row, j, i] += potentials[k + j]
            k += B


@kernel
def forbid(cards, order, chains, nodes, edges):
    """Set what lies outside the states of the variables to -inf."""
    K = nodes.shape[1]
    for t in range(order.size):
        card = cards[order[t]]
        for j in range(card, K):
            nodes[t, j] = -np.inf
        if t > 0 and chains[t] == chains[t - 1]:
            e = t - 1 - chains[t]
            before = cards[order[t - 1]]
            for i in range(K):
                for j in range(card if i < before else 0, K):
                    edges[e, i, j] = -np.inf


@kernel
def scatter(wiring, position, chains, nodes, edges, beliefs, factor_beliefs):
    """Carry marginals back to variables and, unless `factor_beliefs` is empty, to factors."""
    for v in range(position.size):
        k = wiring.belief_offsets[v]
        for i in range(wiring.cards[v]):
            beliefs[k + i] = nodes[position[v], i]
    for f in range(wiring.table_offsets.size - 1 if factor_beliefs.size > 0 else 0):
        row, way = _place(wiring, f, position, chains)
        k = wiring.table_offsets[f]
        B = wiring.cards[wiring.scopes[wiring.scope_offsets[f + 1] - 1]]
        A = (wiring.table_offsets[f + 1] - k) // B
        for i in range(A):
            if way == 0:
                for j in range(B):
                    factor_beliefs[k + j] = nodes[row, j]
            elif way > 0:
                for j in range(B):
                    factor_beliefs[k + j] = edges[row, i, j]
            else:
                for j in range(B):
                    factor_beliefs[k + j] = edges[row, j, i]
            k += B
