"""Elimination orders: greedy by fill-in or by table size, with random tie-breaks."""

from __future__ import annotations

import numpy as np

from structlearn.kernels.jit import kernel
from structlearn.kernels.tournament import plant, set_leaf, winner

MIN_FILL, MIN_SIZE = range(2)
_LATER = 1e15  # added to the cost of variables that must come after all others


@kernel
def neighbours(wiring, pairs):
    """Write every ordered pair of variables that share a factor as u * n + v; return their count.

    Called with an empty array it only counts.
    """
    count = 0
    n = wiring.cards.size
    for f in range(wiring.table_offsets.size - 1):
        for a in range(wiring.scope_offsets[f], wiring.scope_offsets[f + 1]):
            for b in range(wiring.scope_offsets[f], wiring.scope_offsets[f + 1]):
                if a != b:
                    if pairs.size:
                        pairs[count] = wiring.scopes[a] * n + wiring.scopes[b]
                    count += 1
    return count


@kernel
def _cost(v, rule, log_cards, start, count, pool, stamp, noise, later):
    """Cost of eliminating `v` now; also counts the work it took in stamp[-1]."""
    low, high = start[v], start[v] + count[v]
    cost = log_cards[v]
    if rule == MIN_SIZE:
        for k in range(low, high):
            cost += log_cards[pool[k]]
    else:
        mark = stamp[-1] + 1
        for k in range(low, high):
            stamp[pool[k]] = mark
        linked = 0
        for k in range(low, high):
            u = pool[k]
            for j in range(start[u], start[u] + count[u]):
                if stamp[pool[j]] == mark:
                    linked += 1
        stamp[-1] = mark
        cost = (count[v] * (count[v] - 1) - linked) / 2.0
    return -(cost + noise[v] + (_LATER if later[v] else 0.0))


@kernel
def _merge(low, high, other_low, other_high, pool, drop_a, drop_b, out):
    """Union of two sorted runs of the pool without two entries; returns where it ends."""
    end = out
    while low < high or other_low < other_high:
        if other_low >= other_high or (low < high and pool[low] < pool[other_low]):
            u = pool[low]
            low += 1
        else:
            u = pool[other_low]
            if low < high and pool[low] == u:
                low += 1
            other_low += 1
        if u != drop_a and u != drop_b:
            pool[end] = u
            end += 1
    return end


@kernel
def _compact(start, count, alive, pool, more):
    """Copy the live neighbour lists into a pool with room to spare."""
    live = 0
    for v in range(alive.size):
        live += count[v] if alive[v] else 0
    fresh = np.empty(2 * live + 2 * more + 16, np.int64)
    end = 0
    for v in range(alive.size):
        if alive[v]:
            for k in range(count[v]):
                fresh[end + k] = pool[start[v] + k]
            start[v] = end
            end += count[v]
    return fresh, end


@kernel
def eliminate_greedily(
    rule, log_cards, offsets, adjacent, noise, later, limit, order, separator_offsets
):
    """Order the variables, always eliminating the cheapest next.

    Returns the separators (the neighbours of each variable when it is eliminated, one list after
    the other), the log of the largest table, its number of variables, and the steps of work. A
    table over `limit` (log entries) ends it early, with the last entries of `order` at -1.
    """
    n = log_cards.size
    start, count = offsets[:-1].copy(), offsets[1:] - offsets[:-1]
    pool, end = adjacent.copy(), adjacent.size
    alive = np.ones(n, np.bool_)
    stamp = np.full(n + 1, -1, np.int64)
    tree = plant(n)
    for v in range(n):
        set_leaf(tree, v, _cost(v, rule, log_cards, start, count, pool, stamp, noise, later))
    separators = np.empty(2 * adjacent.size + n, np.int64)
    largest, widest, work = 0.0, 0, 0
    touched = np.full(n, -1, np.int64)
    order[:] = -1
    separator_offsets[0] = 0
    for position in range(n):
        v = winner(tree)
        low, size = start[v], count[v]
        order[position] = v
        first = separator_offsets[position]
        if first + size > separators.size:
            bigger = np.empty(2 * (first + size), np.int64)
            bigger[:first] = separators[:first]
            separators = bigger
        table = log_cards[v]
        for k in range(size):
            separators[first + k] = pool[low + k]
            table += log_cards[pool[low + k]]
        separator_offsets[position + 1] = first + size
        if table > largest:
            largest, widest = table, size + 1
        if table > limit:
            break
        alive[v] = False
        set_leaf(tree, v, -np.inf)
        filled = False
        for k in range(size):
            u = separators[first + k]
            room = count[u] + size
            if end + room > pool.size:
                pool, end = _compact(start, count, alive, pool, room)
                low = end  # v is gone from the pool: put its list back at the end
                for j in range(size):
                    pool[end + j] = separators[first + j]
                end += size
            stop = _merge(start[u], start[u] + count[u], low, low + size, pool, u, v, end)
            filled = filled or stop - end > count[u] - 1
            start[u], count[u] = end, stop - end
            end = stop
            work += room
        for k in range(size):
            u = separators[first + k]
            work += _rate(
                u, position, rule, log_cards, start, count, pool, stamp, noise, later, touched, tree
            )
            # Without new edges nobody further away sees a change.
            for j in range(start[u], start[u] + count[u] if filled else start[u]):
                work += _rate(
                    pool[j], position, rule, log_cards, start, count, pool, stamp, noise, later,
                    touched, tree,
                )  # fmt: skip
    return separators[: separator_offsets[min(position + 1, n)]], largest, widest, work


@kernel
def _rate(v, position, rule, log_cards, start, count, pool, stamp, noise, later, touched, tree):
    """Bring the cost of `v` up to date, once per elimination; returns the steps it took."""
    if touched[v] == position:
        return 0
    touched[v] = position
    set_leaf(tree, v, _cost(v, rule, log_cards, start, count, pool, stamp, noise, later))
    return count[v] * count[v] if rule == MIN_FILL else count[v]
