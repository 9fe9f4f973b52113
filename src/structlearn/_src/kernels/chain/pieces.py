"""Draws of all paths by threads that meet in one kernel, and lists of the positions of states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.chain.beam import cut, draw_paths
from structlearn._src.kernels.draw.moments import Members
from structlearn._src.kernels.draw.uniform import fill
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.team import done, take, wait

PHASES = 3  # in which threads that draw paths meet
_AT_ONCE = 32  # pieces that are drawn in one call: an interrupt waits for these


class Pieces(NamedTuple):
    """Some sequences each, which one thread works on, and what is found there."""

    borders: np.ndarray  #: (pieces + 1,) the sequences where they begin and end
    visits: np.ndarray  #: (pieces, states) how often each occurs, then where its positions go
    log_densities: np.ndarray  #: (pieces,) along the paths
    numbers: np.ndarray  #: (states,) of those that occur, counted from 0
    members: Members  #: of all states, by their old numbers


def make_pieces(borders: Ints, states: int, positions: int) -> Pieces:
    """Return pieces of which nothing is known yet."""
    n = len(borders) - 1
    members = Members(np.empty(positions, np.int64), np.zeros(states + 1, np.int64))
    visits, numbers = np.zeros((n, states), np.int64), np.zeros(states, np.int64)
    return Pieces(borders, visits, np.zeros(n), numbers, members)


@lean
def cut_pieces(board, seed, states, offsets, borders, rows, least, out):
    """Draw the slices of the pieces that this thread takes; return the smallest of them."""
    n = borders.size - 1
    smallest = np.inf
    i = take(board, 0)
    while i < n:
        first, last = borders[i], borders[i + 1]
        fill(seed, offsets[first], out[offsets[first] : offsets[last]])
        smallest = min(smallest, cut(states, offsets, rows, first, last, least, out))
        i = take(board, 0)
    return smallest


@lean
def draw_pieces(
    board,
    densities,
    transitions,
    slices,
    seed,
    offsets,
    pieces,
    workspace,
    uniforms,
    states,
    counts,
):
    """Draw the states of the pieces that this thread takes; False if none was left.

    All threads of a team call this until it is False, with the same arrays but for the workspace,
    `uniforms` for the longest piece, and `counts`: what `draw_paths` adds to these. Some pieces are
    drawn in a call, so that it ends soon.
    """
    n = pieces.borders.size - 1
    for _ in range(_AT_ONCE):
        i = take(board, 0)
        if i >= n:
            return False
        first, last = pieces.borders[i], pieces.borders[i + 1]
        low, high = offsets[first], offsets[last]
        own = uniforms[: high - low]
        fill(seed, low, own)
        pieces.log_densities[i] = draw_paths(
            densities, transitions, slices, own, offsets, first, last, workspace, states, counts
        )
        visits = pieces.visits[i]
        for t in range(low, high):
            visits[states[t]] += 1
        done(board, 0)
    return True


@lean
def arrange(board, offsets, pieces, states):
    """List the positions of every state, and number those that occur, when all paths are drawn."""
    n = pieces.borders.size - 1
    wait(board, 0, n)
    if take(board, 1) == 0:
        _allot(pieces)
        done(board, 1)
    wait(board, 1, 1)
    i = take(board, 2)
    while i < n:
        places = pieces.visits[i]
        for t in range(offsets[pieces.borders[i]], offsets[pieces.borders[i + 1]]):
            k = states[t]
            pieces.members.positions[places[k]] = t
            places[k] += 1
            states[t] = pieces.numbers[k]
        done(board, 2)
        i = take(board, 2)
    wait(board, 2, n)


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
