"""Stochastic steps at the cost of one sequence, against steps on all weights at once."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from chain_objectives import KINDS, Dense, chains
from structlearn._src.kernels.chain import online
from structlearn._src.kernels.chain.online import OnlineWeights, StepRule
from structlearn._src.learn.chain_arrays import make_errors, make_parts, make_workspace

NAMES = ("weights", "average", "squares")
SMALL = {"n": 6, "longest": 3, "loss": "log", "C": 0.2}
RULES = {
    "fixed": {"kind": online.FIXED, "step": 0.05, "ridge": 1.0},
    "decaying": {"kind": online.DECAYING, "step": 0.2, "ridge": 1.0},
    "root": {"kind": online.ROOT, "step": 0.05, "ridge": 0.5},
    "pegasos": {"kind": online.PEGASOS, "step": 1.0, "ridge": 1.0, "radius": 0.7},
}


def rule(kind, step, ridge=0.0, lasso=0.0, radius=np.inf, power=0.0, begin=-1.0):
    return StepRule(kind, step, ridge, lasso, radius, power, begin)


def start(objective, seed=5):
    return 0.1 * np.random.default_rng(seed).normal(size=objective.n_weights)


def visit(objective, order, given, arrays, updates=0):
    """Call the kernel on named flat arrays, which it changes; returns the losses met."""
    chains_ = objective.chain_arrays
    inner = {name: chains_.to_kernel(array) for name, array in arrays.items()}
    primal = OnlineWeights(
        *(inner.get(name, np.empty(0)) for name in NAMES),
        np.zeros(chains_.n_weights),
        np.zeros(chains_.n_features),
    )
    met = online.online(
        order,
        chains_.data,
        make_parts(objective.loss),
        chains_.loss_weights * objective.n_examples,
        given,
        primal,
        make_errors(chains_),
        make_workspace(chains_),
        np.empty(5),
        updates,
    )
    for name, array in arrays.items():
        chains_.from_kernel(array, inner[name])
    return met


def gradients(objective):
    """Gradient of the loss of a sequence, times its weight and the number of sequences."""
    dense = Dense(objective)
    part = objective.loss.parts[0]

    def gradient(c, weights):
        scores, edges, labels, costs = dense.potentials(c, weights)
        ends = np.where(np.isinf(costs), costs, 0.0)
        given = costs if part.with_cost else ends
        _, nodes, steps = naive.chain_loss(scores, edges, labels, part.eps_y, given)
        factor = objective.chain_arrays.loss_weights[c] * objective.n_examples
        return factor * dense.pull(c, nodes, steps)

    return gradient, dense


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RULES)
def test_steps_are_those_on_all_weights(kind, name):
    objective = chains(**SMALL | KINDS[kind])
    gradient, _ = gradients(objective)
    order = np.random.default_rng(1).permutation(6)
    given = rule(**RULES[name], power=1.0)
    weights = start(objective)
    arrays = {"weights": weights.copy(), "average": np.zeros(len(weights))}
    visit(objective, order, given, arrays)
    expected, average = naive.online_steps(gradient, order, weights, given)
    np.testing.assert_allclose(arrays["weights"], expected, atol=1e-10)
    np.testing.assert_allclose(arrays["average"], average, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "sparse", "pairs"])
def test_pulls_towards_zero_that_come_late_are_none_the_less(kind):
    objective = chains(**SMALL | KINDS[kind])
    gradient, _ = gradients(objective)
    order = np.tile(np.random.default_rng(2).permutation(6), 2)
    given = rule(online.DECAYING, 0.1, ridge=0.5, lasso=0.3)
    weights = start(objective)
    arrays = {"weights": weights.copy()}
    visit(objective, order, given, arrays)
    expected, _ = naive.online_steps(gradient, order, weights, given)
    assert (expected == 0.0).any()
    np.testing.assert_allclose(arrays["weights"], expected, atol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "sparse", "pairs", "bars"])
@pytest.mark.parametrize("penalty", [{}, {"ridge": 0.3}, {"ridge": 0.2, "lasso": 0.1}])
def test_adagrad_has_a_step_for_every_weight(kind, penalty):
    objective = chains(**SMALL | KINDS[kind])
    gradient, dense = gradients(objective)
    order = np.random.default_rng(3).permutation(6)
    given = rule(online.ADAGRAD, 0.1, **penalty)
    weights = start(objective)
    arrays = {"weights": weights.copy(), "squares": np.zeros(len(weights))}
    visit(objective, order, given, arrays)
    met = (gradient, order, weights, given, dense.blocks, dense.met)
    expected, squares = naive.adagrad_steps(*met)
    np.testing.assert_allclose(arrays["squares"], squares, atol=1e-10)
    np.testing.assert_allclose(arrays["weights"], expected, atol=1e-9)


def test_the_average_may_begin_late_and_go_on_in_another_call():
    objective = chains(**SMALL)
    gradient, _ = gradients(objective)
    order = np.random.default_rng(4).permutation(6)
    given = rule(online.ROOT, 0.05, ridge=0.5, begin=2.0)
    weights = start(objective)
    arrays = {"weights": weights.copy(), "average": np.full(len(weights), 7.0)}
    visit(objective, order[:4], given, arrays)
    visit(objective, order[4:], given, arrays, updates=4)
    expected, average = naive.online_steps(gradient, order, weights, given)
    np.testing.assert_allclose(arrays["weights"], expected, atol=1e-10)
    np.testing.assert_allclose(arrays["average"], average, atol=1e-10)


def test_losses_met_on_the_way_are_those_at_the_weights_of_that_time():
    objective = chains(**SMALL)
    arrays = {"weights": start(objective)}
    still = rule(online.FIXED, 0.0)
    met = visit(objective, np.arange(6), still, arrays)
    whole = objective.value(arrays["weights"]) - objective.penalty.value(arrays["weights"])
    assert met == pytest.approx(6 * whole)
    np.testing.assert_array_equal(arrays["weights"], start(objective))
