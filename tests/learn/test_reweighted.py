"""Worlds by tree-reweighted messages: exact on trees, a bound elsewhere, one fixed point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latent
from structlearn._src.learn.loss import make_cost, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import InferenceSettings

STEADY = settings(max_examples=25, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)


def made(case, loss, method):
    effort = InferenceSettings(method, sweeps=1000, tol=1e-11, damping=0.3)
    cost = make_cost("hamming", latent.STATES)
    return StructuredObjective(case.model, case.examples, loss, cost, settings=effort)


def some_weights(case, scale=1.0):
    return np.random.default_rng(1).normal(0.0, scale, case.model.n_weights)


def free_values(objective, weights):
    world = objective.pairs[0].free
    return world.solve(objective.push(weights), np.ones(objective.n_examples), world.begin())[0]


def loopy(seed):
    return latent.graph_case(seed, "loopy", least=5, most=6)


@STEADY
@given(SEEDS, st.sampled_from(["log", "eps", "latent-hinge"]))
def test_they_are_exact_on_trees(seed, name):
    case = latent.graph_case(seed, "tree")
    ours, theirs = (
        made(case, make_loss(name), method).value_gradient(some_weights(case))
        for method in ("trw", "exact")
    )
    assert ours[0] == pytest.approx(theirs[0], rel=1e-7)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-6)


@STEADY
@given(SEEDS)
def test_sums_are_bounded_from_above(seed):
    case = loopy(seed)
    above, exact = (
        free_values(made(case, make_loss("log"), method), some_weights(case))
        for method in ("trw", "exact")
    )
    assert (above >= exact - 1e-7).all()


@pytest.mark.parametrize("eps", [(1.0, 1.0), (0.5, 0.5), (0.5, 1.0), (1.0, 0.4)])
def test_the_gradient_agrees_with_differences(eps):
    loss = make_loss("marginal", *eps)
    for seed in range(3):
        case = loopy([seed, 8])
        objective, weights = made(case, loss, "trw"), some_weights(case, 0.5)
        gradient = objective.value_gradient(weights)[1]
        direction = np.random.default_rng(seed).normal(size=len(weights))
        direction /= np.linalg.norm(direction)
        up, down = (objective.value(weights + sign * 1e-4 * direction) for sign in (1, -1))
        assert (up - down) / 2e-4 == pytest.approx(gradient @ direction, rel=1e-4, abs=1e-5)


@STEADY
@given(SEEDS, st.sampled_from([(1.0, 1.0), (0.3, 1.0)]))
def test_messages_end_in_the_same_place_from_anywhere(seed, eps):
    case = loopy(seed)
    weights = some_weights(case, 2.0)
    objective = made(case, make_loss("eps", *eps), "trw")
    memory = objective.begin()
    for messages in memory[0][0].messages:
        messages += np.random.default_rng(2).normal(size=len(messages))
    assert objective.value(weights, memory) == pytest.approx(objective.value(weights), rel=1e-5)


@STEADY
@given(SEEDS, st.sampled_from([1.0, 0.5]))
def test_a_loss_is_never_negative(seed, eps):
    case = loopy(seed)
    objective = made(case, make_loss("eps", eps, eps), "trw")
    assert (objective.losses(some_weights(case, 2.0)) >= -1e-6).all()
