"""Exponentials without calls, against the library's; as plain Python, as they have no entry."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.kernels.chain import forward_backward, marginals


def exponentials(values, n=None):
    x = np.array(values, float)
    bits = np.empty(len(x))
    marginals.exponentials.py_func(x, len(x) if n is None else n, bits, bits.view(np.int64))
    return x


def test_exponentials_are_right_to_the_last_digits():
    values = -np.geomspace(1e-12, 690.0, 300)
    np.testing.assert_allclose(exponentials(values), np.exp(values), rtol=4e-16)


def test_zero_is_one_and_far_below_it_is_nothing():
    assert exponentials([0.0, -701.0, -np.inf]).tolist() == [1.0, 0.0, 0.0]


def test_only_the_first_numbers_are_replaced():
    assert exponentials([0.0, -3.0, -4.0], 1).tolist() == [1.0, -3.0, -4.0]


@pytest.mark.parametrize("states", [1, 3, 4, 7, 8])
def test_pushing_a_row_through_a_table_is_their_product(states):
    rng = np.random.default_rng(states)
    rows, tables = rng.random((3, states)), rng.random((2, states, states))
    expected = rows[2] @ tables[1]
    forward_backward.push.py_func(rows, 2, 0, tables, 1)
    np.testing.assert_allclose(rows[0], expected)
