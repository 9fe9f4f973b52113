"""Quasi-Newton steps against optima found in other ways."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from structlearn._src.common import threads
from structlearn._src.common.errors import ArgumentError
from structlearn._src.learn.objective import Hints, ValueGradient
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn, add_pair, newton_direction, no_pairs
from structlearn._src.solve.loop import run
from structlearn._src.solve.search import Point, wolfe
from toys import (
    Kinks,
    Logistic,
    Preconditioned,
    Quadratic,
    kuhn_tucker,
    smallest_kinks,
)


def start(toy):
    return np.zeros(toy.n_weights)


@pytest.mark.parametrize("solver", [Lbfgs(), Lbfgs(memory=3), Lbfgs(memory=1), Owlqn()])
@pytest.mark.parametrize("seed", range(3))
def test_quadratic_optimum(solver, seed):
    toy = Quadratic(seed)
    fit = run(solver, toy, start(toy), max_iter=3000, tol=0.0)
    assert fit.converged
    np.testing.assert_allclose(fit.weights, toy.optimum(), atol=1e-6)
    assert fit.value == toy.value(fit.weights)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("solver", [Lbfgs(), Owlqn()])
def test_logistic_agrees_with_scikit_learn(solver, C):
    toy = Logistic(1, C=C)
    oracle = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    fit = run(solver, toy, start(toy), max_iter=500, tol=1e-14)
    np.testing.assert_allclose(fit.weights, oracle.fit(toy.x, toy.y).coef_[0], rtol=1e-5)


def test_tolerance_holds_at_any_scale_of_the_objective():
    """The same share is left whatever C, so that a search over C compares like with like."""
    for C in [1e-6, 1e-3, 1.0, 1e3]:
        toy = Logistic(3, C=C)
        best = run(Lbfgs(), toy, start(toy), max_iter=500, tol=0.0).value
        rough = run(Lbfgs(), toy, start(toy), max_iter=500, tol=1e-4)
        assert rough.converged
        assert (rough.value - best) / best < 1e-4


def test_values_never_rise():
    toy = Logistic(2, d=20, spread=1000.0)
    values = run(Lbfgs(), toy, start(toy), max_iter=200, tol=0.0).history.value
    assert len(values) > 20
    assert (np.diff(values) <= 1e-12 * values[:-1]).all()


def points(step, change):
    """Two points that differ by a step and a change of the gradient."""
    return Point(np.zeros_like(step), 0.0, np.zeros_like(change)), Point(step, 0.0, change)


@pytest.fixture(params=["short", "long"])
def length(request, monkeypatch):
    """Vectors of some weights are short, unless threads go through ranges of a few numbers."""
    if request.param == "long":
        monkeypatch.setitem(threads.GRAIN, "pairs", 5)
    return request.param


@pytest.mark.parametrize("memory", [1, 3, 4])
def test_direction_is_the_textbook_recursion(length, memory):
    """Against the inverse Hessian written out as a matrix, over a ring that has come round."""
    rng = np.random.default_rng(0)
    n = 26
    inverse, hessian = rng.random(n) + 0.5, np.diag(rng.random(n) + 0.1)
    state = no_pairs(memory, n)
    pairs = []
    for _ in range(7):
        step = rng.normal(size=n)
        pairs.append((step, hessian @ step))
        add_pair(state, *points(*pairs[-1]), 1)
        gradient = rng.normal(size=n)
        for first in (None, inverse):
            s, y = pairs[-1]
            base = np.diag(np.ones(n) if first is None else first)
            matrix = base * (s @ y) / (y @ base @ y)
            for s, y in pairs[-memory:]:
                turn = np.eye(n) - np.outer(y, s) / (s @ y)
                matrix = turn.T @ matrix @ turn + np.outer(s, s) / (s @ y)
            got = newton_direction(state, gradient, first)
            np.testing.assert_allclose(got, -matrix @ gradient, rtol=1e-8)


def test_directions_do_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "pairs", 100)
    rng = np.random.default_rng(1)
    n, memory = 301, 3
    pairs = rng.normal(size=(5, n))
    found = []
    for n_jobs in (1, 2, 5):
        state = no_pairs(memory, n)
        for step in pairs:
            add_pair(state, *points(step, np.linspace(0.1, 2.0, n) * step), n_jobs)
        found.append([newton_direction(state, pairs[0], None, n_jobs), *state["dots"]])
    for other in found[1:]:
        for got, want in zip(other, found[0], strict=True):
            np.testing.assert_array_equal(got, want)


def test_pairs_without_curvature_are_dropped(length):
    ones = np.ones(30)
    state = no_pairs(2, 30)
    add_pair(state, *points(ones, -ones), 1)
    add_pair(state, *points(ones, 0.0 * ones), 1)
    add_pair(state, *points(ones, np.nan * ones), 1)
    assert state["pairs"] == 0
    assert not state["steps"].any()


def test_the_diagonal_helps_and_is_refreshed():
    plain, helped = (kind(4, d=30, spread=50.0) for kind in (Logistic, Preconditioned))
    slow = run(Lbfgs(), plain, start(plain), max_iter=2000, tol=1e-10)
    fast = run(Lbfgs(refresh=5), helped, start(helped), max_iter=2000, tol=1e-10)
    np.testing.assert_allclose(slow.value, fast.value, rtol=1e-8)
    assert helped.calls < 0.7 * plain.calls
    assert helped.asked == -(-fast.n_iter // 5)


@pytest.mark.parametrize("first", [1e-8, 1e-3, 1.0, 1e3, 1e8])
def test_line_search_ends_where_wolfe_wants(first):
    toy = Logistic(5)
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights = rng.normal(size=toy.n_weights)
        begin = Point(weights, *toy.value_gradient(weights))
        direction = -begin.gradient * rng.random(toy.n_weights)
        found = wolfe(toy, begin, direction, first)
        along = begin.gradient @ direction
        length = np.linalg.norm(found.weights - weights) / np.linalg.norm(direction)
        assert found.value <= begin.value + 1e-4 * length * along
        assert found.gradient @ direction >= 0.9 * along


@pytest.mark.parametrize(("told", "trials"), [(1e-6, 1), (1e-9, 20)])
def test_line_search_knows_the_error_of_values(told, trials):
    """Near the optimum rounding hides all gains; derivatives decide where that is known."""

    class Rounded(Quadratic):
        hints = Hints(error=told)

        def value_gradient(self, weights, memory=None):
            value, gradient, memory = super().value_gradient(weights, memory)
            return ValueGradient(value + 1e-7 * abs(value) * (self.calls > 1), gradient, memory)

    toy = Rounded()
    weights = toy.optimum() + 1e-6
    begin = Point(weights, *toy.value_gradient(weights))
    found = wolfe(toy, begin, toy.optimum() - weights, 1.0)
    assert toy.calls == 1 + trials
    assert (found is not None) == (trials == 1)


def test_line_search_needs_a_way_down():
    toy = Quadratic()
    weights = np.ones(toy.n_weights)
    begin = Point(weights, *toy.value_gradient(weights))
    assert wolfe(toy, begin, begin.gradient, 1.0) is None
    assert toy.calls == 1


def test_infinite_values_shorten_the_step():
    class Walled(Quadratic):
        def value_gradient(self, weights, memory=None):
            found = super().value_gradient(weights, memory)
            if np.abs(weights).max() <= 0.3:
                return found
            return found._replace(value=np.nan, gradient=found.gradient * np.nan)

    toy = Walled(spread=1.0)
    assert np.abs(toy.optimum()).max() < 0.3
    fit = run(Lbfgs(), toy, start(toy), max_iter=200, tol=0.0)
    np.testing.assert_allclose(fit.weights, toy.optimum(), atol=1e-6)


def test_slopes_decide_where_rounding_hides_the_decrease():
    class High(Logistic):
        def losses(self, weights, which):
            losses, gradient = super().losses(weights, which)
            return losses + 1e8, gradient

    toy = High(3)
    fit = run(Lbfgs(), toy, start(toy), max_iter=60, tol=None)
    assert kuhn_tucker(toy, fit.weights) < 1e-6  # values alone end near 1e-3


def test_a_bad_memory_is_dropped():
    """Where the quasi-Newton direction leads up, the gradient itself leads down."""
    toy, solver = Logistic(3), Lbfgs()
    state = solver.start(toy, start(toy), np.random.default_rng(0))
    for _ in range(4):
        solver.step(toy, state)
    before, state["dots"] = state["value"], -state["dots"]
    report = solver.step(toy, state)
    assert report.value < before
    assert not report.done
    assert state["pairs"] == 1


def test_at_the_optimum_nothing_moves():
    toy = Quadratic(spread=1.0)
    fit = run(Lbfgs(), toy, toy.optimum(), tol=0.0)
    assert fit.converged
    np.testing.assert_allclose(fit.weights, toy.optimum(), atol=1e-9)


def test_lbfgs_gets_far_on_a_hinge():
    toy = Kinks(2, n=60)
    fit = run(Lbfgs(), toy, start(toy), max_iter=300, tol=1e-6)
    assert fit.value < 1.01 * smallest_kinks(toy)[1]


def test_a_kink_is_called_by_its_name():
    """Where a sub-gradient leads nowhere, nobody claims to have arrived."""

    class Valley(Kinks):
        def losses(self, weights, which):
            return 1.0 + 3.0 * np.abs(weights), 3.0 * np.where(weights < 0.0, -1.0, 1.0)

    toy = Valley()
    fit = run(Lbfgs(), toy, start(toy), tol=None)
    assert not fit.converged
    assert fit.status.startswith("stuck")
    assert "non-smooth" in fit.status


def test_lbfgs_refuses_l1():
    toy = Logistic(l1_ratio=0.5)
    with pytest.raises(ArgumentError, match=r"solver='lbfgs': .* use solver='owlqn'"):
        run(Lbfgs(), toy, start(toy))
    assert toy.calls == 0


@pytest.mark.parametrize("bad", [{"memory": 0}, {"memory": 2.5}, {"refresh": 0}])
def test_bad_settings(bad):
    with pytest.raises(ArgumentError, match=next(iter(bad))):
        Lbfgs(**bad)


# ---- OWL-QN ------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.1, 0.2, 2.0])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_owlqn_meets_the_conditions_of_an_optimum(C, l1_ratio):
    toy = Logistic(6, C=C, l1_ratio=l1_ratio)
    fit = run(Owlqn(), toy, start(toy), max_iter=500, tol=1e-13)
    assert kuhn_tucker(toy, fit.weights) < 1e-5
    assert (fit.weights != 0.0).any()


def test_owlqn_agrees_with_scikit_learn():
    toy = Logistic(7, n=200, d=40, C=0.05, l1_ratio=1.0)
    # liblinear works out the lasso without an intercept exactly
    oracle = LogisticRegression(
        C=0.05, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=1e-10, max_iter=10000
    )
    weights = oracle.fit(toy.x, toy.y).coef_[0]
    fit = run(Owlqn(), toy, start(toy), max_iter=1000, tol=1e-12)
    assert 0 < (weights != 0).sum() < toy.n_weights
    np.testing.assert_allclose(fit.weights, weights, atol=1e-5)
    assert fit.value <= toy.value(weights) + 1e-9


def test_owlqn_moves_no_weight_against_its_sub_gradient():
    toy = Logistic(9, d=30, C=0.3, l1_ratio=0.5, spread=30.0)
    path = [start(toy)]
    run(Owlqn(), toy, start(toy), tol=None, callbacks=[lambda e: path.append(e.weights.copy())])
    assert len(path) > 20
    for old, new in itertools.pairwise(path):
        gradient = toy.value_gradient(old)[1]
        least = np.sign(gradient) * np.maximum(np.abs(gradient) - 0.5, 0.0)
        least = np.where(old == 0.0, least, gradient + 0.5 * np.sign(old))
        assert ((new - old) * least <= 0.0).all()
        assert (old * new >= 0.0).all()


def test_owlqn_with_a_diagonal():
    toy = Preconditioned(8, C=0.1, l1_ratio=0.7, spread=50.0)
    fit = run(Owlqn(), toy, start(toy), max_iter=500, tol=1e-13)
    assert kuhn_tucker(toy, fit.weights) < 1e-5 * toy.x.max()


def test_owlqn_stays_at_zero_under_a_strong_penalty():
    toy = Logistic(6, C=1e-3, l1_ratio=1.0)
    fit = run(Owlqn(), toy, start(toy))
    assert fit.converged
    assert (fit.weights == 0.0).all()
