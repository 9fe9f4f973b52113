"""How well soft answers in [0, 1] agree with the truth: by their order, and by their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.common.errors import ArgumentError


def auroc(truth: Any, scores: Any, threshold: float = 0.5) -> float:
    """Area under the ROC curve: how often a positive ranks above a negative, ties counting half.

    A `truth` of at least `threshold` is positive; `scores` are higher for likelier positives.

    Examples
    --------
    >>> auroc([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.4])
    0.875
    """
    positive, ranked = _classes(truth, scores, threshold)
    _, inverse, counts = np.unique(ranked, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks = (ends - (counts - 1) / 2.0)[inverse]
    n = int(positive.sum())
    above = ranks[positive].sum() - n * (n + 1) / 2.0
    return float(above / (n * (len(positive) - n)))


def average_precision(
    truth: Any, scores: Any, threshold: float = 0.5, *, negative: bool = False
) -> float:
    r"""Area under the curve of precision over recall, AuPR, without interpolation.

    .. math:: \sum_k (R_k - R_{k-1}) P_k

    over the distinct `scores` from the top; a `truth` of at least `threshold` is positive. With
    `negative`, of the negatives, which then rank by falling scores.

    Examples
    --------
    >>> average_precision([1, 0, 1, 0], [0.9, 0.2, 0.4, 0.4])
    0.8333333333333333
    """
    positive, ranked = _classes(truth, scores, threshold)
    if negative:
        positive = ~positive
        ranked = -ranked
    order = np.argsort(-ranked, kind="stable")
    last = np.append(np.flatnonzero(np.diff(ranked[order])), len(order) - 1)
    right = np.cumsum(positive[order])[last]
    return float(np.diff(right, prepend=0) @ (right / (last + 1.0)) / positive.sum())


def mean_squared_error(truth: Any, scores: Any) -> float:
    """Mean of the squared differences between `truth` and `scores`."""
    true, given = _same_length(truth, scores)
    return float(np.mean((true - given) ** 2))


def binary_accuracy(truth: Any, scores: Any, threshold: float = 0.5) -> float:
    """Share of `scores` on the same side of the `threshold` as the `truth`."""
    true, given = _same_length(truth, scores)
    return float(np.mean((true >= threshold) == (given >= threshold)))


def f1(truth: Any, scores: Any, threshold: float = 0.5) -> float:
    """Harmonic mean of precision and recall of the positives; 0 if none was found.

    Positive is what has a `truth`, or among the `scores` a value, of at least `threshold`.
    """
    true, given = (values >= threshold for values in _same_length(truth, scores))
    found = int((true & given).sum())
    total = int(true.sum() + given.sum())
    return 2.0 * found / total if total else 0.0


#: Every metric by the name that users give.
METRICS = {
    "auroc": auroc,
    "aupr": average_precision,
    "aupr_negative": lambda truth, scores: average_precision(truth, scores, negative=True),
    "mse": mean_squared_error,
    "accuracy": binary_accuracy,
    "f1": f1,
}


def _classes(truth: Any, scores: Any, threshold: float) -> tuple[Bools, Floats]:
    true, given = _same_length(truth, scores)
    positive = true >= checks.number("threshold", threshold)
    if positive.all() or not positive.any():
        raise ArgumentError(
            f"a ranking needs both classes, but all {len(true)} truths are "
            f"{'at least' if positive.all() else 'below'} {threshold:g}; use 'mse', or more data"
        )
    return positive, given


def _same_length(truth: Any, scores: Any) -> tuple[Floats, Floats]:
    true = np.asarray(truth, np.float64)
    given = np.asarray(scores, np.float64)
    if true.ndim != 1 or true.shape != given.shape or not len(true):
        raise ArgumentError(
            f"the truth has shape {true.shape} and the scores {given.shape}; "
            f"both must be flat, of one length, and not empty"
        )
    if not (np.isfinite(true).all() and np.isfinite(given).all()):
        raise ArgumentError("truth and scores must be finite numbers")
    return true, given
