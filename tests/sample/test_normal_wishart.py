from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import invwishart, multivariate_t

from structlearn._src.sample.normal_wishart import Moments, NormalWishart


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
