"""Weights of max-margin classifiers against grids, definitions and the support vector machine."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.svm import LinearSVC

from papers.comparators.infinite_logit import Logit
from structlearn._src.kernels.draw import margin
from structlearn._src.sample import normal_fit
from structlearn._src.sample.hinge import Hinge, draw_scores, prior_weights
from structlearn._src.sample.normal_fit import Softened, fit_normal


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
    """Up to the posterior the mean weight is the evidence; down from the posterior its inverse.

    The plain average over the prior needs few rows and weak labels to be any good.
    """
    rng, hinge = np.random.default_rng(2), Hinge(0.4, 1.0, 1.0)
    V = np.column_stack([rng.normal(size=(6, 2)), np.ones(6)])
    labels = (V @ rng.normal(size=(L, 3)).T).argmax(1)
    many = prior_weights(1.0, (40_000, L, 3), rng)
    scores = np.einsum("nlm,tm->tnl", many, V)
    plain = np.exp(hinge.log_potential(scores, labels).sum(0)).mean()
    up = [hinge.bridge(V, labels, None, rng, L) for _ in range(1500)]
    assert np.mean([np.exp(log_weight) for _, log_weight in up]) == pytest.approx(plain, rel=0.05)
    drawn = chains(hinge, V, labels, L, 30, copies=1500)
    down = [hinge.bridge(V, labels, weights, rng, L) for weights in drawn]
    back = np.mean([np.exp(-log_weight) for _, log_weight in down])
    assert back == pytest.approx(1.0 / plain, rel=0.05)
    density = fit_normal(V, labels, L, 2.0 if L == 2 else 1.0, hinge.c, hinge.cost)
    ends = np.array([weights[-len(density.centre) :].ravel() for weights, _ in down])
    covariance = np.linalg.inv(density.curvature.matrix())  # at its density again
    np.testing.assert_allclose(ends.var(axis=0), np.diag(covariance), rtol=0.25)
    errors = 5.0 * np.sqrt(np.diag(covariance) / len(ends))
    np.testing.assert_array_less(np.abs(ends.mean(axis=0) - density.centre.ravel()), errors)


def test_without_rows_a_path_stays_at_the_prior():
    rng, hinge = np.random.default_rng(3), Hinge(1.0, 1.0, 4.0)
    for n_labels in (2, 3):
        for weights in (None, prior_weights(4.0, (1, n_labels, 2), rng)[0]):
            given = np.zeros((0, 2)), np.zeros(0, np.int64)
            found, log_weight = hinge.bridge(*given, weights, rng, n_labels)
            assert log_weight == pytest.approx(0.0, abs=1e-12)
            assert np.isfinite(found).all()


@pytest.mark.parametrize(("L", "n"), [(2, 400), (3, 400), (4, 3000), (3, 40)])
def test_paths_begin_near_the_posterior(L, n):
    """Their log weights vary little, and on both ways they agree: many rows, or few."""
    rng, hinge = np.random.default_rng(L), Hinge(1.0, 1.0, 25.0)
    V = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
    labels = (V @ rng.normal(size=(L, 3)).T + rng.gumbel(size=(n, L))).argmax(1)
    weights = np.zeros((1, L, 3))
    down = []
    for sweep in range(60):
        weights = hinge.draw_weights(V, labels, np.zeros(n, np.int64), weights, rng)
        if sweep >= 20:
            down.append(hinge.bridge(V, labels, weights[0], rng, L)[1])
    up = [hinge.bridge(V, labels, None, rng, L)[1] for _ in range(40)]
    assert max(np.std(up), np.std(down)) < 6.0
    assert abs(np.mean(up) - np.mean(down)) < 8.0


@pytest.mark.parametrize("L", [2, 3])
def test_softened_losses_have_the_derivatives_they_say(L):
    """The centre is the minimum, and the inverse covariance the Hessian, by finite differences."""
    rng = np.random.default_rng(L)
    V = np.column_stack([rng.normal(size=(50, 2)), np.ones(50)])
    labels = rng.integers(L, size=50)
    soft = Softened(V, labels, L, 0.1, 2.0, 1.0)
    taus = rng.uniform(0.2, 1.0, 50)
    weights = rng.normal(size=3 * (L - (L == 2)))
    _, shares = soft.value(weights, taus)
    gradient = soft.gradient(weights, shares)
    hessian = soft.curvature(taus, shares).matrix()
    for i, step in enumerate(1e-5 * np.eye(len(weights))):
        (low, less), (high, more) = (soft.value(weights + s, taus) for s in (-step, step))
        assert (high - low) / 2e-5 == pytest.approx(gradient[i], rel=1e-6, abs=1e-6)
        slope = (soft.gradient(weights + step, more) - soft.gradient(weights - step, less)) / 2e-5
        np.testing.assert_allclose(slope, hessian[i], rtol=1e-5, atol=1e-5)
    found, inverse = soft.minimise(weights, taus, 50)
    left = soft.gradient(found, soft.value(found, taus)[1])
    assert left @ inverse.factor.solve(left) < 2.0  # what one more step would gain, twice


def test_densities_of_two_labels_do_not_depend_on_how_they_are_fitted(monkeypatch):
    """In compiled code, or as those of more labels are: up to the last, small Newton steps."""
    rng = np.random.default_rng(9)
    V = np.column_stack([rng.normal(size=(150, 3)), np.ones(150)])
    labels = (V[:, 0] + rng.normal(size=150) > 0.3).astype(np.int64)
    found = fit_normal(V, labels, 2, 50.0, 1.0, 1.0)
    monkeypatch.setattr(normal_fit, "_fit_pair", normal_fit._fit_labels)
    expected = fit_normal(V, labels, 2, 50.0, 1.0, 1.0)
    inverse, other = found.curvature.matrix(), expected.curvature.matrix()
    deviations = 1.0 / np.sqrt(np.diagonal(inverse))
    assert np.abs((found.centre - expected.centre)[0] / deviations).max() < 1.0
    np.testing.assert_allclose(inverse, other, rtol=0.5, atol=1.0)


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
