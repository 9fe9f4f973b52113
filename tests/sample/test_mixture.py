"""The mixture sampler against lists of all partitions, its prior, and plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from papers.comparators.infinite_logit import Logit
from structlearn._src.kernels.draw import mixture as kernels
from structlearn._src.sample.hdp import Gamma
from structlearn._src.sample.mixture import (
    MixtureData,
    MixtureSampler,
    kernel_components,
    kernel_prior,
    moments,
    votes,
)
from structlearn._src.sample.new_component import MaxMargin
from structlearn._src.sample.normal_wishart import NormalWishart


def vague(width, strength=0.4):
    return NormalWishart(np.full(width, 0.2), strength, width + 2.0, 0.8 * np.eye(width))


def partitions(n):
    """All ways to put rows into components, which are numbered as they come."""
    parts = [()]
    for _ in range(n):
        parts = [(*z, k) for z in parts for k in range(max(z, default=-1) + 2)]
    return parts


def numbered(assigned):
    names: dict[int, int] = {}
    return tuple(names.setdefault(k, len(names)) for k in assigned.tolist())


def exact(rows):
    """Probability of every partition, weights summed over a grid; one classifier feature."""
    L, variance = rows.n_labels, rows.classifier.variance
    line = np.linspace(-8, 8, 65 if L == 3 else 401) * np.sqrt(variance)
    grid = np.stack(np.meshgrid(*[line] * L, indexing="ij"), -1).reshape(-1, L)
    prior = np.exp(-0.5 * (grid**2).sum(axis=1) / variance)
    logs = [
        rows.classifier.log_potential(grid * v, np.full(len(grid), y))
        for v, y in zip(rows.V[:, 0], rows.labels, strict=True)
    ]
    found = {}
    for z in partitions(len(rows.X)):
        value = 0.0
        for k in range(max(z) + 1):
            own = np.flatnonzero(np.array(z) == k)
            value += np.log(rows.concentration) + gammaln(len(own))
            value += rows.prior.log_evidence(moments(rows.X[own], np.zeros(len(own), int), 1))[0]
            value += np.log(prior @ np.exp(sum(logs[i] for i in own)) / prior.sum())
        found[z] = value
    shares = np.exp(np.array([*found.values()]) - max(found.values()))
    return dict(zip(found, shares / shares.sum(), strict=True))


@pytest.mark.parametrize(
    ("n_labels", "classifier", "sweeps"),
    [
        (2, MaxMargin(0.7, 1.0, 1.3), 3000),
        (3, MaxMargin(1.5, 1.0, 0.8), 2000),
        (3, Logit(2.0), 1000),
    ],
)
def test_partitions_have_their_probabilities(n_labels, classifier, sweeps):
    rng = np.random.default_rng(n_labels)
    X, V = 1.5 * rng.normal(size=(4, 1)), rng.normal(size=(4, 1))
    labels = np.array([0, 1, -1, n_labels - 1])
    rows = MixtureData(X, V, labels, n_labels, vague(1), classifier, 1.2)
    sampler, counts = MixtureSampler(rows, 2), {}
    state = sampler.begin(rng)
    for _ in range(sweeps):
        state, _ = sampler.step(state, rng)
        z = numbered(state.assigned)
        counts[z] = counts.get(z, 0) + 1 / sweeps
    far = sum(abs(share - counts.get(z, 0.0)) for z, share in exact(rows).items()) / 2
    assert far < 0.07


def test_what_the_kernel_keeps_up_to_date_is_the_posterior():
    rng, n, D = np.random.default_rng(2), 60, 4
    X = np.vstack([rng.normal(size=(n // 2, D)), 5 + rng.normal(size=(n // 2, D))])
    rows = MixtureData(X, X, rng.integers(0, 3, n), 3, vague(D), MaxMargin(), 3.0)
    sampler = MixtureSampler(rows, 6)
    state = sampler.begin(rng)
    assigned, parts = state.assigned.copy(), kernel_components(sampler.draw(state))
    values, vector = np.empty(len(parts.counts) + 1), np.empty(D)
    never = np.full(n, -np.inf)
    at, K, opened = kernels.assign(
        kernel_prior(rows.prior, n, rows.classifier), parts, X, X, rows.labels, never, assigned,
        rng.random(n), values, vector, 0, 6,
    )  # fmt: skip
    assert (at, opened) == (n, False)
    assert (assigned != state.assigned).sum() > 20
    given = moments(X, assigned, K)
    after = rows.prior.posterior(given)
    np.testing.assert_array_equal(parts.counts[:K], given.counts)
    np.testing.assert_allclose(parts.centres[:K], after.mean, atol=1e-10)
    factors = np.tril(parts.factors[:K])
    np.testing.assert_allclose(factors @ factors.swapaxes(1, 2), after.scale, atol=1e-8)
    np.testing.assert_allclose(parts.logs[:K], np.linalg.slogdet(after.scale)[1], atol=1e-9)


@pytest.mark.parametrize("classifier", [MaxMargin(), Logit()])
def test_votes_are_their_formula(classifier):
    rng, D = np.random.default_rng(3), 2
    X = rng.normal(size=(30, D))
    rows = MixtureData(X, X, rng.integers(0, 3, 30), 3, vague(D), classifier, 2.0)
    sampler, draws = MixtureSampler(rows, 4), []
    state = sampler.begin(rng)
    for _ in range(3):
        state, _ = sampler.step(state, rng)
        draws.append(sampler.draw(state))
    new = rng.normal(size=(7, D))
    expected = np.zeros((7, 3))
    for draw in draws:
        logs = np.log(draw.counts)[:, None] + draw.after.log_predictive(new)
        alone = np.log(2.0) + rows.prior.log_predictive(new)
        shares = np.exp(np.vstack([logs, alone]))
        shares /= shares.sum(axis=0)
        scores = np.einsum("klm,tm->ktl", draw.weights, new)
        one = np.eye(3)[scores.argmax(axis=2)]
        if isinstance(classifier, Logit):
            one = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
        expected += np.einsum("kt,ktl->tl", shares[:-1], one) + shares[-1][:, None] / 3
    np.testing.assert_allclose(votes(draws, rows.prior, classifier, new, new), expected / 3)


def test_the_same_seed_gives_the_same_chain():
    X = np.random.default_rng(4).normal(size=(20, 2))
    rows = MixtureData(X, X, np.arange(20) % 2, 2, vague(2), MaxMargin(), Gamma(1.0, 1.0))
    ends = []
    for _ in range(2):
        rng = np.random.default_rng(5)
        sampler = MixtureSampler(rows, 3)
        state = sampler.begin(rng)
        for _ in range(4):
            before, kept = state, state.assigned.copy()
            state, _ = sampler.step(state, rng)
            np.testing.assert_array_equal(before.assigned, kept)  # a step changes no state
        ends.append(state)
    np.testing.assert_array_equal(ends[0].assigned, ends[1].assigned)
    np.testing.assert_array_equal(ends[0].weights, ends[1].weights)
