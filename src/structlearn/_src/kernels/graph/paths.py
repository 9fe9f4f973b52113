"""Find the paths in a wiring and carry its tables to the layout of `kernels.chain` and back."""

from __future__ import annotations

from structlearn._src.kernels.jit import kernel

BRANCH, CYCLE = -1, -2


@kernel
def find_paths(scope_offsets, scopes, near, order, position, offsets):
    """Line up the variables of every path, in one pass.

    Two variables are neighbours if some factor holds both. Paths begin at their end of lower
    index and follow each other by that index. Returns the number of paths and 0; or BRANCH or
    CYCLE and a variable that shows it. `near` (variables, 2) and `position` are full of -1 at the
    start; of `offsets` one more than there are paths is used.
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
def carry(wiring, position, chains, K, nodes, edges, tables, back):
    """Add the tables of all factors to flat `nodes` and `edges`, or read them `back` from there.

    `nodes` has a row of K entries for every position, `edges` K rows for every step of a path.
    """
    for f in range(wiring.table_offsets.size - 1):
        k = wiring.table_offsets[f]
        last = wiring.scope_offsets[f + 1] - 1
        a, b = position[wiring.scopes[wiring.scope_offsets[f]]], position[wiring.scopes[last]]
        flat, at, down, right = nodes, a * K, 0, 1
        if a != b:
            flat = edges
            first = min(a, b)
            at = (first - chains[first]) * K * K
            down, right = (K, 1) if a < b else (1, K)
        columns = wiring.cards[wiring.scopes[last]]
        for i in range((wiring.table_offsets[f + 1] - k) // columns):
            for j in range(columns):
                if back:
                    tables[k] = flat[at + i * down + j * right]
                else:
                    flat[at + i * down + j * right] += tables[k]
                k += 1
