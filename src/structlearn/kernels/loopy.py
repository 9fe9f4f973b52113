"""Schedules of message passing: sequential sweeps, flooding, largest residual first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn.kernels.jit import part
from structlearn.kernels.message import combine, update
from structlearn.kernels.tournament import set_leaf, winner

SEQUENTIAL, FLOODING, RESIDUAL = range(3)


class Order(NamedTuple):
    """In which order sequential sweeps visit the variables."""

    variables: np.ndarray  #: variables of graph after graph, in visiting order
    rank: np.ndarray  #: position of every variable in that order
    span: np.ndarray  #: (factors, 2) lowest and highest rank in the scope


@part
def _sequential(low, high, net, order, traffic, desk):
    """One sweep forward and one back; a variable pulls from factors with earlier (later) ones.

    Messages into a variable change only when it is visited, so its belief is computed once.
    """
    worst = 0.0
    for k in range(2 * (high - low)):
        back = k >= high - low
        v = order.variables[low + k if not back else 2 * high - low - 1 - k]
        rank = order.rank[v]
        for q in range(net.variables[v, 0], net.variables[v + 1, 0]):
            t = net.touching[q]
            f = net.slots[t, 1]
            if (order.span[f, 1] > rank) if back else (order.span[f, 0] < rank):
                worst = max(worst, update(t, net, traffic, desk, traffic.messages))
        combine(v, -1, net, traffic, traffic.beliefs, net.variables[v, 1])
    return worst


@part
def _flooding(low, high, first, last, net, traffic, desk):
    """All messages at once from the old ones."""
    worst = 0.0
    for t in range(first, last):
        f = net.slots[t, 1]
        if net.factors[f + 1, 0] - net.factors[f, 0] > 1:
            worst = max(worst, update(t, net, traffic, desk, traffic.fresh))
    for t in range(first, last):
        v, m = net.slots[t, 0], net.slots[t, 2]
        for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
            traffic.messages[k] = traffic.fresh[k]
    for v in range(low, high):
        combine(v, -1, net, traffic, traffic.beliefs, net.variables[v, 1])
    return worst


@part
def _residual(first, last, net, traffic, desk, tree, queue, tol):
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
            change = update(queue[k], net, traffic, desk, traffic.fresh)
            set_leaf(tree, queue[k] - first, change if change < np.inf else 0.0)
        if tree[1] <= tol:
            break
        t = first + winner(tree)
        v, m = net.slots[t, 0], net.slots[t, 2]
        for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
            traffic.messages[k] = traffic.fresh[k]
        combine(v, -1, net, traffic, traffic.beliefs, net.variables[v, 1])
        queue[0] = t
        waiting = 1
        for q in range(net.variables[v, 0], net.variables[v + 1, 0]):
            f = net.slots[net.touching[q], 1]
            for u in range(net.factors[f, 0], net.factors[f + 1, 0]):
                if net.slots[u, 0] != v:
                    queue[waiting] = u
                    waiting += 1
    return max(tree[1], 0.0)


@part
def propagate(
    borders, net, order, traffic, desk, tree, queue, schedule, tol, sweeps, first, last,
    change, iterations, done,
):  # fmt: skip
    """Sweep over each of the graphs first..last-1 until it rests, unless it is already done.

    `borders` (graphs + 1, 3) tells where their variables, slots and factors begin. The last
    change, the number of sweeps and whether the change is within `tol` are brought up to date.
    """
    for g in range(first, last):
        if done[g]:
            continue
        low, high = borders[g, 0], borders[g + 1, 0]
        for v in range(low, high):
            combine(v, -1, net, traffic, traffic.beliefs, net.variables[v, 1])
        for _ in range(sweeps):
            if schedule == SEQUENTIAL:
                worst = _sequential(low, high, net, order, traffic, desk)
            elif schedule == FLOODING:
                worst = _flooding(low, high, borders[g, 1], borders[g + 1, 1], net, traffic, desk)
            else:
                worst = _residual(
                    borders[g, 1], borders[g + 1, 1], net, traffic, desk, tree, queue, tol
                )
            change[g] = worst
            iterations[g] += 1
            if worst <= tol:
                done[g] = True
                break
