"""Numbers in text, against Python's own reading of them, and the walk over a model."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from structlearn._src.kernels.text import numbers as kernels


def read(text, room=64):
    """Numbers of a text, those that are left to Python included; and where it stopped, if early."""
    data = text.encode()
    buffer = np.frombuffer(data, np.uint8)
    values, slow = np.full(len(data) // 2 + 1, np.nan), np.empty((room, 3), np.int64)
    at = count = left = 0
    while at < len(data):
        at, count, n_slow, fine = kernels.numbers(buffer, at, values, count, slow)
        for number, begin, end in slow[:n_slow].tolist():
            values[number] = float(data[begin:end])
            left += 1
        if not fine:
            return values[:count], left, at
    return values[:count], left, None


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
@example([5e-324, 1.7976931348623157e308, 0.1, -0.0, 2.0**53 + 2])
def test_numbers_are_read_to_the_last_bit(values):
    for spell in (repr, "{:.17g}".format, "{:.25e}".format, "{:+.3e}".format):
        words = [spell(value) for value in values]
        found, _, stopped = read(" ".join(words))
        assert stopped is None
        expected = np.array([float(word) for word in words])
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_common_numbers_are_not_left_to_python():
    rng = np.random.default_rng(0)
    words = [f"{x:.6g}" for x in rng.random(300)] + [repr(float(x)) for x in rng.normal(size=300)]
    _, left, _ = read("\n".join(words))
    assert left < 6


def test_many_digits_are_left_to_python_a_few_at_a_time():
    words = [f"0.{k}{'123456789' * 4}" for k in range(1, 8)]
    found, left, _ = read(" ".join(words), room=2)
    assert left == 7
    assert found.tolist() == [float(word) for word in words]


@pytest.mark.parametrize("word", ["1e", ".", "-", "+-1", "1.2.3", "0x1", "nan", "inf", "1,2", "e5"])
def test_what_is_no_number_stops_the_reading(word):
    found, _, stopped = read(f"7 {word} 8")
    assert found.tolist() == [7.0]
    assert stopped == 2


@pytest.mark.parametrize("word", ["1.", ".5", "007", "1E+05", "1e-0", "+2"])
def test_odd_spellings_are_numbers(word):
    found, _, stopped = read(word)
    assert stopped is None
    assert found.tolist() == [float(word)]


def test_comment_lines_are_skipped():
    found, _, _ = read("1 2\nc 3 4\n  # 5\n6\n7")
    assert found.tolist() == [1.0, 2.0, 6.0, 7.0]


def test_places_of_tokens():
    data = np.frombuffer(b"MARKOV\n 2  33\nc no 4\n5", np.uint8)
    assert [kernels.locate(data, 6, i) for i in range(3)] == [8, 11, 21]
    assert kernels.locate(data, 6, 9) == len(data)


# ---- scopes and tables -------------------------------------------------------------------


def test_scopes_are_found_one_after_the_other():
    values = np.array([9.0, 2, 0, 2, 0, 1, 1, 5.0])
    starts = np.empty(4, np.int64)
    assert kernels.scopes(values, 1, 3, starts) == (0, 3, 7)
    assert starts.tolist() == [1, 4, 5, 7]


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ([2, 0, 1, 2, 0], (kernels.ENDED, 1, 5)),
        ([2, 0, 1], (kernels.ENDED, 1, 3)),
        ([2, 0, 1, -1, 0], (kernels.ARITY, 1, 3)),
        ([2, 0, 1, 0.5, 0], (kernels.ARITY, 1, 3)),
        ([2, 0, 3, 1, 0], (kernels.VARIABLE, 0, 2)),
        ([2, 0, 0.5, 1, 0], (kernels.VARIABLE, 0, 2)),
        ([2, 0, math.nan, 1, 0], (kernels.VARIABLE, 0, 2)),
        ([1, 2, 2, 1, 1], (kernels.TWICE, 1, 4)),
    ],
)
def test_scopes_that_are_wrong_are_told_with_their_place(values, wrong):
    starts = np.empty(3, np.int64)
    assert kernels.scopes(np.array(values, float), 0, 3, starts) == wrong


def tables(values, start=0):
    """Two factors: one over both variables, one over the second."""
    cards, borders, scopes = np.array([2, 3]), np.array([0, 2, 3]), np.array([0, 1, 1])
    values, sizes = np.array(values, float), np.empty(2, np.int64)
    return kernels.tables(values, start, cards, borders, scopes, sizes), values, sizes


def test_tables_move_to_the_front():
    given_ = [7, 6, 1, 2, 3, 4, 5, 6, 3, 0, 8, 9]
    found, values, sizes = tables(given_, 1)
    assert found == (0, 2, 12)
    assert sizes.tolist() == [6, 3]
    assert values[:9].tolist() == [1, 2, 3, 4, 5, 6, 0, 8, 9]


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        ([6, 1, 2, 3, 4, 5], (kernels.ENDED, 0, 6)),
        ([6, 1, 2, 3, 4, 5, 6], (kernels.ENDED, 1, 7)),
        ([5, 1, 2, 3, 4, 5], (kernels.SIZE, 0, 0)),
        ([6, 1, 2, 3, 4, 5, 6, 2, 0, 8], (kernels.SIZE, 1, 7)),
        ([6, 1, 2, -3, 4, 5, 6, 3, 0, 8, 9], (kernels.POTENTIAL, 0, 3)),
        ([6, 1, 2, 3, 4, 5, 6, 3, 0, math.inf, 9], (kernels.POTENTIAL, 1, 9)),
    ],
)
def test_tables_that_are_wrong_are_told_with_their_place(values, wrong):
    assert tables(values)[0] == wrong
