"""CCCP and paired learning."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.watch import Watch
from structlearn._src.learn.world import Budget
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.drivers import Cccp, Paired
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.loop import run
from structlearn._src.solve.stochastic import Stochastic
from toys import Hidden, Logistic, Slow


def begin(toy, seed=0):
    return np.random.default_rng(seed).normal(0.0, 0.1, toy.n_weights)


# ---- the toy itself ----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_bounds_and_touches(seed):
    toy, rng = Hidden(seed), np.random.default_rng(seed)
    touch = rng.normal(size=toy.n_weights)
    bound = toy.linearise(touch)
    assert bound.value(touch) == pytest.approx(toy.value(touch))
    for weights in touch + rng.normal(size=(20, toy.n_weights)):
        assert bound.value(weights) >= toy.value(weights) - 1e-9
    for part in (toy, bound):
        gradient = approx_fprime(touch, part.value, 1e-7)
        np.testing.assert_allclose(part.value_gradient(touch)[1], gradient, atol=1e-4)


# ---- CCCP --------------------------------------------------------------------------------


@pytest.mark.parametrize("inner_iter", [1, 3, 50])
@pytest.mark.parametrize("inner", [Lbfgs(), Descent()])
@pytest.mark.parametrize("seed", range(2))
def test_cccp_never_rises(inner, inner_iter, seed):
    toy = Hidden(seed)
    solver = Cccp(inner, inner_iter=inner_iter, inner_tol=1e-9)
    fit = run(solver, toy, begin(toy), max_iter=25, tol=None)
    values = fit.history.value
    assert values[-1] < values[0]
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert fit.value == toy.value(fit.weights)


@pytest.mark.parametrize("seed", range(3))
def test_cccp_ends_where_the_slope_is_zero(seed):
    toy = Hidden(seed)
    fit = run(Cccp(Lbfgs(), inner_tol=1e-12), toy, begin(toy), max_iter=500, tol=None)
    assert fit.converged
    assert "where it touches" in fit.status
    assert np.linalg.norm(toy.value_gradient(fit.weights)[1]) < 1e-3
    direct = run(Lbfgs(), toy, fit.weights, tol=1e-12)
    assert fit.value - direct.value < 1e-6 * fit.value


def test_one_bound_is_minimised_to_its_optimum():
    """One outer step by hand: another minimiser on the same bound."""
    from scipy.optimize import minimize

    toy = Hidden(1)
    weights = begin(toy)
    bound = toy.linearise(weights)
    oracle = minimize(
        lambda w: bound.value_gradient(w)[:2],
        weights,
        jac=True,
        method="BFGS",
        options={"gtol": 1e-8},
    )
    solver = Cccp(Lbfgs(), inner_tol=1e-14)
    fit = run(solver, toy, weights, max_iter=1, tol=None)
    np.testing.assert_allclose(fit.weights, oracle.x, atol=1e-5)
    assert fit.value <= bound.value(fit.weights)


def test_cccp_with_a_stochastic_inner_solver():
    toy = Hidden(2)
    solver = Cccp(Stochastic("root", average=0.5, evaluate=True), inner_iter=30)
    a, b = (run(solver, toy, begin(toy), rng=np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(a.weights, b.weights)
    best = run(Cccp(Lbfgs(), inner_tol=1e-8), toy, begin(toy)).value
    assert a.value < toy.value(begin(toy)) - 0.9 * (toy.value(begin(toy)) - best)


def test_a_bound_ends_when_a_few_steps_gain_little_also_if_steps_waver():
    toy = Hidden(2)
    start = begin(toy)
    steps = Stochastic("root", step_size=0.1, average=0.0)
    bound = toy.linearise(start, toy.begin())
    few = run(steps, bound, start, max_iter=50, tol=1e-2, patience=5)
    assert few.n_iter < 50
    once = run(Cccp(steps, inner_tol=1e-2), toy, start, max_iter=1, tol=None)
    np.testing.assert_array_equal(once.weights, few.weights)


def test_an_interrupt_inside_ends_the_whole_run():
    class Rude(Hidden):
        asked = 0

        def world(self, *what):
            self.asked += 1
            if self.asked == 40:
                raise KeyboardInterrupt
            return super().world(*what)

    toy, watch = Rude(0), Watch()
    fit = run(Cccp(Lbfgs(), inner_iter=4), toy, begin(toy), tol=None, watch=watch)
    assert fit.ended == "interrupted"
    assert watch.expired
    assert fit.n_iter > 0
    assert fit.value == fit.history.value.min()


def test_cccp_refuses():
    toy = Logistic(0)
    with pytest.raises(ArgumentError, match=r"solver='cccp': .*linearise"):
        run(Cccp(Lbfgs()), toy, np.zeros(6))
    toy = Hidden(0)
    toy.penalty = Logistic(l1_ratio=1.0).penalty
    with pytest.raises(ArgumentError, match="owlqn"):
        run(Cccp(Lbfgs()), toy, np.zeros(4))
    for bad in ({"inner_iter": 0}, {"inner_tol": -1.0}):
        with pytest.raises(ArgumentError, match=next(iter(bad))):
            Cccp(Lbfgs(), **bad)


# ---- paired ------------------------------------------------------------------------------


@pytest.mark.parametrize("sweeps", [1, 3])
def test_paired_reaches_the_same_optimum(sweeps):
    toy = Slow(0)
    best = run(Lbfgs(), toy, np.zeros(6), tol=1e-10).value
    calls = toy.calls
    inner = Stochastic("adagrad", 0.3)
    fit = run(Paired(inner, sweeps=sweeps), toy, np.zeros(6), max_iter=300, tol=None)
    assert fit.value - best < 1e-3 * best
    assert toy.calls == calls + 1  # only the value at the end takes full inference


def test_messages_last_through_a_run_and_not_beyond():
    """Steps by hand on one lagging objective; a second run begins afresh."""
    toy, solver = Slow(0), Paired(Stochastic("fixed", 0.01))
    view = toy.with_budget(Budget(1))
    memory = view.begin()
    weights = np.zeros(6)
    gradient = view.value_gradient(weights, memory)[1]
    for _ in range(5):
        weights = weights - 0.01 * gradient
        gradient = view.value_gradient(weights, memory)[1]
    for _ in range(2):
        fit = run(solver, toy, np.zeros(6), max_iter=5, tol=None)
        np.testing.assert_allclose(fit.weights, weights, rtol=1e-12)


def test_rough_values_do_not_decide():
    """The first value, with messages that know nothing yet, looks better than it is."""
    toy = Slow(0, C=100.0)
    fit = run(Paired(Stochastic("fixed", 1e-6)), toy, np.full(6, -3.0), max_iter=5, tol=None)
    assert fit.history.value[0] < toy.value(np.full(6, -3.0))
    assert fit.value == toy.value(fit.weights)
    assert (fit.weights != -3.0).all()


def test_paired_refuses():
    with pytest.raises(ArgumentError, match=r"solver='paired': .*warm-start inference"):
        run(Paired(Lbfgs()), Logistic(0), np.zeros(6))
    with pytest.raises(ArgumentError, match="owlqn"):
        run(Paired(Lbfgs()), Slow(0, l1_ratio=0.5), np.zeros(6))
    with pytest.raises(ArgumentError, match="sweeps"):
        Paired(Lbfgs(), sweeps=0)
