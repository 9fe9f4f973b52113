"""Entries of features in the order in which solvers read them: see `split`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.jit import lean


class Kinds(NamedTuple):
    """What becomes of the weights of every feature."""

    rows: np.ndarray  #: (features,) its row of weights, -1 if it has single ones
    starts: np.ndarray  #: (features,) number of its first single weight
    counts: np.ndarray  #: (features,) weights
    rare: np.ndarray  #: (features,) whether its entries are the last of their position
    states: np.ndarray  #: (single weights,) state of each, int32


@lean
def count(numbers, first, last, counts):
    """Count how often each number occurs among the entries first..last-1."""
    for number in numbers[first:last]:
        counts[number] += 1


@lean
def measure(rows, columns, kinds, first, last, sizes):
    """Count the entries of every position: in rows, of single weights, and of rare ones of these.

    What is counted at position ``t`` is written to ``sizes[t + 1]``.
    """
    for t in range(first, last):
        wide, single, rare = 0, 0, 0
        for d in columns[rows[t] : rows[t + 1]]:
            if kinds.rows[d] >= 0:
                wide += 1
                continue
            single += kinds.counts[d]
            rare += kinds.counts[d] if kinds.rare[d] else 0
        sizes[t + 1, 0] = wide
        sizes[t + 1, 1] = single
        sizes[t + 1, 2] = rare


@lean
def fill(rows, columns, values, kinds, first, last, out):
    """Write the entries of the positions first..last-1 to where `out` says that they begin."""
    ones = values.size == 0
    for t in range(first, last):
        place, single = out.rows[t], out.single_rows[t]
        for e in range(rows[t], rows[t + 1]):
            row = kinds.rows[columns[e]]
            if row >= 0:
                out.columns[place] = row
                if not ones:
                    out.values[place] = values[e]
                place += 1
        for late in range(2):
            for e in range(rows[t], rows[t + 1]):
                d = columns[e]
                if kinds.rows[d] >= 0 or kinds.rare[d] != (late == 1):
                    continue
                for k in range(kinds.starts[d], kinds.starts[d] + kinds.counts[d]):
                    out.singles[single] = k
                    out.single_states[single] = kinds.states[k]
                    if not ones:
                        out.single_values[single] = values[e]
                    single += 1
