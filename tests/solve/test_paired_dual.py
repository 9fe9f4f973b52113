"""Paired-dual learning, EM and subgradient steps on hinge-loss fields."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from hinge_fields import random_field
from structlearn._src.common.errors import ArgumentError
from structlearn._src.field.admm import Consensus
from structlearn._src.field.examples import make_field_examples
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.world import InferenceSettings, leaves
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.solve.drivers import Cccp, Paired
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.loop import run
from structlearn._src.solve.stochastic import Stochastic

EXACT = InferenceSettings(tol=1e-10, sweeps=200_000)
STEPS = Stochastic(rule="fixed", step_size=0.5, average=1.0)


def field(seed=0, hidden=True, surrogate="entropy", settings=EXACT, learnt=None):
    rng = np.random.default_rng(seed)
    hinges = random_field(rng, n=8, m=30)
    labels = np.round(rng.random(8))
    if hidden:
        labels[:3] = np.nan
    examples = make_field_examples(hinges, labels, surrogate=surrogate, strength=0.3, learnt=learnt)
    return FieldObjective(examples, 1.0, NonNegative(strength=0.1), settings)


def algorithm_1(objective, inner_steps, warm_up, n_updates, step, ridge):
    """The paper's algorithm on plain solvers; return the weights after every update."""
    examples = objective.examples
    known = np.flatnonzero(~np.isnan(examples.labels))
    free = Consensus(examples.hinges)
    clamped = Consensus(examples.hinges, fixed=(known, examples.labels[known]))
    states = [world.begin(examples.weights) for world in (free, clamped)]
    whole, counts, path = examples.weights.copy(), examples.hinges.sizes[:-1], []
    t = 0
    while len(path) < n_updates:
        t += 1
        for world, state in zip((free, clamped), states, strict=True):
            world.run(whole, state, inner_steps)
        if t > warm_up:
            gradient = ridge * whole + states[1].hinges - states[0].hinges
            whole[:-1] = np.maximum(whole[:-1] - step * gradient[:-1] / counts, 0.0)
            path.append(whole[:-1].copy())
    return np.array(path)


