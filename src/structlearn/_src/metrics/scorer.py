"""Scores of estimators that label nodes, in the form that scikit-learn's searches take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Ints, cut, offsets_of
from structlearn._src.metrics.chunks import chunk_scores
from structlearn._src.text.labels import LabelCoder

#: Of an estimator, X and Y.
Scorer = Callable[[Any, Any, Any], float]


def scorer(scoring: str) -> Scorer:
    """Return a scorer of the labels of all nodes, those not known left out.

    scikit-learn's own scorers compare one label per example, and fail where every example has
    many.

    Parameters
    ----------
    scoring
        "chunk_f1", the F1 of chunks as conlleval counts them; "sequence_accuracy", the share of
        examples with all their labels right; or the name of a scorer of scikit-learn that compares
        labels, such as "accuracy" or "f1_macro", for the labels of all examples one after another.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from structlearn import SequenceLabeler
    >>> X, Y = [[["the"], ["cat"], ["sat"]]] * 4, [["B-NP", "I-NP", "O"]] * 4
    >>> search = GridSearchCV(SequenceLabeler(), {"C": [1.0]}, cv=2, scoring=scorer("chunk_f1"))
    >>> float(search.fit(X, Y).best_score_)
    1.0
    """
    compare = _OWN[scoring] if scoring in _OWN else _flat(scoring)

    def score(estimator: Any, X: Any, Y: Any) -> float:
        predicted = estimator.predict(X)
        coder = LabelCoder().fit([*Y, *predicted])
        offsets = offsets_of(map(np.size, predicted))
        return compare(coder.transform(Y), coder.transform(predicted), offsets, coder.names)

    return score


def _flat(scoring: str) -> Callable[[Ints, Ints, Ints, Any], float]:
    """Return a comparison of known labels by a scorer of scikit-learn."""
    from sklearn.base import BaseEstimator
    from sklearn.metrics import get_scorer

    inner = get_scorer(scoring)

    class Labelled(BaseEstimator):  # type: ignore[misc]
        """What looks like an estimator that predicts its input."""

        def predict(self, X: Any) -> Any:
            return X

    def compare(true: Ints, found: Ints, offsets: Ints, names: Any) -> float:
        known = (true >= 0) & (found >= 0)
        return float(inner(Labelled(), names[found[known]], names[true[known]]))

    return compare


def _chunk_f1(true: Ints, found: Ints, offsets: Ints, names: Any) -> float:
    return chunk_scores(true, found, offsets, names.tolist()).f1


def _sequence_accuracy(true: Ints, found: Ints, offsets: Ints, names: Any) -> float:
    """Share of sequences with all known labels right, among those that have any."""
    right = (true < 0) | (true == found)
    pairs = zip(cut(right, offsets), cut(true >= 0, offsets), strict=True)
    return float(np.mean([own.all() for own, known in pairs if known.any()]))


_OWN = {"chunk_f1": _chunk_f1, "sequence_accuracy": _sequence_accuracy}
