"""Steepest descent, with and without kinks in the penalty."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.loop import run
from structlearn._src.solve.search import Point, exact
from toys import Logistic, Quadratic, kuhn_tucker


def start(toy):
    return np.zeros(toy.n_weights)


@pytest.mark.parametrize("factor", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_optimum(factor, seed):
    toy = Quadratic(seed, spread=3.0)
    fit = run(Descent(factor=factor), toy, start(toy), max_iter=3000, tol=1e-13)
    assert fit.converged
    np.testing.assert_allclose(fit.weights, toy.optimum(), atol=1e-5)


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_optimum_with_an_l1_part(l1_ratio):
    toy = Logistic(3, C=0.3, l1_ratio=l1_ratio)
    fit = run(Descent(), toy, start(toy), max_iter=3000, tol=1e-13)
    assert kuhn_tucker(toy, fit.weights) < 1e-5
    assert (fit.weights == 0.0).any()
    assert (fit.weights != 0.0).any()


def test_every_step_descends():
    toy = Logistic(4, spread=30.0)
    history = run(Descent(), toy, start(toy), max_iter=300, tol=None).history
    assert (np.diff(history.value) < 0.0).all()
    assert history.gradient[-1] < history.gradient[1]


def test_the_first_length_does_not_matter():
    """The search finds the scale by itself, up or down."""
    for scale in [1e-3, 1e3]:
        toy = Quadratic(0, spread=1.0)
        toy.x, toy.y = toy.x * scale, toy.y * scale
        fit = run(Descent(), toy, start(toy), max_iter=500, tol=1e-12)
        np.testing.assert_allclose(fit.weights, toy.optimum(), rtol=1e-2)


def test_far_away_is_reached_by_longer_steps():
    toy = Quadratic(0, spread=1.0)
    toy.x, toy.y = toy.x * 1e-3, toy.y * 1e9
    fit = run(Descent(), toy, start(toy), max_iter=30, tol=1e-12)
    assert np.linalg.norm(toy.optimum()) > 1e6
    np.testing.assert_allclose(fit.weights, toy.optimum(), rtol=1e-3)


def test_at_the_optimum_it_says_so():
    toy = Quadratic(spread=1.0)
    fit = run(Descent(), toy, toy.optimum(), tol=None)
    assert fit.converged
    assert "no step" in fit.status


def test_bad_factor():
    with pytest.raises(ArgumentError, match="factor"):
        Descent(factor=1.0)


# ---- the minimum along the line ----------------------------------------------------------


def test_exact_lengths_of_quadratics_are_those_of_the_formula():
    """For a quadratic with Hessian H the best length against g is g'g / g'Hg."""
    toy = Quadratic(1, spread=3.0)
    trail = []
    run(
        Descent(search="exact"), toy, start(toy), max_iter=8, tol=None,
        callbacks=[lambda event: trail.append(event.weights.copy())],
    )  # fmt: skip
    weights = start(toy)
    for found in trail:
        gradient = toy.value_gradient(weights)[1]
        bent = toy.value_gradient(weights + gradient)[1] - gradient  # H g
        weights = weights - gradient * (gradient @ gradient) / (gradient @ bent)
        np.testing.assert_allclose(found, weights, rtol=1e-7, atol=1e-9)


def test_exact_steps_end_where_the_new_gradient_is_at_right_angles():
    toy = Logistic(4, spread=3.0)
    points = [start(toy)]
    run(
        Descent(search="exact"), toy, start(toy), max_iter=10, tol=None,
        callbacks=[lambda event: points.append(event.weights.copy())],
    )  # fmt: skip
    gradients = [toy.value_gradient(weights)[1] for weights in points]
    for old, new in itertools.pairwise(gradients):
        assert abs(old @ new) <= 1e-7 * (old @ old)


def test_exact_search_stops_at_the_kink_that_is_the_minimum():
    class Corner(Quadratic):
        """|w - 3| + |w + 1| / 2 along one weight."""

        def value_gradient(self, weights, memory=None):
            w = weights[0]
            slope = np.sign(w - 3.0) + 0.5 * np.sign(w + 1.0)
            return abs(w - 3.0) + 0.5 * abs(w + 1.0), slope * np.eye(len(weights))[0], None

    toy = Corner(0)
    point = Point(start(toy), *toy.value_gradient(start(toy)))
    found, length = exact(toy, point, -point.gradient, 0.1)
    assert found.weights[0] == pytest.approx(3.0, abs=1e-9)
    assert length == pytest.approx(3.0 / abs(point.gradient[0]), abs=1e-9)


def test_exact_descent_reaches_the_optimum_and_stops_at_a_gradient():
    toy = Logistic(2)
    fit = run(Descent(search="exact"), toy, start(toy), max_iter=3000, tol=None, gradient_tol=1e-5)
    assert fit.converged
    assert "gradient" in fit.status
    assert fit.n_iter < 3000
    assert np.linalg.norm(toy.value_gradient(fit.weights)[1]) < 1e-4
    rough = run(Descent(), toy, start(toy), max_iter=3000, tol=None, gradient_tol=1e-2)
    assert rough.n_iter < fit.n_iter


def test_exact_search_refuses_an_l1_part_and_unknown_words():
    toy = Logistic(0, l1_ratio=0.5)
    with pytest.raises(ArgumentError, match="l1_ratio"):
        run(Descent(search="exact"), toy, start(toy))
    with pytest.raises(ArgumentError, match="search"):
        Descent(search="golden")
