"""How an estimator turns what users give into examples, learnt once and then kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.read_graphs import GraphReader, GridReader
from structlearn._src.estimators.structured.read_sequences import (
    ColumnReader,
    RowReader,
    SequenceReader,
)
from structlearn._src.model.design import HiddenChainDesign, PairwiseDesign
from structlearn._src.model.model import Examples, GraphData, LinearModel
from structlearn._src.model.term import LinearTerm, PairsTerm, Term
from structlearn._src.text.labels import LabelCoder

#: Features, each with a label and its weight.
Ranked = list[tuple[str, object, float]]

#: Turns input into graph data, by what it learnt from the first.
Reader = RowReader | SequenceReader | ColumnReader | GraphReader | GridReader
#: Turns graph data into structures, features and a model.
Design = PairwiseDesign | HiddenChainDesign


@dataclass(frozen=True, eq=False)
class ClassCoder:
    """Numbers for classes, in sorted order; unlike in structures, -1 is a class like any other."""

    names: Any  #: (classes,) every class, sorted

    def transform(self, Y: Any) -> Ints:
        """Return the number of every class."""
        given = np.asarray(Y)
        places = np.searchsorted(self.names, given).clip(max=len(self.names) - 1)
        unknown = np.flatnonzero(self.names[places] != given)
        if len(unknown):
            name = given.tolist()[unknown[0]]
            raise ArgumentError(
                f"class {name!r} of example {unknown[0]} was not seen in training, nor is it among "
                f"`classes`; the known classes are {self.names.tolist()}"
            )
        return places.astype(np.int64)


#: Numbers labels from 0; -1 where one is not known.
Coder = LabelCoder | ClassCoder


class Batch(NamedTuple):
    """Examples together with what leads back from them to what users gave."""

    data: GraphData
    examples: Examples
    outputs: Ints | slice  #: variable of everything that may have a label
    hidden_variables: Ints | None  #: hidden variable beside every node, if there are any


@dataclass(frozen=True, eq=False)
class ModelPlan:
    """Reader, label coder, design and model of a fitted estimator.

    `eps_h` is the temperature of hidden variables in prediction.
    """

    reader: Reader
    coder: Coder
    design: Design
    model: LinearModel
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

    def lay_out(self, data: GraphData, labels: Ints | None = None) -> Batch:
        """Return the examples of some data, with all labels -1 if none are given."""
        structure, outputs, hidden_variables = self.design.structure(data, self.states)
        states = np.full(structure.n_variables, -1, np.int64)
        if labels is not None:
            states[outputs] = labels if data.hidden is None else np.where(data.hidden, -1, labels)
        inputs = self.design.inputs(data)
        examples = Examples(structure, inputs, states, np.ones(structure.n_examples))
        return Batch(data, examples, outputs, hidden_variables)


# ---- what was learnt, in the words of the user -----------------------------------------


def top_features(plan: ModelPlan, weights: Floats, n: int, labels: Sequence[object]) -> Ranked:
    """Return the features of nodes with the largest weights, each with its label and weight.

    Where positions have weights of their own, their number follows the name of the feature.
    """
    term = plan.model.groups[0][0]
    own = weights[plan.model.blocks[0][0]]
    top = np.argsort(-np.abs(own), kind="stable")[:n]
    columns, states, width = meaning(term, top)
    names = plan.reader.names()
    repeated = width > len(names)
    return [
        (feature_name(names, int(column), repeated), labels[state], float(own[place]))
        for place, column, state in zip(top, columns, states, strict=True)
    ]


def meaning(term: Term, places: Ints) -> tuple[Any, Any, int]:
    """Return column and state of some of a term's weights, and the number of columns."""
    if isinstance(term, PairsTerm):
        columns = np.searchsorted(term.offsets, places, side="right") - 1
        return columns, term.states[places], len(term.offsets) - 1
    assert isinstance(term, LinearTerm)
    return places // term.size, places % term.size, term.n_features


def feature_name(names: list[str], column: int, repeated: bool) -> str:
    """Name a feature by its column, with its position where names are `repeated` for each."""
    position, number = divmod(column, len(names))
    return f"{names[number]} at {position}" if repeated else names[number]
