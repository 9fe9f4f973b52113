"""Readers: from rows, sequences and the features of nodes to graph data.

Features are arrays, frames, sparse matrices or tokens.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints, as_array, locate, offsets_of
from structlearn._src.common.checks import MOST
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.doc import documented
from structlearn._src.model.model import EdgeSet, GraphData
from structlearn._src.model.term import Features, Sparse, take_rows
from structlearn._src.text.attributes import Attributes, Expanded, fit_transform
from structlearn._src.text.columns import Columns
from structlearn._src.text.rows import Rows, from_csr, take
from structlearn._src.text.template import Template
from structlearn._src.text.tokens import Vocabulary

_TOO_RARE = "min_count={} leaves no attribute, since none occurs so often; lower it"

# ---- features of nodes -----------------------------------------------------------------------


@dataclass(frozen=True)
class ArrayNodes:
    """One array or frame (nodes, width) per example; `intercept` adds a feature that is always 1.

    Messages call what has the features `of`; `columns` are the names that frames must have.
    """

    width: int
    intercept: bool
    of: str = "node"
    columns: tuple[str, ...] = field(default=(), metadata={"later": True})

    def read(self, parts: Any) -> tuple[Features, Ints]:
        """Put all arrays into one."""
        arrays = [self._checked(part, i) for i, part in enumerate(parts)]
        checks.same_columns(parts, self.columns)
        starts = offsets_of(len(array) for array in arrays)
        out = np.ones((int(starts[-1]), self.width + self.intercept))
        for array, start, stop in zip(arrays, starts, starts[1:], strict=False):
            out[start:stop, : self.width] = array
        return self._finite(out, starts), starts

    def names(self) -> list[str]:
        """Name of every feature."""
        return feature_names(self.width, self.intercept, self.columns)

    def _checked(self, part: Any, i: int) -> NDArray[Any]:
        plain = type(part) is np.ndarray and part.dtype == np.float64
        if plain and part.shape[1:] == (self.width,):
            return part  # as most are; of small ones, checks would cost more than the prediction
        array = as_numbers(part, f"the {self.of} features of example {i}")
        if array.shape[:1] == (0,):
            return np.empty((0, self.width))
        if array.dtype.kind not in "fiub" or array.ndim != 2 or array.shape[1] != self.width:
            raise ArgumentError(
                f"the {self.of} features of example {i} have shape {array.shape} and type "
                f"{array.dtype}; numbers of shape (n, {self.width}) are needed, as in the first "
                f"example"
            )
        return array

    def _finite(self, array: Floats, starts: Ints) -> Floats:
        fine = np.abs(array) < MOST  # not so NaN
        if fine.all():
            return array
        row, column = np.argwhere(~fine)[0].tolist()
        example, node = locate(starts, row)
        raise ArgumentError(
            f"X contains {array[row, column]}: feature {column} of {self.of} {node} of example "
            f"{example}; NaN, infinity and what is beyond {MOST:g} are not allowed: drop, replace "
            f"or scale them"
        )


@dataclass(frozen=True)
class SparseNodes:
    """One SciPy sparse matrix (nodes, width) per example."""

    width: int
    intercept: bool

    def read(self, parts: Any) -> tuple[Features, Ints]:
        """Stack all matrices."""
        from scipy.sparse import vstack

        for i, part in enumerate(parts):
            if not hasattr(part, "tocsr") or part.shape[1:] != (self.width,):
                shape = f" of shape {part.shape}" if hasattr(part, "shape") else ""
                raise ArgumentError(
                    f"example {i} is a {type(part).__name__}{shape}; it must be a SciPy sparse "
                    f"matrix of shape (nodes, {self.width}) as in training"
                )
            if part.dtype.kind not in "fiub":
                raise ArgumentError(f"example {i} has the type {part.dtype}; need real numbers")
        rows = from_csr(vstack(parts, format="csr"))
        return _sparse(rows, self.intercept), offsets_of(part.shape[0] for part in parts)

    def names(self) -> list[str]:
        """Name of every feature."""
        return feature_names(self.width, self.intercept)


@dataclass(frozen=True, eq=False)
class TokenNodes:
    """One list of tokens per example, each a mapping or some strings."""

    vocabulary: Vocabulary
    intercept: bool

    @property
    def width(self) -> int:
        """Number of attributes."""
        return len(self.vocabulary)

    def read(self, parts: Any) -> tuple[Features, Ints]:
        """Look up all attributes; those never seen in training are left out."""
        return self.wrap(self.vocabulary.transform(parts), parts)

    def wrap(self, rows: Rows, parts: Any) -> tuple[Features, Ints]:
        """Features and borders of rows already looked up."""
        for i, part in enumerate(parts):
            if not hasattr(part, "__len__"):
                raise ArgumentError(
                    f"example {i} is a {type(part).__name__}; it must be a list of tokens"
                )
        return _sparse(rows, self.intercept), offsets_of(map(len, parts))

    def names(self) -> list[str]:
        """Name of every feature."""
        return [*self.vocabulary.names, *["intercept"][: self.intercept]]


#: Reads the features of the nodes of many examples, as it learnt from the first.
Nodes = ArrayNodes | SparseNodes | TokenNodes


def learn_nodes(
    parts: Any, intercept: bool, min_count: int = 1, of: str = "node"
) -> tuple[Nodes, Features, Ints]:
    """Return the reader that fits the first example that has nodes, and what it reads.

    Attributes of tokens that occur less than `min_count` times are left out. Messages call what
    has the features `of`.
    """
    first = next((part for part in parts if length(part)), None)
    if first is None:
        none = [i for i, part in enumerate(parts) if part is None]
        if none:
            raise ArgumentError(f"example {none[0]} is None; give the features of its {of}s")
        raise ArgumentError("all examples are empty; at least one needs features")
    array = first if hasattr(first, "tocsr") else as_numbers(first, f"the {of} features")
    if hasattr(first, "columns") and array.dtype.kind not in "fiub":
        raise ArgumentError(
            f"the {of} features of the first example are a {type(first).__name__} of which not all "
            f"are numbers; numbers in every column are needed, and none missing"
        )
    nodes: Nodes
    if hasattr(first, "tocsr"):
        nodes = SparseNodes(_width(first, intercept, of), intercept)
    elif array.dtype.kind in "fiub":
        nodes = ArrayNodes(_width(array, intercept, of), intercept, of, checks.columns_of(first))
    else:
        _not_numbers_as_text(first, of)
        vocabulary = Vocabulary()
        rows = vocabulary.fit_transform(parts, min_count)
        if min_count > 1 and not len(vocabulary):
            raise ArgumentError(_TOO_RARE.format(min_count))
        tokens = TokenNodes(vocabulary, intercept)
        return tokens, *tokens.wrap(rows, parts)
    if min_count > 1:
        raise ArgumentError(
            f"min_count={min_count} is for attributes of tokens and columns, and X has numbers; "
            f"leave it at 1"
        )
    return nodes, *nodes.read(parts)


def _not_numbers_as_text(first: Any, of: str) -> None:
    """Refuse an array of text such as "0.25": every number would be an attribute of its own."""
    if not isinstance(first, np.ndarray) or first.dtype.kind not in "US" or first.ndim != 2:
        return
    try:
        first.astype(np.float64)
    except ValueError:
        return
    raise ArgumentError(
        f"the {of} features of the first example are an array of text that reads as numbers; make "
        f"numbers of them, as by `astype(float)`, or give lists of attributes if they are names"
    )


def _width(array: Any, intercept: bool, of: str) -> int:
    """Return the number of features, which must not be 0 unless there is an intercept."""
    if len(array.shape) != 2 or (array.shape[1] == 0 and not intercept):
        raise ArgumentError(
            f"the {of} features of the first example have shape {array.shape}; it must be "
            f"({of}s, features), with at least one feature"
        )
    return int(array.shape[1])


def _sparse(rows: Rows, intercept: bool) -> Sparse:
    """Return rows as features; an intercept is one more entry, 1, in a new last column."""
    if not intercept:
        return Sparse(rows)
    ends = rows.offsets[1:]
    values = rows.values if not len(rows.values) else np.insert(rows.values, ends, 1.0)
    columns = np.insert(rows.columns, ends, np.int32(rows.n_columns))
    starts = rows.offsets + np.arange(len(ends) + 1)
    return Sparse(Rows(starts, columns, values, rows.n_columns + 1))


def length(part: Any) -> int:
    """Return the number of nodes of an example; what has no length is refused later."""
    if hasattr(part, "shape"):
        return int(part.shape[0]) if len(part.shape) else 1
    return len(part) if hasattr(part, "__len__") else 1


def as_numbers(part: Any, what: str) -> NDArray[Any]:
    """Return an array, of numbers if it can be; what masks some of them is refused."""
    checks.not_masked(what, part)
    array = as_array(part)
    if array.dtype != object or array.ndim < 2:
        return array
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return array


def feature_names(width: int, intercept: bool, columns: tuple[str, ...] = ()) -> list[str]:
    """Return the names of features: those of columns, or else their numbers."""
    return [*(columns or [f"x{i}" for i in range(width)]), *["intercept"][:intercept]]


# ---- rows and sequences ----------------------------------------------------------------------


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


class NodeReader:
    """Base class of readers that have their features from `nodes`."""

    nodes: Nodes

    @property
    def width(self) -> int:
        """Number of features of nodes, without the intercept."""
        return self.nodes.width

    @documented
    def names(self) -> list[str]:
        """Return the names of the features.

        {names}
        """
        return self.nodes.names()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of frames; none if there were no frames."""
        return getattr(self.nodes, "columns", ())


