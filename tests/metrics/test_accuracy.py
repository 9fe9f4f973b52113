"""Accuracy against loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError
from structlearn._src.metrics.accuracy import sequence_accuracy, token_accuracy


@pytest.mark.parametrize("seed", range(20))
def test_shares_of_tokens_and_sequences(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 4, size=8)
    offsets = np.append(0, np.cumsum(lengths))
    labels = rng.integers(-1, 2, size=offsets[-1])
    predicted = np.where(rng.random(len(labels)) < 0.8, labels, 1 - labels).clip(0)
    weights = rng.random(len(labels))
    seen = [i for i in range(len(labels)) if labels[i] >= 0]
    right = [i for i in seen if labels[i] == predicted[i]]
    assert token_accuracy(labels, predicted) == pytest.approx(len(right) / len(seen))
    share = sum(weights[right]) / sum(weights[seen])
    assert token_accuracy(labels, predicted, weights) == pytest.approx(share)
    known = [
        all(labels[i] in (-1, predicted[i]) for i in range(a, b))
        for a, b in itertools.pairwise(offsets)
        if any(labels[i] >= 0 for i in range(a, b))
    ]
    assert sequence_accuracy(labels, predicted, offsets) == pytest.approx(np.mean(known))


def test_no_accuracy_of_nothing():
    with pytest.raises(ArgumentError, match="no label is known"):
        token_accuracy([-1], [0])
    with pytest.raises(ArgumentError, match="no label is known"):
        token_accuracy([1], [1], weights=[0.0])
    with pytest.raises(ArgumentError, match="no label is known"):
        sequence_accuracy([-1], [0], np.array([0, 1]))


def test_shapes_must_agree():
    with pytest.raises(ArgumentError, match=r"\(2,\) and the predictions \(1,\)"):
        token_accuracy([0, 1], [0])
    with pytest.raises(ArgumentError, match="number of labels, 2"):
        sequence_accuracy([0, 1], [0, 1], np.array([0, 1]))
