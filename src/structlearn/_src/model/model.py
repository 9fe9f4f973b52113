"""What users give in its common form, examples made of it, and the weights of a model for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, islice, pairwise, starmap
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices, cut
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.model.term import Features, Term, take_rows

#: One array per group of factors: (rows, size), a single row where all factors share one table.
Tables = tuple[Floats, ...]
#: For every group, the features of each of its terms.
Inputs = tuple[tuple[Features, ...], ...]

# ---- input in its common form ----------------------------------------------------------------


class EdgeSet(NamedTuple):
    """Edges of one kind, which have weights of their own."""

    pairs: Ints  #: (edges, 2) nodes, counted over all examples, example by example
    features: Features = None  #: of the edges, if they have any


class GraphData(NamedTuple):
    """Nodes and edges of many examples, one after the other.

    Parameters
    ----------
    offsets
        (examples + 1,) Where the nodes of every example begin.
    features
        (nodes, features) Features of the nodes: an array, or sparse rows.
    edge_sets
        Kinds of edges, each with pairs of nodes (edges, 2) and perhaps features.
    hidden
        (nodes,) Which nodes are never labelled; None if all may be.
    forms
        Shape of the labels of every example; None if they are flat.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn.extend import GraphData
    >>> GraphData(np.array([0, 2, 5]), np.zeros((5, 3))).sizes
    array([2, 3])
    """

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
        """Return the example of every edge.

        Parameters
        ----------
        pairs
            (edges, 2) Edges, with nodes counted over all examples.

        Returns
        -------
        array of shape (edges,)
            Indices of examples.

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn.extend import GraphData
        >>> data = GraphData(np.array([0, 2, 5]), np.zeros((5, 3)))
        >>> data.owners(np.array([[0, 1], [2, 3], [3, 4]]))
        array([0, 1, 1])
        """
        return np.searchsorted(self.offsets, pairs[:, 0], side="right") - 1

    def edge_positions(self, pairs: Ints) -> Ints:
        """Return the index of every edge within its example.

        Parameters
        ----------
        pairs
            (edges, 2) Edges, with nodes counted over all examples.

        Returns
        -------
        array of shape (edges,)
            Indices, which start at 0 in every example.

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn.extend import GraphData
        >>> data = GraphData(np.array([0, 2, 5]), np.zeros((5, 3)))
        >>> data.edge_positions(np.array([[0, 1], [2, 3], [3, 4]]))
        array([0, 0, 1])
        """
        owner = self.owners(pairs)
        return np.arange(len(owner)) - np.searchsorted(owner, owner)

    def cut(self, values: Any) -> list[Any]:
        """Cut one value or row per node into one array per example.

        Parameters
        ----------
        values : array of shape (nodes, ...)
            Values of the nodes of all examples.

        Returns
        -------
        list of arrays
            One array for each example, in the shape of its labels.

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn.extend import GraphData
        >>> GraphData(np.array([0, 2, 5]), np.zeros((5, 3))).cut(np.arange(5))
        [array([0, 1]), array([2, 3, 4])]
        """
        parts = cut(values, self.offsets)
        if self.forms is None:
            return parts
        pairs = zip(parts, self.forms, strict=True)
        return [part.reshape(*form, *part.shape[1:]) for part, form in pairs]


def shift_edges(edges: Sequence[Ints], borders: Ints) -> Ints:
    """Put the edges of all examples into one array, nodes counted over all examples."""
    counts = np.array([len(pairs) for pairs in edges], np.int64)
    return np.concatenate(edges) + np.repeat(borders[:-1], counts)[:, None]


# ---- examples and models ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Examples:
    """A batch of examples: what is learnt from."""

    structure: Sequences | Graphs  #: which factors and variables belong to which example
    inputs: Inputs  #: features of every term of every group
    labels: Ints  #: (variables,) state of every variable, -1 where it is hidden
    weights: Floats  #: (examples,) how much each counts

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return self.structure.n_examples

    @property
    def hidden(self) -> bool:
        """Whether any variable is hidden."""
        return bool((self.labels < 0).any())

    def at_two_temperatures(self) -> Examples:
        """Return examples whose hidden variables may have a temperature of their own."""
        if isinstance(self.structure, Graphs) or not self.hidden:
            return self
        graphs = self.structure.graphs()
        return replace(self, structure=replace(graphs, groups=graphs.groups[: len(self.inputs)]))

    def take(self, which: Ints) -> Examples:
        """Return some of the examples."""
        structure = self.structure
        inputs = tuple(
            tuple(
                None if x is None else take_rows(x, block_indices(structure.rows(g), which))
                for x in features
            )
            for g, features in enumerate(self.inputs)
        )
        labels = self.labels[block_indices(structure.variables, which)]
        return Examples(structure.take(which), inputs, labels, np.asarray(self.weights[which]))


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A linear map from one flat array of weights to the tables of all groups, and its adjoint."""

    groups: tuple[tuple[Term, ...], ...]  #: a group's tables are the sum of its terms

    @cached_property
    def blocks(self) -> tuple[tuple[slice, ...], ...]:
        """Where the weights of every term lie."""
        ends = accumulate(term.n_weights for terms in self.groups for term in terms)
        places = starmap(slice, pairwise(chain([0], ends)))
        return tuple(tuple(islice(places, len(terms))) for terms in self.groups)

    @cached_property
    def n_weights(self) -> int:
        """Number of weights."""
        return sum(term.n_weights for terms in self.groups for term in terms)

    def push(self, weights: Floats, inputs: Inputs, n_jobs: int | None = None) -> Tables:
        """Tables of every group."""
        out = []
        for terms, blocks, features in zip(self.groups, self.blocks, inputs, strict=True):
            parts = [
                term.push(weights[block], x, n_jobs)
                for term, block, x in zip(terms, blocks, features, strict=True)
            ]
            out.append(parts[0] if len(parts) == 1 else sum(parts[1:], parts[0]))
        return tuple(out)

    def pull(self, marginals: Tables, inputs: Inputs, n_jobs: int | None = None) -> Floats:
        """Adjoint of `push`."""
        parts = [
            term.pull(table, x, n_jobs)
            for terms, table, features in zip(self.groups, marginals, inputs, strict=True)
            for term, x in zip(terms, features, strict=True)
        ]
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.zeros(0)
