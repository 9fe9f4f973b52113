"""Weights of max-margin classifiers against grids, definitions and the support vector machine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.svm import LinearSVC

from papers.comparators.infinite_logit import Logit
from structlearn._src.kernels.draw import margin
from structlearn._src.sample.hinge import Hinge, draw_scores, prior_weights


def naive_potential(hinge, scores, label):
    if label < 0:
        return 0.0
    margins = [hinge.cost * (y != label) + scores[y] - scores[label] for y in range(len(scores))]
    return -2.0 * hinge.c * max(margins)


def test_potential_is_its_definition():
    rng, hinge = np.random.default_rng(0), Hinge(c=1.7, cost=0.6)
    scores, labels = rng.normal(size=(20, 5, 3)), rng.integers(-1, 3, 20)
    found = hinge.log_potential(scores, labels)
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
        weights = hinge.draw_weights(*many, assigned, weights, rng)
    return weights


@pytest.mark.parametrize("c", [1.0, 2.5])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_weights_have_the_posterior_of_a_grid(c, n_labels):
    rng, hinge = np.random.default_rng(1), Hinge(c=c, cost=1.0, variance=1.5)
    V, labels = rng.normal(size=(6, 1)), np.array([0, 1, -1, 1, 0, n_labels - 1])
    line = np.linspace(-7, 7, 71)
    grid = np.stack(np.meshgrid(*[line] * n_labels, indexing="ij"), -1).reshape(-1, n_labels)
    logs = -0.5 * (grid**2).sum(axis=1) / hinge.variance
    logs += hinge.log_potential(V[:, None] * grid, labels).sum(axis=0)
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
    n = 60_000  # several pieces of work
    V, labels, assigned = rng.normal(size=(n, 3)), rng.integers(-1, 3, n), np.arange(n) % 7
    before = np.zeros((7, 3, 3))
    one, two = (
        Hinge().draw_weights(V, labels, assigned, before, np.random.default_rng(4), n_jobs)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one, two)
    assert not before.any()


def naive_weights(hinge, V, labels, weights, normals, uniforms, noise):
    """One sweep over the labels of one component, row by row, with given random numbers."""
    weights, (L, M) = weights.copy(), weights.shape
    ridge = (0.5 if L == 2 else 1.0) / hinge.variance
    for y in range(1 if L == 2 else 0, L):
        precision, linear = ridge * np.eye(M), np.zeros(M)
        for i, v in enumerate(V):
            margins = weights @ v + hinge.cost * (np.arange(L) != labels[i])
            rival = np.delete(margins, y).max() - hinge.cost * (y != labels[i])
            mean = 1.0 / (hinge.c * abs(rival - weights[y] @ v))
            s = mean * normals[y, i] ** 2
            root = mean + 0.5 * mean * (s - np.sqrt(4.0 * s + s * s))
            inverse = root if uniforms[y, i] <= mean / (mean + root) else mean**2 / root
            precision += hinge.c**2 * inverse * np.outer(v, v)
            linear += hinge.c * (1 if y == labels[i] else -1) * v + hinge.c**2 * rival * inverse * v
        factor = np.linalg.cholesky(precision)
        weights[y] = np.linalg.solve(factor.T, np.linalg.solve(factor, linear) + noise[y])
    return weights


@pytest.mark.parametrize("L", [2, 4])
def test_weights_are_those_of_a_plain_sweep(L):
    """Components of any size, also none: blocks of rows and their padding do not show."""
    rng, hinge, sizes = np.random.default_rng(5), Hinge(1.3, 0.7, 2.0), [0, 1, 7, 64, 300, 523]
    borders, M = np.append(0, np.cumsum(sizes)), 3
    n, K = borders[-1], len(sizes)
    V, labels, order = rng.normal(size=(n, M)), rng.integers(L, size=n), rng.permutation(n)
    normals, uniforms = rng.normal(size=(L, n)), rng.random((L, n))
    weights, noise = rng.normal(size=(K, L, M)), rng.normal(size=(K, L, M))
    if L == 2:
        weights[:, 0] = 0.0
    expected, found = weights.copy(), weights.copy()
    for k in range(K):
        own = slice(borders[k], borders[k + 1])
        given = V[order[own]], labels[order[own]], weights[k], normals[:, own], uniforms[:, own]
        expected[k] = naive_weights(hinge, *given, noise[k])
    for first, last in ((0, 2), (2, 5), (5, 6)):
        own = slice(borders[first], borders[last])
        margin.draw_weights(
            V, labels, order, borders, found, 1.0 / hinge.variance, hinge.c, hinge.cost, 1e-10,
            normals[:, own].copy(), uniforms[:, own].copy(), noise, first, last,
        )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("L", [2, 3])
def test_weights_of_paths_estimate_the_evidence_both_ways(L):
    """Up from the prior the mean weight is the evidence; down from the posterior its inverse.

    The plain average over the prior needs few rows and weak labels to be any good.
    """
    rng, hinge = np.random.default_rng(2), Hinge(0.4, 1.0, 1.0)
    V = np.column_stack([rng.normal(size=(6, 2)), np.ones(6)])
    labels = (V @ rng.normal(size=(L, 3)).T).argmax(1)
    many = prior_weights(1.0, (40_000, L, 3), rng)
    scores = np.einsum("nlm,tm->tnl", many, V)
    plain = np.exp(hinge.log_potential(scores, labels).sum(0)).mean()
    up = [hinge.anneal(V, labels, weights, rng, up=True) for weights in many[:1500]]
    assert np.mean([np.exp(log_weight) for _, log_weight in up]) == pytest.approx(plain, rel=0.05)
    drawn = chains(hinge, V, labels, L, 30, copies=1500)
    down = [hinge.anneal(V, labels, weights, rng, up=False) for weights in drawn]
    back = np.mean([np.exp(-log_weight) for _, log_weight in down])
    assert back == pytest.approx(1.0 / plain, rel=0.05)
    ends = np.array([weights for weights, _ in down])  # at the prior again
    np.testing.assert_allclose(ends.var(axis=0), many[:1500].var(axis=0), rtol=0.25, atol=1e-12)


def test_without_rows_a_path_stays_at_the_prior():
    rng, hinge = np.random.default_rng(3), Hinge(1.0, 1.0, 4.0)
    weights = prior_weights(4.0, (1, 3, 2), rng)[0]
    for up in (True, False):
        found, log_weight = hinge.anneal(np.zeros((0, 2)), np.zeros(0, np.int64), weights, rng, up)
        assert log_weight == 0.0
        assert np.isfinite(found).all()


# ---- new components ----------------------------------------------------------------------

CASES = [(2, 1.3, 1.0), (2, 4.0, 3.0), (3, 1.0, 1.0), (3, 0.2, 8.0), (3, 30.0, 1.0)]


def grid(hinge, sigma, n_labels, label, nodes=81):
    """All scores in units of their deviation, and their probabilities, potential included."""
    line = np.linspace(-8, 8, nodes if n_labels == 3 else 1001)
    scores = sigma * np.stack(np.meshgrid(*[line] * n_labels, indexing="ij"), -1)
    scores = scores.reshape(-1, n_labels)
    prior = np.exp(-0.5 * (scores**2).sum(axis=1) / sigma**2)
    prior /= prior.sum()
    return scores, prior * np.exp(hinge.log_potential(scores[None], np.array([label]))[0])


def expected_potential(sigma, c, n_labels):
    """By quadrature over the label's score and the best of the others, split at the kink."""

    def given(best):
        kink = 1.0 + best
        low = quad(lambda s: norm.pdf(s, 0, sigma) * np.exp(-2 * c * (kink - s)), -np.inf, kink)[0]
        return low + norm.sf(kink, 0, sigma)

    def density(z):
        return (n_labels - 1) * norm.pdf(z) * norm.cdf(z) ** (n_labels - 2)

    return quad(lambda z: density(z) * given(sigma * z), -12, 12, points=[-4, 0, 4], limit=200)[0]


