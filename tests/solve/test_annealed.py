"""Smoothing and cooling against optima found in other ways."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chain_objectives import KINDS, chains
from structlearn._src.common.errors import ArgumentError
from structlearn._src.solve.base import refusal
from structlearn._src.solve.drivers import Annealed, Cccp
from structlearn._src.solve.frank_wolfe import FrankWolfe
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.loop import run
from structlearn._src.solve.pick import choose
from toys import Quadratic


@pytest.mark.parametrize("kind", ["dense", "bars", "matrix"])
def test_reaches_the_optimum_of_the_hinge(kind):
    objective = chains(**KINDS[kind])
    start = np.zeros(objective.n_weights)
    best = run(FrankWolfe(), objective, start, max_iter=2000, tol=1e-6)
    fit = run(Annealed(), objective, start, max_iter=50, tol=None)
    assert fit.converged
    assert best.value * (1 - 1e-6) <= fit.value <= best.value * (1 + 1e-3)


def test_leaves_the_kink_at_weights_of_zero():
    objective = chains(loss="hybrid", alpha=0.5, C=2.0)
    start = np.zeros(objective.n_weights)
    fit = run(Annealed(), objective, start, max_iter=50, tol=None)
    rng = np.random.default_rng(0)
    nearby = [objective.value(fit.weights + 0.01 * rng.normal(size=len(start))) for _ in range(50)]
    assert fit.value < 0.9 * objective.value(start)
    assert fit.value < min(nearby)


def test_absolute_values_as_penalty():
    objective = chains(loss="hinge", l1_ratio=1.0)
    fit = run(Annealed(Owlqn()), objective, np.zeros(objective.n_weights), max_iter=50, tol=None)
    rng = np.random.default_rng(1)
    for scale in (1e-1, 1e-2):
        step = scale * rng.normal(size=(50, objective.n_weights))
        assert all(fit.value <= objective.value(fit.weights + d) for d in step)


def test_cccp_over_it_never_rises():
    objective = chains(loss="latent-hinge")
    labels = objective.examples.labels.copy()
    labels[::3] = -1
    objective = replace(objective, examples=replace(objective.examples, labels=labels))
    start = np.random.default_rng(2).normal(0.0, 0.1, objective.n_weights)
    fit = run(Cccp(Annealed()), objective, start, max_iter=8, tol=None)
    values = fit.history.value
    assert (np.diff(values) <= 1e-6 * values[:-1]).all()
    assert values[-1] < values[0]


def test_is_chosen_for_kinks_that_nothing_else_handles():
    assert isinstance(choose("auto", "subgradient", chains(loss="hybrid")), Annealed)
    assert isinstance(choose("auto", "subgradient", chains(loss="hinge")), FrankWolfe)
    assert isinstance(choose("auto", "subgradient", chains(loss="log")), Lbfgs)


def test_refusals():
    assert "temperatures" in refusal(Annealed(), Quadratic())
    with pytest.raises(ArgumentError, match="factor"):
        Annealed(factor=1.0)
