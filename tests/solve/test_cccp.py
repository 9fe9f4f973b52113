"""CCCP on losses with kinks: what it promises, with every kind of inner steps."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn import SequenceLabeler
from structlearn._src.common.errors import ArgumentError
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.drivers import Annealed, Cccp
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.loop import run
from structlearn._src.solve.stochastic import Stochastic

INNER = {
    "fixed": Stochastic(rule="fixed", step_size=0.02),
    "averaged": Stochastic(rule="decaying", step_size=0.1, average=0.5),
    "adagrad": Stochastic(rule="adagrad", step_size=0.3, average=0.5),
    "batches": Stochastic(rule="adagrad", step_size=0.3, average=0.5, batch_size=3),
    "lbfgs": Lbfgs(),
    "descent": Descent(),
    "exact": Descent(search="exact"),
}


def objective(loss, seed):
    """Sequences with a hidden state beside every label."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(2, size=4) for _ in range(8)]
    X = [np.c_[y + rng.normal(size=len(y)), rng.normal(size=(len(y), 2))] for y in Y]
    return SequenceLabeler(loss=loss, hidden="node", hidden_states=2, n_jobs=1).objective(X, Y)


def begin(target, seed=0):
    return np.random.default_rng(seed).normal(0.0, 0.1, target.n_weights)


@pytest.mark.parametrize("loss", ["marginal", "latent-hinge", "log"])
@pytest.mark.parametrize("inner", sorted(INNER))
def test_the_objective_never_rises_whatever_the_inner_steps(inner, loss):
    target = objective(loss, 1)
    solver = Cccp(INNER[inner], inner_iter=15, inner_tol=0.0)
    values = run(solver, target, begin(target), max_iter=12, tol=None).history.value
    assert values[-1] < values[0]
    assert (np.diff(values) <= 1e-12 * np.abs(values[:-1])).all()


@pytest.mark.parametrize("loss", ["marginal", "latent-hinge"])
@pytest.mark.parametrize("inner", ["fixed", "averaged", "adagrad"])
def test_converged_is_said_only_where_the_bound_has_its_optimum(inner, loss):
    claims = 0
    for seed in range(2):
        target = objective(loss, seed)
        solver = Cccp(INNER[inner], inner_iter=15, inner_tol=0.0)
        fit = run(solver, target, begin(target, seed), max_iter=30, tol=None)
        if fit.converged:
            claims += 1
            bound = target.linearise(fit.weights)
            best = run(Annealed(inner_iter=500), bound, fit.weights, max_iter=30, tol=1e-7)
            assert best.value >= fit.value * (1.0 - 1e-3)
    assert claims > 0


def test_the_last_weights_are_those_of_the_printed_algorithm():
    """Algorithm 2: a tangent, so many steps of one length on its bound, and again."""
    step, outer, inner = 0.05, 6, 7
    target = objective("marginal", 3)
    solver = Cccp(Stochastic(rule="fixed", step_size=step), inner, 0.0, keep="last")
    fit = run(solver, target, begin(target), max_iter=outer, tol=None)
    weights = begin(target)
    for _ in range(outer):
        bound = target.linearise(weights)
        for _ in range(inner):
            weights = weights - step * bound.value_gradient(weights)[1]
    np.testing.assert_allclose(fit.weights, weights, rtol=1e-12, atol=1e-12)
    assert fit.value == pytest.approx(target.value(weights), rel=1e-12)


def test_the_printed_algorithm_may_rise():
    target = objective("marginal", 0)
    wild = Stochastic(rule="fixed", step_size=0.5)
    rises = [
        np.diff(
            run(
                Cccp(wild, 5, 0.0, keep=keep), target, begin(target), max_iter=10, tol=None
            ).history.value
        ).max()
        for keep in ("best", "last")
    ]
    assert rises[0] <= 1e-9 < rises[1]


def test_what_to_keep_has_two_names():
    with pytest.raises(ArgumentError, match="keep"):
        Cccp(Lbfgs(), keep="first")