@pytest.mark.parametrize("warm_up", [0, 4])
@pytest.mark.parametrize("inner_steps", [1, 3])
def test_paired_is_algorithm_1(inner_steps, warm_up):
    objective = field(1, settings=InferenceSettings(tol=0.0))
    path = []
    run(
        Paired(Stochastic(rule="fixed", step_size=0.5), inner_steps, warm_up),
        objective, objective.start, max_iter=15, tol=None,
        callbacks=[lambda event: path.append(event.weights.copy())],
    )  # fmt: skip
    expected = algorithm_1(objective, inner_steps, warm_up, 15, 0.5, 0.1)
    np.testing.assert_allclose(path, expected, atol=1e-13)
    averaged = run(
        Paired(STEPS, inner_steps, warm_up), objective, objective.start, max_iter=15, tol=None
    )
    np.testing.assert_allclose(averaged.weights, expected.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("surrogate", ["entropy", "loss"])
def test_many_inner_steps_are_subgradient_steps(surrogate):
    objective = field(2, surrogate=surrogate)
    fits = [
        run(solver, field(2, surrogate=surrogate), objective.start, max_iter=20, tol=None)
        for solver in (STEPS, Paired(STEPS, sweeps=20_000))
    ]
    np.testing.assert_allclose(fits[0].weights, fits[1].weights, atol=1e-4)
    assert fits[0].value < objective.value(objective.start)


@pytest.mark.parametrize("rule", ["fixed", "adagrad"])
@pytest.mark.parametrize("driver", ["paired", "em", "subgradient"])
def test_restart_gives_the_same_bits(tmp_path, driver, rule):
    inner = Stochastic(rule=rule, step_size=0.5, average=0.5)
    solver = {
        "paired": Paired(inner, sweeps=2, warm_up=1),
        "em": Cccp(inner, inner_iter=3, inner_tol=0.0),
        "subgradient": inner,
    }[driver]
    rough = InferenceSettings(tol=1e-3)
    start = field(3).start
    whole = run(
        solver, field(3, settings=rough), start, max_iter=12, tol=None,
        rng=np.random.default_rng(0),
    )  # fmt: skip
    place = Checkpoint(tmp_path / "run.safetensors", iterations=1)
    for end in (5, 12):
        fit = run(
            solver, field(3, settings=rough), start, max_iter=end, tol=None,
            rng=np.random.default_rng(0), checkpoint=place,
        )  # fmt: skip
    np.testing.assert_array_equal(fit.weights, whole.weights)
    np.testing.assert_array_equal(fit.history.value, whole.history.value)


def test_weights_stay_at_or_above_zero():
    seen = []
    for seed in range(3):
        objective = field(seed, surrogate="loss")
        for inner in (
            Stochastic(rule="fixed", step_size=5.0, average=0.5),
            Stochastic(rule="adagrad", step_size=1.0),
        ):
            run(
                Paired(inner), objective, objective.start, max_iter=40, tol=None,
                callbacks=[lambda event: seen.append(event.weights.copy())],
            )  # fmt: skip
    assert np.min(seen) == 0.0


def test_em_never_rises():
    inner = Stochastic(rule="root", step_size=0.1)
    for seed in range(3):
        objective = field(seed)
        fit = run(
            Cccp(inner, inner_iter=15, inner_tol=0.0),
            objective, objective.start, max_iter=12, tol=None,
        )  # fmt: skip
        values = fit.history.value
        assert values[-1] < values[0] - 1e-3
        assert (np.diff(values) <= 1e-7).all()


@pytest.mark.parametrize("driver", ["paired", "subgradient"])
def test_one_weight_without_hidden_variables(driver):
    """Convex in one dimension: all roads lead to the optimum that golden sections find."""
    for seed in range(3):
        objective = field(seed, hidden=False, learnt=np.arange(4) == 1)
        assert objective.convex
        assert objective.n_weights == 1
        best = minimize_scalar(
            lambda w, f=objective: f.value(np.array([w])), bounds=(0.0, 50.0), method="bounded"
        )
        inner = Stochastic(rule="root", step_size=2.0, average=0.5)
        solver = Paired(inner) if driver == "paired" else inner
        fit = run(solver, objective, objective.start, max_iter=400, tol=None)
        assert fit.value <= best.fun + 1e-3 * abs(best.fun)


def test_paired_ends_where_subgradient_steps_end():
    inner = Stochastic(rule="adagrad", step_size=0.3, average=0.5)
    for seed in range(3):
        one, other = field(seed, settings=InferenceSettings(tol=1e-6)), field(seed)
        primal = run(inner, one, one.start, max_iter=200, tol=None)
        paired = run(Paired(inner), other, other.start, max_iter=200, tol=None)
        assert other.value(paired.weights) == pytest.approx(other.value(primal.weights), rel=1e-2)
        assert primal.history.inference_steps[-1] > 3 * 2 * 200
        assert paired.history.inference_steps[-1] == 2 * 201  # two a step, and two at the start


def test_solvers_that_cannot_project_refuse():
    objective = field()
    with pytest.raises(ArgumentError, match=r"needs a smooth penalty|at or above 0"):
        run(Lbfgs(), objective, objective.start)


@pytest.mark.parametrize("seed", range(4))
def test_quasi_newton_steps_stay_at_or_above_0(seed):
    """Against SciPy's bounded quasi-Newton method, where nothing is hidden."""
    objective = field(seed, hidden=False)
    fit = run(Owlqn(), objective, objective.start, max_iter=300, tol=1e-9)
    assert (fit.weights >= 0.0).all()
    known = minimize(
        lambda w: objective.value_gradient(np.maximum(w, 0.0))[:2], objective.start, jac=True,
        bounds=[(0.0, None)] * objective.n_weights, method="L-BFGS-B",
    )  # fmt: skip
    assert fit.value <= known.fun * (1.0 + 1e-3)


def test_state_is_all_there_is():
    """A step from a state that was copied elsewhere goes the same way."""
    objective, solver = field(4), Paired(STEPS, sweeps=1)
    state = solver.start(objective, objective.start, np.random.default_rng(0))
    for _ in range(5):
        solver.step(objective, state)
    copy = {key: np.array(x) if isinstance(x, np.ndarray) else x for key, x in state.items()}
    copy["memory"] = deepcopy(state["memory"])
    other, fresh = Paired(STEPS, sweeps=1), field(4)
    for _ in range(5):
        solver.step(objective, state)
        other.step(fresh, copy)
    np.testing.assert_array_equal(state["weights"], copy["weights"])
    for (path, one), (same, two) in zip(
        leaves(state["memory"]), leaves(copy["memory"]), strict=True
    ):
        assert path == same
        np.testing.assert_array_equal(one, two)
