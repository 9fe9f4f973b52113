"""Steepest descent, with and without kinks in the penalty."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.loop import run
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
