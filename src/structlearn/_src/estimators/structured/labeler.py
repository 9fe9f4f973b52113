"""Estimators that label every node: what they share."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints, cut, offsets_of
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.base import check_is_fitted
from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.structured.base import StructuredEstimator
from structlearn._src.estimators.structured.example_weights import sample_weights
from structlearn._src.estimators.structured.plan import Batch, Coder
from structlearn._src.estimators.structured.read_nodes import as_array
from structlearn._src.model.design import Design
from structlearn._src.model.graph_data import GraphData
from structlearn._src.model.pairwise import HIDDEN, PairwiseDesign
from structlearn._src.text.labels import LabelCoder

if TYPE_CHECKING:
    from structlearn._src.learn.dominance import Dominance


@dataclass(kw_only=True, eq=False, repr=False)
class Labeler(StructuredEstimator):
    """Base class of estimators that label every node."""

    tied: bool = True
    hidden: str | None = None
    hidden_states: int = 2

    def _check_hidden(self) -> None:
        checks.integer("hidden_states", self.hidden_states, low=1)
        if self.hidden is not None:
            checks.one_of("hidden", self.hidden, HIDDEN)

    def _pairwise(self, **more: Any) -> PairwiseDesign:
        """Return a design with the chosen hidden states and ties, and more."""
        states = self.hidden_states
        return PairwiseDesign(tied=self.tied, hidden=self.hidden, hidden_states=states, **more)

    def _coder(self, Y: Any, data: GraphData, classes: Any) -> Coder:
        given = checked(Y, data)
        coder = LabelCoder().fit(given if classes is None else [classes])
        if not len(coder.names):
            raise ArgumentError("Y has no known label at all; at least one is needed")
        return coder

    def _numbers(self, coder: Coder, design: Design, Y: Any, data: GraphData) -> Ints:
        return coder.transform(checked(Y, data))

    # ---- fitting -------------------------------------------------------------------------

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Any:
        """Learn from examples.

        Parameters
        ----------
        X
            One structure per example.
        Y
            Labels of every example; where one is not known -1 or None, or masked in a masked
            array.
        sample_weight
            (examples,) How much each counts.
        """
        return self._fit(X, Y, sample_weight)

    @documented
    def partial_fit(self, X: Any, Y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Go once through more examples, from the weights so far.

        {steps}

        Parameters
        ----------
        X, Y, sample_weight
            As in `fit`.
        classes
            All labels that may come; by default those of the first call, which also fixes the
            features.
        """
        return self._partial_fit(X, Y, classes, sample_weight)

    @property
    def n_features_in_(self) -> int:
        """Number of features of nodes, without the intercept."""
        check_is_fitted(self, "weights_")
        return self.plan_.reader.width

    # ---- predicting ----------------------------------------------------------------------

    def predict(self, X: Any, joint: bool = False) -> list[Any]:
        """Return the labels of every example.

        Parameters
        ----------
        X
            As in `fit`.
        joint
            Maximise over hidden variables too, instead of summing them out at the temperature
            `eps_h` of the loss.

        Returns
        -------
        list of arrays
            One label per node, -1 for nodes that are always hidden.
        """
        joint = checks.boolean("joint", joint)
        batch, tables = self._read(X)
        return self._named(self._best(batch, tables, joint), batch)

    def predict_marginals(self, X: Any) -> list[Any]:
        """Return the probabilities of the labels: for every example an array (..., classes)."""
        batch, tables = self._read(X)
        return batch.data.cut(self._marginals(batch, tables))

    def predict_hidden(self, X: Any) -> list[Any]:
        """Return the best hidden states given the predicted labels.

        Returns
        -------
        list of arrays
            With hidden states beside the nodes, their numbers. Else the labels of the nodes that
            are always hidden, -1 for all others.
        """
        batch, tables = self._read(X)
        labels = self._best(batch, tables)
        found = self._hidden(batch, tables, labels)
        if batch.hidden_variables is not None:
            return batch.data.cut(found[batch.hidden_variables])
        return self._named(np.where(labels < 0, found, -1), batch)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the share of right labels over all examples; hidden ones do not count.

        Labels never seen in training are wrong, not an error.
        """
        batch, tables = self._read(X)
        found = self._best(batch, tables)[batch.outputs]
        weights = sample_weights(sample_weight, batch.data.n_examples)
        true = numbered(checked(Y, batch.data), self.plan_.classes)
        counts = np.repeat(weights, batch.data.sizes) * ((true != -1) & (found >= 0))
        return float(counts @ (true == found) / counts.sum()) if counts.any() else float("nan")

    def dominance(self, X: Any, Y: Any) -> Dominance:
        """Tell how sure the model is of whole labellings: of the true and of the likeliest ones.

        Where no labelling has a probability of at least 1/2, the hinge need not be consistent.
        """
        return self._dominance(X, Y)

    def _named(self, labels: Ints, batch: Batch) -> list[Any]:
        """Cut labels into one array per example."""
        return batch.data.cut(names_of(self.plan_.classes, labels[batch.outputs]))


def names_of(classes: Any, numbers: Ints) -> Any:
    """Return the labels with these numbers, -1 for -1."""
    if len(numbers) and numbers.min() < 0:
        more = np.empty(len(classes) + 1, classes.dtype)
        more[:-1], more[-1] = classes, -1
        return more[numbers]
    return classes[numbers]


def numbered(Y: Any, classes: Any) -> Ints:
    """Return the number of every label among the classes, -1 if hidden, -2 if it is none."""
    coder = LabelCoder().fit(Y)
    index = {name: number for number, name in enumerate(classes.tolist())}
    table = np.array([*(index.get(name, -2) for name in coder.names.tolist()), -1])
    return table[coder.transform(Y)]


def checked(Y: Any, data: GraphData) -> Any:
    """Return labels one example after the other, which must be as many as there are nodes."""
    if not hasattr(Y, "__len__"):
        raise ArgumentError(f"Y is a {type(Y).__name__}; it must be a list of labels per example")
    if len(Y) != data.n_examples:
        raise ArgumentError(
            f"X has {data.n_examples} examples and Y has {len(Y)}; every example needs its labels"
        )
    flat = data.forms is None
    given = [_count(y, i) for i, y in enumerate(Y)] if flat else [as_array(y).shape for y in Y]
    for i, (mine, form) in enumerate(zip(given, data.forms or data.sizes.tolist(), strict=True)):
        if mine != form:
            raise ArgumentError(
                f"example {i} has labels of shape {mine}, but {form} is needed: one label for "
                f"every node, -1 or None where it is not known"
            )
    rows = Y if flat else [np.asanyarray(y).ravel() for y in Y]
    if data.hidden is None:
        return rows
    hidden = cut(data.hidden, offsets_of(data.sizes))
    return [_unless(y, h) for y, h in zip(rows, hidden, strict=True)]


def _unless(labels: Any, hidden: Any) -> list[Any]:
    """Return the labels of one example, None at nodes that are always hidden."""
    listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
    return [None if h else label for label, h in zip(listed, hidden, strict=True)]


def _count(labels: Any, i: int) -> int:
    if isinstance(labels, str | bytes | Set | Mapping) or not hasattr(labels, "__len__"):
        raise ArgumentError(
            f"the labels of example {i} are {labels!r}; a list with one label for every node is "
            f"needed"
        )
    if getattr(labels, "ndim", 1) != 1:
        raise ArgumentError(
            f"the labels of example {i} have shape {labels.shape}; one label for every node is "
            f"needed, in one dimension"
        )
    return len(labels)
