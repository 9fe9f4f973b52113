"""One label for a whole sequence, over a chain of hidden states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.batch import assemble
from structlearn._src.graph.wiring import HIDDEN, OUTPUT
from structlearn._src.model.graph_data import GraphData, Structure
from structlearn._src.model.model import Inputs, LinearModel
from structlearn._src.model.term import LinearTerm, TableTerm


@dataclass(frozen=True, eq=False)
class HiddenChainDesign:
    r"""The hidden conditional random field for sequences.

    .. math:: \theta(y, h) = b_y + \sum_t \big( \langle v_{h_t}, x_t \rangle + B_{y, h_t} \big)
              + \sum_t A_{y, h_t, h_{t+1}}

    Groups of factors are the hidden states, the pairs of label and hidden state, the triples of
    label and neighbouring hidden states, and the labels.

    References
    ----------
    A. Quattoni et al., "Hidden conditional random fields", 2007.
    """

    hidden_states: int
    hidden: ClassVar[str] = "layer"  # edges link hidden states, never labels
    forbidden: ClassVar[None] = None
    tied: ClassVar[bool] = True

    def structure(self, data: GraphData, states: int) -> Structure:
        """Return variables and factors; the label of a sequence comes before its states."""
        n = data.n_examples
        label = data.offsets[:-1] + np.arange(n)
        owner = np.repeat(np.arange(n), data.sizes)
        hidden = np.arange(data.n_nodes) + owner + 1
        pairs = data.edge_sets[0].pairs
        scopes = (
            hidden[:, None],
            np.stack([label[owner], hidden], axis=1),
            np.column_stack([label[owner[pairs[:, 0]]], hidden[pairs]]),
            label[:, None],
        )
        cards = np.full(n + data.n_nodes, self.hidden_states)
        roles = np.full(len(cards), HIDDEN)
        cards[label] = states
        roles[label] = OUTPUT
        borders = data.offsets + np.arange(n + 1)
        return assemble(cards, roles, borders, scopes), label, hidden

    def inputs(self, data: GraphData) -> Inputs:
        """Features of every term of every group."""
        return (data.features,), (None,), (None,), (None,)

    def model(self, data: GraphData, labels: Ints, states: int) -> LinearModel:
        """Choose the terms of every group."""
        h = self.hidden_states
        features = data.features
        assert features is not None
        tables = ((TableTerm(size),) for size in (states * h, states * h * h, states))
        return LinearModel(((LinearTerm(features.shape[1], h),), *tables))

    def sizes(self, states: int, n_groups: int) -> tuple[int, ...]:
        """Entries of the tables of every group of factors."""
        h = self.hidden_states
        return h, states * h, states * h * h, states

    def transitions(self, model: LinearModel, weights: Floats, states: int) -> Floats | None:
        """Return the weights of neighbouring hidden states under every label."""
        h = self.hidden_states
        return weights[model.blocks[2][0]].reshape(states, h, h)
