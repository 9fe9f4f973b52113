"""Label every node of graphs, and every pixel of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.names import EDGES
from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.structured.base import Coder, Design, Reader
from structlearn._src.estimators.structured.labeler import Labeler
from structlearn._src.estimators.structured.read_graphs import GraphReader, GridReader
from structlearn._src.model.model import GraphData


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class GraphLabeler(Labeler):
    r"""Label every node of graphs: trees, or graphs with cycles.

    .. math:: \theta(y) = \sum_i \langle w_{y_i}, x_i \rangle
              + \sum_{(i, j)} \big( W_{y_i, y_j} + \langle v_{y_i, y_j}, x_{ij} \rangle \big)

    Parameters
    ----------
    {features}
    edges
        "table" has a weight for every ordered pair of labels, the first being the label of the node
        that the edge names first (so that the order of nodes in an edge matters); "symmetric" one
        for every unordered pair; "potts" a single one for equal labels; "features" none besides
        those of edge features; "none" has no edges.
    fit_intercept
        Whether every node has an additional feature that is always 1.
    {hidden}
    {shared}

    Notes
    -----
    `X` is a list of graphs, tuples ``(node_features, edges)``, ``(node_features, edges,
    edge_features)`` or ``(node_features, edges, edge_features, hidden)``:

    - node features are an array (nodes, features), a SciPy sparse matrix of that shape, or a list
      of tokens, each a dictionary or a list of strings;
    - edges are an integer array (edges, 2) with the numbers of the nodes that each joins, or a
      networkx graph, whose nodes are numbered in its own order;
    - edge features are like node features, one row per edge, or None;
    - the last is one boolean per node, whether the node is always hidden: hidden nodes are
      variables like the others, but never labelled, and their prediction is -1.

    `Y` is a list with the labels of the nodes of every graph, where None, and -1 among integers,
    marks an unknown label. With ``inference="auto"``, trees and narrow graphs are solved exactly,
    others by belief propagation.

    {notes}

    References
    ----------
    T. Finley and T. Joachims, "Training structural SVMs when exact inference is intractable", 2008.
    {references}

    Examples
    --------
    >>> import numpy as np
    >>> edges = np.array([[0, 1], [1, 2], [2, 0]])
    >>> graph = np.array([[1.0], [0.9], [-1.0]]), edges
    >>> labeler = GraphLabeler(C=10.0, edges="symmetric").fit([graph], [["on", "on", "off"]])
    >>> labeler.predict([graph])[0].tolist()
    ['on', 'on', 'off']
    """

    features: str = "dense"
    edges: str = "table"
    fit_intercept: bool = True

    def _reader(self, X: Any) -> tuple[Reader, GraphData]:
        reader, data = GraphReader.learn(X, self.fit_intercept)
        if self.edges == "features" and reader.between is None:
            raise ArgumentError(
                "edges='features' needs edge features, and no graph has any; give them as third "
                "part of every graph, or use edges='table'"
            )
        return reader, data

    def _design(self, reader: Reader, data: GraphData, coder: Coder) -> Design:
        return self._pairwise(space=self.features, edges=self.edges).fitted_to(data)


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class GridLabeler(Labeler):
    r"""Label every pixel of images, or every cell of tables, with models on 2-D grids.

    .. math:: \theta(y) = \sum_i \langle w_{y_i}, x_i \rangle
              + \sum_{i \sim j} W_{y_i, y_j}

    Parameters
    ----------
    neighbours
        4, or 8 to also join pixels that touch at a corner.
    edges
        "table" has a weight for every ordered pair of labels, the first being the label of the
        pixel to the left or above; "symmetric" one for every unordered pair; "potts" a single
        one for equal labels; "none" has no edges.
    directions
        Whether edges of each direction (right, down, and the two diagonals) have separate weights.
    fit_intercept
        Whether every pixel has an additional channel that is always 1.
    {hidden}
    {shared}

    Notes
    -----
    `X` is a list of images, arrays (rows, columns, channels), or (rows, columns) with a single
    channel; they may differ in size. `Y` is a list of arrays (rows, columns) with the label of
    every pixel, -1 where it is unknown.

    {notes}

    References
    ----------
    S. Kumar and M. Hebert, "Discriminative random fields", 2006.
    {references}

    Examples
    --------
    >>> import numpy as np
    >>> image = np.array([[0.9, 0.8, 0.1], [0.7, 1.0, 0.2]])
    >>> labels = (image > 0.5).astype(int)
    >>> labeler = GridLabeler(C=10.0, edges="potts").fit([image], [labels])
    >>> labeler.predict([image[:, ::-1]])[0]
    array([[0, 1, 1],
           [0, 1, 1]])
    """

    neighbours: int = 4
    edges: str = "table"
    directions: bool = False
    fit_intercept: bool = True

    def _check_own(self) -> None:
        checks.one_of("edges", self.edges, tuple(kind for kind in EDGES if kind != "features"))

    def _reader(self, X: Any) -> tuple[Reader, GraphData]:
        return GridReader.learn(X, self.fit_intercept, self.neighbours, self.directions)

    def _coder(self, Y: Any, data: GraphData, classes: Any) -> Coder:
        if isinstance(Y, np.ndarray) and Y.ndim == 2 and len(Y) == data.n_examples:
            rows, columns = Y.shape
            raise ArgumentError(
                f"Y has the labels of a single image of {rows} x {columns} pixels, but lists with "
                f"one entry for each image are needed; give fit([X], [Y])"
            )
        return super()._coder(Y, data, classes)

    def _design(self, reader: Reader, data: GraphData, coder: Coder) -> Design:
        return self._pairwise(edges=self.edges).fitted_to(data)
