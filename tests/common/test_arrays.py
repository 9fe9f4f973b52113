"""Blocks of different lengths in a flat array, against lists of lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.common.arrays import as_array, block_indices, cut, locate, offsets_of

LISTS = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=6)


def flat(lists):
    return np.array([x for block in lists for x in block], np.int64), offsets_of(map(len, lists))


@settings(deadline=None)
@given(st.lists(st.integers(0, 5)))
def test_offsets_are_running_sums_from_zero(sizes):
    expected = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    for given_ in (sizes, iter(sizes), np.array(sizes, np.int32)):
        found = offsets_of(given_)
        assert found.tolist() == expected
        assert found.dtype == np.int64


@settings(deadline=None)
@given(LISTS, st.data())
def test_some_blocks_are_gathered_in_the_order_asked_for(lists, data):
    values, offsets = flat(lists)
    which = data.draw(st.lists(st.integers(0, len(lists) - 1), max_size=6))
    places = block_indices(offsets, np.array(which, np.int64))
    assert values[places].tolist() == [x for i in which for x in lists[i]]


@settings(deadline=None)
@given(LISTS)
def test_cutting_gives_the_blocks_back(lists):
    values, offsets = flat(lists)
    parts = cut(values, offsets)
    assert [part.tolist() for part in parts] == lists
    assert all(part.base is values for part in parts)


@settings(deadline=None)
@given(LISTS)
def test_places_are_found_in_their_blocks(lists):
    values, offsets = flat(lists)
    expected = [(i, j) for i, block in enumerate(lists) for j in range(len(block))]
    assert [locate(offsets, place) for place in range(len(values))] == expected


def test_places_pass_over_empty_blocks():
    offsets = offsets_of([2, 0, 3])
    found = [locate(offsets, place) for place in range(5)]
    assert found == [(0, 0), (0, 1), (2, 0), (2, 1), (2, 2)]


@pytest.mark.parametrize("given_", [[1, 2], [[1.0], [2.0]], np.zeros((2, 3)), 4])
def test_regular_lists_become_arrays(given_):
    np.testing.assert_array_equal(as_array(given_), np.array(given_))


def test_ragged_lists_become_text_that_nobody_takes_for_numbers():
    assert as_array([[1], [2, 3]]).dtype.kind == "U"
