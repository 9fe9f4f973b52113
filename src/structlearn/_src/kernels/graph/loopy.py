"""Schedules of message passing: sequential sweeps, flooding, largest residual first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.graph.message import NOBODY, combine, update
from structlearn._src.kernels.graph.tournament import set_leaf, winner
from structlearn._src.kernels.jit import inner, lean


class VisitingOrder(NamedTuple):
    """In which order sequential sweeps visit the variables."""

    variables: np.ndarray  #: variables of graph after graph, in visiting order
    rank: np.ndarray  #: position of every variable in that order
    span: np.ndarray  #: (factors, 2) lowest and highest rank in the scope


@lean
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


@inner
def _sweep(low, high, net, order, state, workspace, flooding):
    """One sweep over the variables low..high-1; returns the largest change of a message.

    Sequential: from the last to the first and back, each variable pulling from the factors with
    later (earlier) ones; in a forest with parents first that is leaves to roots to leaves, which
    is exact. Messages into a variable change only when it is visited, so its belief is computed
    once. Flooding: all messages at once from the old ones.
    """
    worst = 0.0
    n = high - low
    out = state.fresh if flooding else state.messages
    for k in range(n if flooding else 2 * n):
        v = order.variables[high - 1 - k if k < n else low + k - n]
        rank = order.rank[v]
        for q in range(net.variables[v, 0], net.variables[v + 1, 0]):
            t = net.variable_slots[q]
            f = net.slots[t, 1]
            earlier, later = order.span[f, 0] < rank, order.span[f, 1] > rank
            if (earlier or later) if flooding else (later if k < n else earlier):
                worst = max(worst, update(t, net, state, workspace, out))
        if not flooding:
            combine(v, NOBODY, net, state, state.beliefs, net.variables[v, 1])
    return worst


@lean
def propagate(
    borders, net, order, state, workspace, flooding, tol, sweeps, first, last,
    change, iterations, done,
):  # fmt: skip
    """Sweep over each of the graphs first..last-1 until it rests, unless it is already done.

    `borders` (graphs + 1, 3) tells where their variables, slots and factors begin. The last
    change, the number of sweeps and whether the change is within `tol` are brought up to date.
    For flooding, state.fresh must begin as a copy of the messages.
    """
    for g in range(first, last):
        low, high = borders[g, 0], borders[g + 1, 0]
        for i in range(0 if done[g] else sweeps):
            for v in range(low, high if flooding or i == 0 else low):
                combine(v, NOBODY, net, state, state.beliefs, net.variables[v, 1])
            change[g] = _sweep(low, high, net, order, state, workspace, flooding)
            iterations[g] += 1
            for t in range(borders[g, 1], borders[g + 1, 1] if flooding else borders[g, 1]):
                v, m = net.slots[t, 0], net.slots[t, 2]
                for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
                    state.messages[k] = state.fresh[k]
            if change[g] <= tol:
                done[g] = True
                break


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
        v, m = net.slots[t, 0], net.slots[t, 2]
        for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
            state.messages[k] = state.fresh[k]
        combine(v, NOBODY, net, state, state.beliefs, net.variables[v, 1])
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
            combine(v, NOBODY, net, state, state.beliefs, net.variables[v, 1])
        for _ in range(0 if done[g] else sweeps):
            change[g] = _residual(
                borders[g, 1], borders[g + 1, 1], net, state, workspace, tree, queue, tol
            )
            iterations[g] += 1
            if change[g] <= tol:
                done[g] = True
                break
