"""Expectations of mean field against draws from the same distributions."""

from __future__ import annotations

import numpy as np
import pytest

from papers.comparators.variational import (
    expected_log_density,
    expected_log_sticks,
    soft_moments,
    soft_pairs,
)
from structlearn._src.sample.emission import Gaussian
from structlearn._src.sample.priors import NormalWishart


def test_shares_of_zero_and_one_are_assignments():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    assigned = rng.integers(0, 4, 12)
    hard = Gaussian(X, np.ones(len(X), bool), NormalWishart(X[0], 1.0, 9.0, np.eye(X.shape[1])))
    pairs = zip(soft_moments(X, np.eye(4)[assigned]), hard.statistics(assigned, 4), strict=True)
    for a, b in pairs:
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_pairs_of_shares_end_with_their_sequence():
    assigned = np.array([0, 1, 1, 2, 0, 1])
    offsets = np.array([0, 3, 4, 6])
    expected = np.zeros((3, 3))
    for a, b in [(0, 1), (1, 1), (0, 1)]:  # of the first sequence, and of the last
        expected[a, b] += 1
    np.testing.assert_array_equal(soft_pairs(np.eye(3)[assigned], offsets), expected)


def test_expected_log_density_is_the_mean_over_draws():
    rng = np.random.default_rng(1)
    n = 50_000
    mean = np.array([0.3, -0.2])
    scale = np.array([[2.0, 0.5], [0.5, 1.0]])
    many = NormalWishart(
        np.tile(mean, (n, 1)), np.full(n, 1.5), np.full(n, 9.0), np.tile(scale, (n, 1, 1))
    )
    means, roots = many.draw(rng)
    X = rng.normal(size=(3, 2))
    away = np.einsum("nij,nxj->nxi", roots, X - means[:, None])
    logs = np.log(np.linalg.det(roots))[:, None] - np.log(2 * np.pi) - 0.5 * (away**2).sum(axis=2)
    one = NormalWishart(*(np.asarray(a)[None] for a in (mean, 1.5, 9.0, scale)))
    errors = logs.std(axis=0) / np.sqrt(n)
    found = expected_log_density(one, X)[:, 0]
    assert np.all(np.abs(found - logs.mean(axis=0)) < 4 * errors)
    assert errors.max() < 0.1


@pytest.mark.parametrize("alpha", [0.5, 3.0])
def test_expected_log_sticks_are_the_mean_over_draws(alpha):
    rng = np.random.default_rng(2)
    counts = np.array([[1.0, 8.0, 0.0, 3.5], [2.0, 2.0, 9.0, 1.0]])
    found = expected_log_sticks(counts, alpha)
    for row, logs in zip(counts, found, strict=True):
        order = np.argsort(-row, kind="stable")
        later = row[order][::-1].cumsum()[::-1] - row[order]
        sticks = rng.beta(1.0 + row[order], alpha + later, size=(100_000, 4))
        sticks[:, -1] = 1.0
        left = np.cumprod(np.hstack([np.ones((100_000, 1)), 1.0 - sticks[:, :-1]]), axis=1)
        np.testing.assert_allclose(logs[order], np.log(sticks * left).mean(axis=0), atol=0.05)
