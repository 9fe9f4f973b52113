"""Labelled sequences of which any labelling but the true one costs the same."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.batch import Sequences
from structlearn._src.inference.chain_batch import Chains, forbid_ends, tables_to_chains
from structlearn._src.learn.structured_world import ExactWorld, add_counts
from structlearn._src.learn.world import CONVERGED, Budget, Memory, add_tables
from structlearn._src.model.model import Tables


class WholeChains(ExactWorld):
    r"""The free world of sequences with a cost of 1 for every labelling but the true one.

    .. math:: \max_y \theta(y) + [y \ne y^*]
              = \max\big(\theta(y^*),\; 1 + \max_{y \ne y^*} \theta(y)\big)

    and its soft maxima. Such a cost does not add up over positions, but one more state makes a
    chain of it: the last state says that all labels so far are the true ones, the others that one
    of them was not. Who has left the last state never comes back, and pays 1 at the end. The best
    path is the best or the second best of the sequence.
    """

    def __init__(
        self, sequences: Sequences, labels: Ints, eps: float, n_jobs: int | None = None
    ) -> None:
        self.sequences = sequences
        self.labels = labels
        self.eps = eps
        self.n_jobs = n_jobs
        self.added = None if sequences.forbidden is None else forbid_ends(sequences, None)
        inner = np.ones(len(labels), np.bool_)
        inner[sequences.offsets[:-1]] = False
        self.later = np.flatnonzero(inner)  # positions with one before
        self.before = labels[self.later - 1]  # the true labels there

    def chains(self, tables: Tables) -> Chains:
        """Return the chains with one more state, at temperature 1."""
        plain = tables_to_chains(self.sequences, tables, self.added, self.eps, self.n_jobs)
        price = 1.0 if self.eps == 0.0 else 1.0 / self.eps
        rows = np.arange(len(self.labels))
        nodes = np.empty((len(rows), plain.nodes.shape[1] + 1))
        nodes[:, :-1] = plain.nodes
        nodes[:, -1] = plain.nodes[rows, self.labels]
        first = self.sequences.offsets[:-1]
        nodes[first, self.labels[first]] = -np.inf  # a right start has left nothing
        nodes[self.sequences.offsets[1:] - 1, :-1] += price
        return Chains(nodes, self._edges(plain), self.sequences.offsets, self.n_jobs)

    def _edges(self, plain: Chains) -> Floats:
        """Steps between labels as they are; from the last state to any but the true label."""
        each = np.arange(len(self.later))
        states = self.sequences.states
        steps = np.broadcast_to(plain.edges, (len(each), states, states))
        edges = np.full((len(each), states + 1, states + 1), -np.inf)
        edges[:, :-1, :-1] = steps
        edges[:, -1, :-1] = steps[each, self.before]
        now = self.labels[self.later]
        edges[each, -1, -1] = edges[each, -1, now]
        edges[each, -1, now] = -np.inf
        return edges

    def solve(
        self, parameters: Tables, factors: Floats, memory: Memory,
        budget: Budget = CONVERGED, into: Tables | None = None,
    ) -> tuple[Floats, Tables, Memory]:  # fmt: skip
        """Values of the sequences, and their marginals times `factors`."""
        chains = self.chains(parameters)
        if self.eps == 0.0:
            values, found = chains.best()
            labels = np.where(found == self.sequences.states, self.labels, found)
            return values, add_counts(self.sequences, labels, factors, parameters, into), None
        values, nodes, edges = chains.marginals("each", factors)
        tables = self._plain(nodes, edges)[: len(parameters)]
        summed = [
            rows if len(rows) == len(like) else rows.sum(axis=0, keepdims=True)
            for rows, like in zip(tables, parameters, strict=True)
        ]
        return values * self.eps, add_tables(into, tuple(summed)), None

    def _plain(self, nodes: Floats, edges: Floats) -> tuple[Floats, Floats]:
        """Marginals of labels from those of states: the last state is the true label."""
        rows = np.arange(len(self.labels))
        alone = nodes[:, :-1].copy()
        alone[rows, self.labels] += nodes[:, -1]
        each = np.arange(len(self.later))
        pairs = edges[:, :-1, :-1].copy()
        pairs[each, self.before] += edges[:, -1, :-1]
        pairs[each, self.before, self.labels[self.later]] += edges[:, -1, -1]
        return alone, pairs.reshape(len(each), self.sequences.states**2)
