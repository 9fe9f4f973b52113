"""Weights of max-margin classifiers against grids, definitions and the support vector machine."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from structlearn.sample.hinge import Hinge, draw_weights, log_potential, prior_weights


def naive_potential(hinge, scores, label):
    if label < 0:
        return 0.0
    margins = [hinge.cost * (y != label) + scores[y] - scores[label] for y in range(len(scores))]
    return -2.0 * hinge.c * max(margins)


def test_potential_is_its_definition():
    rng, hinge = np.random.default_rng(0), Hinge(c=1.7, cost=0.6)
    scores, labels = rng.normal(size=(20, 5, 3)), rng.integers(-1, 3, 20)
    found = log_potential(hinge, scores, labels)
    for t in range(20):
        for k in range(5):
            expected = naive_potential(hinge, scores[t, k], labels[t])
            assert found[t, k] == pytest.approx(expected)


def chains(hinge, V, labels, n_labels, sweeps, seed=0, copies=2000):
    """Weights after sweeps in many components with the same rows: independent draws."""
    rng, n = np.random.default_rng(seed), len(V)
    assigned = np.repeat(np.arange(copies), n)
    many = np.tile(V, (copies, 1)), np.tile(labels, copies)
    weights = prior_weights(hinge.variance, (copies, n_labels, V.shape[1]), rng)
    for _ in range(sweeps):
        weights = draw_weights(hinge, *many, assigned, weights, rng)
    return weights


@pytest.mark.parametrize("c", [1.0, 2.5])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_weights_have_the_posterior_of_a_grid(c, n_labels):
    rng, hinge = np.random.default_rng(1), Hinge(c=c, cost=1.0, variance=1.5)
    V, labels = rng.normal(size=(6, 1)), np.array([0, 1, -1, 1, 0, n_labels - 1])
    line = np.linspace(-7, 7, 71)
    grid = np.stack(np.meshgrid(*[line] * n_labels, indexing="ij"), -1).reshape(-1, n_labels)
    logs = -0.5 * (grid**2).sum(axis=1) / hinge.variance
    logs += log_potential(hinge, V[:, None] * grid, labels).sum(axis=0)
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    found = chains(hinge, V, labels, n_labels, 25)[:, :, 0]
    if n_labels == 2:  # only the difference is drawn
        grid = grid - grid[:, :1]
    mean = shares @ grid
    variance = shares @ grid**2 - mean**2
    np.testing.assert_allclose(found.mean(axis=0), mean, atol=0.1)
    np.testing.assert_allclose(found.var(axis=0), variance, atol=0.12)


def test_the_posterior_narrows_to_the_support_vector_machine():
    rng = np.random.default_rng(2)
    V, labels = rng.normal(size=(30, 2)), rng.integers(0, 2, 30)
    hinge = Hinge(c=200.0, cost=1.0, variance=0.25 / 200.0)
    found = chains(hinge, V, labels, 2, 400, copies=40)[:, 1]
    C = 4.0 * hinge.c * hinge.variance
    svm = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-8, max_iter=10**6)
    np.testing.assert_allclose(found.mean(axis=0), svm.fit(V, labels).coef_[0], atol=0.05)


def test_threads_change_nothing():
    rng = np.random.default_rng(3)
    V, labels, assigned = rng.normal(size=(9000, 3)), rng.integers(0, 3, 9000), np.arange(9000) % 7
    before = np.zeros((7, 3, 3))
    one, two = (
        draw_weights(Hinge(), V, labels, assigned, before, np.random.default_rng(4), n_jobs)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not before.any()
