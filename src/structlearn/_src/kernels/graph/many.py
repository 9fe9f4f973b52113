"""Inference in many graphs by the threads of one call, from potentials to beliefs.

A thread takes one range of graphs after the other, and does all of the work on a graph while the
cache holds it: it reads the potentials that agree with the states of fixed variables, solves what
is left, and writes the beliefs times the factor of the graph. `ranges` are the borders between the
tasks; for what `number` and the entries `..._in_threads` are, see `kernels/launch`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.graph.domain import solve
from structlearn._src.kernels.graph.eliminate import backward, forward
from structlearn._src.kernels.graph.readout import read_factors
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import take


class Fixed(NamedTuple):
    """Which entries of the tables agree with the states of fixed variables."""

    some: bool  #: whether any variable is fixed: else all entries do, and the arrays are empty
    kept: np.ndarray  #: entries of factors with a free variable, in the order of what is left
    gone: np.ndarray  #: of factors without one, an entry each
    gone_offsets: np.ndarray  #: (graphs + 1) into `gone`


def nothing_fixed() -> Fixed:
    """Return what says that no variable is fixed."""
    return Fixed(False, *(np.empty(0, np.int64) for _ in range(3)))


class Exchange(NamedTuple):
    """What is read and written of whole graphs; beliefs may take the place of potentials."""

    offsets: np.ndarray  #: (graphs + 1) where the tables of every graph begin
    potentials: np.ndarray
    factors: np.ndarray  #: (graphs,) what beliefs are multiplied by; empty if none are wanted
    beliefs: np.ndarray
    fixed: Fixed


@inner
def _read(x, g, tables, out):
    """Copy the potentials of what is left of a graph; returns the sum of the others."""
    total = 0.0
    if not x.fixed.some:
        for k in range(tables[g], tables[g + 1]):
            out[k] = x.potentials[k]
        return total
    for k in range(tables[g], tables[g + 1]):
        out[k] = x.potentials[x.fixed.kept[k]]
    for i in range(x.fixed.gone_offsets[g], x.fixed.gone_offsets[g + 1]):
        total += x.potentials[x.fixed.gone[i]]
    return total


@inner
def _write(x, g, tables, found):
    """Write the beliefs of a graph times its factor: point masses where all is fixed."""
    factor = x.factors[g]
    if not x.fixed.some:
        for k in range(tables[g], tables[g + 1]):
            x.beliefs[k] = factor * found[k]
        return
    for k in range(x.offsets[g], x.offsets[g + 1]):
        x.beliefs[k] = 0.0
    for k in range(tables[g], tables[g + 1]):
        x.beliefs[x.fixed.kept[k]] = factor * found[k]
    for i in range(x.fixed.gone_offsets[g], x.fixed.gone_offsets[g + 1]):
        x.beliefs[x.fixed.gone[i]] = factor


# ---- elimination -------------------------------------------------------------------------


@inner
def eliminate_graphs(
    number, board, ranges, x, tables, cards, eps, plan, belief_offsets, store, beliefs, marginals,
    workspaces, value,
):  # fmt: skip
    """Solve graphs by elimination; `store`, `beliefs` and `marginals` are workspace of all."""
    block = own(*workspaces, number)
    i = take(board, 0)
    while i < ranges.size - 1:
        for g in range(ranges[i], ranges[i + 1]):
            sure = _read(x, g, tables, store)
            forward(cards, eps, plan, tables, store, store, block, g, g + 1, value)
            value[g] += sure
            if x.factors.size > 0:
                backward(
                    cards, eps, plan, tables, store, beliefs, belief_offsets, block, g, g + 1,
                    marginals,
                )  # fmt: skip
                _write(x, g, tables, beliefs)
        i = take(board, 0)


@lean
def eliminate_in_threads(box, helpers, *given):
    """Run `eliminate_graphs` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(eliminate_graphs, given))
    eliminate_graphs(0, *given)
    withdraw(box, open_)


# ---- messages ----------------------------------------------------------------------------


@inner
def message_graphs(
    number, board, ranges, x, tables, borders, net, order, warm, plain, span, start, eps, tol,
    sweeps, marginals, workspaces, value, change, iterations, done,
):  # fmt: skip
    """Solve graphs by messages, as `domain.solve`; `plain.tables` is workspace of all.

    It may be the array of the potentials, if nothing is fixed, and then holds beliefs in the end.
    """
    workspace = own(*workspaces, number)
    wanted = x.factors.size > 0
    i = take(board, 0)
    while i < ranges.size - 1:
        for g in range(ranges[i], ranges[i + 1]):
            sure = _read(x, g, tables, plain.tables)
            solve(
                borders, net, order, warm, plain, span, start, eps, workspace, tol, sweeps, g,
                g + 1, marginals, value, change, iterations, done,
            )  # fmt: skip
            # The table of a factor is read before its beliefs take its place.
            read_factors(
                borders, net, plain, marginals, workspace, g, g + 1, wanted, plain.tables, value
            )
            value[g] += sure
            if wanted:
                _write(x, g, tables, plain.tables)
        i = take(board, 0)


@lean
def message_in_threads(box, helpers, *given):
    """Run `message_graphs` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(message_graphs, given))
    message_graphs(0, *given)
    withdraw(box, open_)
