from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import invwishart, multivariate_normal, multivariate_t

from structlearn._src.kernels.draw import density
from structlearn._src.sample.emission import Categorical, Gaussian, covariances
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.priors import Moments, NormalGamma, NormalWishart


def _gaussian(rng, n, D, full):
    seen = rng.random(n) < 0.8
    x = np.where(seen[:, None], rng.normal(size=(n, D)), 0.0)
    if full:
        half = rng.normal(size=(D, D))
        known = NormalWishart(rng.normal(size=D), 0.4, D + 3.0, half @ half.T + np.eye(D))
    else:
        known = NormalGamma(rng.normal(size=D), 0.4, 4.0, 0.5 + rng.random(D))
    return Gaussian(x, seen, known)


@pytest.mark.parametrize(("D", "full"), [(1, True), (3, True), (3, False)])
def test_log_densities_of_points(D, full):
    rng = np.random.default_rng(D)
    part, K = _gaussian(rng, 300, D, full), 4
    parameters = part.draw_posterior(part.statistics(rng.integers(K, size=300), K), rng)
    out = np.ones((300, K))
    part.add_log_densities(parameters, 10, 300, out[10:])
    found = covariances(parameters)
    for k in range(K):
        exact = multivariate_normal(parameters[0][k], found[k]).logpdf(part.data)
        expected = np.where(part.seen & (np.arange(300) >= 10), exact, 0.0)
        np.testing.assert_allclose(out[:, k] - 1.0, expected, atol=1e-9)


@pytest.mark.parametrize("full", [True, False])
def test_statistics_of_points_add_up(full):
    rng = np.random.default_rng(0)
    part = _gaussian(rng, 50, 3, full)
    states = rng.integers(2, size=50)
    counts, sums, outers = part.statistics(states, 3)
    for k in range(3):
        own = part.data[part.seen & (states == k)]
        products = own.T @ own
        assert counts[k] == len(own)
        np.testing.assert_allclose(sums[k], own.sum(0))
        np.testing.assert_allclose(outers[k], products if full else np.diag(products))


def test_diagonal_evidence_is_that_of_single_features():
    rng = np.random.default_rng(1)
    part = _gaussian(rng, 30, 3, full=False)
    found = part.statistics(np.zeros(30, np.int64), 2)
    total = np.zeros(2)
    for d in range(3):
        known = NormalWishart(
            part.prior.mean[d : d + 1], 0.4, 4.0, part.prior.scale[d].reshape(1, 1)
        )
        own = Moments(found[0], found[1][:, d : d + 1], found[2][:, d].reshape(2, 1, 1))
        total += known.log_evidence(own)
    np.testing.assert_allclose(part.log_evidence(found), total, atol=1e-12)


def test_diagonal_draws_have_the_moments_of_their_distribution():
    rng, n = np.random.default_rng(2), 20_000
    known = NormalGamma(np.array([1.0, -2.0]), 2.0, 9.0, np.array([3.0, 5.0]))
    part = Gaussian(np.zeros((1, 2)), np.ones(1, bool), known)
    means, bands, logs = part.draw_prior(n, rng)
    variance = np.array([3.0, 5.0]) / 7.0
    np.testing.assert_allclose((bands[:, :, 0] ** -2).mean(0), variance, rtol=0.05)
    np.testing.assert_allclose(means.mean(0), known.mean, atol=0.02)
    np.testing.assert_allclose(means.var(0), variance / 2, rtol=0.06)
    np.testing.assert_allclose(logs, np.log(bands[:, :, 0]).sum(1) - np.log(2 * np.pi))


def test_evidence_of_symbols_is_the_product_of_predictives():
    known, symbols = np.array([0.5, 1.0, 2.0]), np.array([0, 2, -1, 2, 1, 0])
    part, counts, total = Categorical(symbols, known), known.copy(), 0.0
    for symbol in symbols[symbols >= 0]:
        total += np.log(counts[symbol] / counts.sum())
        counts[symbol] += 1.0
    found = part.log_evidence(part.statistics(np.zeros(6, np.int64), 2))
    np.testing.assert_allclose(found, [total, 0.0], atol=1e-12)
    (logs,) = part.draw_posterior(
        part.statistics(np.zeros(6, np.int64), 2), np.random.default_rng(0)
    )
    out = np.zeros((6, 2))
    part.add_log_densities((logs,), 0, 6, out)
    for t, k in itertools.product(range(6), range(2)):
        assert out[t, k] == (0.0 if symbols[t] < 0 else logs[k, symbols[t]])


