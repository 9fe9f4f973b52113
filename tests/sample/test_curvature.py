"""Hessians of softened losses by labels and rows, against the whole matrix."""

import numpy as np
import pytest

from structlearn._src.kernels.draw import margin
from structlearn._src.sample.curvature import Curvature, DenseFactor, RowFactor
from structlearn._src.sample.hinge import Hinge

F, M = 5, 3


def curvature(n, seed=0):
    """Return the Hessian of `n` rows, and the matrix by its definition."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(n, M))
    shares = rng.dirichlet(np.full(F, 0.4), n)
    stiffness = rng.uniform(1.0, 20.0, n)
    expected = 0.05 * np.eye(F * M)
    for v, p, a in zip(V, shares, stiffness, strict=True):
        expected += a * np.kron(np.diag(p) - np.outer(p, p), np.outer(v, v))
    return Curvature.of(V, shares, stiffness, 0.05), expected


@pytest.mark.parametrize(("n", "kind"), [(7, RowFactor), (14, RowFactor), (15, DenseFactor)])
def test_factors_are_those_of_the_matrix(n, kind):
    found, H = curvature(n)
    np.testing.assert_allclose(found.matrix(), H, atol=1e-10)
    blocks = H.reshape(F, M, F, M)[np.arange(F), :, np.arange(F)]
    np.testing.assert_allclose(found.blocks(), blocks, atol=1e-10)
    factor = found.factor
    assert isinstance(factor, kind)
    assert factor.half_log_determinant == pytest.approx(0.5 * np.linalg.slogdet(H)[1])
    given = np.random.default_rng(1).normal(size=F * M)
    np.testing.assert_allclose(factor.solve(given), np.linalg.solve(H, given), rtol=1e-8)
    labels = np.arange(n) % F
    rivals = (labels + 1 + np.arange(n) % (F - 1)) % F
    leads = np.eye(F)[labels] - np.eye(F)[rivals]
    covariance = np.linalg.inv(H)
    expected = [
        (u := np.kron(lead, v)) @ covariance @ u for lead, v in zip(leads, found.V, strict=True)
    ]
    np.testing.assert_allclose(factor.variances(found.V, labels, rivals), expected, rtol=1e-8)


@pytest.mark.parametrize("n", [7, 40])
def test_draws_have_the_covariance(n):
    found, H = curvature(n)
    rng = np.random.default_rng(2)
    drawn = np.array([found.factor.draw(rng) for _ in range(20_000)])
    whitened = drawn @ np.linalg.cholesky(H)
    np.testing.assert_allclose(whitened.T @ whitened / len(drawn), np.eye(F * M), atol=0.06)


@pytest.mark.parametrize("n", [7, 40, 200])
def test_a_path_knows_the_density_by_its_blocks_and_links(n):
    """Without noise, draws at heat 0 are conditional means given the other labels."""
    found, H = curvature(n)
    rng = np.random.default_rng(3)
    hinge = Hinge(0.7, 1.0, 20.0)
    labels = rng.integers(F, size=n)
    centre, before = rng.normal(size=(2, F, M))
    weights = before.copy()
    value = margin.bridge(
        found.V, labels, weights, centre, found.blocks(), np.ascontiguousarray(found.links.T),
        1.0 / hinge.variance, hinge.c, hinge.cost, 1e-10, np.zeros(1), np.ones(1), True,
        np.zeros((1, F, n)), np.zeros((1, F, n)), np.zeros((1, F, M)),
    )  # fmt: skip
    expected = before - centre
    cells = H.reshape(F, M, F, M)
    for y in range(F):
        others = np.arange(F) != y
        pulled = np.einsum("agb,gb->a", cells[y][:, others], expected[others])
        expected[y] = -np.linalg.solve(cells[y, :, y], pulled)
    np.testing.assert_allclose(weights, centre + expected, rtol=1e-6, atol=1e-8)
    away = (before - centre).ravel()
    potential = hinge.log_potential(found.V @ before.T, labels).sum()
    prior = -0.5 * (before**2).sum() / hinge.variance
    assert value == pytest.approx(potential + prior + 0.5 * away @ H @ away)
