"""Losses of many labelled sequences and their gradient, in one pass over their features.

The threads of a call meet inside the kernel: see `kernels/team`. Every one begins with a range of
sequences of its own, and then helps with those of others. What sequences of a range add is added in
their order, whoever has computed it, so that the result depends on the ranges alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.sequence import loss_alone, loss_and_errors
from structlearn._src.kernels.chain.split import load, load_potentials, pull_rows, pull_singles
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import done, take, wait

_PIECE = 4096  # weights that a thread copies or adds up at a time: some tens of microseconds
_LOADED, _HOME, _ADDED = 0, 1, 2  # phases of the board: weights are copied, ranges taken, summed
PHASES = 3  # and one for each range


class Slopes(NamedTuple):
    """Gradients of ranges of sequences by the weights as kernels keep them; none for values."""

    wide: np.ndarray  #: (ranges, rows of weights, states)
    flat: np.ndarray  #: (ranges, rows of weights * states) the same
    singles: np.ndarray  #: (ranges, single weights) of all, or of the frequent features
    tables: np.ndarray  #: (ranges, states, states) transitions
    slots: np.ndarray  #: (entries of rare features,) what each adds; empty if `singles` has them


class RareEntries(NamedTuple):
    """The entries of rare features, which are as many as threads, or fewer, for each weight.

    To clear, fill and add up a gradient of each thread takes longer than to write down what every
    entry adds, in the order in which they are read, and to add that up.
    """

    rows: np.ndarray  #: (positions + 1,) how many there are before every position
    offsets: np.ndarray  #: (weights of rare features + 1,) where those of every weight begin
    numbers: np.ndarray  #: (entries,) which they are, int32


@inner
def _clear(slopes, i):
    slopes.flat[i] = 0.0
    slopes.singles[i] = 0.0
    slopes.tables[i] = 0.0


@inner
def _pull(layout, begin, n, nodes, factor, rare, slopes, i):
    """Add the errors of a sequence to the gradient of its range; rows have room for all states."""
    K = nodes.shape[1]
    wide, singles, slots = slopes.wide[i], slopes.singles[i], slopes.slots
    ones = layout.single_values.size == 0
    for t in range(n):
        row = nodes[t]
        for s in range(K):
            row[s] *= factor
        pull_rows(layout, begin + t, row, wide)
        first, stop = layout.single_rows[begin + t], layout.single_rows[begin + t + 1]
        if slots.size == 0:
            pull_singles(layout, first, stop, row, singles)
            continue
        slot = rare.rows[begin + t]
        middle = stop - (rare.rows[begin + t + 1] - slot)
        pull_singles(layout, first, middle, row, singles)
        for e in range(middle, stop):
            x = 1.0 if ones else layout.single_values[e]
            slots[slot + e - middle] = x * row[layout.single_states[e]]


@inner
def _evaluate_range(board, i, borders, data, layout, given, primal, rare, slopes, errors, work):
    """Take the sequences of a range that are left, one by one; before the first it is cleared."""
    parts, factors, losses = given
    K = errors.edges.shape[0]
    wanted = slopes.tables.shape[0] > 0
    first, count = borders[i], borders[i + 1] - borders[i]
    task = take(board, PHASES + i)
    while task <= count:
        c = first + task - 1
        if task == 0:
            if wanted:
                _clear(slopes, i)
        else:
            begin, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
            load_potentials(data, layout, begin, n, primal, errors)
            if wanted:
                losses[c] = loss_and_errors(data, c, parts, errors, work)
                wait(board, PHASES + i, task)
                _pull(layout, begin, n, errors.nodes, factors[c], rare, slopes, i)
                for r in range(K if n > 1 else 0):
                    for s in range(K):
                        slopes.tables[i, r, s] += factors[c] * errors.steps[r, s]
            else:
                losses[c] = loss_alone(data, c, parts, errors, work)
        done(board, PHASES + i)
        task = take(board, PHASES + i)


@inner
def _add_rows(rows, first, last):
    """Add all rows to the first one, in their order."""
    out = rows[0, first:last]
    for r in range(1, rows.shape[0]):
        more = rows[r, first:last]
        for k in range(out.size):
            out[k] += more[k]


@inner
def _add_up(moves, weights, rare, slopes, ridge, first, last, gradient):
    """Add up the gradients of all ranges, and that of squares, for a range as in `load`."""
    n = moves.which.size
    if n == 0 and moves.origins.size == 0:
        _add_rows(slopes.flat, first, last)
        for k in range(first, last):
            gradient[k] = slopes.flat[0, k] + ridge * weights[k]
        return
    stop = min(last, n)
    if first < stop:
        _add_rows(slopes.flat, np.int64(moves.places[first]), moves.places[stop - 1] + 1)
    for i in range(first, stop):
        k = moves.which[i]
        gradient[k] = slopes.flat[0, moves.places[i]] + ridge * weights[k]
    common = slopes.singles.shape[1]
    begin, stop = max(first - n, 0), min(last - n, common)
    if begin < stop:
        _add_rows(slopes.singles, begin, stop)
    for i in range(begin, stop):
        k = moves.origins[i]
        gradient[k] = slopes.singles[0, i] + ridge * weights[k]
    for i in range(max(begin, common), last - n):
        total = 0.0
        for e in range(rare.offsets[i - common], rare.offsets[i - common + 1]):
            total += slopes.slots[rare.numbers[e]]
        k = moves.origins[i]
        gradient[k] = total + ridge * weights[k]


@inner
def evaluate(
    number, board, borders, data, layout, parts, factors, moves, weights, primal, flat, rare,
    slopes, ridge, losses, gradient, all_errors, workspaces,
):  # fmt: skip
    """Losses of all sequences, without their weights, from the weights of the model.

    Their gradients times `factors`, and `ridge` times the weights, go to `gradient`, except for
    transitions; none where there are no `slopes`. The rows of `primal`, which `flat` are too, must
    be 0 where there is no weight; what gradients have there is never read, and so `layout` need
    not tell. A sequence stays in the cache from its features to its gradient.
    """
    errors, work = own(*all_errors, number), own(*workspaces, number)
    loads = moves.which.size + moves.origins.size
    pieces = -(-loads // _PIECE)
    p = take(board, _LOADED)
    while p < pieces:
        load(moves, weights, flat, primal.singles, p * _PIECE, min((p + 1) * _PIECE, loads))
        done(board, _LOADED)
        p = take(board, _LOADED)
    wait(board, _LOADED, pieces)

    ranges = borders.size - 1
    home = take(board, _HOME)
    given = parts, factors, losses
    for shift in range(ranges):
        i = (home + shift) % ranges
        _evaluate_range(board, i, borders, data, layout, given, primal, rare, slopes, errors, work)
    if slopes.tables.shape[0] == 0:
        return
    for i in range(ranges):
        wait(board, PHASES + i, borders[i + 1] - borders[i] + 1)

    size = loads if loads > 0 else slopes.flat.shape[1]
    pieces = -(-size // _PIECE)
    p = take(board, _ADDED)
    while p < pieces:
        last = min((p + 1) * _PIECE, size)
        _add_up(moves, weights, rare, slopes, ridge, p * _PIECE, last, gradient)
        done(board, _ADDED)
        p = take(board, _ADDED)


@lean
def evaluate_in_threads(box, helpers, *given):
    """Run `evaluate` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(evaluate, given))
    evaluate(0, *given)
    withdraw(box, open_)
