"""Label every pixel of images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from structlearn._src.common import checks
from structlearn._src.common.names import EDGES
from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.structured.labeler import Labeler
from structlearn._src.estimators.structured.plan import Coder, Design, Reader
from structlearn._src.estimators.structured.read_graphs import GridReader
from structlearn._src.model.graph_data import GraphData


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class GridLabeler(Labeler):
    r"""Label every pixel of images, or every cell of tables: models on 2-D grids.

    .. math:: \theta(y) = \sum_i \langle w_{y_i}, x_i \rangle
              + \sum_{i \sim j} W_{y_i, y_j}

    Parameters
    ----------
    neighbours
        4, or 8 to join pixels that touch at a corner too.
    edges
        "table" has a weight for every pair of labels, where the first label is that of the pixel
        to the left or above (so that the order of labels matters); "symmetric" one for every pair
        in any order; "potts" a single one, for being equal; "none" no edges.
    directions
        Whether edges of every direction (right, down, and the two diagonals) have weights of
        their own.
    fit_intercept
        Whether every pixel has one more channel, which is always 1.
    {hidden}
    {shared}

    Notes
    -----
    `X` is a list of images, arrays (rows, columns, channels), or (rows, columns) with a single
    channel; they may differ in size. `Y` is a list of arrays (rows, columns) with the label of
    every pixel, -1 where it is not known.

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

    def _design(self, reader: Reader, data: GraphData, coder: Coder) -> Design:
        return self._pairwise(edges=self.edges).fitted_to(data)
