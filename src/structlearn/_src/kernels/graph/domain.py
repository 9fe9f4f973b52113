"""Tables and messages as exponentials or as logarithms, and whole runs between the two.

Messages are exponentials while they are passed, where the tables allow it, and logarithms before
and after. Threads take ranges of factors; `ranges` are the borders between them. For what `number`
and the entries `..._in_threads` are, see `kernels/launch`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.graph.readout import read_beliefs
from structlearn._src.kernels.graph.sweep import level, propagate, raise_all
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import publish, task, withdraw
from structlearn._src.kernels.team import take

# What `convert_ranges` does.
TABLES, TO_LINEAR, TO_LOG = 0, 1, 2


class Span(NamedTuple):
    """How far the entries of tables may be apart for exponentials."""

    near: float  #: nats from 0 up to which tables need not even be scaled
    widest: float  #: nats between the entries of a table up to which linear messages are safe
    power: float  #: to which messages are raised at most


@inner
def exponentials(net, weights, potentials, span, first, last, out):
    """Write exp(potentials / weight) of the factors first..last-1; tells whether that is safe.

    Far from 0 the largest entry of every table becomes 1. Hard constraints are exact zeros; what
    counts is the span of the finite entries.
    """
    far = False
    for k in range(net.factors[first, 1], net.factors[last, 1]):
        far = far or not abs(potentials[k]) <= span.near
    for f in range(first, last):
        low, high, w = net.factors[f, 1], net.factors[f + 1, 1], weights[f]
        top = -np.inf if far else 0.0
        bottom = np.inf
        for k in range(low, high if far else low):
            x = potentials[k] / w
            top = max(top, x)
            bottom = min(bottom, x) if x > -np.inf else bottom
        if far and not (abs(top) < np.inf and span.power * (top - bottom) <= span.widest):
            return False
        for k in range(low, high):
            out[k] = np.exp(potentials[k] / w - top)
    return True


@inner
def load_singles(net, potentials, first, last, messages):
    """Let the factors over one variable of first..last-1 send their potentials."""
    for f in range(first, last):
        s = net.factors[f, 0]
        if net.factors[f + 1, 0] == s + 1:
            m = net.slots[s, 2] - net.factors[f, 1]
            for k in range(net.factors[f, 1], net.factors[f + 1, 1]):
                messages[m + k] = potentials[k]


@inner
def to_linear(net, state, first, last):
    """Replace the messages of the slots first..last-1 by their exponentials, the largest 1."""
    level(net, state.weights, state.messages, first, last)
    for t in range(first, last):
        v, m = net.slots[t, 0], net.slots[t, 2]
        for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
            state.messages[k] = np.exp(state.messages[k])
    raise_all(net, state, first, last)


@inner
def to_log(net, weights, potentials, first, last, messages):
    """Replace the messages of the factors first..last-1 by w log of them.

    Those of single-variable factors are their potentials, to the last digit.
    """
    for f in range(first, last):
        start, stop = net.factors[f, 0], net.factors[f + 1, 0]
        for t in range(start, stop if stop > start + 1 else start):
            v, m = net.slots[t, 0], net.slots[t, 2]
            for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
                messages[k] = weights[f] * np.log(messages[k])
    load_singles(net, potentials, first, last, messages)


# ---- by ranges of factors ----------------------------------------------------------------


@inner
def begin_ranges(number, board, ranges, net, potentials, start, messages):
    """Let messages begin as those of `start`, or as 0 where that is empty, with `load_singles`."""
    r = take(board, 0)
    while r < ranges.size - 1:
        first, last = ranges[r], ranges[r + 1]
        for t in range(net.factors[first, 0], net.factors[last, 0]):
            v, m = net.slots[t, 0], net.slots[t, 2]
            for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
                messages[k] = start[k] if start.size > 0 else 0.0
        load_singles(net, potentials, first, last, messages)
        r = take(board, 0)


@lean
def begin_in_threads(box, helpers, *given):
    """Run `begin_ranges` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(begin_ranges, given))
    begin_ranges(0, *given)
    withdraw(box, open_)


@inner
def convert_ranges(number, board, ranges, net, state, span, what, tables, safe):
    """Write the exponentials of tables to `tables`, or convert messages, as `what` says.

    The state holds potentials. safe[0] becomes False where some table has no safe exponentials.
    """
    r = take(board, 0)
    while r < ranges.size - 1:
        first, last = ranges[r], ranges[r + 1]
        if what == TO_LINEAR:
            to_linear(net, state, net.factors[first, 0], net.factors[last, 0])
        elif what == TO_LOG:
            to_log(net, state.weights, state.tables, first, last, state.messages)
        elif not exponentials(net, state.weights, state.tables, span, first, last, tables):
            safe[0] = False
        r = take(board, 0)


@lean
def convert_in_threads(box, helpers, *given):
    """Run `convert_ranges` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(convert_ranges, given))
    convert_ranges(0, *given)
    withdraw(box, open_)


# ---- whole runs --------------------------------------------------------------------------


@inner
def solve(
    borders, net, order, warm, plain, span, start, eps, workspace, tol, sweeps, first, last,
    marginals, value, change, iterations, done,
):  # fmt: skip
    """Pass messages in the graphs first..last-1 from where they stood, and read off beliefs.

    `warm` holds exponentials and `plain` potentials, both the same messages, which begin as those
    of `start`. Graphs are of one block each. To read the factors here as well would be a third
    slower: so much does the compiler no longer put into one function.
    """
    for g in range(first, last):
        low, high = borders[g, 2], borders[g + 1, 2]
        slots, end = borders[g, 1], borders[g + 1, 1]
        for t in range(slots, end):
            v, m = net.slots[t, 0], net.slots[t, 2]
            for k in range(m, m + net.variables[v + 1, 1] - net.variables[v, 1]):
                plain.messages[k] = start[k]
        load_singles(net, plain.tables, low, high, plain.messages)
        linear = exponentials(net, plain.weights, plain.tables, span, low, high, warm.tables)
        if linear:
            to_linear(net, warm, slots, end)
        propagate(
            borders, net, order, warm if linear else plain, workspace, False, False, tol, sweeps,
            g, g + 1, change, iterations, done,
        )  # fmt: skip
        if linear:
            to_log(net, plain.weights, plain.tables, low, high, plain.messages)
        read_beliefs(borders, net, plain, eps, g, g + 1, marginals, value)
