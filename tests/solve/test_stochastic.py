"""Stochastic steps: rules, averages, batches, first steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.loop import run
from structlearn._src.solve.stochastic import RULES, Stochastic, estimate, share
from toys import Kinks, Logistic, Quadratic, kuhn_tucker, smallest_kinks


def start(toy):
    return np.zeros(toy.n_weights)


def fit(solver, toy, max_iter, seed=0, tol=None):
    return run(solver, toy, start(toy), max_iter=max_iter, tol=tol, rng=np.random.default_rng(seed))


# ---- the formulas ------------------------------------------------------------------------


def by_hand(toy, rule, step, updates):
    """Full-batch steps written out."""
    weights, squares, path = start(toy), 0.0, []
    for t in range(1, updates + 1):
        gradient = toy.value_gradient(weights)[1]
        squares = squares + gradient**2
        length = {
            "fixed": step,
            "decaying": step / (1 + step * (t - 1)),
            "root": step / math.sqrt(t),
            "pegasos": 1 / t,
            "adagrad": step / (np.sqrt(squares) + 1e-12),
        }[rule]
        weights = weights - length * gradient
        if rule == "pegasos":
            radius = math.sqrt(toy.value(start(toy)))
            weights = weights * min(1.0, radius / np.linalg.norm(weights))
        path.append(weights)
    return np.array(path)


@pytest.mark.parametrize("rule", sorted(RULES))
def test_rules_by_hand(rule):
    toy = Kinks(1)
    path = by_hand(toy, rule, 0.02, 12)
    got = fit(Stochastic(rule, 0.02), toy, 12)
    best = min([start(toy), *path], key=toy.value)
    np.testing.assert_allclose(got.weights, best, rtol=1e-12)
    np.testing.assert_allclose(got.history.value[1:], [toy.value(w) for w in path], rtol=1e-12)


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.25])
def test_averages_of_the_last_share_by_hand(fraction):
    toy = Kinks(1)
    path = by_hand(toy, "fixed", 0.02, 20)
    solver = Stochastic("fixed", 0.02, average=fraction, horizon=20)
    last = path[20 - round(20 * fraction) :]
    np.testing.assert_allclose(fit(solver, toy, 20).weights, last.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("fraction", [1.0, 0.5, 0.2])
def test_averages_without_an_end_have_the_same_centre(fraction):
    """The mean age of what is averaged is that of the last share of all updates."""
    n, centre = 2000, 0.0
    for t in range(1, n + 1):
        centre += share(t, fraction, None) * (t - centre)
    assert centre / n == pytest.approx(1 - fraction / 2, abs=2e-3)
    assert share(1, fraction, None) == 1.0


def test_batches_cover_every_example_once_and_are_unbiased():
    class Spy(Quadratic):
        seen: list
        gradients: list

        def batch_gradient(self, weights, which):
            found = super().batch_gradient(weights, which)
            self.seen.append(which)
            self.gradients.append(found.gradient)
            return found

    toy = Spy(n=23)
    toy.seen, toy.gradients = [], []
    # A step of next to nothing, so that all gradients are taken at the same weights.
    fit(Stochastic("fixed", 1e-300, batch_size=5), toy, 2)
    first, second = toy.seen[:5], toy.seen[5:10]
    assert [len(which) for which in first] == [5, 5, 5, 5, 3]
    for order in (np.concatenate(first), np.concatenate(second)):
        assert sorted(order) == list(range(23))
    assert not np.array_equal(np.concatenate(first), np.concatenate(second))
    whole = Quadratic(n=23).loss_gradient(start(toy))[1]
    np.testing.assert_allclose(sum(toy.gradients[:5]), whole)


def test_estimates_are_unbiased():
    toy = Quadratic(n=24)
    weights = np.random.default_rng(0).normal(size=toy.n_weights)
    order = np.random.default_rng(1).permutation(24).reshape(6, 4)
    estimates = (estimate(toy, weights, which, None) for which in order)
    losses, gradients = zip(*estimates, strict=True)
    value, gradient, _ = toy.value_gradient(weights)
    np.testing.assert_allclose(np.mean(losses) + toy.penalty.value(weights), value)
    np.testing.assert_allclose(np.mean(gradients, axis=0), gradient)


# ---- where they get to -------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 7, None])
@pytest.mark.parametrize(
    ("rule", "average"),
    [("decaying", 0.0), ("root", 0.5), ("pegasos", 0.5), ("adagrad", 0.0), ("adagrad", 0.5)],
)
def test_hinge_near_its_optimum(rule, average, batch_size):
    toy = Kinks(0, n=40, C=0.3)
    _, best = smallest_kinks(toy)
    solver = Stochastic(rule, batch_size=batch_size, average=average)
    got = fit(solver, toy, 300 if batch_size is None else 100)
    assert best <= got.value + 1e-9
    assert got.value < 1.02 * best


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("rule", ["fixed", "decaying", "root", "adagrad"])
@pytest.mark.parametrize("batch_size", [5, None])
def test_the_first_step_is_found_at_any_scale(rule, scale, batch_size):
    toy = Logistic(2, C=30.0)
    toy.x *= scale
    toy.C /= scale
    best = run(Lbfgs(), toy, start(toy), max_iter=500, tol=1e-12).value
    begin = toy.value(start(toy))
    got = fit(Stochastic(rule, batch_size=batch_size), toy, 60)
    assert got.value - best < 0.2 * (begin - best)


def test_first_steps_that_end_in_infinity_are_left():
    class Steep(Quadratic):
        def losses(self, weights, which):
            return np.cosh(2e5 * weights - 1.0), 2e5 * np.sinh(2e5 * weights - 1.0)

    toy = Steep()
    state = Stochastic("adagrad").start(toy, start(toy), np.random.default_rng(0))
    assert 1e-7 < state["step"] < 1e-4


def test_first_steps_are_tried_on_a_sample():
    class Spy(Logistic):
        def losses(self, weights, which):
            sizes.append(len(self.x[which]))
            return super().losses(weights, which)

    sizes = []
    toy = Spy(0, n=5000)
    Stochastic("decaying", batch_size=10).start(toy, start(toy), np.random.default_rng(0))
    assert set(sizes) == {10, 1000}


@pytest.mark.parametrize("batch_size", [4, None])
@pytest.mark.parametrize("rule", ["decaying", "adagrad"])
def test_kinks_in_the_penalty(rule, batch_size):
    toy = Logistic(3, C=0.3, l1_ratio=0.7)
    best = run(Owlqn(), toy, start(toy), tol=1e-12)
    got = fit(Stochastic(rule, batch_size=batch_size, evaluate=True), toy, 400)
    assert got.value - best.value < 1e-3 * best.value
    assert 0 < (best.weights == 0.0).sum() < toy.n_weights
    if batch_size is None:
        assert kuhn_tucker(toy, got.weights) < 1e-3
        np.testing.assert_array_equal(got.weights == 0.0, best.weights == 0.0)


def test_pegasos_stays_in_the_ball_that_holds_the_optimum():
    toy = Kinks(0, C=5.0)
    weights, _ = smallest_kinks(toy)
    seen = []
    run(
        Stochastic("pegasos", batch_size=1), toy, start(toy), max_iter=3, tol=None,
        rng=np.random.default_rng(0), callbacks=[lambda e: seen.append(np.linalg.norm(e.weights))],
    )  # fmt: skip
    radius = math.sqrt(toy.value(start(toy)))
    assert np.linalg.norm(weights) <= radius
    assert max(seen) <= radius * (1 + 1e-12)
    toy.convex = False
    state = Stochastic("pegasos").start(toy, start(toy), np.random.default_rng(0))
    assert state["radius"] == pytest.approx(math.sqrt(2) * radius)


def test_pegasos_needs_squares():
    toy = Logistic(l1_ratio=1.0)
    with pytest.raises(ArgumentError, match="square of every weight; AdaGrad does not"):
        run(Stochastic("pegasos"), toy, start(toy))


# ---- what they report --------------------------------------------------------------------


def test_same_seed_same_weights():
    toy = Kinks(0)
    solver = Stochastic(batch_size=3)
    a, b, c = (fit(solver, toy, 5, seed).weights for seed in (1, 1, 2))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_values_on_the_way():
    toy = Logistic(0)
    rough = fit(Stochastic("decaying", 0.01, batch_size=4), toy, 30)
    exact = fit(Stochastic("decaying", 0.01, batch_size=4, evaluate=True), toy, 30)
    assert len(rough.history) == 30
    assert len(exact.history) == 31
    # Losses met on the way are those of slightly older weights.
    np.testing.assert_allclose(rough.history.value[5:], exact.history.value[6:], rtol=0.1)
    # Without values the last weights count, with them the best.
    assert rough.value >= exact.value == exact.history.value.min()
    assert rough.value == toy.value(rough.weights)


def test_averages_are_valued_as_such():
    toy = Kinks(0)
    values = []

    def look(event):
        values.append(toy.value(event.weights))

    solver = Stochastic("fixed", 0.05, average=1.0, evaluate=True)
    got = run(solver, toy, start(toy), max_iter=10, tol=None, callbacks=[look])
    np.testing.assert_allclose(got.history.value[1:], values)


def test_a_step_far_too_long_is_said():
    toy = Quadratic(0)
    with np.errstate(all="ignore"):
        got = fit(Stochastic("fixed", 1e9), toy, 2000)
    assert got.status.startswith("diverged")
    assert not got.converged
    assert np.isfinite(got.weights).all()
    assert got.value <= toy.value(start(toy))


def test_tolerance_stops_a_stochastic_run():
    toy = Logistic(0)
    got = fit(Stochastic(batch_size=4), toy, 10000, tol=1e-3)
    assert got.converged
    assert got.n_iter < 1000


@pytest.mark.parametrize(
    "bad",
    [{"rule": "adam"}, {"step_size": 0.0}, {"batch_size": 0}, {"average": 1.5}, {"horizon": 0}],
)
def test_bad_settings(bad):
    with pytest.raises(ArgumentError, match=next(iter(bad))):
        Stochastic(**bad)
