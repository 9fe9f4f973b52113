"""Vectors of eight numbers: the instructions do what the plain functions say."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.kernels import lanes
from structlearn._src.kernels.jit import lean
from structlearn._src.kernels.lanes import LANES


@lean
def combined(weights, rows, out):
    lanes.combine(weights, rows, out)


@lean
def added(weight, row, out):
    lanes.add_multiple(weight, row, out)


@lean
def measured(rows, mean, bands, away, out):
    lanes.measure(rows, mean, bands, away, out)


@lean
def lowest_bits(numbers, out):
    for i in range(numbers.size):
        out[i] = lanes.lowest(numbers[i])


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 11])
def test_rows_are_combined(n):
    rng = np.random.default_rng(n)
    weights = rng.normal(size=n)
    rows = rng.normal(size=(n + 2, LANES))
    out = np.full((2, LANES), 7.0)
    combined(weights, rows, out[0])
    np.testing.assert_allclose(out[0], weights @ rows[:n], atol=1e-12)
    assert (out[1] == 7.0).all()
    if n == 5:  # in the order that is promised, to the last bit
        terms = weights[:, None] * rows[:n]
        ordered = ((terms[0] + terms[1]) + (terms[2] + terms[3])) + terms[4]
        assert np.array_equal(out[0], ordered)


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 19])
def test_multiples_are_added(n):
    row, out = np.arange(n + 1.0), np.full(n + 1, 2.0)
    added(0.5, row[:n], out[:n])
    assert out.tolist() == [*(2.0 + 0.5 * row[:n]), 2.0]


@pytest.mark.parametrize(("D", "width"), [(1, 1), (4, 4), (6, 1), (7, 5), (10, 10)])
def test_lengths_are_those_of_the_triangle(D, width):
    rng = np.random.default_rng(D)
    rows, mean = rng.normal(size=(D, LANES)), rng.normal(size=D)
    bands, out = rng.normal(size=(D, width)), np.empty(LANES)
    measured(rows, mean, bands, np.empty((D, LANES)), out)
    root = sum((np.diag(bands[: D - j, j], j) for j in range(width)), start=np.zeros((D, D)))
    away = root @ (rows - mean[:, None])
    np.testing.assert_allclose(out, (away**2).sum(axis=0))


def test_lowest_bits():
    numbers = np.array([1, 2, 12, 2**31, 2**31 + 2**7])
    out = np.empty(len(numbers), np.int64)
    lowest_bits(numbers, out)
    assert out.tolist() == [0, 1, 2, 31, 7]
