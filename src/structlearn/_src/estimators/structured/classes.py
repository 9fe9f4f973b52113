"""One class per example: numbers for classes, and what classifiers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.base import ClassifierMixin, as_classes
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
