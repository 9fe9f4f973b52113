"""Packed strings against Python's dict."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.kernels.text import strings as kernels
from structlearn._src.text.strings import Strings

LISTS = st.lists(st.text(alphabet=st.sampled_from("ab\nß漢"), max_size=4), max_size=12)


def numbered(strings):
    index = {}
    return index, [index.setdefault(string, len(index)) for string in strings]


@settings(deadline=None)
@given(LISTS, LISTS)
def test_strings_keep_their_order_and_are_found(first, second):
    packed = Strings.of(first)
    assert packed.list() == first
    assert len(packed) == len(first)
    index, numbers = numbered(first)
    distinct, found = packed.distinct()
    assert distinct.list() == list(index)
    assert found.tolist() == numbers
    assert distinct.find(Strings.of(second)).tolist() == [index.get(s, -1) for s in second]


def test_many_strings_make_the_table_grow_and_use_threads():
    strings = [str(i * i % 70001) for i in range(100_000)]
    index, numbers = numbered(strings)
    distinct, found = Strings.of(strings).distinct()
    assert distinct.list() == list(index)
    assert found.tolist() == numbers
    others = Strings.of([str(i) for i in range(70_001)])
    expected = [index.get(str(i), -1) for i in range(70_001)]
    for n_jobs in (1, 2):
        assert distinct.find(others, n_jobs).tolist() == expected


def test_strings_with_the_same_hash_are_told_apart():
    pair = ["iyfixtja", "ddznngwr"]

    def hashed(string):
        out = kernels._SEED
        for byte in string.encode():
            out = ((out ^ byte) * kernels._FACTOR) & kernels._MASK
        return out

    assert hashed(pair[0]) == hashed(pair[1])
    distinct, numbers = Strings.of([*pair, pair[0]]).distinct()
    assert distinct.list() == pair
    assert numbers.tolist() == [0, 1, 0]
    assert Strings.of(pair[:1]).find(distinct).tolist() == [0, -1]


def test_some_of_the_strings():
    packed = Strings.of(["a", "", "cc", "d\ne"])
    assert packed.take(np.array([3, 0])).list() == ["d\ne", "a"]
    assert packed.take(np.array([False, True, True, False])).list() == ["", "cc"]
    assert packed.take(np.zeros(4, bool)).list() == []


def test_strings_survive_pickling_after_a_search():
    packed = Strings.of(["a", "b"])
    query = Strings.of(["b"])
    packed.find(query)
    again = pickle.loads(pickle.dumps(packed))
    assert again.find(query).tolist() == [1]
    assert not again.text.flags.writeable
