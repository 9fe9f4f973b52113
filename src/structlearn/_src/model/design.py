"""What every design of a model offers: structures, features and weights of graph data."""

from __future__ import annotations

from typing import Protocol

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.model.graph_data import GraphData
from structlearn._src.model.model import Inputs, LinearModel
from structlearn._src.text.labels import Forbidden

#: Variables and factors; the variable of everything that may have a label; the hidden variable
#: beside every node, if there are any.
Structure = tuple[Sequences | Graphs, Ints | slice, Ints | None]


class Design(Protocol):
    """Turns graph data into structures, features and a model."""

    @property
    def tied(self) -> bool:
        """Whether all positions share their weights."""
        ...

    @property
    def hidden(self) -> str | None:
        """None without hidden states; "node" or "layer" by what edges link, nodes or these."""
        ...

    @property
    def hidden_states(self) -> int:
        """Number of states of hidden variables, where there are any."""
        ...

    @property
    def forbidden(self) -> Forbidden | None:
        """What sequences of labels must not do, if anything."""
        ...

    def structure(self, data: GraphData, states: int) -> Structure:
        """Return variables and factors, and where labels belong among the variables."""
        ...

    def inputs(self, data: GraphData) -> Inputs:
        """Features of every term of every group of factors."""
        ...

    def model(self, data: GraphData, labels: Ints, states: int) -> LinearModel:
        """Choose the terms of every group of factors."""
        ...

    def sizes(self, states: int, n_groups: int) -> tuple[int, ...]:
        """Entries of the tables of every group of factors."""
        ...

    def transitions(self, model: LinearModel, weights: Floats, states: int) -> Floats | None:
        """Weights of edges by what they join, None if there are none."""
        ...
