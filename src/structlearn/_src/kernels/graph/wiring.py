"""Compile scopes into flat wiring, find forests, condition tables on evidence."""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner, kernel, lean


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


@kernel
def forest(scope_offsets, scopes, graph_variables, graph_factors, out):
    """For each graph: is its factor graph free of cycles?  Union-find over scopes."""
    parent = np.arange(graph_variables[-1])
    for g in range(out.size):
        out[g] = True
        for f in range(graph_factors[g], graph_factors[g + 1]):
            first = _root(parent, scopes[scope_offsets[f]])
            for s in range(scope_offsets[f] + 1, scope_offsets[f + 1]):
                other = _root(parent, scopes[s])
                if other == first:
                    out[g] = False
                else:
                    parent[other] = first


@kernel
def breadth_first(scope_offsets, scopes, slot_offsets, slots, slot_factors, order):
    """Variables in breadth-first order, roots taken in index order: parents before children."""
    n = slot_offsets.size - 1
    seen = np.zeros(n, np.bool_)
    seen_factor = np.zeros(scope_offsets.size - 1, np.bool_)
    head = 0
    tail = 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        order[tail] = root
        tail += 1
        while head < tail:
            v = order[head]
            head += 1
            for q in range(slot_offsets[v], slot_offsets[v + 1]):
                f = slot_factors[slots[q]]
                if seen_factor[f]:
                    continue
                seen_factor[f] = True
                for s in range(scope_offsets[f], scope_offsets[f + 1]):
                    u = scopes[s]
                    if not seen[u]:
                        seen[u] = True
                        order[tail] = u
                        tail += 1


@lean
def kept_sizes(cards, scope_offsets, scopes, fixed, out_arity, out_size):
    """Arity and table size of every factor once the fixed variables are gone (-1 = not fixed)."""
    for f in range(scope_offsets.size - 1):
        size = 1
        arity = 0
        for s in range(scope_offsets[f], scope_offsets[f + 1]):
            if fixed[scopes[s]] < 0:
                size *= cards[scopes[s]]
                arity += 1
        out_arity[f] = arity
        out_size[f] = size


@kernel
def slice_tables(
    cards, scope_offsets, scopes, steps, table_offsets, potentials, fixed, out_offsets, out
):
    """Copy of every table with the fixed variables at their state."""
    axis = np.empty(64, np.int64)
    digit = np.zeros(64, np.int64)
    for f in range(scope_offsets.size - 1):
        position = table_offsets[f]
        arity = 0
        for s in range(scope_offsets[f], scope_offsets[f + 1]):
            if fixed[scopes[s]] >= 0:
                position += steps[s] * fixed[scopes[s]]
            else:
                axis[arity] = s
                digit[arity] = 0
                arity += 1
        for k in range(out_offsets[f], out_offsets[f + 1]):
            out[k] = potentials[position]
            for a in range(arity - 1, -1, -1):  # next entry in C order
                s = axis[a]
                digit[a] += 1
                position += steps[s]
                if digit[a] < cards[scopes[s]]:
                    break
                position -= steps[s] * digit[a]
                digit[a] = 0


@lean
def score(scope_offsets, scopes, steps, table_offsets, graph_factors, potentials, labels, out):
    """Sum of log potentials of every graph at the assignment `labels`."""
    for g in range(out.size):
        total = 0.0
        for f in range(graph_factors[g], graph_factors[g + 1]):
            position = table_offsets[f]
            for s in range(scope_offsets[f], scope_offsets[f + 1]):
                position += steps[s] * labels[scopes[s]]
            total += potentials[position]
        out[g] = total


@kernel
def spanning_forest(scope_offsets, scopes, n_variables, order, taken):
    """Take factors in `order` as long as they close no cycle."""
    parent = np.arange(n_variables)
    for f in order:
        low, high = scope_offsets[f], scope_offsets[f + 1]
        open_end = True
        for s in range(low, high):
            for t in range(low, s):
                if _root(parent, scopes[s]) == _root(parent, scopes[t]):
                    open_end = False
        if open_end:
            taken[f] = True
            for s in range(low + 1, high):
                parent[_root(parent, scopes[s])] = _root(parent, scopes[low])


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
