"""New components: the expected potential and the scores, against grids over all scores."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from papers.comparators.infinite_logit import Logit
from structlearn._src.sample.new_component import MaxMargin, draw_scores

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
    hinge = MaxMargin(c=c, cost=1.0, variance=2.0)
    v = np.array([[sigma / np.sqrt(2.0)]])
    expected = np.log(expected_potential(sigma, c, n_labels))
    assert hinge.log_expected_potential(v, n_labels)[0] == pytest.approx(expected, abs=1e-6)


def test_expected_potential_of_many_labels():
    hinge, sigma = MaxMargin(c=1.0, cost=1.0, variance=1.0), np.sqrt(5.0)
    scores = sigma * np.random.default_rng(0).normal(size=(200_000, 27))
    mean = np.exp(hinge.log_potential(scores[None], np.array([0]))).mean()
    assert np.exp(hinge.log_expected_potential(np.array([[sigma]]), 27)[0]) == pytest.approx(
        mean, rel=0.02
    )


@pytest.mark.parametrize(("n_labels", "sigma", "c"), CASES)
def test_scores_of_a_new_component(n_labels, sigma, c):
    hinge, rng = MaxMargin(c=c, cost=1.0, variance=1.0), np.random.default_rng(1)
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
    for given in (MaxMargin(1.0, 1.0, variance), Logit(variance)):
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
