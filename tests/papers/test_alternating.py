"""M3E and ModLat on alternating chains, against enumeration and against the library."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from papers.comparators.alternating import (
    Conditional,
    Delta,
    MinEntropy,
    Share,
    predict_jointly,
    renyi,
)
from papers.experiments.field import CHAIN, Trial
from papers.experiments.trio import LATENT, MARGINAL, predict


@pytest.fixture(params=[4, 5], ids=["ends hidden", "ends with an output"])
def trial(request):
    return Trial.draw(replace(CHAIN, rows=request.param, states=3, n_train=5, n_test=6), [1, 2])


def scores(trial, weights):
    """Scores of all labellings of every chain: list of (examples, 3, 3, ...)."""
    nodes, edges = trial.model.push(weights, trial.train.inputs, 1)
    n = trial.train.n_examples
    nodes, edges = nodes.reshape(n, -1, 3), edges.reshape(n, -1, 3, 3)
    cells = nodes.shape[1]
    out = np.zeros((n, *(3,) * cells))
    for labels in product(range(3), repeat=cells):
        alone = sum(nodes[:, i, s] for i, s in enumerate(labels))
        pairs = sum(edges[:, i, labels[i], labels[i + 1]] for i in range(cells - 1))
        out[(slice(None), *labels)] = alone + pairs
    return out


def by_outputs(trial, weights):
    """(examples, outputs, hidden) Scores with all outputs and all hidden cells as one axis each."""
    every = scores(trial, weights)
    cells = every.ndim - 1
    axes = [*range(1, cells + 1, 2), *range(2, cells + 1, 2)]
    outputs = len(range(0, cells, 2))
    return every.transpose(0, *axes).reshape(len(every), 3**outputs, -1)


def hamming(trial):
    """(examples, outputs) Wrong outputs of every labelling, and the true labelling."""
    labels = trial.train.labels.reshape(trial.train.n_examples, -1)[:, ::2]
    every = np.array(list(product(range(3), repeat=labels.shape[1])))
    wrong = (every[None] != labels[:, None]).sum(axis=2)
    return wrong, wrong.argmin(axis=1)


@pytest.mark.parametrize("learner", [MARGINAL, LATENT], ids=["summed", "maximised"])
def test_single_temperatures_are_the_objectives_of_the_library(trial, learner):
    shares = (Share(1.0, 0.0 if learner is LATENT else 1.0),)
    ours = MinEntropy(trial.model, trial.train, shares)
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 3.0):
        weights = scale * rng.normal(size=trial.model.n_weights)
        value, gradient, _ = trial.objective(learner).value_gradient(weights)
        assert ours.value(weights) == pytest.approx(value, rel=1e-10)
        np.testing.assert_allclose(ours.value_gradient(weights).gradient, gradient, atol=1e-9)
        found = predict(learner, trial.model, weights, trial.test, "exact")
        expected = found.reshape(6, -1)[:, ::2]
        np.testing.assert_array_equal(
            ours.predict(weights, trial.test)[:, : expected.shape[1]], expected
        )


@pytest.mark.parametrize("alpha", [1.2, 2.0, 5.0])
def test_min_entropy_is_what_the_definition_says(trial, alpha):
    """Rényi's entropy of the distribution over hidden cells that outputs leave."""
    weights = np.random.default_rng(1).normal(size=trial.model.n_weights)
    every = by_outputs(trial, weights)
    log_p = every - np.log(np.exp(every).sum(axis=(1, 2)))[:, None, None]
    p = np.exp(log_p)
    entropy = np.log((p**alpha).sum(axis=2) / p.sum(axis=2)) / (1.0 - alpha)
    wrong, true = hamming(trial)
    rows = np.arange(len(true))
    losses = (wrong - entropy).max(axis=1) + entropy[rows, true]
    ours = MinEntropy(trial.model, trial.train, renyi(alpha))
    assert ours.loss_gradient(weights).value == pytest.approx(losses.sum(), rel=1e-9)


def test_loss_of_the_delta_distribution(trial):
    rng = np.random.default_rng(2)
    weights = rng.normal(size=trial.model.n_weights)
    every = by_outputs(trial, weights)
    hidden = trial.train.labels.reshape(5, -1).shape[1] // 2
    likely = rng.dirichlet(np.ones(3), (5, hidden))
    states = np.array(list(product(range(3), repeat=hidden)))
    apart = sum(1.0 - likely[:, k, states[:, k]] for k in range(hidden))
    wrong, true = hamming(trial)
    free = (every + wrong[:, :, None] + apart[:, None]).max(axis=(1, 2))
    clamped = (every[np.arange(5), true] - apart).max(axis=1)
    ours = Delta(trial.model, trial.train, likely)
    assert ours.loss_gradient(weights).value == pytest.approx((free - clamped).sum(), rel=1e-10)


@pytest.mark.parametrize("kind", ["entropy", "delta", "conditional"])
def test_gradients_are_those_of_differences(trial, kind):
    rng = np.random.default_rng(3)
    hidden = trial.train.labels.reshape(5, -1).shape[1] // 2
    objective = {
        "entropy": lambda: MinEntropy(trial.model, trial.train, renyi(2.0)),
        "delta": lambda: Delta(trial.model, trial.train, rng.dirichlet(np.ones(3), (5, hidden))),
        "conditional": lambda: Conditional(
            trial.model, trial.train, rng.integers(3, size=(5, hidden)), 0.3
        ),
    }[kind]()
    weights = rng.normal(size=trial.model.n_weights)
    gradient = objective.value_gradient(weights).gradient
    for _ in range(4):
        direction = rng.normal(size=len(weights))
        up, down = (objective.value(weights + sign * 1e-6 * direction) for sign in (1, -1))
        assert (up - down) / 2e-6 == pytest.approx(gradient @ direction, rel=1e-5, abs=1e-6)


def test_dissimilarity_is_that_of_probabilities(trial):
    weights = np.random.default_rng(4).normal(size=trial.model.n_weights)
    every = by_outputs(trial, weights)
    _, true = hamming(trial)
    given = every[np.arange(5), true]
    p = np.exp(given - given.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    hidden = trial.train.labels.reshape(5, -1).shape[1] // 2
    predicted = np.random.default_rng(5).integers(3, size=(5, hidden))
    states = np.array(list(product(range(3), repeat=hidden)))
    differ = (states[:, None] != states[None]).sum(axis=2)
    cross = sum(p[i] @ (states != predicted[i]).sum(axis=1) for i in range(5))
    own = sum(p[i] @ differ @ p[i] for i in range(5))
    ours = Conditional(trial.model, trial.train, predicted, 0.3)
    assert ours.loss_gradient(weights).value == pytest.approx(cross - 0.3 * own, rel=1e-9)


def test_joint_prediction_is_that_of_the_library(trial):
    weights = np.random.default_rng(6).normal(size=trial.model.n_weights)
    outputs, hidden = predict_jointly(trial.model, weights, trial.train)
    every = scores(trial, weights)
    for i in range(5):
        best = np.unravel_index(every[i].argmax(), every[i].shape)
        assert list(best[::2]) == outputs[i][: len(best[::2])].tolist()
        assert list(best[1::2]) == hidden[i].tolist()
