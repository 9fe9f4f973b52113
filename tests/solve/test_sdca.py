"""Dual coordinate ascent: the optima of others, the invariant, and how it gets there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numba import config
from scipy.special import softmax

from chain_objectives import KINDS, chains
from structlearn._src.common.errors import ArgumentError
from structlearn._src.kernels.chain.sdca import ascend
from structlearn._src.solve import sdca as module
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.loop import run
from structlearn._src.solve.pick import choose
from structlearn._src.solve.sdca import Sdca, dual_bound

LOSSES = {
    "log": {"loss": "log"},
    "eps": {"loss": "eps", "eps_y": 0.3, "eps_h": 0.3},
    "hybrid": {"loss": "hybrid", "alpha": 0.4, "eps_y": 0.5, "eps_h": 0.5},
}


def solve(objective, solver=None, weights=None, seed=0, **options):
    start = np.zeros(objective.n_weights) if weights is None else weights
    options = {"tol": 1e-13, "max_iter": 3000, "rng": np.random.default_rng(seed)} | options
    return run(solver or Sdca(), objective, start, **options)


def begin(objective, solver, weights=None):
    start = np.zeros(objective.n_weights) if weights is None else weights.copy()
    return solver.start(objective, start, np.random.default_rng(0))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_is_that_of_a_quasi_newton_method(kind, loss):
    objective = chains(**KINDS[kind] | LOSSES[loss])
    expected = solve(objective, Lbfgs(), tol=1e-14)
    fit = solve(objective)
    assert fit.converged
    assert fit.value == objective.value(fit.weights)
    assert fit.value == pytest.approx(expected.value, rel=1e-8)
    gradient = objective.value_gradient(fit.weights)[1]
    assert np.abs(gradient).max() < 1e-3
    np.testing.assert_allclose(fit.weights, expected.weights, atol=1e-3)


@pytest.mark.parametrize("batch_size", [1, 6])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_what_the_memory_makes_of_them(kind, batch_size):
    """Also to double precision, although the memory has not: rounding is booked too."""
    solver = Sdca(batch_size=batch_size)
    objective = with_threads(chains(1, **KINDS[kind] | LOSSES["log"]), 2)
    first = 0.1 * np.random.default_rng(1).normal(size=objective.n_weights)
    state = begin(objective, solver, first)
    for _ in range(12):
        solver.step(objective, state)
    examples = objective.examples
    by = objective.C * examples.weights
    nodes = np.repeat(by, np.diff(examples.structure.offsets))[:, None] * state["nodes"]
    tables = (nodes,)
    if len(objective.model.groups) > 1:
        steps = by[:, None] * state["steps"].reshape(len(by), -1)
        tables += (steps.sum(axis=0, keepdims=True),)
    expected = state["initial_weights"] - objective.model.pull(tables, examples.inputs)
    np.testing.assert_allclose(state["weights"], expected, atol=1e-13)
    assert (np.abs(state["initial_weights"]) < np.abs(first)).all()


def test_the_distance_to_the_optimum_shrinks_by_a_constant_factor():
    objective, solver = chains(2, n=40, C=0.2, loss="log"), Sdca(evaluate=1)
    least = solve(objective, Lbfgs(), tol=1e-15).value
    fit = solve(objective, solver, tol=None, max_iter=60)
    above = fit.history.value - least
    assert above[19] < 0.1 * above[9]
    assert above[39] < 1e-2 * above[19]
    assert above[59] < 1e-9 * least


@pytest.mark.parametrize("loss", LOSSES)
def test_examples_of_weight_0_do_not_count(loss):
    objective = chains(3, weighted=True, **LOSSES[loss])
    some = objective.take(np.arange(objective.n_examples - 1))
    assert objective.examples.weights[-1] == 0.0
    whole, part = solve(objective), solve(some)
    np.testing.assert_allclose(whole.weights, part.weights, atol=1e-4)


@pytest.mark.parametrize("scale", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize("kind", ["dense", "no edges", "bars"])
def test_one_visit_by_enumeration(kind, scale):
    """At the largest scale most exponentials vanish, and with bars perhaps all but one path's."""
    for seed in range(10):
        objective = chains(seed, **KINDS[kind] | {"loss": "log"}).take(np.array([1]))
        weights = scale * np.random.default_rng(seed).normal(size=objective.n_weights)
        state = begin(objective, Sdca(), weights)
        Sdca().step(objective, state)
        nodes, steps = errors(objective, weights)
        (features,), *_ = objective.examples.inputs
        square = (features**2).sum(axis=1).max() + (kind != "no edges")
        share = 1.0 / (1.0 + 0.5 * objective.C * objective.example_weights[0] * square)
        np.testing.assert_allclose(state["nodes"], share * nodes, atol=1e-6)
        if kind != "no edges":
            np.testing.assert_allclose(state["steps"][0], share * steps, atol=1e-6)


