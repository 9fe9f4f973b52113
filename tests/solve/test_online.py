"""Compiled stochastic steps: the same numbers as the plain code, at the optimum in the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from chain_objectives import KINDS, chains
from structlearn._src.common.errors import ArgumentError
from structlearn._src.model.model import LinearModel
from structlearn._src.model.term import LinearTerm, TableTerm
from structlearn._src.solve.base import current_weights, stream
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.solve.frank_wolfe import FrankWolfe
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.loop import run
from structlearn._src.solve.online import Online
from structlearn._src.solve.stochastic import Stochastic

LOSSES = ("log", "hinge", "hybrid", "eps", "perceptron")


def begin(objective, scale=0.1):
    return scale * np.random.default_rng(7).normal(size=objective.n_weights)


def both(objective, passes=3, scale=0.1, **options):
    """Answers and reports of the compiled solver and of the plain one, pass by pass."""
    compiled, plain = Online(**options), Stochastic(batch_size=1, **options)
    weights = begin(objective, scale)
    a, b = (
        solver.start(objective, weights.copy(), np.random.default_rng(3))
        for solver in (compiled, plain)
    )
    for _ in range(passes):
        one, other = compiled.step(objective, a), plain.step(objective, b)
        np.testing.assert_allclose(a["weights"], b["weights"], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(current_weights(a), current_weights(b), rtol=1e-7, atol=1e-9)
        assert one.value == pytest.approx(other.value, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_on_every_kind(loss, kind):
    both(chains(1, loss=loss, **KINDS[kind]), rule="decaying", step_size=0.02)


@pytest.mark.parametrize("average", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("rule", ["fixed", "decaying", "root", "pegasos"])
def test_every_rule_with_and_without_average(rule, average):
    step = None if rule == "pegasos" else 0.05
    for horizon in (None, 3):
        objective = chains(2, loss="hinge", C=0.2, **KINDS["pairs"])
        both(objective, rule=rule, step_size=step, average=average, horizon=horizon)


@pytest.mark.parametrize("l1_ratio", [0.3, 1.0])
@pytest.mark.parametrize("rule", ["fixed", "decaying", "root"])
def test_pulls_towards_zero_are_made_up_for_exactly(rule, l1_ratio):
    for kind in ("sparse", "pairs", "bars"):
        objective = chains(3, width=12, loss="log", l1_ratio=l1_ratio, C=0.1, **KINDS[kind])
        both(objective, rule=rule, step_size=0.03)
        solver = Online(rule=rule, step_size=0.03)
        state = solver.start(objective, begin(objective), np.random.default_rng(0))
        for _ in range(10):
            solver.step(objective, state)
        assert (state["weights"] == 0.0).any()


@pytest.mark.parametrize("average", [0.0, 0.5])
def test_a_scale_that_vanishes_is_multiplied_out(average):
    """Weights shrink by half in every step, to 1e-24 of themselves in a pass."""
    for l1_ratio in (0.0, 0.01) if not average else (0.0,):
        objective = chains(4, n=80, loss="hinge", C=0.01, l1_ratio=l1_ratio)
        both(objective, rule="fixed", step_size=0.5, average=average)


def test_potentials_too_wide_for_probabilities():
    for kind in ("dense", "bars"):
        both(chains(5, loss="log", **KINDS[kind]), passes=1, scale=1e3, rule="fixed", step_size=0.1)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("kind", ["dense", "sparse", "pairs"])
def test_adagrad_against_a_slow_loop(kind, l1_ratio):
    objective = chains(6, width=8, loss="log", l1_ratio=l1_ratio, **KINDS[kind])
    solver = Online(rule="adagrad", step_size=0.3)
    state = solver.start(objective, begin(objective), np.random.default_rng(0))
    weights, squares = begin(objective), np.zeros(objective.n_weights)
    missed, n = np.zeros(objective.n_weights), objective.n_examples
    alone = [objective.take(np.array([i])) for i in range(n)]
    touched = [part.model.pull(ones(part), absolute(part)) != 0.0 for part in alone]
    for iteration in range(1, 3):
        for i in stream(state, iteration).permutation(n):
            met = touched[i] | edge_weights(objective)
            weights[met] = pulled(weights, squares, missed, l1_ratio)[met]
            missed[met] = 0.0
            gradient = n * alone[i].loss_gradient(weights)[1]
            squares[met] += gradient[met] ** 2
            step = 0.3 / (np.sqrt(squares) + 1e-12)
            weights[met] = pulled(weights - step * gradient, squares, missed + 1, l1_ratio)[met]
            missed[~met] += 1
        weights, missed = pulled(weights, squares, missed, l1_ratio), 0.0 * missed
        solver.step(objective, state)
        np.testing.assert_allclose(state["weights"], weights, rtol=1e-9, atol=1e-12)


def pulled(weights, squares, times, l1_ratio):
    """Weights after pulls towards 0 by steps of their own."""
    step = times * 0.3 / (np.sqrt(squares) + 1e-12)
    size = np.maximum(np.abs(weights) - step * l1_ratio, 0.0)
    return np.sign(weights) * size / (1.0 + step * (1.0 - l1_ratio))


def edge_weights(objective):
    out = np.zeros(objective.n_weights, bool)
    out[objective.model.blocks[1][0]] = True
    return out


def ones(part):
    tables = part.push(np.zeros(part.n_weights))
    return tuple(np.ones_like(table) for table in tables)


def absolute(part):
    """The inputs with features that cannot cancel."""
    from structlearn._src.model.term import Sparse

    (x,), *rest = part.examples.inputs
    if isinstance(x, Sparse):
        return ((Sparse(x.rows._replace(values=np.abs(x.rows.values))),), *rest)
    return ((np.abs(x),), *rest)


@pytest.mark.parametrize("rule", ["decaying", "pegasos", "adagrad", "root"])
@pytest.mark.parametrize("loss", ["log", "hinge"])
def test_the_optimum_is_approached(rule, loss):
    objective = chains(8, n=60, loss=loss, C=0.2)
    start = np.zeros(objective.n_weights)
    best = run(Lbfgs() if loss == "log" else FrankWolfe(), objective, start, max_iter=2000)
    solver = Online(rule=rule, average=0.5)
    fit = run(solver, objective, start, max_iter=60, tol=None, rng=np.random.default_rng(0))
    assert best.value * (1 - 1e-4) < fit.value < 1.01 * best.value


def test_the_first_step_is_found_at_any_scale():
    for C in (1e-3, 1e3):
        objective = chains(9, loss="log", C=C, n=50)
        solver, start = Online(average=0.5), np.zeros(objective.n_weights)
        fit = run(solver, objective, start, max_iter=20, tol=None, rng=np.random.default_rng(0))
        best = run(Lbfgs(), objective, start, max_iter=1000).value
        first = objective.value(start)
        assert fit.value - best < 0.2 * (first - best)


def test_evaluation_reports_the_objective_itself():
    objective, solver = chains(loss="log"), Online(step_size=0.01, average=0.5, evaluate=True)
    state = solver.start(objective, begin(objective), np.random.default_rng(0))
    assert state["value"] == objective.value(begin(objective))
    assert solver.step(objective, state).value == objective.value(state["average"])


@pytest.mark.parametrize("rule", ["decaying", "pegasos", "adagrad"])
def test_a_restart_changes_nothing(tmp_path, rule):
    objective, place = chains(loss="log"), Checkpoint(tmp_path / "run", iterations=1)
    solver, start = Online(rule=rule, average=0.5), begin(objective)

    def solve(max_iter, seed, **options):
        rng = np.random.default_rng(seed)
        return run(solver, objective, start, max_iter=max_iter, tol=None, rng=rng, **options)

    whole = solve(6, 0)
    solve(4, 0, checkpoint=place)
    np.testing.assert_array_equal(solve(6, 9, checkpoint=place).weights, whole.weights)


# ---- what it refuses ---------------------------------------------------------------------


def test_hidden_labels_are_refused():
    objective = chains(loss="log")
    labels = objective.examples.labels.copy()
    labels[0] = -1
    hidden = replace(objective, examples=replace(objective.examples, labels=labels))
    assert "hidden" in Online().refuses(hidden)


def test_other_structures_and_models_are_refused():
    objective = chains(loss="log")
    graphs = replace(objective.examples, structure=objective.examples.structure.graphs())
    assert "sequences" in Online().refuses(replace(objective, examples=graphs))
    nodes = objective.model.groups[0]
    for edges, why in (
        ((LinearTerm(2, 9),), "all positions"),
        ((TableTerm.symmetric(3),), "own"),
        ((LinearTerm(2, 9), LinearTerm(2, 9)), "without features"),
    ):
        assert why in Online().refuses(replace(objective, model=LinearModel((nodes, edges))))
    assert "one kind" in Online().refuses(replace(objective, model=LinearModel((nodes * 2,))))


def test_pegasos_needs_squares():
    objective = chains(l1_ratio=0.5)
    with pytest.raises(ArgumentError, match="squares alone"):
        run(Online(rule="pegasos"), objective, begin(objective))


def test_bad_options():
    for options in ({"rule": "newton"}, {"step_size": 0.0}, {"average": 2.0}, {"horizon": 0}):
        with pytest.raises(ArgumentError):
            Online(**options)
