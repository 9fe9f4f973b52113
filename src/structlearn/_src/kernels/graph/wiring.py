"""Compile scopes into flat wiring, find forests, condition tables on evidence."""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner, lean


@lean
def strides(cards, scope_offsets, scopes, out_strides, out_sizes):
    """C-order strides of every slot in its factor's table, and the size of every table."""
    for f in range(scope_offsets.size - 1):
        step = 1
        for s in range(scope_offsets[f + 1] - 1, scope_offsets[f] - 1, -1):
            out_strides[s] = step
            step *= cards[scopes[s]]
        out_sizes[f] = step


@lean
def bad_scope(scope_offsets, scopes, n_variables, report):
    """Find a scope that names a variable twice or one that is not there.

    Returns whether there is one; `report` then holds its factor and the variable.
    """
    for f in range(scope_offsets.size - 1):
        for s in range(scope_offsets[f], scope_offsets[f + 1]):
            bad = scopes[s] < 0 or scopes[s] >= n_variables
            for t in range(scope_offsets[f], s):
                bad = bad or scopes[t] == scopes[s]
            if bad:
                report[0] = f
                report[1] = scopes[s]
                return True
    return False


@lean
def slots_by_variable(scopes, next_place, out):
    """Slots of every variable, in order; `next_place` holds where each variable's begin."""
    for s in range(scopes.size):
        out[next_place[scopes[s]]] = s
        next_place[scopes[s]] += 1


@inner
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@lean
def forest(w, parent, out):
    """For each graph: is its factor graph free of cycles?  Union-find over scopes."""
    for g in range(out.size):
        out[g] = True
        for f in range(w.graph_factors[g], w.graph_factors[g + 1]):
            first = _root(parent, w.scopes[w.scope_offsets[f]])
            for s in range(w.scope_offsets[f] + 1, w.scope_offsets[f + 1]):
                other = _root(parent, w.scopes[s])
                if other == first:
                    out[g] = False
                else:
                    parent[other] = first


@lean
def breadth_first(w, seen, seen_factor, order):
    """Variables in breadth-first order, roots taken in index order: parents before children."""
    head = 0
    tail = 0
    for root in range(seen.size):
        if seen[root]:
            continue
        seen[root] = True
        order[tail] = root
        tail += 1
        while head < tail:
            v = order[head]
            head += 1
            for q in range(w.slot_offsets[v], w.slot_offsets[v + 1]):
                f = w.slot_factors[w.slots[q]]
                if seen_factor[f]:
                    continue
                seen_factor[f] = True
                for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
                    u = w.scopes[s]
                    if not seen[u]:
                        seen[u] = True
                        order[tail] = u
                        tail += 1


@lean
def slice_tables(w, potentials, fixed, axis, digit, out_offsets, out):
    """Copy of every table with the fixed variables at their state, -1 for those that are not.

    `axis` and `digit` have room for the slots of one factor.
    """
    for f in range(w.table_offsets.size - 1):
        position = w.table_offsets[f]
        arity = 0
        for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
            if fixed[w.scopes[s]] >= 0:
                position += w.strides[s] * fixed[w.scopes[s]]
            else:
                axis[arity] = s
                digit[arity] = 0
                arity += 1
        for k in range(out_offsets[f], out_offsets[f + 1]):
            out[k] = potentials[position]
            for a in range(arity - 1, -1, -1):  # next entry in C order
                s = axis[a]
                digit[a] += 1
                position += w.strides[s]
                if digit[a] < w.cards[w.scopes[s]]:
                    break
                position -= w.strides[s] * digit[a]
                digit[a] = 0


@lean
def spanning_forest(w, order, parent, taken):
    """Take factors in `order` as long as they close no cycle."""
    for f in order:
        low, high = w.scope_offsets[f], w.scope_offsets[f + 1]
        open_end = True
        for s in range(low, high):
            for t in range(low, s):
                if _root(parent, w.scopes[s]) == _root(parent, w.scopes[t]):
                    open_end = False
        if open_end:
            taken[f] = True
            for s in range(low + 1, high):
                parent[_root(parent, w.scopes[s])] = _root(parent, w.scopes[low])


@lean
def reparametrise(wiring, messages, rest, singles):
    """Move the messages from the tables in `rest` to one table per variable in `singles`.

    The sum of all tables stays the same where it is finite; a state that some message rules out
    stays ruled out in `singles`.
    """
    for f in range(wiring.table_offsets.size - 1):
        low, high = wiring.scope_offsets[f], wiring.scope_offsets[f + 1]
        for s in range(low, high):
            v = wiring.scopes[s]
            m = wiring.message_offsets[s]
            b = wiring.belief_offsets[v]
            for x in range(wiring.cards[v]):
                singles[b + x] += messages[m + x]
            for k in range(wiring.table_offsets[f], wiring.table_offsets[f + 1]):
                x = (k - wiring.table_offsets[f]) // wiring.strides[s] % wiring.cards[v]
                if messages[m + x] > -np.inf:
                    rest[k] -= messages[m + x]
