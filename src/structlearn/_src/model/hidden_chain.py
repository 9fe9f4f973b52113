"""One label for a whole sequence, over a chain of hidden states."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.batch import Graphs, Sequences, assemble
from structlearn._src.graph.wiring import HIDDEN, OUTPUT
from structlearn._src.model.graph_data import Layers, Shape
from structlearn._src.model.model import Inputs, Model
from structlearn._src.model.term import Linear, Table


@dataclass(frozen=True, eq=False)
class Whole:
    r"""The hidden conditional random field for sequences.

    .. math:: \theta(y, h) = b_y + \sum_t \big( \langle v_{h_t}, x_t \rangle + B_{y, h_t} \big)
              + \sum_t A_{y, h_t, h_{t+1}}

    Groups of factors are the hidden states, the pairs of label and hidden state, the triples of
    label and neighbouring hidden states, and the labels.

    Parameters
    ----------
    hidden_states
        Number of hidden states.

    References
    ----------
    A. Quattoni et al., "Hidden conditional random fields", 2007.
    """

    hidden_states: int

    def structure(self, shape: Shape, states: int) -> tuple[Sequences | Graphs, Layers]:
        """Return variables and factors; the label of a sequence comes before its states."""
        n = shape.n_examples
        label = shape.offsets[:-1] + np.arange(n)
        owner = np.repeat(np.arange(n), shape.sizes)
        hidden = np.arange(shape.n_nodes) + owner + 1
        pairs = shape.links[0].pairs
        scopes = (
            hidden[:, None],
            np.stack([label[owner], hidden], axis=1),
            np.column_stack([label[owner[pairs[:, 0]]], hidden[pairs]]),
            label[:, None],
        )
        cards = np.full(n + shape.n_nodes, self.hidden_states)
        roles = np.full(len(cards), HIDDEN)
        cards[label], roles[label] = states, OUTPUT
        borders = shape.offsets + np.arange(n + 1)
        return assemble(cards, roles, borders, scopes), Layers(label, hidden)

    def inputs(self, shape: Shape) -> Inputs:
        """Features of every term of every group."""
        return (shape.features,), (None,), (None,), (None,)

    def model(self, shape: Shape, labels: Ints, states: int) -> Model:
        """Choose the terms of every group."""
        h, features = self.hidden_states, shape.features
        assert features is not None
        tables = ((Table(size),) for size in (states * h, states * h * h, states))
        return Model(((Linear(features.shape[1], h),), *tables))

    def sizes(self, states: int, n_groups: int) -> tuple[int, ...]:
        """Entries of the tables of every group of factors."""
        h = self.hidden_states
        return h, states * h, states * h * h, states

    def transitions(self, model: Model, weights: Floats, states: int) -> Floats | None:
        """Return the weights of neighbouring hidden states under every label."""
        h = self.hidden_states
        return weights[model.blocks[2][0]].reshape(states, h, h)
