"""Keys of template rows and their numbers, against Python's dict and its long integers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.text.dictionary import Digits, KeyTable, Sheet
from structlearn._src.text.strings import Strings
from structlearn._src.text.template import parse_template

KEYS = st.lists(st.integers(-1, 9) | st.integers(0, 2**62 - 1), max_size=30)


def numbered(keys):
    index = {}
    return index, [index.setdefault(k, len(index)) if k >= 0 else -1 for k in keys]


def numbers(table, keys, learn):
    out = np.empty(len(keys), np.int32)
    table.number(np.array(keys, np.int64), out, learn=learn)
    return out.tolist()


@settings(deadline=None)
@given(KEYS, KEYS)
def test_keys_are_numbered_in_order_of_appearance_and_found_again(first, second):
    table = KeyTable()
    index, expected = numbered(first)
    assert numbers(table, first, learn=True) == expected
    assert table.keys.tolist() == list(index)
    assert numbers(table, second, learn=False) == [index.get(k, -1) for k in second]
    assert table.keys.tolist() == list(index)


def test_a_table_grows_and_forgets_nothing():
    keys = np.random.default_rng(0).integers(0, 2**62, 10_000).tolist()
    table = KeyTable()
    index, expected = numbered(keys + keys[::-1])
    assert numbers(table, keys + keys[::-1], learn=True) == expected
    assert table.keys.tolist() == list(index)
    again = KeyTable()
    again.learn(table.keys)
    assert again.keys.tolist() == list(index)


def row_of(columns):
    (row,) = parse_template(
        "U0:" + "/".join(f"%x[{i - 2},{c}]" for i, c in enumerate(columns))
    ).rows
    return row


@pytest.mark.parametrize("sizes", [[10, 10], [2**20, 3], [2**30, 2**31 - 9]])
@pytest.mark.parametrize("columns", [[0], [0, 1], [1, 1, 0, 0, 1, 0], [0] * 9])
def test_no_stage_needs_more_bits_than_a_key_has(sizes, columns):
    digits, row = Digits(2, sizes), row_of(columns)
    stages = digits.stages(row)
    assert [macro for stage in stages for macro in stage] == list(row.macros)
    for i, stage in enumerate(stages):
        most = 2**62 if i == 0 else 2**31  # a later stage begins with the number of a key
        radices = [digits.radix(column) for _, column in stage]
        assert math.prod(radices) <= most
        if i:
            before = [digits.radix(column) for _, column in stages[i - 1]]
            assert math.prod(before) * radices[0] > (2**62 if i == 1 else 2**31)


def test_digits_outside_a_sentence_are_spelt_as_by_crf():
    digits = Digits(2, [2])
    strings = Strings.of(["new", "york"])
    assert digits.radix(0) == 6
    found = digits.text(0, np.arange(6), strings)
    assert found == ["new", "york", "_B-1", "_B-2", "_B+2", "_B+1"]


def test_first_tokens_have_no_pair_to_start_from():
    sheet = Sheet([np.zeros(5, np.int32)], np.array([0, 2, 5]))
    assert sheet.every.tolist() == [0] * 5
    assert sheet.not_first.tolist() == [-1, 0, -1, 0, 0]
