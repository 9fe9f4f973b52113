"""Schedules of message passing: sequential sweeps over blocks, flooding, largest residual first.

`borders` (parts + 1, 3) tells where the variables, slots and factors of graphs begin, or of parts
of a large one. `order` is a `VisitingOrder`: variables in visiting order, in blocks.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.graph.message import update, update_belief
from structlearn._src.kernels.graph.schedule import BACK, FLOODING, FORTH
from structlearn._src.kernels.graph.tournament import set_leaf, winner
from structlearn._src.kernels.jit import inline, inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import done, take, wait

# As arguments plain numbers would have a function compiled anew for each of them.
_EITHER = np.int64(BACK | FORTH)
_FLOODING = np.int64(FLOODING)


@inner
def level(net, weights, messages, first, last):
    """Shift messages to a largest entry of 0 and divide them by the weight of their factor."""
    for t in range(first, last):
        v, f, m = net.slots[t, 0], net.slots[t, 1], net.slots[t, 2]
        end = m + net.variables[v + 1, 1] - net.variables[v, 1]
        top = messages[m]
        for k in range(m + 1, end):
            top = max(top, messages[k])
        for k in range(m, end):
            messages[k] = (messages[k] - top) / weights[f]


@inline
def _raise(t, net, state):
    """Bring the power of a message up to date, where some are needed."""
    if state.raised.size > 0 and state.ratios[t] != 1.0:
        v, m = net.slots[t, 0], net.slots[t, 2]
        for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
            state.raised[k] = state.messages[k] ** state.ratios[t]


@inner
def raise_all(net, state, first, last):
    """Compute the powers of the messages of the slots first..last-1."""
    for t in range(first, last):
        _raise(t, net, state)


@inline
def _accept(t, net, state):
    """Replace the message of slot `t` by the one in waiting."""
    v, m = net.slots[t, 0], net.slots[t, 2]
    for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
        state.messages[k] = state.fresh[k]
    _raise(t, net, state)


@inner
def _sweep(low, high, ways, net, order, state, workspace):
    """Visit the variables in the places low..high-1 of the order; returns the largest change.

    From the last variable to the first and back, each listening to the factors with later
    (earlier) ones; in a forest with parents first that is leaves to roots to leaves, which is
    exact. Messages into a variable change only when it is visited, so its belief is computed once.
    Flooding is neither back nor forth: all messages from the old ones, to state.fresh.
    """
    worst = 0.0
    flooding = ways == FLOODING
    n = high - low
    out = state.fresh if flooding else state.messages
    for i in range(n if ways == FORTH else 0, 2 * n if ways & FORTH else n):
        v = order.variables[high - 1 - i if i < n else low + i - n]
        way = BACK | FORTH if flooding else BACK if i < n else FORTH
        for q in range(net.variables[v, 0], net.variables[v + 1, 0]):
            t = net.variable_slots[q]
            if net.slots[t, 3] & way:
                worst = max(worst, update(t, net, state, workspace, out))
                if not flooding:
                    _raise(t, net, state)
        if not flooding:
            update_belief(v, net, state)
    return worst


@inner
def propagate(
    borders, net, order, state, workspace, flooding, ready, tol, sweeps, first, last,
    change, iterations, done,
):  # fmt: skip
    """Sweep over each of the graphs first..last-1 until it rests, unless it is already done.

    Graphs of several blocks are left out. The last change, the number of sweeps and whether the
    change is within `tol` are brought up to date. Beliefs are `ready`, or computed first. For
    flooding, all messages at once from the old ones, state.fresh begins as a copy of them.
    """
    ways = _FLOODING if flooding else _EITHER
    for g in range(first, last):
        low, high = borders[g, 0], borders[g + 1, 0]
        several = order.graph_colours[g + 1] > order.graph_colours[g] + 1
        if done[g] or several or sweeps <= 0:
            continue
        count = 0
        moved = np.inf
        while count < sweeps:
            for v in range(low, high if flooding or (count == 0 and not ready) else low):
                update_belief(v, net, state)
            moved = _sweep(low, high, ways, net, order, state, workspace)
            count += 1
            for t in range(borders[g, 1], borders[g + 1, 1] if flooding else borders[g, 1]):
                _accept(t, net, state)
            if moved <= tol:
                break
        # Written at the end: other threads write beside it.
        change[g] = moved
        iterations[g] += count
        done[g] = moved <= tol


@inner
def propagate_graphs(
    number, board, ranges, borders, net, order, state, workspaces, flooding, ready, tol, sweeps,
    change, iterations, done,
):  # fmt: skip
    """As `propagate`, over ranges of graphs that threads take."""
    workspace = own(*workspaces, number)
    i = take(board, 0)
    while i < ranges.size - 1:
        propagate(
            borders, net, order, state, workspace, flooding, ready, tol, sweeps, ranges[i],
            ranges[i + 1], change, iterations, done,
        )  # fmt: skip
        i = take(board, 0)


@lean
def propagate_in_threads(box, helpers, *given):
    """Run `propagate_graphs` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(propagate_graphs, given))
    propagate_graphs(0, *given)
    withdraw(box, open_)


