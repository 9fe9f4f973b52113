"""A few small examples for every kind of estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.classifier import SequenceClassifier
from structlearn._src.estimators.structured.graph import GraphLabeler
from structlearn._src.estimators.structured.grid import GridLabeler
from structlearn._src.estimators.structured.sequence import SequenceLabeler

_WIDTH, _STATES = 3, 3


def toy(estimator: Any, n: int = 8, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Return examples that an estimator can learn from, all of one size."""
    rng = np.random.default_rng(seed)
    if isinstance(estimator, GridLabeler):
        return _labelled([rng.normal(size=(2, 3, _WIDTH)) for _ in range(n)])
    X, Y = _labelled([rng.normal(size=(4, _WIDTH)) for _ in range(n)])
    if isinstance(estimator, SequenceLabeler):
        return X, Y
    if isinstance(estimator, SequenceClassifier):
        return X, [("low", "high")[i % 2] for i in range(n)]
    if isinstance(estimator, GraphLabeler):
        edges = np.array([(0, 1), (2, 1), (2, 3)])
        return [(x, edges) for x in X], Y
    raise ArgumentError(
        f"there are no examples for a {type(estimator).__name__}; give some as X and Y"
    )


def _labelled(X: list[Floats]) -> tuple[list[Any], list[Any]]:
    """Label every node by its largest feature; the first examples have every label."""
    Y: list[Ints] = [x.argmax(axis=-1) for x in X]
    for y in Y[: len(Y) // 2]:
        y.flat[:_STATES] = range(_STATES)
    return X, Y
