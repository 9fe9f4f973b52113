"""How well soft answers in [0, 1] agree with the truth: by their order, and by their values."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats, Ints
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
    truth: Any,
    scores: Any,
    threshold: float = 0.5,
    *,
    negative: bool = False,
    trapezoid: bool = False,
) -> float:
    r"""Area under the curve of precision over recall, AuPR, without interpolation.

    .. math:: \sum_k (R_k - R_{k-1}) P_k

    over the distinct `scores` from the top; a `truth` of at least `threshold` is positive. With
    `negative`, of the negatives, which then rank by falling scores. With `trapezoid` the mean of
    :math:`P_k` and :math:`P_{k-1}`, where :math:`P_0 = 1`, is in the place of :math:`P_k`, as in
    PSL: too low, for precision does not fall along straight lines.

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
    heights = right / (last + 1.0)
    if trapezoid:
        heights = (heights + np.append(1.0, heights[:-1])) / 2.0
    return float(np.diff(right, prepend=0) @ heights / positive.sum())


def mean_squared_error(truth: Any, scores: Any) -> float:
    """Mean of the squared differences between `truth` and `scores`."""
    true, given = _same_length(truth, scores)
    return float(np.mean((true - given) ** 2))


def root_mean_squared_error(truth: Any, scores: Any) -> float:
    """Root of the mean of the squared differences between `truth` and `scores`."""
    return float(np.sqrt(mean_squared_error(truth, scores)))


def mean_absolute_error(truth: Any, scores: Any) -> float:
    """Mean of the absolute differences between `truth` and `scores`."""
    true, given = _same_length(truth, scores)
    return float(np.mean(np.abs(true - given)))


def binary_accuracy(truth: Any, scores: Any, threshold: float = 0.5) -> float:
    """Share of `scores` on the same side of the `threshold` as the `truth`."""
    true, given = _positives(truth, scores, threshold)
    return float(np.mean(true == given))


def precision(truth: Any, scores: Any, threshold: float = 0.5, *, negative: bool = False) -> float:
    """Share of the scores of at least `threshold` whose truth is; 0 if there are none.

    With `negative`, of those below it.
    """
    true, given = _positives(truth, scores, threshold, negative)
    return float((true & given).sum() / max(given.sum(), 1))


def recall(truth: Any, scores: Any, threshold: float = 0.5, *, negative: bool = False) -> float:
    """Share of the truths of at least `threshold` whose score is; 0 if there are none.

    With `negative`, of those below it.
    """
    true, given = _positives(truth, scores, threshold, negative)
    return float((true & given).sum() / max(true.sum(), 1))


def f1(truth: Any, scores: Any, threshold: float = 0.5) -> float:
    """Harmonic mean of precision and recall of the positives; 0 if none was found."""
    true, given = _positives(truth, scores, threshold)
    return float(2.0 * (true & given).sum() / max(true.sum() + given.sum(), 1))


def categorical_accuracy(truth: Any, scores: Any, blocks: Any, threshold: float = 0.5) -> float:
    """How many positives have the largest score of their block; one of k that tie counts 1 / k.

    A `truth` may be NaN, where it is not known: the score takes part all the same.
    """
    positive, ranked, index = _ranked(truth, scores, blocks, threshold)
    top = np.full(index.max() + 1, -np.inf)
    np.maximum.at(top, index, ranked)
    best = ranked == top[index]
    return float(np.mean((best / np.bincount(index, best)[index])[positive]))


def mean_reciprocal_rank(truth: Any, scores: Any, blocks: Any, threshold: float = 0.5) -> float:
    """Mean over blocks with a positive of 1 / rank of the first; those that tie share their ranks.

    A `truth` may be NaN, where it is not known: the score takes part all the same.
    """
    positive, ranked, index = _ranked(truth, scores, blocks, threshold)
    first = np.full(index.max() + 1, -np.inf)
    np.maximum.at(first, index[positive], ranked[positive])
    above = np.bincount(index, ranked > first[index])
    ties = np.bincount(index, ranked == first[index])
    return float(np.mean(1.0 / (above + (ties + 1.0) / 2.0)[first > -np.inf]))


#: Every metric by the name that users give.
METRICS: dict[str, Callable[..., float]] = {
    "auroc": auroc,
    "aupr": average_precision,
    "aupr_negative": functools.partial(average_precision, negative=True),
    "aupr_trapezoid": functools.partial(average_precision, trapezoid=True),
    "mse": mean_squared_error,
    "rmse": root_mean_squared_error,
    "mae": mean_absolute_error,
    "accuracy": binary_accuracy,
    "precision": precision,
    "precision_negative": functools.partial(precision, negative=True),
    "recall": recall,
    "recall_negative": functools.partial(recall, negative=True),
    "f1": f1,
    "categorical": categorical_accuracy,
    "mrr": mean_reciprocal_rank,
}
#: Those that compare the atoms of a block with each other.
BLOCKWISE = ("categorical", "mrr")


def _ranked(truth: Any, scores: Any, blocks: Any, threshold: float) -> tuple[Bools, Floats, Ints]:
    true, given = _same_length(np.nan_to_num(np.asarray(truth, np.float64), nan=-1.0), scores)
    positive = true >= checks.number("threshold", threshold)
    index = np.unique(np.asarray(blocks), axis=0, return_inverse=True)[1].reshape(-1)
    if not positive.any():
        raise ArgumentError(f"no truth is at least {threshold:g}, so there is nothing to find")
    return positive, given, index


def _positives(
    truth: Any, scores: Any, threshold: float, negative: bool = False
) -> tuple[Bools, Bools]:
    """Which truths and which scores are positive; with `negative`, which are not."""
    true, given = _same_length(truth, scores)
    limit = checks.number("threshold", threshold)
    return (true >= limit) != negative, (given >= limit) != negative


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
