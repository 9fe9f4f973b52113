"""One class for every example: classifiers of sequences and of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.place import placed_as
from structlearn._src.estimators.base import ClassifierMixin, as_classes, check_is_fitted
from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.structured.base import (
    Batch,
    ClassCoder,
    Coder,
    Design,
    Reader,
    StructuredEstimator,
)
from structlearn._src.estimators.structured.read_sequences import RowReader, SequenceReader
from structlearn._src.model.design import HiddenChainDesign, PairwiseDesign
from structlearn._src.model.model import GraphData, Tables

if TYPE_CHECKING:
    from structlearn._src.learn.dominance import Dominance


class StructuredClassifier(ClassifierMixin, StructuredEstimator):
    """Base class of estimators that assign one class to every example."""

    def _coder(self, Y: Any, data: GraphData, classes: Any) -> Coder:
        return ClassCoder(np.unique(Y if classes is None else as_classes(classes, "classes")))

    def _numbers(self, coder: Coder, design: Design, Y: Any, data: GraphData) -> Ints:
        if len(Y) != data.n_examples:
            raise ArgumentError(
                f"X has {data.n_examples} examples and y has {len(Y)}; every example needs one "
                f"class"
            )
        return coder.transform(Y)

    def _validated(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:
        return X, as_classes(y)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from examples.

        Parameters
        ----------
        X : list, or array of shape (examples, features)
            The examples.
        y : array-like of shape (examples,)
            (examples,) Their classes.
        sample_weight : array-like of shape (examples,), optional
            (examples,) Weight of each example.

        Returns
        -------
        Self
            The fitted estimator.

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> classifier = MulticlassClassifier(C=10.0).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
        >>> classifier.classes_.tolist()
        ['a', 'b']
        """
        return self._learning.fit(self, X, y, sample_weight)

    @documented
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Make one pass over additional examples, starting from the current weights.

        {steps}

        Parameters
        ----------
        X : list, or array of shape (examples, features)
            Examples, as in `fit`.
        y : array-like of shape (examples,)
            Their classes.
        classes : array-like of shape (classes,), optional
            All classes that may occur; by default those of the first call.
        sample_weight : array-like of shape (examples,), optional
            Weight of each example.

        Returns
        -------
        Self
            The estimator with its new weights.

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> classifier = MulticlassClassifier(solver="sgd", random_state=0)
        >>> classifier = classifier.partial_fit([[0.0], [1.0]], ["a", "a"], classes=["a", "b"])
        >>> classifier.partial_fit([[5.0], [6.0]], ["b", "b"]).predict([[9.0]])
        array(['b'], dtype='<U1')
        """
        return self._learning.partial_fit(self, X, y, classes, sample_weight)

    @placed_as("over_examples")
    def predict(self, X: Any, joint: bool = False) -> Any:
        """Return the class of every example.

        Parameters
        ----------
        X : list, or array of shape (examples, features)
            As in `fit`.
        joint
            Maximise over hidden variables too, instead of summing them out at the temperature
            `eps_h` of the loss.

        Returns
        -------
        array of shape (examples,)
            The classes.

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> classifier = MulticlassClassifier(C=10.0).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
        >>> classifier.predict([[0.5], [2.5]])
        array(['a', 'b'], dtype='<U1')
        """
        joint = checks.boolean("joint", joint)
        batch, tables = self._read(X)
        return self.classes_[self._best(batch, tables, joint)[batch.outputs]]

    @placed_as("over_examples")
    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes, at temperature 1.

        Parameters
        ----------
        X : list, or array of shape (examples, features)
            Examples, as in `fit`.

        Returns
        -------
        array of shape (examples, classes)
            Probabilities, in the order of `classes_`.

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> classifier = MulticlassClassifier(C=10.0).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
        >>> classifier.predict_proba([[0.0]]).round(2)
        array([[0.95, 0.05]])
        """
        return self._marginals(*self._read(X))

    def dominance(self, X: Any, y: Any) -> Dominance:
        """Return the probabilities of the true and of the most likely class of every example.

        If no class has a probability of at least 1/2, the hinge loss need not be consistent.

        Parameters
        ----------
        X : list, or array of shape (examples, features)
            Examples, as in `fit`.
        y : array-like of shape (examples,)
            True classes.

        Returns
        -------
        Dominance
            A record with two arrays of shape (examples,): `true`, the probability of the given
            class, and `best`, the probability of the most likely class.

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> X, y = [[0.0], [1.0], [2.0]], ["a", "a", "b"]
        >>> MulticlassClassifier(C=10.0).fit(X, y).dominance(X, y).best.round(2)
        array([0.95, 0.69, 0.79])
        """
        found: Dominance = self._learning.dominance(self, X, y)
        return found


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class SequenceClassifier(StructuredClassifier):
    r"""Classify whole sequences by means of a chain of hidden states: the hidden CRF and variants.

    .. math:: \theta(y, h) = b_y + \sum_t \big( \langle v_{h_t}, x_t \rangle + B_{y, h_t} \big)
              + \sum_t A_{y, h_t, h_{t+1}}

    Parameters
    ----------
    hidden_states
        Number of states of the hidden chain, shared by all classes.
    {shared}

    Notes
    -----
    `X` is a list with one entry per sequence: an array (positions, features), a SciPy sparse
    matrix of that shape, or a list of tokens, each a dictionary or a list of strings. `y` holds
    one class for each, where -1 is a class like any other. Inference is exact.

    Hidden states make the objective non-convex: another `random_state` may lead to a different,
    better or worse, minimum.

    {notes}

    References
    ----------
    A. Quattoni et al., "Hidden conditional random fields", 2007.
    {references}

    Examples
    --------
    >>> import numpy as np
    >>> up, down = np.eye(3), np.eye(3)[::-1]
    >>> classifier = SequenceClassifier(hidden_states=3, C=10.0, random_state=0)
    >>> classifier.fit([up, down], ["up", "down"]).predict([up, down, up])
    array(['up', 'down', 'up'], dtype='<U4')
    """

    hidden_states: int = 3

    def _reader(self, X: Any) -> tuple[Reader, GraphData]:
        return SequenceReader.learn(X, False)

    def _design(self, reader: Reader, data: GraphData, coder: Coder) -> Design:
        return HiddenChainDesign(self.hidden_states)

    def _featured(self) -> Sequence[object]:
        return range(self.plan_.design.hidden_states)

    @placed_as("over_examples")
    def predict_hidden(self, X: Any) -> list[Any]:
        """Return the best hidden states of every sequence given its predicted class.

        Parameters
        ----------
        X : list
            Sequences, as in `fit`.

        Returns
        -------
        list of arrays of shape (positions,)
            One state, from 0 to ``hidden_states - 1``, for every position.

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn import SequenceClassifier
        >>> X = [np.eye(3), np.eye(3)[::-1]]
        >>> classifier = SequenceClassifier(C=10.0, random_state=0).fit(X, ["up", "down"])
        >>> [states.shape for states in classifier.predict_hidden(X)]
        [(3,), (3,)]
        """
        batch, tables = self._read(X)
        found = self._hidden(batch, tables, self._best(batch, tables))
        return batch.data.cut(found[batch.hidden_variables])


