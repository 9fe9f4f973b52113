"""Readers: from sequences, images and graphs to shapes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn.common.checks import Ints
from structlearn.data.attributes import Attributes, Expanded, fit_transform
from structlearn.data.columns import Columns
from structlearn.data.rows import take
from structlearn.data.template import Template
from structlearn.estimators.nodes import Nodes, learn_nodes
from structlearn.estimators.shape import Shape
from structlearn.model.features import Features, Sparse


def chain_edges(offsets: Ints) -> Ints:
    """Edges between neighbours in sequences, one sequence after the other."""
    inner = np.ones(int(offsets[-1]), np.bool_)
    inner[offsets[:-1]] = False
    later = np.flatnonzero(inner)
    return np.stack([later - 1, later], axis=1)


@dataclass(frozen=True, eq=False)
class SequenceReader:
    """Sequences: a list with the features of every sequence."""

    nodes: Nodes

    @classmethod
    def learn(cls, X: Any, intercept: bool) -> tuple[SequenceReader, Shape]:
        """Return the reader that fits the input, and what it reads."""
        nodes, features, offsets = learn_nodes(X, intercept)
        return cls(nodes), _sequences(features, offsets)

    def read(self, X: Any) -> Shape:
        """Return the shape of the sequences."""
        return _sequences(*self.nodes.read(X))

    def names(self) -> list[str]:
        """Name of every feature."""
        return self.nodes.names()


@dataclass(frozen=True, eq=False)
class ColumnReader:
    """Columns of text, with attributes made by a template."""

    attributes: Attributes
    n_jobs: int | None = None

    @classmethod
    def learn(
        cls, X: Columns, template: Template, n_jobs: int | None
    ) -> tuple[ColumnReader, Shape]:
        """Return the reader with the attributes of the input, and what it reads."""
        attributes, expanded = fit_transform(X, template, n_jobs=n_jobs)
        return cls(attributes, n_jobs), _expanded(expanded, X.offsets)

    def read(self, X: Columns) -> Shape:
        """Return the shape of the sentences."""
        return _expanded(self.attributes.transform(X, self.n_jobs), X.offsets)

    def names(self) -> list[str]:
        """Name of every feature."""
        return self.attributes.unigram.names()


def _sequences(features: Features, offsets: Ints, between: Features = None) -> Shape:
    forms: list[tuple[int, ...]] = [(int(n),) for n in np.diff(offsets)]
    return Shape(offsets, features, chain_edges(offsets), between, None, forms)


def _expanded(rows: Expanded, offsets: Ints) -> Shape:
    between = None
    if rows.bigram.n_columns:
        between = Sparse(take(rows.bigram, chain_edges(offsets)[:, 1]))
    return _sequences(Sparse(rows.unigram), offsets, between)
