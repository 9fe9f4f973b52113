"""Inference in many graphs by the threads of one call, from tables of groups and back to them.

A thread takes one range of graphs after the other, and does all of the work on a graph while the
cache holds it: it puts the tables of its factors together, keeps the entries that agree with the
states of fixed variables, solves what is left, and adds the beliefs times the factor of the graph
to where the tables came from. `ranges` are the borders between the tasks; for what `number` and
the entries `..._in_threads` are, see `kernels/launch`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.graph.domain import solve
from structlearn._src.kernels.graph.eliminate import backward, forward
from structlearn._src.kernels.graph.message import START
from structlearn._src.kernels.graph.readout import read_factors
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import take


class GraphWorkspace(NamedTuple):
    """Workspace of a thread."""

    tables: np.ndarray  #: as long as those of the largest graph


class Fixed(NamedTuple):
    """Which entries of the tables agree with the states of fixed variables."""

    some: bool  #: whether any variable is fixed: else all entries do, and the arrays are empty
    kept: np.ndarray  #: entries of factors with a free variable, in the order of what is left
    gone: np.ndarray  #: of factors without one, an entry each
    gone_offsets: np.ndarray  #: (graphs + 1) into `gone`
    workspaces: tuple[GraphWorkspace, np.ndarray]  #: for whole graphs, of every thread


class Exchange(NamedTuple):
    """What is read and written of whole graphs: tables that factors have alone, or share."""

    graph_factors: np.ndarray  #: (graphs + 1)
    offsets: np.ndarray  #: (factors + 1) into all potentials
    #: where each table begins in `tables`, and then in `shared`; -1 if it is 0; empty if all
    #: potentials are where they belong already
    places: np.ndarray
    tables: np.ndarray
    shared: np.ndarray
    added: np.ndarray  #: to all potentials; may be empty
    factors: np.ndarray  #: (graphs,) what beliefs are multiplied by; empty if none are wanted
    beliefs: np.ndarray  #: instead of `tables`, and maybe in their place
    add: bool  #: to what the beliefs are
    sums: np.ndarray  #: (ranges, entries of `shared` at least) beliefs are added to
    fixed: Fixed


def nothing_fixed() -> Fixed:
    """Return what says that no variable is fixed."""
    nothing = np.empty(0, np.int64)
    nobody = make_graph_workspace(0), np.empty((0, 0), np.int64)
    return Fixed(False, nothing, nothing, nothing, nobody)


def make_graph_workspace(size: int) -> GraphWorkspace:
    """Return workspace for graphs with so many entries in their tables."""
    return GraphWorkspace(np.empty(size))


@inner
def _put(x, g, shift, out):
    """Write the potentials of a graph, each to its place less `shift`."""
    n = x.tables.size
    for f in range(x.graph_factors[g], x.graph_factors[g + 1]):
        low, high, place = x.offsets[f], x.offsets[f + 1], x.places[f]
        if place < 0:
            for k in range(low, high):
                out[k - shift] = 0.0
        elif place < n:
            for k in range(low, high):
                out[k - shift] = x.tables[place + k - low]
        else:
            for k in range(low, high):
                out[k - shift] = x.shared[place - n + k - low]
    if x.added.size > 0:
        first, last = x.graph_factors[g], x.graph_factors[g + 1]
        for k in range(x.offsets[first], x.offsets[last]):
            out[k - shift] += x.added[k]


@inner
def _take(x, i, g, shift, found):
    """Read the beliefs of a graph in range `i`, as `_put` has written potentials."""
    n = x.tables.size
    factor = x.factors[g]
    for f in range(x.graph_factors[g], x.graph_factors[g + 1]):
        low, high, place = x.offsets[f], x.offsets[f + 1], x.places[f]
        if place >= n:
            for k in range(low, high):
                x.sums[i, place - n + k - low] += factor * found[k - shift]
        elif place >= 0:
            for k in range(low, high):
                old = x.beliefs[place + k - low] if x.add else 0.0
                x.beliefs[place + k - low] = old + factor * found[k - shift]


@inner
def _read(number, x, g, tables, out):
    """Write the potentials of what is left of a graph; returns the sum of the others."""
    if not x.fixed.some:
        if x.places.size > 0:
            _put(x, g, START, out)
        return 0.0
    whole = own(*x.fixed.workspaces, number).tables
    start = x.offsets[x.graph_factors[g]]
    _put(x, g, start, whole)
    for k in range(tables[g], tables[g + 1]):
        out[k] = whole[x.fixed.kept[k] - start]
    total = 0.0
    for i in range(x.fixed.gone_offsets[g], x.fixed.gone_offsets[g + 1]):
        total += whole[x.fixed.gone[i] - start]
    return total


@inner
def _write(number, x, i, g, tables, found):
    """Add the beliefs of a graph in range `i` times its factor: point masses where all is fixed."""
    if not x.fixed.some:
        _take(x, i, g, START, found)
        return
    whole = own(*x.fixed.workspaces, number).tables
    start = x.offsets[x.graph_factors[g]]
    whole[: x.offsets[x.graph_factors[g + 1]] - start] = 0.0
    for k in range(tables[g], tables[g + 1]):
        whole[x.fixed.kept[k] - start] = found[k]
    for j in range(x.fixed.gone_offsets[g], x.fixed.gone_offsets[g + 1]):
        whole[x.fixed.gone[j] - start] = 1.0
    _take(x, i, g, start, whole)


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
            sure = _read(number, x, g, tables, store)
            forward(cards, eps, plan, tables, store, store, block, g, g + 1, value)
            value[g] += sure
            if x.factors.size > 0:
                backward(
                    cards, eps, plan, tables, store, beliefs, belief_offsets, block, g, g + 1,
                    marginals,
                )  # fmt: skip
                _write(number, x, i, g, tables, beliefs)
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

    If nothing is fixed it may be the array of beliefs, where each table lies in its own place.
    """
    workspace = own(*workspaces, number)
    wanted = x.factors.size > 0
    i = take(board, 0)
    while i < ranges.size - 1:
        for g in range(ranges[i], ranges[i + 1]):
            sure = _read(number, x, g, tables, plain.tables)
            solve(
                borders, net, order, warm, plain, span, start, eps, workspace, tol, sweeps, g,
                g + 1, marginals, value, change, iterations, done,
            )  # fmt: skip
            # The table of a factor is read before its beliefs take its place.
            read_factors(
                borders, net, plain, marginals, workspace, g, g + 1, wanted, plain.tables, value
            )
            if sure != 0.0:
                value[g] += sure
            if wanted:
                _write(number, x, i, g, tables, plain.tables)
        i = take(board, 0)


@lean
def message_in_threads(box, helpers, *given):
    """Run `message_graphs` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(message_graphs, given))
    message_graphs(0, *given)
    withdraw(box, open_)
