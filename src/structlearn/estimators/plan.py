"""How an estimator turns what users give into examples, learnt once and then kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from structlearn.common.checks import Ints
from structlearn.common.errors import ArgumentError
from structlearn.data.labels import LabelCoder
from structlearn.estimators.shape import Shape, flat_labels, lay_out
from structlearn.graph.batch import Bars, Sequences
from structlearn.model.features import Features, Sparse, by_position
from structlearn.model.model import Inputs, Model
from structlearn.model.term import Linear, Pairs, Table, Term, potts, symmetric
from structlearn.objective.examples import Examples

EDGES = ("table", "symmetric", "potts", "none")
HIDDEN = ("node", "layer")
SPACES = ("dense", "sparse")


class Reader(Protocol):
    """Turns input into shapes, by what it learnt from the first."""

    def read(self, X: Any) -> Shape:
        """Return nodes, edges and features of all examples."""
        ...


@dataclass(frozen=True, eq=False)
class Choices:
    """What a user chose about the model.

    Parameters
    ----------
    space
        "dense": every feature has a weight for every label; "sparse": only the pairs seen in
        training have, which needs sparse features.
    tied
        Whether all positions share their weights.
    edges
        "table" has a weight for every pair of labels, "symmetric" for every unordered pair,
        "potts" one for being equal, "none" no edges at all.
    hidden
        None, or hidden states beside the nodes: "node" or "layer".
    hidden_states
        How many.
    bars
        Forbidden labels of sequences.
    chain
        Whether nodes form sequences, which have faster code.
    """

    space: str = "dense"
    tied: bool = True
    edges: str = "table"
    hidden: str | None = None
    hidden_states: int = 2
    bars: Bars | None = None
    chain: bool = False


@dataclass(frozen=True, eq=False)
class Plan:
    """Reader, label coder, choices and model of a fitted estimator."""

    reader: Reader
    coder: LabelCoder
    choices: Choices
    model: Model

    @property
    def classes(self) -> Any:
        """Label of every state."""
        return self.coder.names

    @property
    def states(self) -> int:
        """Number of labels."""
        return len(self.coder.names)

    def examples(self, X: Any, Y: Any = None) -> tuple[Shape, Examples]:
        """Return shape and examples; without `Y` all labels are -1."""
        shape = self.reader.read(X)
        labels = np.full(shape.n_nodes, -1, np.int64)
        if Y is not None:
            labels = encode(self.coder, Y, shape)
        return shape, self.lay_out(shape, labels)

    def split(self, values: Any, shape: Shape) -> list[Any]:
        """Cut one value (or row) per variable into one array per example, nodes only."""
        if self.choices.hidden is not None:
            sizes = np.diff(shape.offsets)
            values = values[np.repeat(shape.offsets[:-1], sizes) + np.arange(shape.n_nodes)]
        parts = np.split(values, shape.offsets[1:-1])
        return [
            part.reshape(*form, *part.shape[1:])
            for part, form in zip(parts, shape.forms, strict=True)
        ]

    def lay_out(self, shape: Shape, labels: Ints) -> Examples:
        """Return the examples of a shape."""
        choices, ones = self.choices, np.ones(len(shape.offsets) - 1)
        inputs = _inputs(shape, choices)
        if choices.chain and choices.hidden is None and shape.hidden is None:
            sequences = Sequences(shape.offsets, self.states, choices.bars)
            return Examples(sequences, inputs, labels, ones)
        graphs, layers = lay_out(shape, self.states, choices.hidden, choices.hidden_states)
        flat = flat_labels(shape, layers, labels, graphs.n_variables)
        return Examples(graphs, inputs, flat, ones)


def encode(coder: LabelCoder, Y: Any, shape: Shape) -> Ints:
    """Return the label of every node, checked against what each example has."""
    check_forms(Y, shape)
    return coder.transform(Y)


def check_forms(Y: Any, shape: Shape) -> None:
    """Refuse labels that are not as many, example by example, as there are nodes."""
    if len(Y) != len(shape.forms):
        raise ArgumentError(
            f"X has {len(shape.forms)} examples and Y has {len(Y)}; every example needs its labels"
        )
    for i, (labels, form) in enumerate(zip(Y, shape.forms, strict=True)):
        given = np.shape(labels) if len(form) > 1 else (len(labels),)
        if given != form:
            raise ArgumentError(
                f"example {i} has labels of shape {given}, but {form} is needed: one label for "
                f"every node, -1 or None where it is not known"
            )
        if 0 in form:
            raise ArgumentError(f"example {i} is empty; leave it out of X and Y")


def make_model(shape: Shape, labels: Ints, states: int, choices: Choices) -> Model:
    """Choose the terms of every group of factors: nodes, edges, and hidden states beside them."""
    inputs = _inputs(shape, choices)
    (features,), edge_features = inputs[0], inputs[1]
    linked = choices.hidden_states if choices.hidden == "layer" else states
    groups: list[tuple[Term, ...]] = [(_node_term(features, labels, states, choices),)]
    edges: list[Term] = [_edge_term(shape, labels, linked, choices)]
    if len(edge_features) > 1:
        edges.append(_linear(edge_features[1], linked * linked))
    groups.append(tuple(edges))
    if choices.hidden is not None:
        h = choices.hidden_states
        pairs: Term = Table(states * h)
        if not choices.tied:
            pairs = _linear(inputs[3][0], states * h)
        groups += [(_linear(inputs[2][0], h),), (pairs,)]
    return Model(tuple(groups))


def _inputs(shape: Shape, choices: Choices) -> Inputs:
    """Features of every term of every group."""
    nodes, alone, links = shape.features, None, None
    if not choices.tied:
        count = int(np.diff(shape.offsets).max(initial=0))
        edge_positions = shape.edge_positions
        nodes = by_position(nodes, shape.positions, count)
        alone = by_position(None, shape.positions, count)
        links = by_position(None, edge_positions, int(edge_positions.max(initial=-1)) + 1)
    edges: tuple[Features, ...] = (links,)
    if shape.edge_features is not None:
        edges = (links, shape.edge_features)
    inputs: Inputs = ((nodes,), edges)
    return inputs if choices.hidden is None else (*inputs, (nodes,), (alone,))


def _node_term(features: Features, labels: Ints, states: int, choices: Choices) -> Term:
    if choices.space == "sparse" and isinstance(features, Sparse):
        return Pairs.seen(features, labels, states)
    return _linear(features, states)


def _linear(features: Features, size: int) -> Linear:
    assert features is not None
    return Linear(features.shape[1], size)


def _edge_term(shape: Shape, labels: Ints, states: int, choices: Choices) -> Term:
    if not choices.tied:
        return Linear(int(shape.edge_positions.max(initial=-1)) + 1, states * states)
    if choices.edges == "symmetric":
        return symmetric(states)
    if choices.edges == "potts":
        return potts(states)
    if choices.space == "sparse" and choices.hidden is None:
        return _seen_table(shape, labels, states)
    return Table(states * states)


def _seen_table(shape: Shape, labels: Ints, states: int) -> Table:
    """Table with weights for the pairs of labels seen in training only."""
    pairs = labels[shape.edges]
    pairs = pairs[(pairs >= 0).all(axis=1)]
    seen = np.unique(pairs[:, 0] * states + pairs[:, 1])
    ties = np.full(states * states, -1, np.int64)
    ties[seen] = np.arange(len(seen))
    return Table(states * states, tuple(int(i) for i in ties))
