"""How an estimator turns what users give into examples, learnt once and then kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.model.examples import Examples
from structlearn._src.model.graph_data import Layers, Shape
from structlearn._src.model.model import Model
from structlearn._src.model.pairwise import Choices, Design

__all__ = ["Batch", "Choices", "Coder", "Plan", "Reader"]


class Reader(Protocol):
    """Turns input into shapes, by what it learnt from the first."""

    @property
    def width(self) -> int:
        """Number of features of nodes, without the intercept."""
        ...

    def read(self, X: Any) -> Shape:
        """Return nodes, edges and features of all examples."""
        ...

    def names(self) -> list[str]:
        """Name of every feature of the nodes."""
        ...


class Coder(Protocol):
    """Numbers labels from 0."""

    @property
    def names(self) -> Any:
        """Label of every number."""
        ...

    def transform(self, Y: Any) -> Ints:
        """Return the number of every label, -1 where it is not known."""
        ...


class Batch(NamedTuple):
    """Examples together with what leads back from them to what users gave."""

    shape: Shape
    layers: Layers
    examples: Examples


@dataclass(frozen=True, eq=False)
class Plan:
    """Reader, label coder, choices and model of a fitted estimator.

    `eps_h` is the temperature of hidden variables in prediction.
    """

    reader: Reader
    coder: Coder
    choices: Design
    model: Model
    eps_h: float = 1.0

    @property
    def classes(self) -> Any:
        """Label of every state."""
        return self.coder.names

    @property
    def states(self) -> int:
        """Number of labels."""
        return len(self.coder.names)

    def read(self, X: Any) -> Batch:
        """Return examples without labels."""
        return self.lay_out(self.reader.read(X))

    def lay_out(self, shape: Shape, labels: Ints | None = None) -> Batch:
        """Return the examples of a shape, with all labels -1 if none are given."""
        structure, layers = self.choices.structure(shape, self.states)
        flat = np.full(structure.n_variables, -1, np.int64)
        if labels is not None:
            flat[layers.outputs] = (
                labels if shape.hidden is None else np.where(shape.hidden, -1, labels)
            )
        ones = np.ones(structure.n_examples)
        return Batch(shape, layers, Examples(structure, self.choices.inputs(shape), flat, ones))