def errors(objective, weights):
    """Expected less true counts of labels and transitions of the only sequence."""
    examples, K = objective.examples, objective.examples.structure.states
    labels, bars = examples.labels, examples.structure.forbidden
    nodes, *edges = objective.push(weights)
    steps = edges[0].reshape(K, K) if edges else np.zeros((K, K))
    if bars is not None:
        steps = np.where(bars.pairs, -np.inf, steps)
        nodes = nodes + 0.0
        nodes[0, bars.first] = nodes[-1, bars.last] = -np.inf
    paths = np.array(list(np.ndindex(*[K] * len(labels))))
    scores = nodes[np.arange(len(labels)), paths].sum(axis=1)
    scores += steps[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    chances = softmax(scores)
    node_errors, step_errors = np.zeros_like(nodes), np.zeros((K, K))
    for path, chance in [*zip(paths, chances, strict=True), (labels, -1.0)]:
        node_errors[np.arange(len(labels)), path] += chance
        np.add.at(step_errors, (path[:-1], path[1:]), chance)
    return node_errors, step_errors


@pytest.mark.parametrize("seed", range(3))
def test_any_start_leads_to_the_same_optimum(seed):
    objective = chains(5, loss="log")
    start = np.random.default_rng(seed).normal(size=objective.n_weights)
    expected = solve(objective)
    np.testing.assert_allclose(solve(objective, weights=start).weights, expected.weights, atol=1e-4)


def test_a_start_at_the_optimum_stays_near():
    objective = chains(6, loss="log")
    least = solve(objective, Lbfgs(), tol=1e-14)
    solver = Sdca(evaluate=1)
    state = begin(objective, solver, least.weights)
    first = solver.step(objective, state).value
    assert first < objective.value(np.zeros(objective.n_weights))
    assert first < 1.05 * least.value


@pytest.mark.parametrize("kind", KINDS)
def test_tangents_bound_the_optimum_from_below(kind):
    objective, solver = chains(**KINDS[kind], loss="log"), Sdca(evaluate=1)
    least = solve(objective, Lbfgs(), tol=1e-14).value
    for start in (None, np.random.default_rng(0).normal(size=objective.n_weights)):
        state = begin(objective, solver, start)
        for _ in range(60):
            solver.step(objective, state)
            assert dual_bound(objective, state) <= least * (1.0 + 1e-6)
        assert dual_bound(objective, state) >= 0.99 * least


def test_steps_that_are_too_long_become_shorter():
    objective, solver = chains(7, longest=10, loss="log"), Sdca()
    least = solve(objective, Lbfgs(), tol=1e-14).value
    state = begin(objective, solver)
    state["curvature"] = 1e-3
    values = [solver.step(objective, state).value for _ in range(400)]
    assert state["curvature"] > 1e-3
    assert values[19] > 1.1 * least
    assert values[-1] == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("evaluate", [1, 5])
def test_a_value_that_was_low_by_chance_does_not_end_all_progress(evaluate):
    """The objective rises after an early dip; steps were halved until nothing moved."""
    given = {"n": 39, "states": 2, "width": 2, "longest": 4, "C": 4.0708916, "loss": "log"}
    objective = chains(1007195001, **given, **KINDS["matrix"])
    expected = solve(objective, Lbfgs(), tol=1e-14).value
    fit = solve(objective, Sdca(evaluate=evaluate, batch_size=3), tol=1e-10, max_iter=600)
    assert fit.converged
    assert fit.value == pytest.approx(expected, rel=1e-7)


def test_a_bound_that_rises_slowly_is_progress_where_steps_are_short():
    """Most steps are long, but the bound waits for the shortest ones."""
    given = {"n": 38, "longest": 5, "C": 9.778769, "loss": "eps", "eps_y": 0.5, "eps_h": 0.5}
    objective = chains(1319558164, **given, **KINDS["matrix"])
    fit = solve(objective, Sdca(evaluate=1, batch_size=8), tol=1e-9, seed=1)
    assert fit.converged


def test_steps_do_not_become_shorter_than_is_ever_needed():
    """At the optimum nothing is gained any more; lengths of 0 would make weights of NaN."""
    objective, solver = chains(7, n=8, C=0.1, loss="log", **KINDS["matrix"]), Sdca(evaluate=1)
    state = begin(objective, solver)
    for _ in range(400):
        solver.step(objective, state)
    assert 1.0 < state["curvature"] <= objective.chain_arrays.longest**2
    assert np.isfinite(state["weights"]).all()


def test_transitions_alone_on_long_sequences():
    objective = chains(8, n=10, longest=200, loss="log")
    (x,), edges = objective.examples.inputs
    examples = replace(objective.examples, inputs=((0.0 * x,), edges))
    objective = replace(objective, examples=examples)
    expected = solve(objective, Lbfgs(), tol=1e-14)
    assert solve(objective).value == pytest.approx(expected.value, rel=1e-8)


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    objective, solver = chains(9, loss="log", **KINDS["pairs"]), Sdca()
    whole = solve(objective, solver, tol=None, max_iter=12)
    for limit in (7, 12):
        saved = Checkpoint(tmp_path / "run", iterations=1)
        part = solve(objective, solver, tol=None, max_iter=limit, checkpoint=saved)
    np.testing.assert_array_equal(part.weights, whole.weights)


def test_it_evaluates_now_and_then():
    fit = solve(chains(loss="log"), Sdca(evaluate=4), tol=None, max_iter=9)
    assert np.flatnonzero(np.isfinite(fit.history.value)).tolist() == [3, 7]
    with pytest.raises(ArgumentError, match="evaluate=0"):
        Sdca(evaluate=0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "hinge"}, "smooth loss"),
        ({"loss": "hybrid"}, "smooth loss"),
        ({"loss": "log", "l1_ratio": 0.5}, "squares alone"),
    ],
)
def test_refusals(options, words):
    with pytest.raises(ArgumentError, match=words):
        solve(chains(**options))


