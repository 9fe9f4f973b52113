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
from structlearn._src.solve.hand_over import variances
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.loop import run
from structlearn._src.solve.pick import choose
from structlearn._src.solve.sdca import Sdca, dual_bound

LOSSES = {
    "log": {"loss": "log"},
    "eps": {"loss": "eps", "eps_y": 0.3, "eps_h": 0.3},
    "hybrid": {"loss": "hybrid", "alpha": 0.4, "eps_y": 0.5, "eps_h": 0.5},
}


def solve(objective, solver=None, weights=None, **options):
    start = np.zeros(objective.n_weights) if weights is None else weights
    options = {"tol": 1e-13, "max_iter": 3000, "rng": np.random.default_rng(0)} | options
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


@pytest.mark.parametrize("kind", KINDS)
def test_weights_are_what_the_memory_makes_of_them(kind):
    """Also to double precision, although the memory has not: rounding is booked too."""
    objective, solver = chains(1, **KINDS[kind] | LOSSES["log"]), Sdca()
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


# ---- handed over to a quasi-Newton method ------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_handed_over_it_gets_to_the_same_optimum(kind, loss):
    objective = chains(**KINDS[kind] | LOSSES[loss])
    expected = solve(objective, Lbfgs(), tol=1e-14)
    fit = solve(objective, Sdca(passes=2))
    assert fit.converged
    assert fit.value == objective.value(fit.weights)
    assert fit.value == pytest.approx(expected.value, rel=1e-8)
    np.testing.assert_allclose(fit.weights, expected.weights, atol=1e-3)


def test_the_passes_before_are_those_without():
    objective = chains(2, n=40, loss="log")
    handed, plain = Sdca(passes=3), Sdca(evaluate=1)
    state, other = begin(objective, handed), begin(objective, plain)
    for _ in range(3):
        report = handed.step(objective, state)
        alone = plain.step(objective, other)
    np.testing.assert_array_equal(state["weights"], other["weights"])
    assert report.value == pytest.approx(alone.value, rel=1e-13)
    assert "nodes" not in state  # the memory of dual ascent is free again
    for _ in range(3):
        assert handed.step(objective, state).value < report.value


@pytest.mark.parametrize("kind", ["sparse", "pairs", "no edges", "bars"])
def test_variances_at_a_memory_of_all_errors(kind):
    """Where the memory is that of the weights, variances of labels are the diagonal of a Hessian.

    Sequences of one position have no covariances between positions.
    """
    objective = chains(4, **KINDS[kind] | {"loss": "log", "longest": 1, "bars": False})
    weights = 0.3 * np.random.default_rng(2).normal(size=objective.n_weights)
    memory = [errors(objective.take(np.array([i])), weights) for i in range(objective.n_examples)]
    state = {
        "nodes": np.concatenate([nodes for nodes, _ in memory]),
        "steps": np.array([steps for _, steps in memory]),
    }
    found = variances(objective, state)
    h = 1e-5
    n_features = objective.model.groups[0][0].n_weights
    for k in range(n_features):
        shift = h * (np.arange(len(weights)) == k)
        above, below = (objective.value_gradient(weights + x)[1][k] for x in (shift, -shift))
        assert found[k] + 1.0 == pytest.approx((above - below) / (2 * h), rel=1e-5)
    np.testing.assert_array_equal(found[n_features:], 0.0)  # there are no transitions


def test_several_threads_are_worth_it_and_give_the_same(monkeypatch):
    monkeypatch.setattr(module, "_MANY", 10)
    words = chains(loss="log", features="pairs", edges="seen")
    assert choose("auto", "subgradient", with_threads(words, 2)) == Sdca()
    solver = choose("auto", "subgradient", with_threads(words, 16))
    assert solver.passes is not None
    first, again, alone = (solve(with_threads(words, n), solver) for n in (4, 4, 1))
    np.testing.assert_array_equal(first.weights, again.weights)
    assert alone.value == pytest.approx(first.value, rel=1e-10)
    with pytest.raises(ArgumentError, match="passes"):
        Sdca(passes=0)
