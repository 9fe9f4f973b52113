"""Factors of small matrices, against NumPy; as plain Python, as they have no entry of their own."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.kernels.draw import cholesky


def _matrix(n, seed):
    half = np.random.default_rng(seed).normal(size=(n, n))
    return half @ half.T + np.eye(n)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_factor_and_determinant(n):
    matrix = _matrix(n, n)
    factor = matrix.copy()
    cholesky.factorise.py_func(factor)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix))
    np.testing.assert_array_equal(np.triu(factor, 1), np.triu(matrix, 1))  # not touched
    found = cholesky.log_determinant.py_func(factor)
    assert found == pytest.approx(np.linalg.slogdet(matrix)[1])


@pytest.mark.parametrize("n", [1, 3, 6])
def test_factors_follow_rows_that_come_and_go(n):
    matrix, row = _matrix(n, 7), np.random.default_rng(8).normal(size=n)
    factor = np.linalg.cholesky(matrix)
    assert cholesky.update.py_func(factor, row.copy(), 1.0)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix + np.outer(row, row)))
    assert cholesky.update.py_func(factor, row.copy(), -1.0)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix))


def test_a_row_that_was_never_there_is_refused():
    assert not cholesky.update.py_func(np.eye(2), np.array([0.5, 2.0]), -1.0)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_backward_solves_the_transpose(n):
    factor, vector = np.linalg.cholesky(_matrix(n, 9)), np.arange(1.0, n + 1)
    solved = vector.copy()
    cholesky.backward.py_func(factor, solved)
    np.testing.assert_allclose(factor.T @ solved, vector)


@pytest.mark.parametrize("n", [0, 3, 4, 11])
def test_products_of_the_first_entries(n):
    left, right = np.random.default_rng(10).normal(size=(2, 12))
    assert cholesky.product.py_func(left, right, n) == pytest.approx(left[:n] @ right[:n])