@pytest.mark.parametrize(("n_labels", "sigma", "c"), CASES)
def test_expected_potential_is_that_of_quadrature(n_labels, sigma, c):
    hinge = Hinge(c=c, cost=1.0, variance=2.0)
    v = np.array([[sigma / np.sqrt(2.0)]])
    expected = np.log(expected_potential(sigma, c, n_labels))
    assert hinge.log_expected_potential(v, n_labels)[0] == pytest.approx(expected, abs=1e-6)


def test_expected_potential_of_many_labels():
    hinge, sigma = Hinge(c=1.0, cost=1.0, variance=1.0), np.sqrt(5.0)
    scores = sigma * np.random.default_rng(0).normal(size=(200_000, 27))
    mean = np.exp(hinge.log_potential(scores[None], np.array([0]))).mean()
    assert np.exp(hinge.log_expected_potential(np.array([[sigma]]), 27)[0]) == pytest.approx(
        mean, rel=0.02
    )


@pytest.mark.parametrize(("n_labels", "sigma", "c"), CASES)
def test_scores_of_a_new_component(n_labels, sigma, c):
    hinge, rng = Hinge(c=c, cost=1.0, variance=1.0), np.random.default_rng(1)
    drawn = np.array([draw_scores(hinge, sigma, 1, n_labels, rng) for _ in range(700)])
    scores, joint = grid(hinge, sigma, n_labels, 1)
    shares = joint / joint.sum()
    mean = shares @ scores
    deviation = np.sqrt(shares @ scores**2 - mean**2)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) < 0.15 * deviation)
    np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.12)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_weights_of_a_new_component_have_these_scores_and_the_prior_elsewhere(n_labels):
    v, rng = np.array([1.0, 2.0]), np.random.default_rng(2)
    aside = np.array([2.0, -1.0]) / np.sqrt(5.0)
    variance = 0.3
    for given in (Hinge(1.0, 1.0, variance), Logit(variance)):
        weights = np.array([given.draw_new_weights(v, 0, n_labels, rng) for _ in range(1500)])
        beside = weights[:, 1] @ aside
        expected = variance * (2.0 if n_labels == 2 else 1.0)
        assert beside.var() == pytest.approx(expected, rel=0.15)
        assert abs(beside.mean()) < 5 * np.sqrt(expected / 1500)
        scores = weights @ v
        assert np.all(scores[:, 0].mean() > scores[:, 1:].mean(axis=0))


def test_logit_scores_are_those_of_a_grid():
    rng, sigma = np.random.default_rng(3), 2.0
    scores = np.array(
        [Logit(sigma**2).draw_new_weights(np.ones(1), 1, 3, rng)[:, 0] for _ in range(3000)]
    )
    line = np.linspace(-8, 8, 81) * sigma
    every = np.stack(np.meshgrid(line, line, line, indexing="ij"), -1).reshape(-1, 3)
    logs = -0.5 * (every**2).sum(axis=1) / sigma**2
    logs += Logit().log_potential(every, np.ones(len(every), np.int64))
    shares = np.exp(logs - logs.max())
    shares /= shares.sum()
    np.testing.assert_allclose(scores.mean(axis=0), shares @ every, atol=0.17)
    assert Logit().log_expected_potential(np.ones((2, 1)), 4) == pytest.approx(-np.log(4.0))
