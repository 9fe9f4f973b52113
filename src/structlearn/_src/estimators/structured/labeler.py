"""Estimators that label every node: what they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.place import placed_as
from structlearn._src.estimators.base import sample_weights
from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.structured.base import Batch, Coder, Design, StructuredEstimator
from structlearn._src.model.design import PairwiseDesign
from structlearn._src.model.model import GraphData
from structlearn._src.text.labels import (
    LabelCoder,
    check_several,
    name_labels,
    number_labels,
    read_labels,
)

if TYPE_CHECKING:
    from structlearn._src.learn.dominance import Dominance


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class Labeler(StructuredEstimator):
    """Base class of estimators that label every node.

    A subclass defines how its input is read (`_reader`) and which model is used (`_design`).

    Parameters
    ----------
    {hidden}
    {shared}

    Examples
    --------
    Sequences that close to a ring:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from structlearn.extend import GraphReader, Labeler, PairwiseDesign
    >>> class RingReader(GraphReader):
    ...     def read(self, X):
    ...         return super().read([ring(x) for x in X])
    >>> def ring(x):
    ...     nodes = np.arange(len(x))
    ...     return x, np.stack([nodes, np.roll(nodes, -1)], axis=1)
    >>> @dataclass(kw_only=True, eq=False, repr=False)
    ... class RingLabeler(Labeler):
    ...     def _reader(self, X):
    ...         return RingReader.learn([ring(x) for x in X], True)
    ...
    ...     def _design(self, reader, data, coder):
    ...         return PairwiseDesign().fitted_to(data)
    >>> x = [[1.0], [0.9], [-1.0], [-0.8]]
    >>> RingLabeler(C=10.0).fit([x], [[1, 1, 0, 0]]).predict([x])
    [array([1, 1, 0, 0])]
    """

    tied: bool = True
    hidden: str | None = None
    hidden_states: int = 2

    def _pairwise(self, **more: Any) -> PairwiseDesign:
        """Return a design with the chosen hidden states and ties, and more."""
        states = self.hidden_states
        return PairwiseDesign(tied=self.tied, hidden=self.hidden, hidden_states=states, **more)

    def _coder(self, Y: Any, data: GraphData, classes: Any) -> Coder:
        given = _labels(Y, data)
        coder = LabelCoder().fit(given if classes is None else [classes])
        if not len(coder.names):
            raise ArgumentError("Y has no known label at all; at least one is needed")
        if coder.minus:
            check_several(coder.names, hidden=True)
        return coder

    def _numbers(self, coder: Coder, design: Design, Y: Any, data: GraphData) -> Ints:
        return coder.transform(_labels(Y, data))

    # ---- fitting -------------------------------------------------------------------------

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Any:
        """Learn from examples.

        Parameters
        ----------
        X : list
            One structure per example.
        Y : list
            Labels of every example; an unknown label is -1 or None, or masked in a masked
            array.
        sample_weight : array-like of shape (examples,), optional
            (examples,) Weight of each example.

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> X = [[["the"], ["cat"]], [["a"], ["dog"], ["sleeps"]]]
        >>> Y = [["D", None], ["D", "N", "V"]]
        >>> labeler = SequenceLabeler(C=10.0).fit(X, Y)
        >>> labeler.classes_.tolist()
        ['D', 'N', 'V']
        """
        return self._learning.fit(self, X, Y, sample_weight)

    @documented
    def partial_fit(self, X: Any, Y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Make one pass over additional examples, starting from the current weights.

        {steps}

        Parameters
        ----------
        X, Y : list
            Examples and their labels, as in `fit`.
        classes : array-like of shape (classes,), optional
            All labels that may occur; by default those of the first call, which also fixes the
            features.
        sample_weight : array-like of shape (examples,), optional
            Weight of each example.

        Returns
        -------
        Self
            The estimator with its new weights.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> labeler = SequenceLabeler(solver="sgd", random_state=0)
        >>> first, second = [["the"], ["cat"]], [["the"], ["dog"]]
        >>> labeler = labeler.partial_fit([first], [["D", "N"]], classes=["D", "N"])
        >>> labeler.partial_fit([second], [["D", "N"]]).predict([second])[0].tolist()
        ['D', 'N']
        """
        return self._learning.partial_fit(self, X, Y, classes, sample_weight)

    # ---- predicting ----------------------------------------------------------------------

    @placed_as("over_examples")
    def predict(self, X: Any, joint: bool = False) -> list[Any]:
        """Return the labels of every example.

        Parameters
        ----------
        X : list
            As in `fit`.
        joint
            Maximise over hidden variables too, instead of summing them out at the temperature
            `eps_h` of the loss.

        Returns
        -------
        list of arrays
            One label per node, -1 for nodes that are always hidden.

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn import GridLabeler
        >>> image = np.array([[0.9, 0.8, 0.1], [0.7, 1.0, 0.2]])
        >>> labeler = GridLabeler(C=10.0, edges="potts").fit([image], [(image > 0.5).astype(int)])
        >>> labeler.predict([image[:, ::-1]])[0]
        array([[0, 1, 1],
               [0, 1, 1]])
        """
        joint = checks.boolean("joint", joint)
        batch, tables = self._read(X)
        return self._named(self._best(batch, tables, joint), batch)

    @placed_as("over_examples")
    def predict_marginals(self, X: Any) -> list[Any]:
        """Return the marginal probabilities of the labels.

        Parameters
        ----------
        X : list
            Examples, as in `fit`.

        Returns
        -------
        list of arrays
            For every example an array of shape (nodes, classes), or (rows, columns, classes) for
            images: the probability of every label in the order of `classes_`.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> X, Y = [[["the"], ["cat"]]], [["D", "N"]]
        >>> labeler = SequenceLabeler(C=10.0).fit(X, Y)
        >>> labeler.predict_marginals(X)[0].round(2)
        array([[0.93, 0.07],
               [0.07, 0.93]])
        """
        batch, tables = self._read(X)
        return batch.data.cut(self._marginals(batch, tables))

    @placed_as("over_examples")
    def predict_hidden(self, X: Any) -> list[Any]:
        """Return the best hidden states given the predicted labels.

        Parameters
        ----------
        X : list
            Examples, as in `fit`.

        Returns
        -------
        list of arrays
            The states, if there are hidden states at the nodes. Otherwise the labels of the nodes
            that are always hidden, -1 for all others.

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn import SequenceLabeler
        >>> X = [np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])]
        >>> labeler = SequenceLabeler(hidden="node", hidden_states=2, random_state=0)
        >>> states = labeler.fit(X, [[0, 1, 1]]).predict_hidden(X)
        >>> states[0].shape
        (3,)
        """
        batch, tables = self._read(X)
        labels = self._best(batch, tables)
        found = self._hidden(batch, tables, labels)
        if batch.hidden_variables is not None:
            return batch.data.cut(found[batch.hidden_variables])
        return self._named(np.where(labels < 0, found, -1), batch)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the fraction of correct labels over all examples, ignoring hidden ones.

        Labels that did not occur in training count as wrong.

        Parameters
        ----------
        X, Y : list
            Examples and their labels, as in `fit`.
        sample_weight : array-like of shape (examples,), optional
            Weight of each example.

        Returns
        -------
        float
            Accuracy between 0 and 1, or NaN if no label is known.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> X, Y = [[["the"], ["cat"]]], [["D", "N"]]
        >>> labeler = SequenceLabeler(C=10.0).fit(X, Y)
        >>> labeler.score(X, [["D", "D"]])
        0.5
        """
        batch, tables = self._read(X)
        found = self._best(batch, tables)[batch.outputs]
        weights = sample_weights(sample_weight, batch.data.n_examples)
        true = number_labels(_labels(Y, batch.data), self.plan_.classes)
        counts = np.repeat(weights, batch.data.sizes) * ((true != -1) & (found >= 0))
        return float(counts @ (true == found) / counts.sum()) if counts.any() else float("nan")

    def dominance(self, X: Any, Y: Any) -> Dominance:
        """Return the probabilities of the true and of the most likely labelling of every example.

        If no labelling has a probability of at least 1/2, the hinge loss need not be consistent.

        Parameters
        ----------
        X, Y : list
            Examples and their labels, as in `fit`.

        Returns
        -------
        Dominance
            A record with two arrays of shape (examples,): `true`, the probability of the given
            labels, and `best`, the probability of the most likely labels; `share` is the fraction
            of examples without a labelling of probability 1/2 or more.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> X, Y = [[["the"], ["cat"]]], [["D", "N"]]
        >>> labeler = SequenceLabeler(C=10.0).fit(X, Y)
        >>> labeler.dominance(X, Y).best.round(2)
        array([0.89])
        """
        found: Dominance = self._learning.dominance(self, X, Y)
        return found

    def _named(self, labels: Ints, batch: Batch) -> list[Any]:
        """Cut labels into one array per example."""
        return batch.data.cut(name_labels(self.plan_.classes, labels[batch.outputs]))


def _labels(Y: Any, data: GraphData) -> Any:
    return read_labels(Y, data.sizes, data.forms, data.hidden)
