"""Draws of all paths, and lists of the positions of states: pieces that threads take.

For what `number` and the entries `..._in_threads` are, see `kernels/launch`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.chain.beam import cut, draw_paths
from structlearn._src.kernels.draw.moments import Members
from structlearn._src.kernels.draw.uniform import fill
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import take

_APART = 16  # numbers between the rows of two pieces, so that threads share no lines of the cache


class Pieces(NamedTuple):
    """Some sequences each, which one thread works on, and what is found there."""

    borders: np.ndarray  #: (pieces + 1,) the sequences where they begin and end
    visits: np.ndarray  #: (pieces, states and more) how often each occurs, then where it goes
    log_densities: np.ndarray  #: (pieces,) along the paths
    numbers: np.ndarray  #: (states,) of those that occur, counted from 0
    members: Members  #: of all states, by their old numbers


def make_pieces(borders: Ints, states: int, positions: int) -> Pieces:
    """Return pieces of which nothing is known yet."""
    n = len(borders) - 1
    members = Members(np.empty(positions, np.int64), np.zeros(states + 1, np.int64))
    visits = np.zeros((n, states + _APART), np.int64)
    return Pieces(borders, visits, np.zeros(n), np.zeros(states, np.int64), members)


# ---- slices ------------------------------------------------------------------------------


@inner
def cut_pieces(number, board, seed, states, offsets, borders, rows, least, out, smallest):
    """Draw the slices of pieces, and find the smallest of each."""
    n = borders.size - 1
    i = take(board, 0)
    while i < n:
        first, last = borders[i], borders[i + 1]
        fill(seed, offsets[first], out[offsets[first] : offsets[last]])
        smallest[i] = cut(states, offsets, rows, first, last, least, out)
        i = take(board, 0)


@lean
def cut_in_threads(box, helpers, *given):
    """Run `cut_pieces` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(cut_pieces, given))
    cut_pieces(0, *given)
    withdraw(box, open_)


# ---- paths -------------------------------------------------------------------------------


@inner
def draw_pieces(
    number, board, begin, end, densities, transitions, slices, seed, offsets, pieces, workspaces,
    lanes, states, counts,
):  # fmt: skip
    """Draw the states of the pieces from `begin` to `end`.

    What `draw_paths` counts is added to ``counts[number]``.
    """
    workspace = own(*workspaces, number)
    columns = own(*lanes, number)
    i = begin + take(board, 0)
    while i < end:
        first, last = pieces.borders[i], pieces.borders[i + 1]
        low, high = offsets[first], offsets[last]
        uniforms = workspace.uniforms[: high - low]
        fill(seed, low, uniforms)
        pieces.log_densities[i] = draw_paths(
            densities, transitions, slices, uniforms, offsets, first, last, workspace, columns,
            states, counts[number],
        )  # fmt: skip
        visits = pieces.visits[i]
        for t in range(low, high):
            visits[states[t]] += 1
        i = begin + take(board, 0)


@lean
def draw_in_threads(box, helpers, *given):
    """Run `draw_pieces` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(draw_pieces, given))
    draw_pieces(0, *given)
    withdraw(box, open_)


# ---- positions of states -----------------------------------------------------------------


@inner
def arrange_pieces(number, board, offsets, pieces, states):
    """List the positions of every state, and give those that occur their new numbers."""
    n = pieces.borders.size - 1
    i = take(board, 0)
    while i < n:
        places = pieces.visits[i]
        for t in range(offsets[pieces.borders[i]], offsets[pieces.borders[i + 1]]):
            k = states[t]
            pieces.members.positions[places[k]] = t
            places[k] += 1
            states[t] = pieces.numbers[k]
        i = take(board, 0)


@lean
def arrange_in_threads(box, helpers, board, offsets, pieces, states):
    """Run `arrange_pieces` in the calling thread and so many helpers, when all is drawn."""
    _allot(pieces)
    given = board, offsets, pieces, states
    open_ = publish(box, helpers, task(arrange_pieces, given))
    arrange_pieces(0, *given)
    withdraw(box, open_)


@inner
def _allot(pieces):
    """Find where the positions of every state go, those of one piece after the other."""
    starts = pieces.members.starts
    begin = 0
    found = 0
    for k in range(pieces.numbers.size):
        starts[k] = begin
        for i in range(pieces.borders.size - 1):
            size = pieces.visits[i, k]
            pieces.visits[i, k] = begin
            begin += size
        pieces.numbers[k] = found
        if begin > starts[k]:
            found += 1
    starts[pieces.numbers.size] = begin