def with_threads(objective, n_jobs):
    return replace(objective, settings=replace(objective.settings, n_jobs=n_jobs))


def test_auto_takes_it_for_text_with_any_number_of_threads(monkeypatch):
    monkeypatch.setattr(module, "_MANY", 10)
    words = with_threads(chains(loss="log", features="pairs", edges="seen"), 1)
    assert isinstance(choose("auto", "subgradient", words), Sdca)
    assert isinstance(choose("auto", "subgradient", with_threads(words, 16)), Sdca)
    assert isinstance(choose("auto", "cccp", words).inner, Lbfgs)
    for others in (
        chains(loss="log"),  # no sparse features
        chains(loss="log", features="pairs", C=1e4),  # slow
    ):
        assert isinstance(choose("auto", "subgradient", others), Lbfgs)
    monkeypatch.setattr(module, "_MANY", 10**6)
    assert isinstance(choose("auto", "subgradient", words), Lbfgs)
    assert choose("sdca", "subgradient", words) == Sdca()


def test_one_kernel_serves_all_kinds():
    for kind in KINDS:
        Sdca().step(objective := chains(**KINDS[kind] | LOSSES["log"]), begin(objective, Sdca()))
    assert config.DISABLE_JIT or len(ascend.signatures) == 1


# ---- batches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_batches_lead_to_the_same_optimum(kind, loss):
    objective = with_threads(chains(**KINDS[kind] | LOSSES[loss]), 2)
    expected = solve(objective, Lbfgs(), tol=1e-14)
    fit = solve(objective, Sdca(batch_size=4))
    assert fit.converged
    assert fit.value == pytest.approx(expected.value, rel=1e-8)
    np.testing.assert_allclose(fit.weights, expected.weights, atol=1e-3)


