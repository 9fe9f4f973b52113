"""Guesses at the weights of classifiers: their density and place, and what moves do with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_t

from structlearn._src.sample import hinge
from structlearn._src.sample.hinge import Hinge
from structlearn._src.sample.label_emission import LabelEmission
from structlearn._src.sample.proposal import DEGREES, WeightProposal


def _rows(n, L, rng, noise=0.1):
    """Rows of three features whose labels follow a linear rule, some of them wrong."""
    V = np.column_stack([rng.normal(size=(n, 2)), np.ones(n)])
    labels = (V @ rng.normal(size=(L, 3)).T).argmax(1)
    wrong = rng.random(n) < noise
    labels[wrong] = rng.integers(L, size=wrong.sum())
    return V, labels


@pytest.mark.parametrize("L", [2, 4])
def test_the_density_is_that_of_the_draws(L):
    rng = np.random.default_rng(0)
    found = WeightProposal.fit(Hinge(1.0, 1.0, 4.0), *_rows(60, L, rng), L)
    draw = found.draw(rng)
    expected = [
        multivariate_t(mean, np.linalg.inv(root @ root.T), df=DEGREES).logpdf(row)
        for mean, root, row in zip(found.means, found.roots, draw, strict=True)
    ]
    assert found.log_density(draw) == pytest.approx(sum(expected))
    many = np.array([found.draw(rng) for _ in range(4000)])
    away = np.einsum("yij,nyi->nyj", found.roots, many - found.means)
    variance = DEGREES / (DEGREES - 2.0)
    np.testing.assert_allclose(away.var(axis=0), variance, rtol=0.3)


@pytest.mark.parametrize("L", [2, 3])
@pytest.mark.parametrize("n", [40, 5000])
def test_the_middle_is_near_the_mode(L, n):
    """Few rows, and so many that the fit begins with some of them."""
    loss = Hinge(1.0, 1.0, 4.0)
    V, labels = _rows(n, L, np.random.default_rng(1))
    part = LabelEmission(V, labels, L, loss)

    def negative(flat):
        return -part._log_posterior(flat.reshape(L - 1, 3))

    start, found = np.zeros((L - 1) * 3), WeightProposal.fit(loss, V, labels, L).means
    best = min(
        minimize(negative, at, method="Powell", options={"maxiter": 20_000}).fun
        for at in (start, found.ravel())
    )
    assert negative(found.ravel()) - best < 0.1 * (negative(start) - best)


def test_without_labels_it_is_about_the_prior():
    found = WeightProposal.fit(Hinge(1.0, 1.0, 4.0), np.zeros((0, 2)), np.zeros(0, np.int64), 3)
    np.testing.assert_array_equal(found.means, np.zeros((2, 2)))
    assert np.isfinite(found.log_density(found.means))


@pytest.mark.parametrize("L", [2, 3])
def test_log_weight_estimates_the_evidence(L):
    """The mean of importance weights over proposals is a plain average over the prior.

    The latter needs few rows and weak labels to be any good.
    """
    rng, loss = np.random.default_rng(2), Hinge(0.4, 1.0, 1.0)
    V, labels = _rows(6, L, rng)
    labels[0] = -1
    part = LabelEmission(V, labels, L, loss)
    proposed = [part.propose(rng) for _ in range(3000)]
    log_weights = np.array([log_weight for _, log_weight in proposed])
    weights = hinge.prior_weights(1.0, (40_000, L, 3), rng)
    scores = np.einsum("nlm,tm->tnl", weights, V)
    plain = np.exp(loss.log_potential(scores, labels).sum(0)).mean()
    assert np.exp(log_weights).mean() == pytest.approx(plain, rel=0.05)
    for parameters, log_weight in proposed[:5]:
        assert part.log_weight_of(parameters) == pytest.approx(log_weight)


def test_what_all_labels_share_is_drawn_from_the_prior():
    rng = np.random.default_rng(3)
    part = LabelEmission(*_rows(30, 3, rng), 3, Hinge(1.0, 1.0, 9.0))
    shared = np.array([part.propose(rng)[0][0][0].mean(axis=0) for _ in range(2000)])
    np.testing.assert_allclose(shared.mean(axis=0), 0.0, atol=0.15)
    np.testing.assert_allclose(shared.var(axis=0), 9.0 / 3.0, rtol=0.15)
