"""The common form of all input: nodes with features, and edges between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Bools, Ints, cut
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.model.term import Features

#: What a design makes of graph data: variables and factors; the variable of everything that may
#: have a label; the hidden variable beside every node, if there are any.
Structure = tuple[Sequences | Graphs, Ints | slice, Ints | None]


class EdgeSet(NamedTuple):
    """Edges of one kind, which have weights of their own."""

    pairs: Ints  #: (edges, 2) nodes, counted over all examples, example by example
    features: Features = None  #: of the edges, if they have any


class GraphData(NamedTuple):
    """Nodes and edges of many examples, one after the other."""

    offsets: Ints  #: (examples + 1,) where the nodes of every example begin
    features: Features  #: of the nodes
    edge_sets: tuple[EdgeSet, ...] = ()  #: kinds of edges
    hidden: Bools | None = None  #: (nodes,) which nodes are never labelled; None if all may be
    forms: list[tuple[int, ...]] | None = None  #: form of every example's labels; None if flat

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return len(self.offsets) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes over all examples."""
        return int(self.offsets[-1])

    @property
    def sizes(self) -> Ints:
        """Number of nodes of every example."""
        return np.diff(self.offsets)

    @property
    def positions(self) -> Ints:
        """Number of every node within its example."""
        return np.arange(self.n_nodes) - np.repeat(self.offsets[:-1], self.sizes)

    def owners(self, pairs: Ints) -> Ints:
        """Example of every edge."""
        return np.searchsorted(self.offsets, pairs[:, 0], side="right") - 1

    def edge_positions(self, pairs: Ints) -> Ints:
        """Number of every edge within its example."""
        owner = self.owners(pairs)
        return np.arange(len(owner)) - np.searchsorted(owner, owner)

    def cut(self, values: Any) -> list[Any]:
        """Cut one value (or row) per node into one array per example, in its form."""
        parts = cut(values, self.offsets)
        if self.forms is None:
            return parts
        pairs = zip(parts, self.forms, strict=True)
        return [part.reshape(*form, *part.shape[1:]) for part, form in pairs]


def shift_edges(edges: Sequence[Ints], borders: Ints) -> Ints:
    """Put the edges of all examples into one array, nodes counted over all examples."""
    counts = np.array([len(pairs) for pairs in edges], np.int64)
    return np.concatenate(edges) + np.repeat(borders[:-1], counts)[:, None]
