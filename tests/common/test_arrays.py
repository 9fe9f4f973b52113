"""Lengths of sequences, and places in them."""

from __future__ import annotations

from structlearn._src.common.arrays import locate, offsets_of


def test_places_in_sequences():
    offsets = offsets_of([2, 0, 3])
    found = [locate(offsets, place) for place in range(5)]
    assert found == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)]
