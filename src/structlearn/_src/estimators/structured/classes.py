"""One class per example: numbers for classes, and what classifiers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.base import ClassifierMixin
from structlearn._src.estimators.doc import documented
from structlearn._src.estimators.structured.base import StructuredEstimator
from structlearn._src.estimators.structured.plan import Coder, Design
from structlearn._src.model.graph_data import GraphData

if TYPE_CHECKING:
    from structlearn._src.learn.dominance import Dominance


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


class StructuredClassifier(ClassifierMixin, StructuredEstimator):
    """Base class of estimators that give one class to every example."""

    def _coder(self, Y: Any, data: GraphData, classes: Any) -> Coder:
        check_targets(Y, data)
        return ClassCoder(np.unique(Y if classes is None else _listed(classes)))

    def _numbers(self, coder: Coder, design: Design, Y: Any, data: GraphData) -> Ints:
        check_targets(Y, data)
        return coder.transform(Y)

    def _validated(self, X: Any, y: Any, first: bool) -> tuple[Any, Any]:
        from sklearn.utils.validation import column_or_1d

        if np.ma.is_masked(y):
            raise ArgumentError("y masks some classes; every example needs one: leave those out")
        _same_kind(y)
        return X, column_or_1d(y)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Learn from examples.

        Parameters
        ----------
        X
            The examples.
        y
            (examples,) Their classes.
        sample_weight
            (examples,) How much each counts.
        """
        return self._learning.fit(self, X, y, sample_weight)

    @documented
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Go once through more examples, from the weights so far.

        {steps}

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes
            All classes that may come; by default those of the first call.
        """
        return self._learning.partial_fit(self, X, y, classes, sample_weight)

    def predict(self, X: Any, joint: bool = False) -> Any:
        """Return the class of every example.

        Parameters
        ----------
        X
            As in `fit`.
        joint
            Maximise over hidden variables too, instead of summing them out at the temperature
            `eps_h` of the loss.
        """
        joint = checks.boolean("joint", joint)
        batch, tables = self._read(X)
        return self.classes_[self._best(batch, tables, joint)[batch.outputs]]

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities (examples, classes), at temperature 1."""
        return self._marginals(*self._read(X))

    def dominance(self, X: Any, y: Any) -> Dominance:
        """Tell how sure the model is of classes: of the true and of the likeliest ones.

        Where no class has a probability of at least 1/2, the hinge need not be consistent.
        """
        found: Dominance = self._learning.dominance(self, X, y)
        return found


def _listed(classes: Any) -> Any:
    """Return the classes that may come, which must be some."""
    if np.ndim(classes) != 1 or any(name is None for name in classes):
        raise ArgumentError(f"classes={classes!r} must be a list of classes, none of them None")
    _same_kind(classes)
    return classes


def _same_kind(classes: Any) -> None:
    """Refuse text among numbers, which NumPy would make text too."""
    given = classes if isinstance(classes, list | tuple) else np.asarray(classes)
    if isinstance(given, np.ndarray) and (given.ndim != 1 or given.dtype.kind != "O"):
        return  # NumPy's own types have one kind each
    if len({isinstance(name, str) for name in given if name is not None}) > 1:
        raise ArgumentError(
            "some classes are text and others are not, so that they have no order; make all text"
        )


def check_targets(Y: Any, data: GraphData) -> None:
    """Refuse classes that are not one for every example."""
    from sklearn.utils.multiclass import check_classification_targets

    missing = [i for i, label in enumerate(np.asarray(Y, object)) if label is None]
    if missing:
        raise ArgumentError(
            f"example {missing[0]} has no class but None; every example needs one: leave it out"
        )
    check_classification_targets(Y)
    if len(Y) != data.n_examples:
        raise ArgumentError(
            f"X has {data.n_examples} examples and y has {len(Y)}; every example needs one class"
        )
