"""Tables of a group of factors, and where they lie in the potentials of all graphs.

Threads take ranges of the factors: see `kernels/launch` for the entries `..._in_threads`.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner, lean, or_python
from structlearn._src.kernels.launch import publish, task, withdraw
from structlearn._src.kernels.team import take


@inner
def put_tables(number, board, ranges, starts, tables, potentials):
    """Write the tables of factors to where they begin; they may have one table for all."""
    r = take(board, 0)
    while r < ranges.size - 1:
        for i in range(ranges[r], ranges[r + 1]):
            row = i if len(tables) > 1 else 0
            for k in range(tables.shape[1]):
                potentials[starts[i] + k] = tables[row, k]
        r = take(board, 0)


@lean
def put_in_threads(box, helpers, *given):
    """Run `put_tables` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(put_tables, given))
    put_tables(0, *given)
    withdraw(box, open_)


@inner
def take_tables(number, board, ranges, starts, values, tables, sums, add):
    """Read the tables of factors from where they begin, or `add` to what `tables` has.

    Where `sums` (ranges, entries) has rows, it gets the sums of all tables of a range instead.
    """
    r = take(board, 0)
    while r < ranges.size - 1:
        for i in range(ranges[r], ranges[r + 1]):
            if len(sums) > 0:
                for k in range(sums.shape[1]):
                    sums[r, k] += values[starts[i] + k]
                continue
            for k in range(tables.shape[1]):
                old = tables[i, k] if add else 0.0
                tables[i, k] = old + values[starts[i] + k]
        r = take(board, 0)


@lean
def take_in_threads(box, helpers, *given):
    """Run `take_tables` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(take_tables, given))
    take_tables(0, *given)
    withdraw(box, open_)


# ---- blocks of flat arrays ---------------------------------------------------------------


@inner
def normalise_blocks(number, board, ranges, offsets, blocks, out, low):
    """Divide blocks by their sums, unless these are 0; low[0] tells whether one is below a half."""
    r = take(board, 0)
    while r < ranges.size - 1:
        for i in range(ranges[r], ranges[r + 1]):
            total = 0.0
            for k in range(offsets[i], offsets[i + 1]):
                total += blocks[k]
            if total < 0.5:
                low[0] = True
            by = total if total > 0.0 else 1.0
            for k in range(offsets[i], offsets[i + 1]):
                out[k] = blocks[k] / by
        r = take(board, 0)


@or_python
@lean
def normalise_in_threads(box, helpers, *given):
    """Run `normalise_blocks` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(normalise_blocks, given))
    normalise_blocks(0, *given)
    withdraw(box, open_)


@inner
def find_large(number, board, ranges, offsets, values, bound, found):
    """Tell by found[0] whether the size of some finite entry of the blocks is above a bound."""
    r = take(board, 0)
    while r < ranges.size - 1:
        count = 0
        for value in values[offsets[ranges[r]] : offsets[ranges[r + 1]]]:
            size = abs(value)
            count += (size > bound) & (size < np.inf)  # without branches: several at a time
        if count > 0:
            found[0] = True
        r = take(board, 0)


@or_python
@lean
def find_large_in_threads(box, helpers, *given):
    """Run `find_large` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(find_large, given))
    find_large(0, *given)
    withdraw(box, open_)
