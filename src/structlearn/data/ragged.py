"""Sequences of different lengths, one after another in flat arrays."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from structlearn.common.checks import Ints
from structlearn.common.errors import ArgumentError


def offsets_of(lengths: Iterable[int]) -> Ints:
    """Return where each of many consecutive sequences begins, and where the last one ends."""
    counts = np.fromiter(lengths, np.int64)
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets


def cut(values: Any, offsets: Ints) -> list[Any]:
    """Return the sequences of a flat array, as views."""
    return [values[a:b] for a, b in pairwise(offsets.tolist())]


def check_lengths(offsets: Ints, label_offsets: Ints) -> None:
    """Refuse labels that are not as many as tokens, sequence by sequence, and empty sequences."""
    n, n_labels = len(offsets) - 1, len(label_offsets) - 1
    if n != n_labels:
        raise ArgumentError(
            f"X has {n} sequences and Y has {n_labels}; every sequence needs its own labels"
        )
    lengths, label_lengths = np.diff(offsets), np.diff(label_offsets)
    wrong = np.flatnonzero((lengths != label_lengths) | (lengths == 0))
    if len(wrong) == 0:
        return
    i = int(wrong[0])
    if lengths[i] == label_lengths[i]:
        raise ArgumentError(f"sequence {i} is empty; leave it out of X and Y")
    raise ArgumentError(
        f"sequence {i} has {lengths[i]} tokens in X and {label_lengths[i]} labels in Y; "
        f"every token needs one label, None or -1 if it is not known"
    )


def locate(offsets: Ints, place: int) -> tuple[int, int]:
    """Return which sequence a place of the flat array is in, and where in it."""
    sequence = int(np.searchsorted(offsets, place, side="right")) - 1
    return sequence, place - int(offsets[sequence])
