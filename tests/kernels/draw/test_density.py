"""Compiled densities against plain loops, at the borders of blocks."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.kernels.draw import density


def _added(first, last, n_states, **parts):
    """Ones, with the log densities of some positions added."""
    densities = density.NO_DENSITIES._replace(**parts)
    out = np.ones((last - first, n_states))
    density.add_densities(densities, first, last, density.lane_workspace(densities), out)
    return out


@pytest.mark.parametrize(("first", "last"), [(0, 300), (120, 130), (128, 256), (7, 7)])
def test_hinges_of_some_positions(first, last):
    rng = np.random.default_rng(0)
    columns, labels = rng.normal(size=(5, 300)), rng.integers(-1, 3, 300)
    weights = rng.normal(size=(4, 3, 5))
    found = density.LabelDensities(columns, labels, weights, -0.8, 1.3)
    out = _added(first, last, 4, labels=found)
    for t in range(first, last):
        scores, label = weights @ columns[:, t], labels[t]
        worst = (scores + 1.3 * (np.arange(3) != label)).max(axis=1) - scores[:, label]
        expected = 1.0 - 0.8 * worst if label >= 0 else np.ones(4)
        np.testing.assert_allclose(out[t - first], expected)


@pytest.mark.parametrize(("D", "width"), [(3, 1), (3, 3), (1, 1), (11, 11), (9, 5)])
def test_gaussians_of_some_positions(D, width):
    """Bands of triangles: one alone is a diagonal."""
    rng = np.random.default_rng(1)
    columns, seen = rng.normal(size=(D, 300)), rng.random(300) < 0.8
    means, bands, constants = rng.normal(size=(2, D)), rng.normal(size=(2, D, width)), np.ones(2)
    out = _added(100, 270, 2, points=density.PointDensities(columns, seen, means, bands, constants))
    for k in range(2):
        root = sum((np.diag(bands[k, : D - j, j], j) for j in range(width)), start=np.zeros((D, D)))
        away = root @ (columns[:, 100:270] - means[k][:, None])
        expected = np.where(seen[100:270], 1.0 - 0.5 * (away**2).sum(axis=0), 0.0)
        np.testing.assert_allclose(out[:, k], 1.0 + expected)


def test_parts_of_densities_add_up():
    rng = np.random.default_rng(3)
    n, K = 21, 3
    columns, seen = rng.normal(size=(2, n)), np.ones(n, bool)
    gaussians = rng.normal(size=(K, 2)), rng.normal(size=(K, 2, 2)), rng.normal(size=K)
    parts = {
        "points": density.PointDensities(columns, seen, *gaussians),
        "symbols": density.SymbolDensities(rng.integers(-1, 4, n), rng.normal(size=(K, 4))),
        "labels": density.LabelDensities(
            columns, rng.integers(2, size=n), rng.normal(size=(K, 2, 2)), 0.3, 1.0
        ),
    }
    alone = [_added(0, n, K, **{name: part}) - 1.0 for name, part in parts.items()]
    np.testing.assert_allclose(_added(0, n, K, **parts), 1.0 + sum(alone))
    missing = parts["symbols"].data < 0
    assert missing.any()
    assert not alone[1][missing].any()


@pytest.mark.parametrize("full", [True, False])
def test_moments_are_sums_of_what_is_seen(full):
    rng = np.random.default_rng(2)
    points, seen, states = rng.normal(size=(40, 2)), rng.random(40) < 0.7, rng.integers(3, size=40)
    counts, sums, outers = np.zeros(3), np.zeros((3, 2)), np.zeros((3, 2, 2 if full else 1))
    density.add_moments(points, seen, states, 5, 38, counts, sums, outers)
    inside = (np.arange(40) >= 5) & (np.arange(40) < 38)
    for k in range(3):
        own = points[seen & inside & (states == k)]
        assert counts[k] == len(own)
        np.testing.assert_allclose(sums[k], own.sum(axis=0))
        expected = own.T @ own if full else (own**2).sum(axis=0)[:, None]
        np.testing.assert_allclose(outers[k], expected)


# ---- triangular factors, as plain Python: they have no entry of their own ----------------


def _matrix(n, seed):
    half = np.random.default_rng(seed).normal(size=(n, n))
    return half @ half.T + np.eye(n)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_factor_and_determinant(n):
    matrix = _matrix(n, n)
    factor = matrix.copy()
    density.factorise.py_func(factor)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(matrix))
    np.testing.assert_array_equal(np.triu(factor, 1), np.triu(matrix, 1))  # not touched
    found = density.log_determinant.py_func(factor)
    assert found == pytest.approx(np.linalg.slogdet(matrix)[1])


@pytest.mark.parametrize("n", [1, 3, 6])
def test_factors_follow_rows_that_come_and_go(n):
    matrix, row = _matrix(n, 7), np.random.default_rng(8).normal(size=n)
    factor = np.linalg.cholesky(matrix)
    assert density.update.py_func(factor, row.copy(), 1.0)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix + np.outer(row, row)))
    assert density.update.py_func(factor, row.copy(), -1.0)
    np.testing.assert_allclose(factor, np.linalg.cholesky(matrix))


def test_a_row_that_was_never_there_is_refused():
    assert not density.update.py_func(np.eye(2), np.array([0.5, 2.0]), -1.0)


@pytest.mark.parametrize("n", [1, 3, 6])
def test_backward_solves_the_transpose(n):
    factor, vector = np.linalg.cholesky(_matrix(n, 9)), np.arange(1.0, n + 1)
    solved = vector.copy()
    density.backward.py_func(factor, solved)
    np.testing.assert_allclose(factor.T @ solved, vector)


@pytest.mark.parametrize("n", [0, 3, 4, 11])
def test_products_of_the_first_entries(n):
    left, right = np.random.default_rng(10).normal(size=(2, 12))
    assert density.product.py_func(left, right, n) == pytest.approx(left[:n] @ right[:n])


@pytest.mark.parametrize("D", [1, 2, 5])
def test_precision_roots_are_those_of_matrices(D):
    rng = np.random.default_rng(D)
    X = rng.normal(size=(3, 2 * D, D))
    scales = np.swapaxes(X, 1, 2) @ X
    lower = np.tril(rng.normal(size=(3, D, D))) + 3.0 * np.eye(D)
    noise, means, roots = rng.normal(size=(3, D)), np.ones((3, D)), np.empty((3, D, D))
    used = noise.copy()
    density.precision_roots(scales, lower, used, np.empty((D, D)), roots, means)
    np.testing.assert_array_equal(roots, np.triu(roots))
    np.testing.assert_allclose(means, 1.0 + np.linalg.solve(roots, noise[..., None])[..., 0])
    # A root of the inverse scale matrix, the transpose of an upper triangle, on both sides.
    upper = np.linalg.cholesky(scales[:, ::-1, ::-1])[:, ::-1, ::-1]
    half = np.linalg.inv(upper)
    inside = lower @ np.swapaxes(lower, 1, 2)
    expected = np.swapaxes(half, 1, 2) @ inside @ half
    np.testing.assert_allclose(np.swapaxes(roots, 1, 2) @ roots, expected)
