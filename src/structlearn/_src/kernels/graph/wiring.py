"""Compile scopes into flat wiring, find forests and paths, copy graphs."""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner, kernel, lean
from structlearn._src.kernels.launch import publish, task, withdraw
from structlearn._src.kernels.team import take

BRANCH, CYCLE = -1, -2  # why variables do not form paths


@lean
def lay_out_factors(cards, scope_offsets, scopes, strides, slot_factors, table_offsets):
    """C-order stride and factor of every slot, and where the tables of factors begin."""
    table_offsets[0] = 0
    for f in range(scope_offsets.size - 1):
        step = 1
        for s in range(scope_offsets[f + 1] - 1, scope_offsets[f] - 1, -1):
            strides[s] = step
            slot_factors[s] = f
            step *= cards[scopes[s]]
        table_offsets[f + 1] = table_offsets[f] + step


@lean
def lay_out_messages(cards, scopes, message_offsets):
    """Where the messages of slots begin: a number for every state of the variable."""
    message_offsets[0] = 0
    for s in range(scopes.size):
        message_offsets[s + 1] = message_offsets[s] + cards[scopes[s]]


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
def slots_by_variable(scopes, slot_offsets, slots):
    """Slots of every variable, in order, and where those of each begin."""
    slot_offsets[:] = 0
    for s in range(scopes.size):
        slot_offsets[scopes[s] + 1] += 1
    for v in range(slot_offsets.size - 1):
        slot_offsets[v + 1] += slot_offsets[v]
    for s in range(scopes.size):
        slots[slot_offsets[scopes[s]]] = s
        slot_offsets[scopes[s]] += 1
    # By now each has gone to where the slots of the next variable begin.
    for v in range(slot_offsets.size - 1, 0, -1):
        slot_offsets[v] = slot_offsets[v - 1]
    slot_offsets[0] = 0


@inner
def _copy(w, starts, which, places, first, last, out):
    """Copy the graphs `which[first:last]` of a wiring to their places in another one.

    Rows of `starts` and `places` say where the variables, factors, slots, tables, messages and
    beliefs of a graph begin, in the one and in the other.
    """
    for g in range(first, last):
        a = which[g]
        to_variable = places[g, 0] - starts[a, 0]
        to_factor = places[g, 1] - starts[a, 1]
        to_slot = places[g, 2] - starts[a, 2]
        to_table = places[g, 3] - starts[a, 3]
        to_message = places[g, 4] - starts[a, 4]
        to_belief = places[g, 5] - starts[a, 5]
        for v in range(starts[a, 0], starts[a + 1, 0]):
            out.cards[v + to_variable] = w.cards[v]
            out.roles[v + to_variable] = w.roles[v]
            out.slot_offsets[v + to_variable] = w.slot_offsets[v] + to_slot
            out.belief_offsets[v + to_variable] = w.belief_offsets[v] + to_belief
        for f in range(starts[a, 1], starts[a + 1, 1]):
            out.scope_offsets[f + to_factor] = w.scope_offsets[f] + to_slot
            out.table_offsets[f + to_factor] = w.table_offsets[f] + to_table
        for s in range(starts[a, 2], starts[a + 1, 2]):
            out.scopes[s + to_slot] = w.scopes[s] + to_variable
            out.strides[s + to_slot] = w.strides[s]
            out.slot_factors[s + to_slot] = w.slot_factors[s] + to_factor
            out.slots[s + to_slot] = w.slots[s] + to_slot
            out.message_offsets[s + to_slot] = w.message_offsets[s] + to_message


@inner
def copy_graphs(number, board, ranges, w, starts, which, places, out):
    """Copy the graphs `which` of a wiring to their places in another one, in ranges of them."""
    i = take(board, 0)
    while i < ranges.size - 1:
        _copy(w, starts, which, places, ranges[i], ranges[i + 1], out)
        i = take(board, 0)