@documented
@dataclass(kw_only=True, eq=False, repr=False)
class MulticlassClassifier(StructuredClassifier):
    r"""Classify rows, with logistic regression, the multiclass SVM or a loss in between.

    .. math:: \theta(y) = \langle w_y, x \rangle

    Parameters
    ----------
    fit_intercept
        Whether every row has an additional feature that is always 1. Its weights are penalised like
        all others.
    {shared}

    Notes
    -----
    `X` is an array or a SciPy sparse matrix (examples, features) and `y` holds one class for each,
    where -1 is a class like any other. Nothing is hidden, so ``loss="log"`` is
    multinomial logistic regression, and ``loss="hinge"`` the support vector machine of Crammer
    and Singer. With two classes both have weights, so the penalty on their difference is half
    of the penalty in scikit-learn's binary models.

    {notes}

    References
    ----------
    K. Crammer and Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector
    machines", 2001.
    {references}

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), ["low", "low", "high", "high"]
    >>> MulticlassClassifier(C=10.0).fit(X, y).predict([[0.5], [2.5]])
    array(['low', 'high'], dtype='<U4')
    """

    fit_intercept: bool = True

    def _validated(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:
        from sklearn.utils.validation import validate_data

        checks.not_masked("the features", X)
        X, y = super()._validated(X, y, first)
        return validate_data(self, X, y, reset=first, accept_sparse="csr", dtype=np.float64)

    def _reader(self, X: Any) -> tuple[Reader, GraphData]:
        columns = tuple(getattr(self, "feature_names_in_", ()))  # set by scikit-learn's check
        reader = RowReader(X.shape[1], bool(self.fit_intercept), columns)
        return reader, reader.read(X)

    def _design(self, reader: Reader, data: GraphData, coder: Coder) -> Design:
        return PairwiseDesign(chain=True)

    def _read(self, X: Any) -> tuple[Batch, Tables]:
        from sklearn.utils.validation import validate_data

        check_is_fitted(self, "weights_")
        checks.not_masked("the features", X)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)
        return super()._read(X)

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array of shape (examples, features)
            Examples, as in `fit`.

        Returns
        -------
        array of shape (examples, classes)
            Scores; with two classes an array of shape (examples,), the score of the second class
            minus the score of the first.

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> classifier = MulticlassClassifier(C=10.0).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
        >>> classifier.decision_function([[0.0], [2.0]]).round(2)
        array([-2.97,  1.34])
        """
        scores = self._read(X)[1][0]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    @property
    def coef_(self) -> Floats:
        """Weights (classes, features); with two classes (1, features), their difference."""
        return self._by_class()[:, : self.n_features_in_]

    @property
    def intercept_(self) -> Floats:
        """Weights (classes,) of the constant feature, 0 if there is none; (1,) with two classes."""
        return self._by_class()[:, self.n_features_in_ :].sum(axis=1)

    def _by_class(self) -> Floats:
        check_is_fitted(self, "weights_")
        table = self.weights_.reshape(-1, self.plan_.states).T
        return table[1:] - table[:1] if len(table) == 2 else table

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