@dataclass(frozen=True, eq=False)
class RowReader:
    """One array or sparse matrix (examples, width) in which every row is an example of its own."""

    width: int
    intercept: bool
    #: Names of features, if they have any.
    columns: tuple[str, ...] = field(default=(), metadata={"later": True})

    def read(self, X: Any) -> GraphData:
        """Return nodes, edges and features of the rows."""
        kind = SparseNodes if hasattr(X, "tocsr") else ArrayNodes
        features, _ = kind(self.width, self.intercept).read([X])
        return GraphData(np.arange(X.shape[0] + 1), features)

    def names(self) -> list[str]:
        """Name of every feature."""
        return feature_names(self.width, self.intercept, self.columns)


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
            raise ArgumentError(_TOO_RARE.format(min_count))
        return cls(attributes, n_jobs), graph_data(expanded, X.offsets)

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
        return graph_data(self.attributes.transform(X, self.n_jobs), X.offsets)

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


def graph_data(rows: Expanded, borders: Ints) -> GraphData:
    """Nodes, edges and features of sentences with these rows."""
    if len(borders) < 2:
        raise ArgumentError("X holds no sentences; at least one is needed")
    data = _sequences(Sparse(rows.unigram), borders)
    if not rows.bigram.n_columns:
        return data
    pairs = data.edge_sets[0].pairs
    between = Sparse(take(rows.bigram, pairs[:, 1]))
    return data._replace(edge_sets=(EdgeSet(pairs, between),))
