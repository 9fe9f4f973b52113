"""The common form of all input: nodes with features, and edges between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn.common.checks import Bools, Floats, Ints
from structlearn.graph.batch import Graphs, assemble
from structlearn.graph.wiring import HIDDEN, OUTPUT
from structlearn.model.features import Features


class Shape(NamedTuple):
    """Nodes and edges of many examples, one after the other."""

    offsets: Ints  #: (examples + 1,) where the nodes of every example begin
    features: Features  #: of the nodes
    edges: Ints  #: (edges, 2) nodes, counted over all examples
    edge_features: Features  #: of the edges, or None
    hidden: Bools | None  #: (nodes,) which nodes are never labelled; None if all may be
    forms: list[tuple[int, ...]]  #: form in which the labels of every example are given

    @property
    def n_nodes(self) -> int:
        """Number of nodes over all examples."""
        return int(self.offsets[-1])

    @property
    def positions(self) -> Ints:
        """Number of every node within its example."""
        return np.arange(self.n_nodes) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    @property
    def edge_positions(self) -> Ints:
        """Number of every edge within its example."""
        owner = np.searchsorted(self.offsets, self.edges[:, 0], side="right")
        return np.arange(len(owner)) - np.searchsorted(owner, owner)


class Layers(NamedTuple):
    """Where nodes, and the hidden variables beside them, lie among the variables of graphs."""

    outputs: Ints  #: (nodes,) variable of every node
    beside: Ints  #: (nodes,) variable of the hidden state beside every node; empty without


def lay_out(
    shape: Shape, states: int, hidden: str | None, hidden_states: int
) -> tuple[Graphs, Layers]:
    """Compile graphs over the nodes of a shape.

    Groups of factors are the nodes, the edges, and with hidden states beside the nodes, these
    (``"node"``: edges link the nodes; ``"layer"``: edges link the hidden states) and the pairs of
    node and hidden state.
    """
    sizes = np.diff(shape.offsets)
    layers = 1 if hidden is None else 2
    first = np.repeat(layers * shape.offsets[:-1], sizes)
    outputs = first + shape.positions
    beside = outputs + np.repeat(sizes, sizes) if layers == 2 else np.empty(0, np.int64)
    n = layers * shape.n_nodes
    cards, roles = np.full(n, states), np.full(n, OUTPUT)
    if shape.hidden is not None:
        roles[outputs[shape.hidden]] = HIDDEN
    linked = beside if hidden == "layer" else outputs
    scopes = [outputs[:, None], linked[shape.edges]]
    if layers == 2:
        cards[beside], roles[beside] = hidden_states, HIDDEN
        scopes += [beside[:, None], np.stack([outputs, beside], axis=1)]
    graphs = assemble(cards, roles, layers * shape.offsets, tuple(scopes))
    return graphs, Layers(outputs, beside)


def flat_labels(shape: Shape, layers: Layers, labels: Ints, n_variables: int) -> Ints:
    """Labels of all variables, -1 for hidden ones, from those of the nodes."""
    out = np.full(n_variables, -1, np.int64)
    out[layers.outputs] = labels
    if shape.hidden is not None:
        out[layers.outputs[shape.hidden]] = -1
    return out


def constant(n: int) -> Floats:
    """Return a feature that is 1 everywhere."""
    return np.ones((n, 1))
