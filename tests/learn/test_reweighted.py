"""Worlds by tree-reweighted messages: exact on trees, a bound elsewhere, one fixed point."""

from __future__ import annotations

import latent
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.learn.cost import make_cost
from structlearn._src.learn.graph_world import Effort
from structlearn._src.learn.loss import make_loss
from structlearn._src.learn.objective import StructuredObjective

STEADY = settings(max_examples=25, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)


def made(case, loss, method):
    effort = Effort(method, sweeps=1000, tol=1e-11, damping=0.3)
    cost = make_cost("hamming", latent.STATES)
    return StructuredObjective(case.model, case.examples, loss, cost, effort=effort)


def some_weights(case, scale=1.0):
    return np.random.default_rng(1).normal(0.0, scale, case.model.n_weights)


def free_values(objective, weights):
    tables = objective.tables(weights)
    return objective.worlds[0].free.solve(tables, np.ones(objective.n_examples))[0]


def loopy(seed):
    return latent.graph_case(seed, "loopy", least=5, most=6)


@STEADY
@given(SEEDS, st.sampled_from(["log", "eps", "latent-hinge"]))
def test_they_are_exact_on_trees(seed, name):
    case = latent.graph_case(seed, "tree")
    ours, theirs = (
        made(case, make_loss(name), method).value_slope(some_weights(case))
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
        slope = objective.value_slope(weights)[1]
        direction = np.random.default_rng(seed).normal(size=len(weights))
        direction /= np.linalg.norm(direction)
        up, down = (objective.value(weights + sign * 1e-4 * direction) for sign in (1, -1))
        assert (up - down) / 2e-4 == pytest.approx(slope @ direction, rel=1e-4, abs=1e-5)


@STEADY
@given(SEEDS, st.sampled_from([(1.0, 1.0), (0.3, 1.0)]))
def test_messages_end_in_the_same_place_from_anywhere(seed, eps):
    case = loopy(seed)
    weights = some_weights(case, 2.0)
    first, second = (made(case, make_loss("eps", *eps), "trw") for _ in range(2))
    for messenger in second.worlds[0].free.messengers:
        messenger.messages += np.random.default_rng(2).normal(size=len(messenger.messages))
    assert second.value(weights) == pytest.approx(first.value(weights), rel=1e-6)


@STEADY
@given(SEEDS, st.sampled_from([1.0, 0.5]))
def test_a_loss_is_never_negative(seed, eps):
    case = loopy(seed)
    objective = made(case, make_loss("eps", eps, eps), "trw")
    tables = objective.tables(some_weights(case, 2.0))
    ones = np.ones(objective.n_examples)
    free, clamped = (
        world.solve(tables, ones)[0]
        for world in (objective.worlds[0].free, objective.worlds[0].clamped)
    )
    assert (free >= clamped - 1e-6).all()