# ---- the same for parts of one graph -----------------------------------------------------


@lean
def refresh(borders, net, state, first, last):
    """Combine the messages to all variables of the parts first..last-1 in state.beliefs."""
    for v in range(borders[first, 0], borders[last, 0]):
        update_belief(v, net, state)


@inner
def sweep_blocks(number, board, rounds, net, order, state, workspaces, change):
    """Visit the blocks of one round after the other, with the largest change of each block.

    In `rounds` (rounds, 3) are the first block, the end and the ways. No two blocks of a round
    touch each other.
    """
    workspace = own(*workspaces, number)
    for r in range(len(rounds)):
        first, count, ways = rounds[r, 0], rounds[r, 1] - rounds[r, 0], rounds[r, 2]
        i = take(board, r)
        while i < count:
            b = first + i
            low, high = order.block_offsets[b], order.block_offsets[b + 1]
            change[b] = max(change[b], _sweep(low, high, ways, net, order, state, workspace))
            done(board, r)
            i = take(board, r)
        wait(board, r, count)


@lean
def sweep_in_threads(box, helpers, *given):
    """Run `sweep_blocks` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(sweep_blocks, given))
    sweep_blocks(0, *given)
    withdraw(box, open_)


@lean
def flood_parts(borders, net, order, state, workspace, first, last, change):
    """Write all new messages into the variables of the parts first..last-1 to state.fresh."""
    for p in range(first, last):
        low, high = borders[p, 0], borders[p + 1, 0]
        change[p] = _sweep(low, high, _FLOODING, net, order, state, workspace)


@lean
def accept_parts(borders, net, state, first, last):
    """Replace the messages of the slots of the parts first..last-1 by those in waiting."""
    for t in range(borders[first, 1], borders[last, 1]):
        _accept(t, net, state)


# ---- largest residual first --------------------------------------------------------------


@inner
def _residual(first, last, net, state, workspace, tree, queue, tol):
    """As many updates as a sweep has, always of the message that would change most.

    `queue` holds the slots whose next message must be computed anew.
    """
    tree[:] = -np.inf
    waiting = 0
    for t in range(first, last):
        f = net.slots[t, 1]
        if net.factors[f + 1, 0] - net.factors[f, 0] > 1:
            queue[waiting] = t
            waiting += 1
    for _ in range(waiting):
        for k in range(waiting):
            change = update(queue[k], net, state, workspace, state.fresh)
            set_leaf(tree, queue[k] - first, change if change < np.inf else 0.0)
        if tree[1] <= tol:
            break
        t = first + winner(tree)
        v = net.slots[t, 0]
        _accept(t, net, state)
        update_belief(v, net, state)
        queue[0] = t
        waiting = 1
        for q in range(net.variables[v, 0], net.variables[v + 1, 0]):
            f = net.slots[net.variable_slots[q], 1]
            for u in range(net.factors[f, 0], net.factors[f + 1, 0]):
                if net.slots[u, 0] != v:
                    queue[waiting] = u
                    waiting += 1
    return max(tree[1], 0.0)


@lean
def chase(
    borders, net, state, workspace, tree, queue, tol, sweeps, first, last, change, iterations, done
):
    """As `propagate`, with the message that would change most always updated next."""
    for g in range(first, last):
        for v in range(borders[g, 0], borders[g + 1, 0]):
            update_belief(v, net, state)
        for _ in range(0 if done[g] else sweeps):
            change[g] = _residual(
                borders[g, 1], borders[g + 1, 1], net, state, workspace, tree, queue, tol
            )
            iterations[g] += 1
            if change[g] <= tol:
                done[g] = True
                break
