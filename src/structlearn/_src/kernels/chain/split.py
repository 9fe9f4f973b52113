"""Features of positions in the order in which they are read, and the scores of states by them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.jit import inner


class SplitFeatures(NamedTuple):
    """Entries of all positions in the order in which they are read.

    Features with many states have a row of weights. The weights of all others come one by one, so
    that nothing has to be looked up, unlike in `sequence.score`: the solver that makes the most
    passes can pay for a copy of the entries.
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


@inner
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
    K = row.size
    ones = layout.values.size == 0
    all_kept = layout.kept.size == 0
    for e in range(layout.rows[t], layout.rows[t + 1]):
        d = layout.columns[e]
        x = 1.0 if ones else layout.values[e]
        own = primal.wide[d]
        if all_kept:
            for s in range(K):
                own[s] += x * row[s]
        else:
            kept = layout.kept[d]
            for s in range(K):
                own[s] += x * (row[s] * kept[s])
    for e in range(layout.single_rows[t], layout.single_rows[t + 1]):
        x = 1.0 if ones else layout.single_values[e]
        primal.singles[layout.singles[e]] += x * row[layout.single_states[e]]


@inner
def load_potentials(data, layout, first, n, primal, errors):
    """Scores of a sequence of `n` positions from `first` on, and the table of its transitions."""
    K = errors.edges.shape[0]
    for t in range(n):
        score_split(layout, first + t, primal, errors.scores[t])
    for r in range(K if n > 1 else 0):
        for s in range(K):
            errors.edges[r, s] = primal.table[r, s] + data.bars[r, s]
