"""Rows of a fit, and the best of them."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.common.history import History

VALUES = st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0, math.nan]), max_size=8)


def filled(values, start=True):
    history = History()
    for i, value in enumerate(values):
        history.add(
            i if start else i + 1, 0.5 * i, value, gap=10.0 * i, gradient=0.1, inference_steps=i
        )
    return history


@settings(deadline=None)
@given(VALUES, st.booleans(), st.integers(0, 3))
def test_the_best_value_is_the_lowest_after_the_start(values, start, back):
    history = filled(values, start)
    assert len(history) == len(values)
    rows = values[: max(len(values) - back, 0)]
    counted = [value for value in (rows[1:] if start else rows) if not math.isnan(value)]
    np.testing.assert_equal(history.best(back), min(counted, default=math.nan))


@settings(deadline=None)
@given(VALUES, st.booleans())
def test_the_start_is_the_first_row_where_it_was_valued(values, start):
    expected = values[0] if values and start else math.nan
    np.testing.assert_equal(filled(values, start).start, expected)


def test_columns_have_names():
    history = filled([3.0, 2.0])
    assert history.iteration.tolist() == [0, 1]
    assert history.iteration.dtype == np.int64
    assert history.seconds.tolist() == [0.0, 0.5]
    assert history.value.tolist() == [3.0, 2.0]
    assert history.gap.tolist() == [0.0, 10.0]
    assert history.gradient.tolist() == history.slope.tolist() == [0.1, 0.1]
    assert history.inference_steps.tolist() == [0.0, 1.0]
    assert history.table.shape == (2, 6)


def test_what_is_not_known_is_not_a_number():
    history = History()
    history.add(1, 0.0)
    assert np.isnan(history.table[0, 2:]).all()


@settings(deadline=None)
@given(VALUES, VALUES)
def test_a_history_goes_on_from_its_table(before, after):
    whole, part = filled(before + after), History(filled(before).table)
    for row in whole.table[len(before) :]:
        part.add(*row)
    np.testing.assert_array_equal(part.table, whole.table)
    np.testing.assert_equal(part.best(), whole.best())
    np.testing.assert_equal(part.start, whole.start)


def test_tables_of_older_files_have_fewer_columns():
    old = History(filled([3.0, 2.0]).table[:, :4])
    assert old.value.tolist() == [3.0, 2.0]
    assert np.isnan(old.inference_steps).all()
    assert History().table.shape == (0, 6)


def test_a_history_says_what_it_holds():
    history = History()
    assert repr(history) == "History(0 rows)"
    history.add(3, 0.5, 2.0, gradient=0.25)
    last = "iteration=3, seconds=0.5, value=2, gradient=0.25"
    assert repr(history) == f"History(1 rows, the last: {last})"
