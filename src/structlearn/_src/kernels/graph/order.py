"""Elimination orders: greedy by fill-in or by table size, with random tie-breaks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.graph.tournament import set_leaf, winner
from structlearn._src.kernels.jit import inner, lean

MIN_FILL, MIN_SIZE, AS_GIVEN = range(3)  # AS_GIVEN leaves the cost to the noise alone
_LATER = 1e15  # added to the cost of variables that must come after all others


class OrderWorkspace(NamedTuple):
    """Everything the greedy elimination writes to."""

    order: np.ndarray  #: variables as they are eliminated, -1 beyond an early end
    cut: np.ndarray  #: variables taken out to keep tables small
    separator_offsets: np.ndarray
    separators: np.ndarray  #: neighbours of each variable when it is eliminated
    start: np.ndarray  #: where each variable's neighbours begin in the pool
    count: np.ndarray
    pool: np.ndarray  #: sorted neighbour lists; new ones are added at the end
    stamp: np.ndarray
    touched: np.ndarray
    tree: np.ndarray


@inner
def _rate(v, turn, rule, log_cards, noise, later, workspace):
    """Bring the cost of `v` up to date, once per elimination; returns the steps it took."""
    start = workspace.start
    count = workspace.count
    pool = workspace.pool
    stamp = workspace.stamp
    if workspace.touched[v] == turn:
        return 0
    workspace.touched[v] = turn
    low, high = start[v], start[v] + count[v]
    cost = 0.0
    steps = count[v]
    if rule == MIN_SIZE:
        cost = log_cards[v]
        for k in range(low, high):
            cost += log_cards[pool[k]]
    elif rule == MIN_FILL:
        stamp[-1] += 1  # marks the neighbours of v
        for k in range(low, high):
            stamp[pool[k]] = stamp[-1]
        linked = 0
        for k in range(low, high):
            u = pool[k]
            steps += count[u]
            for j in range(start[u], start[u] + count[u]):
                if stamp[pool[j]] == stamp[-1]:
                    linked += 1
        cost = (count[v] * (count[v] - 1) - linked) / 2.0
    set_leaf(workspace.tree, v, -(cost + noise[v] + (_LATER if later[v] else 0.0)))
    return steps


@inner
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


@inner
def _take_out(v, low, size, turn, rule, log_cards, noise, later, workspace):
    """Cut the variable with most neighbours among `v` and its neighbours out of the graph."""
    start = workspace.start
    count = workspace.count
    pool = workspace.pool
    out = v
    for k in range(low, low + size):
        if count[pool[k]] > count[out]:
            out = pool[k]
    workspace.cut[out] = True
    set_leaf(workspace.tree, out, -np.inf)
    for k in range(start[out], start[out] + count[out]):
        u = pool[k]
        moved = False
        for j in range(start[u], start[u] + count[u] - 1):
            moved = moved or pool[j] == out
            if moved:
                pool[j] = pool[j + 1]
        count[u] -= 1
        _rate(u, turn, rule, log_cards, noise, later, workspace)


@lean
def eliminate_greedily(rule, log_cards, noise, later, limit, cutting, workspace, report, stand):
    """Order the variables, always eliminating the cheapest next.

    `report` gets the log of the largest table, its number of variables, and the steps of work. A
    table over `limit` (log entries) ends it early, or if `cutting` has a variable cut out instead.
    Returns False if the pool or the separators are out of room, to be called again when they have
    more: `stand` says how many turns are over, how many variables are in order, and up to where the
    pool is filled, first of all with the neighbour lists.
    """
    order = workspace.order
    start = workspace.start
    count = workspace.count
    pool = workspace.pool
    tree = workspace.tree
    begun, position, end = stand
    for v in range(log_cards.size if begun == 0 else 0):
        _rate(v, -2, rule, log_cards, noise, later, workspace)
    for turn in range(begun, log_cards.size):
        v = winner(tree)
        low = start[v]
        size = count[v]
        first = workspace.separator_offsets[position]
        room = end + size * size
        for k in range(size):
            room += count[pool[low + k]]
        if first + size > workspace.separators.size or room > pool.size:
            stand[0] = turn
            stand[1] = position
            stand[2] = end
            return False
        table = log_cards[v]
        for k in range(size):
            workspace.separators[first + k] = pool[low + k]
            table += log_cards[pool[low + k]]
        if cutting and table > limit:
            _take_out(v, low, size, turn, rule, log_cards, noise, later, workspace)
            continue
        order[position] = v
        position += 1
        workspace.separator_offsets[position] = first + size
        if table > report[0]:
            report[0] = table
            report[1] = size + 1
        if table > limit:
            return True
        set_leaf(tree, v, -np.inf)
        filled = False
        for k in range(size):
            u = pool[low + k]
            stop = _merge(start[u], start[u] + count[u], low, low + size, pool, u, v, end)
            filled = filled or stop - end > count[u] - 1
            start[u] = end
            count[u] = stop - end
            end = stop
        for k in range(size):
            u = pool[low + k]
            report[2] += _rate(u, turn, rule, log_cards, noise, later, workspace)
            # Without new edges nobody further away sees a change.
            for j in range(start[u], start[u] + count[u] if filled else start[u]):
                report[2] += _rate(pool[j], turn, rule, log_cards, noise, later, workspace)
    return True
