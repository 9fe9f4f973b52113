"""Worlds of sequences without hidden variables: exact, by forward-backward or Viterbi."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.graph.batch import Sequences
from structlearn._src.inference.chain_batch import Chains, forbid_ends, tables_to_chains
from structlearn._src.learn.world import CONVERGED, Budget, Memory, add_tables
from structlearn._src.model.model import Tables


class _Exact:
    """A world that remembers nothing."""

    approximate = False

    def begin(self) -> Memory:
        """Return the memory before any inference: none."""
        return None


class ChainWorld(_Exact):
    """Sequences at one temperature, some states ruled out or made dearer.

    What is `added` to the potentials (positions, states) are task costs, and -inf for states that
    clamping rules out.
    """

    def __init__(
        self, sequences: Sequences, eps: float, added: Floats | None, n_jobs: int | None = None
    ) -> None:
        self.sequences = sequences
        self.eps = eps
        self.n_jobs = n_jobs
        self.added = added if sequences.forbidden is None else forbid_ends(sequences, added)

    def chains(self, tables: Tables) -> Chains:
        """Return the chains at temperature 1."""
        return tables_to_chains(self.sequences, tables, self.added, self.eps, self.n_jobs)

    def solve(
        self, parameters: Tables, factors: Floats, memory: Memory,
        budget: Budget = CONVERGED, into: Tables | None = None,
    ) -> tuple[Floats, Tables, Memory]:  # fmt: skip
        """Values of the sequences, and their marginals times `factors`."""
        chains = self.chains(parameters)
        if self.eps == 0.0:
            values, labels = chains.best()
            return values, add_counts(self.sequences, labels, factors, parameters, into), None
        pairs = "none" if len(parameters) == 1 else "sum" if chains.shared else "each"
        values, nodes, edges = chains.marginals(pairs, factors)
        if self.eps != 1.0:
            values *= self.eps
        if len(parameters[0]) < len(nodes):
            nodes = nodes.sum(axis=0, keepdims=True)
        edges = edges.reshape(len(edges), self.sequences.states**2)
        return values, add_tables(into, (nodes, edges)[: len(parameters)]), None


class LabelledChains(_Exact):
    """The clamped world when every label is known: nothing is left to infer."""

    def __init__(self, sequences: Sequences, labels: Ints) -> None:
        self.sequences = sequences
        self.labels = labels

    def solve(
        self, parameters: Tables, factors: Floats, memory: Memory,
        budget: Budget = CONVERGED, into: Tables | None = None,
    ) -> tuple[Floats, Tables, Memory]:  # fmt: skip
        """Scores of the labels, and the counts of what they use times `factors`."""
        counts = add_counts(self.sequences, self.labels, factors, parameters, into)
        return score(self.sequences, self.labels, parameters), counts, None


def score(sequences: Sequences, labels: Ints, tables: Tables) -> Floats:
    """Score of the labels of every sequence."""
    each = _read(tables[0], labels)
    if len(tables) > 1:
        inner, steps = _steps(sequences, labels)
        each[inner] += _read(tables[1], steps)
    return np.add.reduceat(each, sequences.offsets[:-1])


def add_counts(
    sequences: Sequences, labels: Ints, factors: Floats, like: Tables, into: Tables | None
) -> Tables:
    """Add the weighted counts of what the labels use; in the shape of the tables if new."""
    out = tuple(np.zeros_like(table) for table in like) if into is None else into
    lengths = np.diff(sequences.offsets)
    _add(out[0], labels, np.repeat(factors, lengths))
    if len(out) > 1:
        _add(out[1], _steps(sequences, labels)[1], np.repeat(factors, lengths - 1))
    return out


def _read(table: Floats, entries: Ints) -> Floats:
    """One entry of every row, or many of the only row."""
    return table[0 if len(table) == 1 else np.arange(len(entries)), entries]


def _add(table: Floats, entries: Ints, amounts: Floats) -> None:
    """Adjoint of `_read`."""
    if len(table) == 1:
        table[0] += np.bincount(entries, amounts, table.shape[1])
    else:
        table[np.arange(len(entries)), entries] += amounts


def _steps(sequences: Sequences, labels: Ints) -> tuple[Bools, Ints]:
    """Which positions have one before, and the entry of the edge table that leads there."""
    inner = np.ones(len(labels), np.bool_)
    inner[sequences.offsets[:-1]] = False
    before = labels[:-1][inner[1:]]
    return inner, before * sequences.states + labels[inner]