@lean
def copy_in_threads(box, helpers, *given):
    """Run `copy_graphs` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(copy_graphs, given))
    copy_graphs(0, *given)
    withdraw(box, open_)


@inner
def _root(parent, v):
    while parent[v] != v:
        parent[v] = parent[parent[v]]
        v = parent[v]
    return v


@lean
def cover(w, ties, first, last, counts, parent, order, ends, taken):
    """Forests of the graphs first..last-1, one for every row of `ties` and `taken`.

    A forest takes the factors least often taken so far, by `counts`, first, and of these the ones
    with the lowest ties. `parent` is room for all variables, `order` and `ends` for all factors.
    """
    for g in range(first, last):
        for row in range(ties.shape[0]):
            low, high = w.graph_factors[g], w.graph_factors[g + 1]
            _sort(ties[row], counts, low, high, order, ends)
            for v in range(w.graph_variables[g], w.graph_variables[g + 1]):
                parent[v] = v
            for i in range(low, high):
                f = order[i]
                taken[row, f] = _joins(w, f, parent)
                counts[f] += taken[row, f]


@inner
def _sort(ties, counts, low, high, order, ends):
    """Put low..high-1 in the order of counts and then ties, which are spread evenly over [0, 1).

    They go to as many bins as there are of them, and from there it is not far.
    """
    least = counts[low] if high > low else 0
    most = least
    for f in range(low, high):
        least = min(least, counts[f])
        most = max(most, counts[f])
        ends[f] = 0
    bins = (high - low) / (most - least + 1.0)
    last = high - low - 1
    for f in range(low, high):
        ends[low + min(int((counts[f] - least + ties[f]) * bins), last)] += 1
    end = low
    for b in range(low, high):
        end += ends[b]
        ends[b] = end - ends[b]
    for f in range(low, high):
        b = low + min(int((counts[f] - least + ties[f]) * bins), last)
        order[ends[b]] = f
        ends[b] += 1
    for i in range(low + 1, high):
        f = order[i]
        j = i
        while j > low:
            e = order[j - 1]
            if counts[e] < counts[f] or (counts[e] == counts[f] and ties[e] <= ties[f]):
                break
            order[j] = e
            j -= 1
        order[j] = f


@lean
def forests(w, parent, first, last, out):
    """Tell which of the graphs first..last-1 have no cycle; some are known to have one."""
    for g in range(first, last):
        out[g] = out[g] and is_forest(w, parent, g)


@inner
def is_forest(w, parent, g):
    """Tell whether a graph has no cycle."""
    for v in range(w.graph_variables[g], w.graph_variables[g + 1]):
        parent[v] = v
    for f in range(w.graph_factors[g], w.graph_factors[g + 1]):
        if not _joins(w, f, parent):
            return False
    return True


@inner
def _joins(w, f, parent):
    """Let a factor join the trees that its variables are in, unless it would close a cycle."""
    low, high = w.scope_offsets[f], w.scope_offsets[f + 1]
    for s in range(low + 1, high):
        root = _root(parent, w.scopes[s])
        for t in range(low, s):
            if _root(parent, w.scopes[t]) == root:
                return False
    for s in range(low + 1, high):
        parent[_root(parent, w.scopes[s])] = _root(parent, w.scopes[low])
    return True


@lean
def breadth_first(w, which, seen, seen_factor, first, last, order):
    """Variables of the graphs first..last-1 in breadth-first order, or as they are."""
    for g in range(first, last):
        visit(w, g, which[g], seen, seen_factor, order)


@inner
def visit(w, g, searching, seen, seen_factor, order):
    """Variables of a graph in breadth-first order if `searching`, else as they are.

    Roots are taken in index order, and parents before children.
    """
    start, stop = w.graph_variables[g], w.graph_variables[g + 1]
    if searching:
        _search(w, seen, seen_factor, start, stop, order)
    else:
        for v in range(start, stop):
            order[v] = v


@inner
def _search(w, seen, seen_factor, first, last, order):
    head = first
    tail = first
    for root in range(first, last):
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


# ---- wirings that are paths --------------------------------------------------------------


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
        flat = nodes
        at = a * K
        down, right = 0, 1
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
