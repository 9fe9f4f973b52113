"""Worlds of sequences without hidden variables: exact, by forward-backward or Viterbi."""

from __future__ import annotations

import numpy as np

from structlearn.common.checks import Bools, Floats, Ints
from structlearn.graph.batch import Sequences
from structlearn.inference.chain_batch import Chains
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

    sweeps = 0

    def __init__(
        self, sequences: Sequences, eps: float, added: Floats | None, n_jobs: int | None = None
    ) -> None:
        self.sequences, self.eps, self.n_jobs = sequences, eps, n_jobs
        self.added = added if sequences.bars is None else _barred(sequences, added)

    def chains(self, tables: Tables) -> Chains:
        """Return the chains at temperature 1."""
        nodes, edges = tables[0], _edges(self.sequences, tables)
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
        return values, (nodes, edges.reshape(len(edges), -1))[: len(tables)]


class LabelledSequences:
    """The clamped world when every label is known: nothing is left to infer."""

    sweeps = 0

    def __init__(self, sequences: Sequences, labels: Ints) -> None:
        self.sequences, self.labels = sequences, labels

    def solve(self, tables: Tables, weights: Floats) -> tuple[Floats, Tables]:
        """Scores of the labels, and the weighted counts of what they use."""
        values = score(self.sequences, self.labels, tables)
        return values, counts(self.sequences, self.labels, weights, tables)

    def subtract(self, tables: Tables, weights: Floats, out: Tables) -> Floats:
        """Scores of the labels; subtracts the weighted counts from `out`."""
        sequences, labels = self.sequences, self.labels
        out[0][np.arange(len(labels)), labels] -= np.repeat(weights, np.diff(sequences.offsets))
        if len(out) > 1:
            _count_edges(sequences, labels, -weights, out[1])
        return score(sequences, labels, tables)


def clamp(labels: Ints, states: int) -> Floats:
    """Potentials that leave only the label of every position, where there is one."""
    out = np.where(labels[:, None] == np.arange(states), 0.0, -np.inf)
    out[labels < 0] = 0.0
    return out


def score(sequences: Sequences, labels: Ints, tables: Tables) -> Floats:
    """Score of the labels of every sequence."""
    each = tables[0][np.arange(len(labels)), labels]
    if len(tables) > 1:
        inner, steps = _steps(sequences, labels)
        rows = 0 if len(tables[1]) == 1 else np.arange(len(steps))
        each = each.copy()
        each[inner] += tables[1][rows, steps]
    return np.add.reduceat(each, sequences.offsets[:-1])


def counts(sequences: Sequences, labels: Ints, weights: Floats, like: Tables) -> Tables:
    """Weighted counts of what the labels use, in the shape of the tables."""
    nodes = np.zeros_like(like[0])
    nodes[np.arange(len(labels)), labels] = np.repeat(weights, np.diff(sequences.offsets))
    if len(like) == 1:
        return (nodes,)
    edges = np.zeros_like(like[1])
    _count_edges(sequences, labels, weights, edges)
    return nodes, edges


def _count_edges(sequences: Sequences, labels: Ints, weights: Floats, out: Floats) -> None:
    _, steps = _steps(sequences, labels)
    by = np.repeat(weights, np.diff(sequences.offsets) - 1)
    if len(out) == 1:
        out[0] += np.bincount(steps, by, out.shape[1])
    else:
        out[np.arange(len(steps)), steps] += by


def _steps(sequences: Sequences, labels: Ints) -> tuple[Bools, Ints]:
    """Which positions have one before, and the entry of the edge table that leads there."""
    inner = np.ones(len(labels), np.bool_)
    inner[sequences.offsets[:-1]] = False
    before = labels[:-1][inner[1:]]
    return inner, before * sequences.states + labels[inner]


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
