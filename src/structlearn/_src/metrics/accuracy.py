"""Shares of labels and of whole sequences that are right; hidden labels (-1) do not count."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.common.errors import ArgumentError


def token_accuracy(labels: Any, predicted: Any, weights: Any = None) -> float:
    """Return the share of labels that were predicted.

    Parameters
    ----------
    labels, predicted
        (tokens,) Numbers of labels; a true label of -1 is left out.
    weights
        (tokens,) How much each token counts; all the same if not given.

    Examples
    --------
    >>> token_accuracy([0, 1, -1, 2], [0, 2, 2, 2])
    0.6666666666666666
    """
    true, guessed = _same_shape(labels, predicted)
    seen = true >= 0
    shares = None if weights is None else np.asarray(weights, np.float64)[seen]
    if not seen.any() or (shares is not None and shares.sum() <= 0):
        raise ArgumentError("there is no accuracy, since no label is known and has weight")
    return float(np.average(true[seen] == guessed[seen], weights=shares))


def sequence_accuracy(labels: Any, predicted: Any, offsets: Ints) -> float:
    """Return the share of sequences with all their labels right.

    Sequence ``i`` of `labels` and `predicted` is ``offsets[i]:offsets[i + 1]``. Those without any
    known label are left out.

    Examples
    --------
    >>> sequence_accuracy([0, 1, 1, -1], [0, 1, 0, 0], np.array([0, 2, 4]))
    0.5
    """
    true, guessed = _same_shape(labels, predicted)
    if np.ndim(offsets) != 1 or len(offsets) == 0 or offsets[-1] != len(true):
        raise ArgumentError(f"the offsets must end with the number of labels, {len(true)}")
    known = _per_sequence(true >= 0, offsets) > 0
    right = _per_sequence((true >= 0) & (true != guessed), offsets) == 0
    if not known.any():
        raise ArgumentError("there is no accuracy, since no label is known")
    return float(np.mean(right[known]))


def _same_shape(labels: Any, predicted: Any) -> tuple[Ints, Ints]:
    true = np.asarray(labels)
    guessed = np.asarray(predicted)
    if true.ndim != 1 or true.shape != guessed.shape:
        raise ArgumentError(
            f"the labels have shape {true.shape} and the predictions {guessed.shape}; "
            f"both must be flat and of one length"
        )
    return true, guessed


def _per_sequence(marks: Any, offsets: Ints) -> Ints:
    """Return the number of marks in every sequence, which may be empty."""
    return np.diff(np.append(0, np.cumsum(marks))[offsets])
