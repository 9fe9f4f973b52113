"""Features of positions in the order in which they are read, and the scores of states by them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.jit import inline, inner, lean


class SplitFeatures(NamedTuple):
    """Entries of all positions in the order in which they are read.

    Features with many states have a row of weights. The weights of all others come one by one, so
    that nothing has to be looked up, unlike in `sequence.score`: the solver that makes the most
    passes can pay for a copy of the entries. Weights of frequent features have the first numbers,
    close together, and the entries of rare ones are the last of their position.
    """

    rows: np.ndarray  #: (positions + 1,) where the entries of every position begin
    columns: np.ndarray  #: (entries,) the row of weights, int32
    values: np.ndarray  #: (entries,) empty if all are 1
    kept: np.ndarray  #: (rows of weights, states) 1 where there is a weight, else 0; empty if all
    single_rows: np.ndarray  #: the same for single weights
    singles: np.ndarray  #: number of the weight, int32
    single_states: np.ndarray  #: int32
    single_values: np.ndarray


class SplitWeights(NamedTuple):
    """All weights."""

    wide: np.ndarray  #: (rows of weights, states)
    singles: np.ndarray
    table: np.ndarray  #: (states, states) transitions


class Moves(NamedTuple):
    """Which weights kernels keep where; all empty if they see the weights as they are."""

    which: np.ndarray  #: (weights in rows,) number of each, int32
    places: np.ndarray  #: (weights in rows,) where it lies in the rows, int32
    origins: np.ndarray  #: (single weights,) number of each, int32


class Entries(NamedTuple):
    """Entries of all positions that have rows of weights, or single weights."""

    rows: np.ndarray  #: (positions + 1,) where those of every position begin
    numbers: np.ndarray  #: (entries,) row of weights or single weight, int32
    states: np.ndarray  #: (entries,) int32; empty for rows of weights
    values: np.ndarray  #: (entries,) empty if all are 1


class DealtEntries(NamedTuple):
    """The entries of every sequence, dealt to ranges of weights: each thread adds to its own."""

    starts: np.ndarray  #: (sequences * ranges + 1,) where those of a sequence in a range begin
    numbers: np.ndarray  #: (entries,) row of weights or single weight, int32
    nodes: np.ndarray  #: (entries,) ``t * states + s``, from the first position of the sequence
    values: np.ndarray  #: (entries,) empty if all are 1


@lean
def load(moves, weights, wide, singles, first, last):
    """Copy a range of weights, those in rows before the single ones, to where kernels keep them."""
    n = moves.which.size
    for i in range(first, min(last, n)):
        wide[moves.places[i]] = weights[moves.which[i]]
    for i in range(max(first - n, 0), last - n):
        singles[i] = weights[moves.origins[i]]


@lean
def store(moves, weights, wide, singles, first, last):
    """Copy them back."""
    n = moves.which.size
    for i in range(first, min(last, n)):
        weights[moves.which[i]] = wide[moves.places[i]]
    for i in range(max(first - n, 0), last - n):
        weights[moves.origins[i]] = singles[i]


@inline
def score_split(layout, t, primal, row):
    """Scores of the states of a position; plain features four at a time."""
    K = row.size
    wide = primal.wide
    columns = layout.columns
    ones = layout.values.size == 0
    e = layout.rows[t]
    stop = layout.rows[t + 1]
    for s in range(K):
        row[s] = 0.0
    while ones and e + 4 <= stop:
        a, b = wide[columns[e]], wide[columns[e + 1]]
        c, d = wide[columns[e + 2]], wide[columns[e + 3]]
        for s in range(K):
            row[s] += (a[s] + b[s]) + (c[s] + d[s])
        e += 4
    for f in range(e, stop):
        x = 1.0 if ones else layout.values[f]
        own = wide[columns[f]]
        for s in range(K):
            row[s] += x * own[s]
    for e in range(layout.single_rows[t], layout.single_rows[t + 1]):
        x = 1.0 if ones else layout.single_values[e]
        row[layout.single_states[e]] += x * primal.singles[layout.singles[e]]


@inner
def pull_split(layout, t, row, primal):
    """Add a row to the weights of the features of a position."""
    pull_rows(layout, t, row, primal.wide)
    pull_singles(layout, layout.single_rows[t], layout.single_rows[t + 1], row, primal.singles)


@inline
def pull_rows(layout, t, row, wide):
    """Add a row to the rows of weights of a position."""
    K = row.size
    ones = layout.values.size == 0
    all_kept = layout.kept.size == 0
    for e in range(layout.rows[t], layout.rows[t + 1]):
        d = layout.columns[e]
        x = 1.0 if ones else layout.values[e]
        own = wide[d]
        if all_kept:
            for s in range(K):
                own[s] += x * row[s]
        else:
            kept = layout.kept[d]
            for s in range(K):
                own[s] += x * (row[s] * kept[s])


@inline
def pull_singles(layout, first, last, row, singles):
    """Add a row of a position to single weights, of a range of its entries."""
    ones = layout.single_values.size == 0
    for e in range(first, last):
        x = 1.0 if ones else layout.single_values[e]
        singles[layout.singles[e]] += x * row[layout.single_states[e]]


@lean
def deal(offsets, entries, owners, K, first, last, filled, out):
    """Deal the entries of the sequences from `first` to `last` to ranges of weights.

    `owners` says to which range every number belongs. The entries of a sequence in a range keep
    their order. `filled` (ranges,) is workspace.
    """
    rows = entries.rows
    numbers = entries.numbers
    ranges = filled.size
    for c in range(first, last):
        start = rows[offsets[c]]
        stop = rows[offsets[c + 1]]
        filled[:] = 0
        for e in range(start, stop):
            filled[owners[numbers[e]]] += 1
        for i in range(ranges):
            out.starts[c * ranges + i] = start
            count = filled[i]
            filled[i] = start
            start += count
        for t in range(offsets[c], offsets[c + 1]):
            for e in range(rows[t], rows[t + 1]):
                i = owners[numbers[e]]
                place = filled[i]
                filled[i] = place + 1
                state = entries.states[e] if entries.states.size > 0 else 0
                out.numbers[place] = numbers[e]
                out.nodes[place] = (t - offsets[c]) * K + state
                if entries.values.size > 0:
                    out.values[place] = entries.values[e]


@inner
def add_rows(dealt, at, change, kept, wide):
    """Add the change of the nodes of a sequence to its rows of weights in one range, `at`."""
    K = wide.shape[1]
    ones = dealt.values.size == 0
    all_kept = kept.size == 0
    for e in range(dealt.starts[at], dealt.starts[at + 1]):
        d = dealt.numbers[e]
        x = 1.0 if ones else dealt.values[e]
        own = wide[d]
        row = change[dealt.nodes[e] : dealt.nodes[e] + K]
        if all_kept:
            for s in range(K):
                own[s] += x * row[s]
        else:
            has = kept[d]
            for s in range(K):
                own[s] += x * (row[s] * has[s])


@inner
def add_singles(dealt, at, change, singles):
    """As `add_rows` for single weights."""
    ones = dealt.values.size == 0
    for e in range(dealt.starts[at], dealt.starts[at + 1]):
        x = 1.0 if ones else dealt.values[e]
        singles[dealt.numbers[e]] += x * change[dealt.nodes[e]]


@inner
def load_potentials(data, layout, first, n, primal, errors):
    """Scores of a sequence of `n` positions from `first` on, and the table of its transitions."""
    K = errors.edges.shape[0]
    for t in range(n):
        score_split(layout, first + t, primal, errors.scores[t])
    for r in range(K if n > 1 else 0):
        for s in range(K):
            errors.edges[r, s] = primal.table[r, s] + data.bars[r, s]
