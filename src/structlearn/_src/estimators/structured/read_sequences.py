"""Readers: from rows and sequences to graph data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.read_nodes import (
    TOO_RARE,
    ArrayNodes,
    NodeReader,
    Nodes,
    SparseNodes,
    feature_names,
    learn_nodes,
)
from structlearn._src.model.model import EdgeSet, GraphData
from structlearn._src.model.term import Features, Sparse, take_rows
from structlearn._src.text.attributes import Attributes, Expanded, fit_transform
from structlearn._src.text.columns import Columns
from structlearn._src.text.rows import take
from structlearn._src.text.template import Template


def listed(X: Any) -> Any:
    """Return the examples of X, of which there must be some."""
    single = isinstance(X, str | bytes | dict | Columns) or hasattr(X, "tocsr")
    single = single or hasattr(X, "columns") or getattr(X, "ndim", 1) == 0
    if single or not hasattr(X, "__len__"):
        raise ArgumentError(f"X is a {type(X).__name__}; it must be a list of examples")
    if len(X) == 0:
        raise ArgumentError("X is empty; at least one example is needed")
    return X


def none_empty(borders: Ints) -> Ints:
    """Return the borders of examples, none of which may be empty."""
    empty = np.flatnonzero(np.diff(borders) == 0)
    if len(empty):
        raise ArgumentError(f"example {empty[0]} of X is empty; leave it out")
    return borders


# ---- rows --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RowReader:
    """One array or sparse matrix (examples, width) in which every row is an example of its own."""

    width: int
    intercept: bool
    columns: tuple[str, ...] = ()  #: names of features, if they have any

    def read(self, X: Any) -> GraphData:
        """Return nodes, edges and features of the rows."""
        kind = SparseNodes if hasattr(X, "tocsr") else ArrayNodes
        features, _ = kind(self.width, self.intercept).read([X])
        return GraphData(np.arange(X.shape[0] + 1), features)

    def names(self) -> list[str]:
        """Name of every feature."""
        return feature_names(self.width, self.intercept, self.columns)


# ---- sequences ---------------------------------------------------------------------------


def chain_edges(borders: Ints) -> Ints:
    """Edges between neighbours in sequences, one sequence after the other."""
    inner = np.ones(int(borders[-1]), np.bool_)
    inner[borders[:-1]] = False
    later = np.flatnonzero(inner)
    return np.stack([later - 1, later], axis=1)


@dataclass(frozen=True, eq=False)
class SequenceReader(NodeReader):
    """Sequences: a list with the features of every sequence."""

    nodes: Nodes
    between: bool = False  #: whether an edge has the features of the position that it leads to

    @classmethod
    def learn(
        cls, X: Any, intercept: bool, between: bool = False, min_count: int = 1
    ) -> tuple[SequenceReader, GraphData]:
        """Return the reader that fits the input, and what it reads."""
        nodes, features, borders = learn_nodes(listed(X), bool(intercept), min_count)
        return cls(nodes, between), _sequences(features, borders, features if between else None)

    def read(self, X: Any) -> GraphData:
        """Return nodes, edges and features of the sequences."""
        features, borders = self.nodes.read(listed(X))
        return _sequences(features, borders, features if self.between else None)


@dataclass(frozen=True, eq=False)
class ColumnReader:
    """Columns of text, with attributes made by a template."""

    attributes: Attributes
    n_jobs: int | None = None

    @classmethod
    def learn(
        cls, X: Columns, template: Template, min_count: int = 1, n_jobs: int | None = None
    ) -> tuple[ColumnReader, GraphData]:
        """Return the reader with the attributes of the input, and what it reads."""
        attributes, expanded = fit_transform(X, template, min_count, n_jobs)
        if min_count > 1 and attributes.unigram.tables and not expanded.unigram.n_columns:
            raise ArgumentError(TOO_RARE.format(min_count))
        return cls(attributes, n_jobs), _expanded(expanded, X.offsets)

    @property
    def edges(self) -> str:
        """What the template wants of edges: a table, features alone, or none."""
        template = self.attributes.template
        return "table" if template.transitions else "features" if template.bigram else "none"

    def read(self, X: Columns) -> GraphData:
        """Return nodes, edges and features of the sentences."""
        if not isinstance(X, Columns):
            raise ArgumentError(
                f"X is a {type(X).__name__}, but this model was trained on Columns; give what "
                f"read_columns returns"
            )
        return _expanded(self.attributes.transform(X, self.n_jobs), X.offsets)

    @property
    def width(self) -> int:
        """Number of attributes."""
        return len(self.attributes.unigram)

    def names(self) -> list[str]:
        """Name of every feature."""
        return self.attributes.unigram.names()


def _sequences(features: Features, borders: Ints, later: Features = None) -> GraphData:
    """Shape of sequences; `later` are the features of positions that edges leading there have."""
    pairs = chain_edges(none_empty(borders))
    return GraphData(borders, features, (EdgeSet(pairs, take_rows(later, pairs[:, 1])),))


def _expanded(rows: Expanded, borders: Ints) -> GraphData:
    if len(borders) < 2:
        raise ArgumentError("X holds no sentences; at least one is needed")
    data = _sequences(Sparse(rows.unigram), borders)
    if not rows.bigram.n_columns:
        return data
    pairs = data.edge_sets[0].pairs
    between = Sparse(take(rows.bigram, pairs[:, 1]))
    return data._replace(edge_sets=(EdgeSet(pairs, between),))
