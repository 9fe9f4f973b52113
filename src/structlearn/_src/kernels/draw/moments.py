"""Sums of points and of their products, by lists of the positions of every state.

Eight points at a time lie in lanes, below them a row of ones where a point is seen: its products
are the sums and the number of points. The lower triangle of all products, row by row, is what is
added up; of features that are independent only the diagonal and the last row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels import lanes
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.lanes import LANES
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import done, take, wait

PHASES = 2  # in which threads that find moments meet

_AHEAD = 32  # positions whose points are asked for before they are read: they lie far apart


class MomentWorkspace(NamedTuple):
    """Scratch space of one thread."""

    rows: np.ndarray  #: (features + 1, LANES)
    products: np.ndarray  #: (products, LANES)


class Members(NamedTuple):
    """The positions of every state, in their order."""

    positions: np.ndarray  #: (positions,) those of one state after the other
    starts: np.ndarray  #: (states + 1,) where those of every state begin

    def of(self, k: int) -> Ints:
        """Return the positions of a state."""
        found: Ints = self.positions[self.starts[k] : self.starts[k + 1]]
        return found


class MomentSums(NamedTuple):
    """Sums of parts of the positions of states, and those of states."""

    parts: np.ndarray  #: (parts, products)
    size: int  #: positions of a part
    counts: np.ndarray  #: (states,)
    sums: np.ndarray  #: (states, features)
    outers: np.ndarray  #: (states, features, features), or (states, features, 1) of squares alone


def n_products(features: int, full: bool) -> int:
    """Return how many products are added up."""
    return (features + 1) * (features + 2) // 2 if full else 2 * features + 1


def moment_workspace(features: int, full: bool) -> MomentWorkspace:
    """Return workspace of one thread."""
    height = n_products(features, full)
    return MomentWorkspace(np.empty((features + 1, LANES)), np.empty((height, LANES)))


def moment_sums(parts: int, size: int, states: int, features: int, full: bool) -> MomentSums:
    """Return room for all sums."""
    products: Floats = np.empty((parts, n_products(features, full)))
    outers = np.zeros((states, features, features if full else 1))
    return MomentSums(products, size, np.zeros(states), np.zeros((states, features)), outers)


@inner
def _load(points, seen, positions, begin, rows):
    """Copy up to eight points into lanes; those not seen, and lanes left over, become 0."""
    n = min(LANES, positions.size - begin)
    for i in range(begin + _AHEAD, min(begin + _AHEAD + LANES, positions.size)):
        lanes.prefetch(points, positions[i])
    D = rows.shape[0] - 1
    for b in range(LANES):
        shown = b < n and seen[positions[begin + b]]
        rows[D, b] = 1.0 if shown else 0.0
        if shown:
            x = points[positions[begin + b]]
            for m in range(D):
                rows[m, b] = x[m]
        else:
            for m in range(D):
                rows[m, b] = 0.0


@inner
def _add_up(points, seen, positions, full, workspace, out):
    """Set `out` (products,) to the sums over some positions."""
    products = workspace.products
    products[:] = 0.0
    for begin in range(0, positions.size, LANES):
        _load(points, seen, positions, begin, workspace.rows)
        lanes.add_products(workspace.rows, full, products)
    for r in range(out.size):
        row = products[r]
        out[r] = ((row[0] + row[1]) + (row[2] + row[3])) + ((row[4] + row[5]) + (row[6] + row[7]))


@inner
def _unpack(products, k, moments):
    """Write the moments of a state, given its products."""
    D = moments.sums.shape[1]
    full = moments.outers.shape[2] == D and products.size > 2 * D + 1
    r = 0
    for i in range(D):
        if not full:
            moments.outers[k, i, 0] = products[i]
            r += 1
            continue
        for j in range(i + 1):
            moments.outers[k, i, j] = moments.outers[k, j, i] = products[r]
            r += 1
    for i in range(D):
        moments.sums[k, i] = products[r + i]
    moments.counts[k] = products[r + D]


@inner
def add_up_all(number, board, points, seen, members, full, moments, workspaces):
    """Find the moments of all states.

    The parts of a state are added in their order, whoever sums them up.
    """
    workspace = own(*workspaces, number)
    starts = members.starts
    size = moments.size
    total = 0
    for k in range(starts.size - 1):
        total += -(-(starts[k + 1] - starts[k]) // size)
    k = before = 0
    i = take(board, 0)
    while i < total:
        while before - (-(starts[k + 1] - starts[k]) // size) <= i:
            before += -(-(starts[k + 1] - starts[k]) // size)
            k += 1
        low = starts[k] + (i - before) * size
        some = members.positions[low : min(low + size, starts[k + 1])]
        _add_up(points, seen, some, full, workspace, moments.parts[i])
        done(board, 0)
        i = take(board, 0)
    wait(board, 0, total)
    _join_parts(board, starts, moments)


@inner
def _join_parts(board, starts, moments):
    """Add up the parts of every state, in the first of them."""
    n = starts.size - 1
    first = k = 0
    i = take(board, 1)
    while i < n:
        while k < i:
            first += -(-(starts[k + 1] - starts[k]) // moments.size)
            k += 1
        last = first - (-(starts[k + 1] - starts[k]) // moments.size)
        for part in range(first + 1, last):
            lanes.add_multiple(1.0, moments.parts[part], moments.parts[first])
        if last > first:
            _unpack(moments.parts[first], k, moments)
        i = take(board, 1)


@lean
def add_up_in_threads(box, helpers, *given):
    """Run `add_up_all` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(add_up_all, given))
    add_up_all(0, *given)
    withdraw(box, open_)


@lean
def add_up_some(points, seen, positions, full, moments, workspace):
    """Find the moments of one state that has some positions, as the first ones."""
    _add_up(points, seen, positions, full, workspace, moments.parts[0])
    _unpack(moments.parts[0], 0, moments)


@inner
def count_symbols(number, board, data, members, size, counts):
    """Count the symbols of every state in ``counts[number]``, (states, symbols), by ranges.

    `size` positions make a range.
    """
    starts = members.starts
    n = members.positions.size
    k = 0
    i = take(board, 0)
    while i * size < n:
        for m in range(i * size, min((i + 1) * size, n)):
            while starts[k + 1] <= m:
                k += 1
            symbol = data[members.positions[m]]
            if symbol >= 0:
                counts[number, k, symbol] += 1.0
        i = take(board, 0)


@lean
def count_in_threads(box, helpers, *given):
    """Run `count_symbols` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(count_symbols, given))
    count_symbols(0, *given)
    withdraw(box, open_)
