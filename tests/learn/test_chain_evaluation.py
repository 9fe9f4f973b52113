"""One pass over labelled sequences against the worlds, for any number of threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chain_objectives import chains
from structlearn._src.common import threads
from structlearn._src.learn.objective import TwoWorlds

KINDS = {
    "sparse": {"features": "sparse"},
    "pairs": {"features": "pairs", "edges": "seen"},
    "no edges": {"features": "pairs", "edges": "none"},
    "bars": {"features": "sparse", "bars": True, "weighted": True},
    "single": {"features": "sparse", "longest": 1, "edges": "none"},
}


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "features", 20)
    monkeypatch.setitem(threads.GRAIN, "sequences", 20)


@pytest.mark.parametrize("loss", ["log", "hinge", "hybrid"])
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients_are_those_of_the_worlds(kind, loss):
    objective = chains(seed=3, n=40, loss=loss, **KINDS[kind])
    rng = np.random.default_rng(0)
    for scale in (0.1, 3.0):
        weights = rng.normal(0.0, scale, objective.n_weights)
        want = TwoWorlds.loss_gradient(objective, weights)
        for n_jobs in (1, 2, 3, 8):
            same = replace(objective, settings=replace(objective.settings, n_jobs=n_jobs))
            got = same.loss_gradient(weights)
            assert same._evaluation is not None
            np.testing.assert_allclose(got.value, want.value, rtol=1e-10)
            np.testing.assert_allclose(got.gradient, want.gradient, rtol=1e-8, atol=1e-9)
            loss = TwoWorlds.loss_value(objective, weights)
            assert same.loss_value(weights) == pytest.approx(loss, rel=1e-10)
            again = same.loss_gradient(weights)
            np.testing.assert_array_equal(again.gradient, got.gradient)


def test_weights_that_cannot_be_written_to():
    objective = chains(features="pairs", loss="log")
    weights = np.ones(objective.n_weights)
    want = objective.value_gradient(weights)
    weights.flags.writeable = False
    np.testing.assert_array_equal(objective.value_gradient(weights).gradient, want.gradient)


def test_a_tangent_counts():
    """A copy with a tangent must not use what was made for the objective without one."""
    objective = chains(features="sparse", loss="log")
    weights = np.random.default_rng(1).normal(size=objective.n_weights)
    value, gradient, _ = objective.loss_gradient(weights)
    bound = objective.linearise(weights)
    got = bound.loss_gradient(weights)
    assert got.value == pytest.approx(value)
    np.testing.assert_allclose(got.gradient, gradient, atol=1e-9)
    other = np.zeros(objective.n_weights)
    assert bound.loss_gradient(other).value >= objective.loss_gradient(other).value - 1e-9


def test_dense_features_do_not_take_this_way():
    assert chains(loss="log")._evaluation is None