@pytest.mark.parametrize("kind", ["dense", "pairs", "no edges", "matrix"])
def test_batches_give_the_same_bits_for_every_number_of_threads(kind):
    objective = chains(3, n=37, **KINDS[kind] | LOSSES["log"])
    runs = [
        solve(with_threads(objective, n), Sdca(batch_size=5), tol=None, max_iter=7)
        for n in (1, 2, 3, 8)
    ]
    for other in runs[1:]:
        np.testing.assert_array_equal(other.weights, runs[0].weights)
    alone = solve(objective, Sdca(batch_size=1), tol=None, max_iter=7)
    assert (alone.weights != runs[0].weights).any()  # the size of batches does matter


def test_batches_of_all_examples_and_more():
    objective = chains(loss="log", C=0.05)
    expected = solve(objective, Lbfgs(), tol=1e-14).value
    some, more = (solve(objective, Sdca(batch_size=n)) for n in (20, 1000))
    np.testing.assert_array_equal(some.weights, more.weights)
    assert some.value == pytest.approx(expected, rel=1e-8)


def test_batches_too_large_for_the_steps_shorten_them():
    """Together they overshoot where single visits do not; they get to the optimum all the same."""
    objective = chains(7, n=40, loss="log", C=3.0)
    expected = solve(objective, Lbfgs(), tol=1e-14).value
    solver = Sdca(batch_size=40, evaluate=1)
    state = begin(objective, solver)
    for _ in range(2000):
        value = solver.step(objective, state).value
    assert state["curvature"] > 1.0
    assert value == pytest.approx(expected, rel=1e-6)


def test_a_bound_that_creeps_up_does_not_keep_steps_too_long():
    """All examples at once overshoot; 294 passes are needed where any rise of the bound will do."""
    given = {"n": 39, "width": 4, "longest": 3, "C": 0.4764426}
    objective = chains(3862271816, **given, **KINDS["pairs"] | LOSSES["hybrid"])
    fit = solve(objective, Sdca(evaluate=1, batch_size=39), tol=1e-9)
    assert fit.converged
    assert len(fit.history.value) < 200


def test_a_cycle_of_steps_that_are_too_long_is_no_convergence():
    """The objective creeps down to half a percent above the optimum, between two weights."""
    given = {"n": 12, "states": 2, "width": 3, "longest": 6, "C": 0.04228433, "loss": "hybrid"}
    objective = chains(3377689031, **given | LOSSES["hybrid"])
    expected = solve(objective, Lbfgs(), tol=1e-14).value
    fit = solve(objective, Sdca(evaluate=1, batch_size=8), tol=1e-10)
    assert fit.converged
    assert fit.value == pytest.approx(expected, rel=1e-8)


def test_a_killed_run_in_batches_goes_on_to_the_same_bits(tmp_path):
    objective, solver = chains(9, loss="log", **KINDS["pairs"]), Sdca(batch_size=3)
    whole = solve(with_threads(objective, 2), solver, tol=None, max_iter=12)
    for limit, n_jobs in ((7, 3), (12, 1)):
        saved = Checkpoint(tmp_path / "run", iterations=1)
        given = {"tol": None, "max_iter": limit, "checkpoint": saved}
        part = solve(with_threads(objective, n_jobs), solver, **given)
    np.testing.assert_array_equal(part.weights, whole.weights)


def test_by_default_some_threads_get_batches_where_there_are_many_examples():
    few, many = (chains(loss="log", n=n, features="sparse") for n in (20, 800))
    sizes = [
        begin(with_threads(objective, n_jobs), Sdca())["batch_size"]
        for objective in (few, many)
        for n_jobs in (1, 3, 4, 16)
    ]
    assert sizes == [1, 1, 1, 1, 1, 1, 16, 16]
    dense = chains(loss="log", n=800)
    assert begin(with_threads(dense, 4), Sdca())["batch_size"] == 1
    with pytest.raises(ArgumentError, match="batch_size=0"):
        Sdca(batch_size=0)
