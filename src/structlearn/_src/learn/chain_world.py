"""Worlds of sequences without hidden variables: exact, by forward-backward or Viterbi."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.graph.batch import Sequences
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.inference.messenger import Messenger
from structlearn._src.inference.tables import forbid_ends, tables_to_chains
from structlearn._src.learn.world import Subtracting
from structlearn._src.model.model import Tables


class SequenceWorld(Subtracting):
    """Sequences at one temperature, some states ruled out or made dearer.

    Parameters
    ----------
    sequences
        Which positions belong together.
    eps
        Temperature of all variables.
    added
        (positions, states) What is added to the potentials of the positions: task costs, and -inf
        for states that clamping rules out.
    """

    messengers: tuple[Messenger, ...] = ()

    def __init__(
        self, sequences: Sequences, eps: float, added: Floats | None, n_jobs: int | None = None
    ) -> None:
        self.sequences, self.eps, self.n_jobs = sequences, eps, n_jobs
        self.added = added if sequences.forbidden is None else forbid_ends(sequences, added)

    def chains(self, tables: Tables) -> Chains:
        """Return the chains at temperature 1."""
        return tables_to_chains(self.sequences, tables, self.added, self.eps, self.n_jobs)

    def solve(self, tables: Tables, weights: Floats) -> tuple[Floats, Tables]:
        """Values of the sequences, and their weighted marginals."""
        chains = self.chains(tables)
        if self.eps == 0.0:
            values, labels = chains.best()
            return values, counts(self.sequences, labels, weights, tables)
        pairs = "none" if len(tables) == 1 else "sum" if chains.shared else "each"
        values, nodes, edges = chains.marginals(pairs, weights)
        if self.eps != 1.0:
            values *= self.eps
        if len(tables[0]) < len(nodes):
            nodes = nodes.sum(axis=0, keepdims=True)
        return values, (nodes, edges.reshape(len(edges), self.sequences.states**2))[: len(tables)]


class LabelledSequences:
    """The clamped world when every label is known: nothing is left to infer."""

    messengers: tuple[Messenger, ...] = ()

    def __init__(self, sequences: Sequences, labels: Ints) -> None:
        self.sequences, self.labels = sequences, labels

    def solve(self, tables: Tables, weights: Floats) -> tuple[Floats, Tables]:
        """Scores of the labels, and the weighted counts of what they use."""
        values = score(self.sequences, self.labels, tables)
        return values, counts(self.sequences, self.labels, weights, tables)

    def subtract(self, tables: Tables, weights: Floats, out: Tables) -> Floats:
        """Scores of the labels; subtracts the weighted counts from `out`."""
        _count(self.sequences, self.labels, -weights, out)
        return score(self.sequences, self.labels, tables)


def clamp(labels: Ints, states: int) -> Floats:
    """Potentials that leave only the label of every position, where there is one."""
    out = np.where(labels[:, None] == np.arange(states), 0.0, -np.inf)
    out[labels < 0] = 0.0
    return out


def score(sequences: Sequences, labels: Ints, tables: Tables) -> Floats:
    """Score of the labels of every sequence."""
    each = _read(tables[0], labels)
    if len(tables) > 1:
        inner, steps = _steps(sequences, labels)
        each[inner] += _read(tables[1], steps)
    return np.add.reduceat(each, sequences.offsets[:-1])


def counts(sequences: Sequences, labels: Ints, weights: Floats, like: Tables) -> Tables:
    """Weighted counts of what the labels use, in the shape of the tables."""
    out = tuple(np.zeros_like(table) for table in like)
    _count(sequences, labels, weights, out)
    return out


def _count(sequences: Sequences, labels: Ints, weights: Floats, out: Tables) -> None:
    lengths = np.diff(sequences.offsets)
    _add(out[0], labels, np.repeat(weights, lengths))
    if len(out) > 1:
        _add(out[1], _steps(sequences, labels)[1], np.repeat(weights, lengths - 1))


def _read(table: Floats, entries: Ints) -> Floats:
    """One entry of every row, or many of the only row."""
    return table[0 if len(table) == 1 else np.arange(len(entries)), entries]


def _add(table: Floats, entries: Ints, by: Floats) -> None:
    """Adjoint of `_read`."""
    if len(table) == 1:
        table[0] += np.bincount(entries, by, table.shape[1])
    else:
        table[np.arange(len(entries)), entries] += by


def _steps(sequences: Sequences, labels: Ints) -> tuple[Bools, Ints]:
    """Which positions have one before, and the entry of the edge table that leads there."""
    inner = np.ones(len(labels), np.bool_)
    inner[sequences.offsets[:-1]] = False
    before = labels[:-1][inner[1:]]
    return inner, before * sequences.states + labels[inner]
