"""Worlds of sequences without hidden variables: exact, by forward-backward or Viterbi."""

from __future__ import annotations

import numpy as np

from structlearn.common.checks import Bools, Floats, Ints
from structlearn.graph.batch import Sequences
from structlearn.inference.chain_batch import Chains
from structlearn.inference.messenger import Messenger
from structlearn.model.model import Tables
from structlearn.objective.world import Subtracting


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
        self.added = added if sequences.bars is None else _barred(sequences, added)

    def chains(self, tables: Tables) -> Chains:
        """Return the chains at temperature 1."""
        nodes, edges = _nodes(self.sequences, tables), _edges(self.sequences, tables)
        if self.added is not None:
            nodes = nodes + self.added
        if self.sequences.bars is not None:
            edges = np.where(self.sequences.bars.steps, -np.inf, edges)
        if self.eps not in (0.0, 1.0):
            nodes, edges = nodes / self.eps, edges / self.eps
        return Chains(nodes, edges, self.sequences.offsets, self.n_jobs)

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


def _nodes(sequences: Sequences, tables: Tables) -> Floats:
    nodes, n = tables[0], sequences.n_variables
    return nodes if len(nodes) == n else np.repeat(nodes, n, axis=0)


def _edges(sequences: Sequences, tables: Tables) -> Floats:
    states = sequences.states
    if len(tables) == 1:
        return np.zeros((1, states, states))
    return tables[1].reshape(-1, states, states)


def _barred(sequences: Sequences, added: Floats | None) -> Floats:
    """Forbid the states that must not begin or end a sequence."""
    bars, offsets = sequences.bars, sequences.offsets
    assert bars is not None
    out = np.zeros((int(offsets[-1]), sequences.states)) if added is None else added.copy()
    out[offsets[:-1]] = np.where(bars.first, -np.inf, out[offsets[:-1]])
    out[offsets[1:] - 1] = np.where(bars.last, -np.inf, out[offsets[1:] - 1])
    return out
