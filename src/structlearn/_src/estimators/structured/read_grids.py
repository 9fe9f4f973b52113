"""Reader: from images to graph data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Ints, as_array
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.read_nodes import Nodes, learn_nodes
from structlearn._src.estimators.structured.read_sequences import listed, none_empty
from structlearn._src.graph.shapes import grid_edges
from structlearn._src.model.features import Features
from structlearn._src.model.graph_data import EdgeSet, GraphData, shift_edges


@dataclass(frozen=True, eq=False)
class GridReader:
    """Images: arrays (rows, columns, channels), or (rows, columns) with one channel.

    Parameters
    ----------
    nodes
        Reads the channels of pixels.
    neighbours
        4 or 8.
    directions
        Whether edges of every direction are a kind of their own.
    """

    nodes: Nodes
    neighbours: int = 4
    directions: bool = False

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

    @property
    def width(self) -> int:
        """Number of features of nodes, without the intercept."""
        return self.nodes.width

    def names(self) -> list[str]:
        """Name of every feature."""
        return self.nodes.names()

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
    image = as_array(given)
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
