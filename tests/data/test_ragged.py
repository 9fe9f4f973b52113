"""Lengths of sequences, and places in them."""

from __future__ import annotations

import pytest

from structlearn.common.errors import ArgumentError
from structlearn.data.ragged import check_lengths, locate, offsets_of


def test_lengths_must_agree():
    check_lengths(offsets_of([2, 3]), offsets_of([2, 3]))
    with pytest.raises(ArgumentError, match="X has 2 sequences and Y has 1"):
        check_lengths(offsets_of([2, 3]), offsets_of([5]))
    with pytest.raises(ArgumentError, match="sequence 1 has 3 tokens in X and 2 labels in Y"):
        check_lengths(offsets_of([2, 3, 0]), offsets_of([2, 2, 0]))
    with pytest.raises(ArgumentError, match="sequence 0 is empty"):
        check_lengths(offsets_of([0, 3]), offsets_of([0, 3]))


def test_places_in_sequences():
    offsets = offsets_of([2, 0, 3])
    found = [locate(offsets, place) for place in range(5)]
    assert found == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)]