def test_symbols_are_drawn_from_their_posterior():
    rng, known = np.random.default_rng(3), np.array([1.0, 2.0])
    part = Categorical(np.array([0, 0, 1]), known)
    states = np.arange(3) * 0
    draws = np.exp(
        [part.draw_posterior(part.statistics(states, 1), rng)[0][0] for _ in range(3000)]
    )
    np.testing.assert_allclose(draws.mean(0), [0.5, 0.5], atol=0.015)
    (posterior_mean,) = part.posterior_mean(part.statistics(states, 1))
    np.testing.assert_allclose(np.exp(posterior_mean[0]), [0.5, 0.5])


def test_hinges_by_definition():
    rng = np.random.default_rng(4)
    n, K, L, M = 150, 3, 4, 2
    part = LabelEmission(rng.normal(size=(n, M)), rng.integers(-1, L, n), L, Hinge(0.7, 1.3))
    weights, out = rng.normal(size=(K, L, M)), np.ones((n, K))
    part.add_log_densities((weights,), 5, n, out[5:])
    for t, k in itertools.product(range(n), range(K)):
        scores, label = weights[k] @ part.features[t], part.labels[t]
        loss = (scores + 1.3 * (np.arange(L) != label)).max() - scores[label]
        expected = 1.0 - (1.4 * loss if t >= 5 and label >= 0 else 0.0)
        assert out[t, k] == pytest.approx(expected)


def test_part_of_some_positions():
    rng = np.random.default_rng(5)
    chosen = np.array([3, 7, 1])
    whole = _gaussian(rng, 20, 2, full=True)
    parameters, logs, some = whole.draw_prior(2, rng), np.zeros((20, 2)), np.zeros((3, 2))
    whole.add_log_densities(parameters, 0, 20, logs)
    whole.subset(chosen).add_log_densities(parameters, 0, 3, some)
    np.testing.assert_allclose(some, logs[chosen])


def test_blocks_do_not_show():
    """Positions are worked on in blocks; a range may begin and end anywhere."""
    rng = np.random.default_rng(6)
    part = _gaussian(rng, 700, 2, full=True)
    parameters, whole, pieces = part.draw_prior(3, rng), np.zeros((700, 3)), np.zeros((700, 3))
    part.add_log_densities(parameters, 0, 700, whole)
    for first, last in itertools.pairwise([0, 1, 130, 131, 555, 700]):
        part.add_log_densities(parameters, first, last, pieces[first:last])
    assert np.array_equal(whole, pieces)
    assert density.add_densities.signatures


# ---- priors of Gaussians -----------------------------------------------------------------


def _prior(rng, D):
    half = rng.normal(size=(D, D))
    return NormalWishart(rng.normal(size=D), 0.3, D + 2.5, half @ half.T + np.eye(D))


def _moments(*sets):
    return Moments(
        np.array([len(x) for x in sets], float),
        np.array([x.sum(0) for x in sets]),
        np.array([x.T @ x for x in sets]),
    )


@pytest.mark.parametrize("D", [1, 3])
def test_evidence_is_the_product_of_predictives_which_are_students_t(D):
    rng = np.random.default_rng(D)
    prior, x = _prior(rng, D), rng.normal(size=(7, D))
    total = 0.0
    for i in range(len(x)):
        now = prior.posterior(_moments(x[:i]))
        df = now.degrees[0] - D + 1
        shape = now.scale[0] * (now.strength[0] + 1) / (now.strength[0] * df)
        one = multivariate_t(now.mean[0], shape, df).logpdf(x[i])
        assert now.log_predictive(x[i : i + 1])[0, 0] == pytest.approx(one)
        total += one
    evidence = prior.log_evidence(_moments(x, x[:0], x[:1]))
    assert evidence[0] == pytest.approx(total)
    assert evidence[1] == pytest.approx(0.0, abs=1e-12)
    assert evidence[2] == pytest.approx(float(prior.log_predictive(x[:1])[0]))


def test_draws_have_the_moments_of_the_distribution():
    rng, D, n = np.random.default_rng(3), 2, 40_000
    prior = _prior(rng, D)
    many = NormalWishart(
        np.tile(prior.mean, (n, 1)),
        np.full(n, 2.0),
        np.full(n, 9.0),
        np.tile(prior.scale, (n, 1, 1)),
    )
    means, roots = many.draw(rng)
    assert np.all(roots[:, 1, 0] == 0.0)
    precision = np.swapaxes(roots, 1, 2) @ roots
    covariance = np.linalg.inv(precision)
    expected = prior.scale / (9.0 - D - 1)
    np.testing.assert_allclose(covariance.mean(0), expected, rtol=0.05, atol=0.02)
    np.testing.assert_allclose(precision.mean(0), 9.0 * np.linalg.inv(prior.scale), rtol=0.03)
    spread = invwishart(9.0, prior.scale).var()
    np.testing.assert_allclose(covariance.var(0), spread, rtol=0.35)
    np.testing.assert_allclose(means.mean(0), prior.mean, atol=0.03)
    np.testing.assert_allclose(np.cov(means.T), expected / 2.0, rtol=0.08, atol=0.02)
