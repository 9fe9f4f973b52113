"""The mixture sampler against lists of all partitions, its prior, and plain formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln

from papers.comparators.infinite_logit import Logit
from structlearn._src.kernels.draw import mixture as kernels
from structlearn._src.sample.emission import Gaussian
from structlearn._src.sample.hdp import Gamma
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.hmm import statistics
from structlearn._src.sample.mixture import (
    MixtureModel,
    MixtureSampler,
    kernel_components,
    kernel_prior,
    votes,
)
from structlearn._src.sample.priors import Moments, NormalWishart
from structlearn._src.sample.sides import FittedSides, SequentialSides
from structlearn._src.sample.split_merge import split_or_merge


def vague(width, strength=0.4):
    return NormalWishart(np.full(width, 0.2), strength, width + 2.0, 0.8 * np.eye(width))


def mixture(X, V, labels, n_labels, prior, classifier, concentration):
    points = Gaussian(X, np.ones(len(X), bool), prior)
    return MixtureModel.of(points, LabelEmission(V, labels, n_labels, classifier), concentration)


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
    points, labelled = rows.emissions
    L, variance = labelled.n_labels, labelled.loss.variance
    line = np.linspace(-8, 8, 65 if L == 3 else 401) * np.sqrt(variance)
    grid = np.stack(np.meshgrid(*[line] * L, indexing="ij"), -1).reshape(-1, L)
    prior = np.exp(-0.5 * (grid**2).sum(axis=1) / variance)
    logs = [
        labelled.loss.log_potential(grid * v, np.full(len(grid), y))
        for v, y in zip(labelled.features[:, 0], labelled.labels, strict=True)
    ]
    found = {}
    for z in partitions(rows.n_positions):
        value = 0.0
        for k in range(max(z) + 1):
            own = np.flatnonzero(np.array(z) == k)
            value += np.log(rows.alpha) + gammaln(len(own))
            part = points.subset(own)
            value += part.log_evidence(part.statistics(np.zeros(len(own), int), 1))[0]
            value += np.log(prior @ np.exp(sum(logs[i] for i in own)) / prior.sum())
        found[z] = value
    shares = np.exp(np.array([*found.values()]) - max(found.values()))
    return dict(zip(found, shares / shares.sum(), strict=True))


@pytest.mark.parametrize(
    ("n_labels", "classifier", "sweeps", "n_moves"),
    [
        (2, Hinge(0.7, 1.0, 1.3), 3000, 0),
        (3, Hinge(1.5, 1.0, 0.8), 2000, 0),
        (3, Hinge(1.5, 1.0, 0.8), 1000, 2),
        (3, Logit(2.0), 1000, 0),
    ],
)
def test_partitions_have_their_probabilities(n_labels, classifier, sweeps, n_moves):
    rng = np.random.default_rng(n_labels)
    X, V = 1.5 * rng.normal(size=(4, 1)), rng.normal(size=(4, 1))
    labels = np.array([0, 1, -1, n_labels - 1])
    rows = mixture(X, V, labels, n_labels, vague(1), classifier, 1.2)
    sampler, counts = MixtureSampler(rows, 2, n_moves), {}
    state = sampler.begin(rng)
    for _ in range(sweeps):
        state, _ = sampler.step(state, rng)
        z = numbered(state.assigned)
        counts[z] = counts.get(z, 0) + 1 / sweeps
    far = sum(abs(share - counts.get(z, 0.0)) for z, share in exact(rows).items()) / 2
    assert far < 0.07


MOVES = [
    pytest.param(None, "", None, 0.0, 0.04, id="as they are"),
    *(
        pytest.param(kind, "log_probability", lambda self, sides: 0.0, 0.06, 1.0, id=kind.__name__)
        for kind in (FittedSides, SequentialSides)  # without how likely a split is
    ),
    pytest.param(
        LabelEmission, "log_weight_of", lambda self, given, rng: -8.0, 0.1, 1.0, id="no way back"
    ),
]


@pytest.mark.parametrize(("owner", "name", "instead", "least", "most"), MOVES)
def test_splits_and_merges_alone_keep_the_posterior(owner, name, instead, least, most, monkeypatch):
    """No row moves by itself; each term of the acceptance that is left out is found."""
    if owner is not None:
        monkeypatch.setattr(owner, name, instead)
    if name == "log_probability":  # which draws tell too
        draw = owner.draw
        monkeypatch.setattr(owner, "draw", lambda self, rng: (draw(self, rng)[0], 0.0))
    rng = np.random.default_rng(1)
    X, V = 1.5 * rng.normal(size=(5, 1)), rng.normal(size=(5, 1))
    classifier = Hinge(0.9, 1.0, 1.3)
    rows = mixture(X, V, np.array([0, 1, -1, 1, 0]), 2, vague(1), classifier, 1.2)
    numbers, state = np.zeros(6), MixtureSampler(rows, 2).begin(rng)
    for _ in range(2000):
        found = statistics(rows, state)
        for _ in range(2):
            state, found, _ = split_or_merge(rows, state, found, rng)
        weights = rows.emissions[1].draw(state.states, state.parameters[1], rng)
        state = state._replace(parameters=((), weights))
        numbers[state.n_states] += 1 / 2000
    for z, share in exact(rows).items():
        numbers[max(z) + 1] -= share
    assert least <= np.abs(numbers).max() <= most


def test_what_the_kernel_keeps_up_to_date_is_the_posterior():
    rng, n, D = np.random.default_rng(2), 60, 4
    X = np.vstack([rng.normal(size=(n // 2, D)), 5 + rng.normal(size=(n // 2, D))])
    prior, labels = vague(D), rng.integers(0, 3, n)
    sampler = MixtureSampler(mixture(X, X, labels, 3, prior, Hinge(), 3.0), 6)
    state = sampler.begin(rng)
    assigned, parts = state.assigned.copy(), kernel_components(sampler.draw(state))
    values, vector = np.empty(len(parts.counts) + 1), np.empty(D)
    never = np.full(n, -np.inf)
    at, K, opened = kernels.assign(
        kernel_prior(prior, n, Hinge()), parts, X, X, labels, never, assigned,
        rng.random(n), values, vector, 0, 6,
    )  # fmt: skip
    assert (at, opened) == (n, False)
    assert (assigned != state.assigned).sum() > 20
    given = Moments(*Gaussian(X, np.ones(n, bool), prior).statistics(assigned, K))
    after = prior.posterior(given)
    np.testing.assert_array_equal(parts.counts[:K], given.counts)
    np.testing.assert_allclose(parts.centres[:K], after.mean, atol=1e-10)
    factors = np.tril(parts.factors[:K])
    np.testing.assert_allclose(factors @ factors.swapaxes(1, 2), after.scale, atol=1e-8)
    np.testing.assert_allclose(parts.logs[:K], np.linalg.slogdet(after.scale)[1], atol=1e-9)


@pytest.mark.parametrize("classifier", [Hinge(), Logit()])
def test_votes_are_their_formula(classifier):
    rng, D = np.random.default_rng(3), 2
    X = rng.normal(size=(30, D))
    prior = vague(D)
    rows = mixture(X, X, rng.integers(0, 3, 30), 3, prior, classifier, 2.0)
    sampler, draws = MixtureSampler(rows, 4), []
    state = sampler.begin(rng)
    for _ in range(3):
        state, _ = sampler.step(state, rng)
        draws.append(sampler.draw(state))
    new = rng.normal(size=(7, D))
    expected = np.zeros((7, 3))
    for draw in draws:
        logs = np.log(draw.counts)[:, None] + draw.after.log_predictive(new)
        alone = np.log(2.0) + prior.log_predictive(new)
        shares = np.exp(np.vstack([logs, alone]))
        shares /= shares.sum(axis=0)
        scores = np.einsum("klm,tm->ktl", draw.weights, new)
        one = np.eye(3)[scores.argmax(axis=2)]
        if isinstance(classifier, Logit):
            one = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
        expected += np.einsum("kt,ktl->tl", shares[:-1], one) + shares[-1][:, None] / 3
    np.testing.assert_allclose(votes(draws, prior, classifier, new, new), expected / 3)


def test_the_same_seed_gives_the_same_chain():
    X = np.random.default_rng(4).normal(size=(20, 2))
    rows = mixture(X, X, np.arange(20) % 2, 2, vague(2), Hinge(), Gamma(1.0, 1.0))
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
