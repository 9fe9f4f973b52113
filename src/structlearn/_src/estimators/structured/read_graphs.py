"""Readers: from graphs and images to graph data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Ints, as_array
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.read_sequences import (
    NodeReader,
    Nodes,
    as_numbers,
    learn_nodes,
    length,
    listed,
    none_empty,
)
from structlearn._src.graph.shapes import grid_edges
from structlearn._src.model.model import EdgeSet, GraphData, shift_edges
from structlearn._src.model.term import Features

# ---- graphs ----------------------------------------------------------------------------


class Graph(NamedTuple):
    """One graph as a user gives it."""

    features: Any
    edges: Any
    edge_features: Any = None
    hidden: Any = None


@dataclass(frozen=True, eq=False)
class GraphReader(NodeReader):
    """Graphs: tuples of node features, edges, and perhaps edge features and hidden nodes.

    Parameters
    ----------
    nodes
        Reads the features of nodes.
    between
        Reads the features of edges, if they have any.

    Examples
    --------
    >>> from structlearn.extend import GraphReader
    >>> graph = [[1.0], [2.0], [3.0]], [[0, 1], [1, 2]]
    >>> reader, data = GraphReader.learn([graph], intercept=True)
    >>> reader.width, data.n_nodes
    (1, 3)
    """

    nodes: Nodes
    between: Nodes | None = None  #: reads the features of edges, if they have any

    @classmethod
    def learn(cls, X: Any, intercept: bool) -> tuple[GraphReader, GraphData]:
        """Return a reader that fits the input, and what it reads.

        Parameters
        ----------
        X : list of tuples
            Graphs, as in `GraphLabeler`.
        intercept
            Whether every node has an additional feature that is always 1.

        Returns
        -------
        tuple (GraphReader, GraphData)
            The reader, and nodes, edges and features of the graphs.

        Examples
        --------
        >>> from structlearn.extend import GraphReader
        >>> graph = [[1.0], [2.0], [3.0]], [[0, 1], [1, 2]]
        >>> _, data = GraphReader.learn([graph], intercept=True)
        >>> data.features.shape
        (3, 2)
        """
        graphs = [_graph(x, i) for i, x in enumerate(listed(X))]
        nodes, *rows = learn_nodes([graph.features for graph in graphs], bool(intercept))
        between = None
        edge_rows = None
        if any(graph.edge_features is not None for graph in graphs):
            between, *edge_rows = learn_nodes(_edge_parts(graphs), False, of="edge")
        return cls(nodes, between), _graph_data(graphs, rows, edge_rows)

    def read(self, X: Any) -> GraphData:
        """Return nodes, edges and features of the graphs.

        Parameters
        ----------
        X : list of tuples
            Graphs, with the features of those that were given to `learn`.

        Returns
        -------
        GraphData
            All graphs, one after the other.

        Examples
        --------
        >>> from structlearn.extend import GraphReader
        >>> graph = [[1.0], [2.0], [3.0]], [[0, 1], [1, 2]]
        >>> reader, _ = GraphReader.learn([graph], intercept=False)
        >>> reader.read([graph, graph]).offsets
        array([0, 3, 6])
        """
        graphs = [_graph(x, i) for i, x in enumerate(listed(X))]
        rows = self.nodes.read([graph.features for graph in graphs])
        edge_rows = None if self.between is None else self.between.read(_edge_parts(graphs))
        return _graph_data(graphs, rows, edge_rows)


def _graph(given: Any, i: int) -> Graph:
    if not isinstance(given, tuple | list) or not 2 <= len(given) <= 4:
        raise ArgumentError(
            f"graph {i} is a {type(given).__name__}; a tuple (node features, edges), perhaps with "
            f"edge features and a mask of hidden nodes, is needed"
        )
    graph = Graph(*given)
    checks.not_masked(f"the edges of graph {i}", graph.edges)
    edges = as_array(_pairs(graph, i) if hasattr(graph.edges, "adj") else graph.edges)
    edges = edges.reshape(0, 2).astype(np.int64) if edges.size == 0 else edges
    if edges.dtype.kind not in "iu" or edges.ndim != 2 or edges.shape[1] != 2:
        raise ArgumentError(
            f"the edges of graph {i} have shape {edges.shape} and type {edges.dtype}; an array "
            f"(edges, 2) with the numbers of nodes is needed"
        )
    return graph._replace(edges=edges.astype(np.int64))


def _pairs(graph: Graph, i: int) -> list[tuple[int, int]]:
    """Return the edges of a graph of networkx, whose nodes are counted in its own order."""
    numbers = {name: number for number, name in enumerate(graph.edges.nodes)}
    if len(numbers) != length(graph.features):
        raise ArgumentError(
            f"graph {i} has {len(numbers)} nodes in networkx and features of "
            f"{length(graph.features)}; every node needs a row, in the order of its nodes"
        )
    return [(numbers[a], numbers[b]) for a, b in graph.edges.edges()]


def _edge_parts(graphs: list[Graph]) -> list[Any]:
    """Edge features of all graphs; those without edges may lack them."""
    for i, graph in enumerate(graphs):
        if graph.edge_features is None and len(graph.edges):
            raise ArgumentError(
                f"graph {i} has no edge features, but others have; all graphs need them, or none"
            )
    return [() if graph.edge_features is None else graph.edge_features for graph in graphs]


def _graph_data(graphs: list[Graph], rows: Any, edge_rows: Any) -> GraphData:
    features, borders = rows
    sizes = np.diff(none_empty(borders))
    for i, (graph, size) in enumerate(zip(graphs, sizes, strict=True)):
        _check_edges(graph.edges, int(size), i)
    between = None
    if edge_rows is not None:
        between = edge_rows[0]
        counts = np.diff(edge_rows[1])
        _check_counts(counts, graphs)
    links = EdgeSet(shift_edges([graph.edges for graph in graphs], borders), between)
    return GraphData(borders, features, (links,), _masks(graphs, sizes))


def _check_edges(edges: Ints, size: int, i: int) -> None:
    wrong = ((edges < 0) | (edges >= size)).any(axis=1) | (edges[:, 0] == edges[:, 1])
    if wrong.any():
        a, b = edges[wrong][0]
        raise ArgumentError(
            f"graph {i} has {size} nodes and an edge from {a} to {b}; edges must join two nodes, "
            f"which are counted from 0"
        )


def _check_counts(counts: Ints, graphs: list[Graph]) -> None:
    for i, (count, graph) in enumerate(zip(counts, graphs, strict=True)):
        if count != len(graph.edges):
            raise ArgumentError(
                f"graph {i} has {len(graph.edges)} edges and features for {count}; every edge "
                f"needs one row"
            )


def _masks(graphs: list[Graph], sizes: Ints) -> Bools | None:
    """Which nodes are hidden, None if no graph says."""
    if all(graph.hidden is None for graph in graphs):
        return None
    masks = []
    for i, (graph, size) in enumerate(zip(graphs, sizes, strict=True)):
        checks.not_masked(f"the hidden nodes of graph {i}", graph.hidden)
        mask = np.zeros(size, np.bool_) if graph.hidden is None else np.asarray(graph.hidden)
        if mask.dtype != np.bool_ or mask.shape != (size,):
            raise ArgumentError(
                f"the hidden nodes of graph {i} are given by an array of shape {mask.shape} and "
                f"type {mask.dtype}; a truth value for each of its {size} nodes is needed"
            )
        masks.append(mask)
    return np.concatenate(masks)


# ---- images ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GridReader(NodeReader):
    """Images: arrays (rows, columns, channels), or (rows, columns) with one channel."""

    nodes: Nodes
    neighbours: int = 4  #: or 8
    directions: bool = False  #: whether edges of every direction are a kind of their own

    @classmethod
    def learn(
        cls, X: Any, intercept: bool, neighbours: int, directions: bool
    ) -> tuple[GridReader, GraphData]:
        """Return the reader that fits the input, and what it reads."""
        images = [_image(x, i) for i, x in enumerate(listed(X))]
        nodes, features, borders = learn_nodes(
            [_pixels(image) for image in images], bool(intercept)
        )
        reader = cls(nodes, neighbours, directions)
        return reader, reader._data(images, features, borders)

    def read(self, X: Any) -> GraphData:
        """Return nodes, edges and features of the images."""
        images = [_image(x, i) for i, x in enumerate(listed(X))]
        return self._data(images, *self.nodes.read([_pixels(image) for image in images]))

    def _data(self, images: list[Any], features: Features, borders: Ints) -> GraphData:
        forms = [image.shape[:2] for image in images]
        known = {form: self._edges(*form) for form in set(forms)}
        kinds = zip(*(known[form] for form in forms), strict=True)
        links = tuple(EdgeSet(shift_edges(edges, borders)) for edges in kinds)
        return GraphData(none_empty(borders), features, links, None, forms)

    def _edges(self, rows: int, columns: int) -> list[Ints]:
        """Edges of one image, of every kind."""
        edges = grid_edges(rows, columns, self.neighbours)
        if not self.directions:
            return [edges]
        right = rows * (columns - 1)
        down = (rows - 1) * columns
        both = (rows - 1) * (columns - 1)
        sizes = [right, down, both, both][: self.neighbours // 2]
        return np.split(edges, np.cumsum(sizes)[:-1])


def _image(given: Any, i: int) -> Any:
    image = as_numbers(given, f"the channels of image {i}")
    if image.dtype.kind not in "fiub" or image.ndim not in (2, 3):
        raise ArgumentError(
            f"image {i} has shape {image.shape} and type {image.dtype}; numbers of shape (rows, "
            f"columns, channels), or (rows, columns) with one channel, are needed"
        )
    if image.shape[2:] == (0,):
        raise ArgumentError(f"image {i} has shape {image.shape}; at least one channel is needed")
    return image if image.ndim == 3 else image[:, :, None]


def _pixels(image: Any) -> Any:
    return image.reshape(-1, image.shape[2])
