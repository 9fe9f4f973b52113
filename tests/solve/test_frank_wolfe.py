"""Block-coordinate Frank-Wolfe: certificates, invariants, and an optimum found by others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from chain_objectives import KINDS, chains
from structlearn._src.common.errors import ArgumentError
from structlearn._src.learn.structured_world import add_counts
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.solve.frank_wolfe import FrankWolfe, dual_value
from structlearn._src.solve.loop import run


def solve(objective, solver=None, seed=0, **options):
    rng = np.random.default_rng(seed)
    return run(solver or FrankWolfe(), objective, np.zeros(objective.n_weights), rng=rng, **options)


def begin(objective, solver, seed=0):
    return solver.start(objective, np.zeros(objective.n_weights), np.random.default_rng(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_closes(kind):
    objective = chains(**KINDS[kind])
    fit = solve(objective, max_iter=5000, tol=1e-5)
    assert fit.converged
    assert "gap" in fit.status
    assert fit.history.gap[-1] <= 1e-5 * fit.value
    assert fit.value == pytest.approx(objective.value(fit.weights), rel=1e-12)


def test_the_gap_closes_where_all_features_are_one():
    """Such rows have no values, which kernels must not read."""
    given = chains(6)
    (x,), *edges = given.examples.inputs
    inputs = (((x > 0.0).astype(float),), *edges)
    objective = replace(given, examples=replace(given.examples, inputs=inputs))
    assert len(objective.chain_arrays.data.values) == 0
    fit = solve(objective, max_iter=5000, tol=1e-5)
    assert fit.converged
    assert fit.value == pytest.approx(objective.value(fit.weights), rel=1e-12)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_the_optimum_of_crammer_and_singer(C):
    objective = chains(3, n=60, C=C, **KINDS["multiclass"])
    x, labels = objective.examples.inputs[0][0], objective.examples.labels
    options = {"loss": "hinge", "fit_intercept": False, "tol": 1e-9, "max_iter": 10**6}
    oracle = LinearSVC(C=C, multi_class="crammer_singer", **options).fit(x, labels)
    fit = solve(objective, max_iter=20000, tol=1e-9)
    assert fit.value == pytest.approx(objective.value(oracle.coef_.T.ravel()), rel=1e-6)
    np.testing.assert_allclose(fit.weights.reshape(4, 3), oracle.coef_.T, atol=1e-3)


@pytest.mark.parametrize("pairwise", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_cost_are_those_of_the_dual_variables(kind, pairwise):
    """The flow is turned into tables, and these into weights and costs, by other code."""
    objective, solver = chains(1, **KINDS[kind]), FrankWolfe(pairwise=pairwise)
    state = begin(objective, solver)
    for _ in range(12):
        solver.step(objective, state)
    examples, K = objective.examples, objective.examples.structure.states
    by, n = objective.C * examples.weights, objective.n_examples
    nodes = np.zeros((len(examples.labels), K))
    steps = np.zeros((1, K * K))
    for c in range(n):
        links = state["starts"][c] + np.arange(state["counts"][c])
        ends, befores = state["ends"][links], state["befores"][links]
        places = examples.structure.offsets[c] + ends // K
        np.add.at(nodes, (places, ends % K), state["shares"][links])
        inner = befores >= 0
        np.add.at(
            steps[0], (befores * K + ends % K)[inner], (by[c] * state["shares"][links])[inner]
        )
    np.testing.assert_allclose(nodes.sum(axis=1), 1.0)
    weight = np.repeat(by, np.diff(examples.structure.offsets))
    tables = (weight[:, None] * nodes, steps)[: len(objective.model.groups)]
    true = add_counts(examples.structure, examples.labels, by, tables, None)
    expected = objective.model.pull(
        tuple(a - b for a, b in zip(true, tables, strict=True)), examples.inputs
    )
    np.testing.assert_allclose(state["weights"], expected, atol=1e-10)
    costs = objective.cost.rows(examples.labels, examples.structure.offsets)
    expected = np.add.reduceat(
        (weight[:, None] * nodes * costs).sum(1), examples.structure.offsets[:-1]
    )
    np.testing.assert_allclose(state["losses"], expected, atol=1e-10)


@pytest.mark.parametrize("pairwise", [0, 1, 2])
def test_the_dual_only_rises_and_stays_below_every_value(pairwise):
    objective, solver = chains(2, C=3.0), FrankWolfe(pairwise=pairwise, evaluate=1)
    state, last = begin(objective, solver), 0.0
    lowest = solve(objective, max_iter=20000, tol=1e-7).value
    for _ in range(60):
        report, dual = solver.step(objective, state), dual_value(state)
        assert last - 1e-9 <= dual <= lowest * (1 + 1e-9)
        assert report.value - report.gap == pytest.approx(dual)
        assert report.value == pytest.approx(objective.value(state["average"]))
        last = dual


def test_pairwise_steps_converge_where_classic_ones_creep():
    objective = chains(4, C=1.0)
    gaps = {}
    for pairwise in (0, 1):
        solver = FrankWolfe(pairwise=pairwise, evaluate=100)
        gaps[pairwise] = solve(objective, solver, max_iter=1000, tol=None).history.gap[-1]
    assert gaps[1] < 1e-3 * gaps[0]


@pytest.mark.parametrize("pairwise", [0, 1, 2])
def test_the_average_counts_later_steps_more(pairwise):
    """A pass over one example is one step; kept the slow way."""
    objective = chains(5).take(np.array([0]))
    solver = FrankWolfe(pairwise=pairwise)
    state = begin(objective, solver)
    total = np.zeros(objective.n_weights)
    for k in range(1, 9):
        solver.step(objective, state)
        total += k * state["weights"]
        np.testing.assert_allclose(state["average"], total / (k * (k + 1) / 2), atol=1e-12)


def test_the_average_counts_the_steps_within_a_pass():
    """The first of two steps is that of one of the examples alone."""
    objective = chains(5).take(np.array([0, 1]))
    parts = [objective.take(np.array(which)) for which in ([0, 1], [0], [1])]
    states = [begin(part, FrankWolfe()) for part in parts]
    for part, state in zip(parts, states, strict=True):
        FrankWolfe().step(part, state)
    whole, *first = states
    expected = [(state["weights"] + 2.0 * whole["weights"]) / 3.0 for state in first]
    assert min(np.abs(each - whole["average"]).max() for each in expected) < 1e-12
    assert np.abs(expected[0] - expected[1]).max() > 1e-3


def test_weights_of_forbidden_transitions_stay_finite():
    objective = chains(**KINDS["bars"])
    assert np.isneginf(objective.chain_arrays.data.bars).any()
    assert np.isfinite(solve(objective, FrankWolfe(), max_iter=3, tol=None).weights).all()


def test_examples_of_no_weight_are_left_alone():
    objective = chains(**KINDS["matrix"])
    which = np.arange(objective.n_examples - 1)
    rest = objective.take(which)
    assert objective.examples.weights[-1] == 0.0
    a, b = (solve(part, max_iter=3000, tol=1e-8) for part in (objective, rest))
    assert a.value == pytest.approx(b.value, rel=1e-7)


def test_forbidden_transitions_keep_their_weight_of_zero():
    objective = chains(**KINDS["bars"])
    weights = solve(objective, max_iter=50, tol=None).weights
    table = weights[objective.model.blocks[1][0]].reshape(3, 3)
    assert table[0, 1] == 0.0
    assert (table != 0.0).any()


def test_a_restart_changes_nothing(tmp_path):
    objective, place = chains(**KINDS["pairs"]), Checkpoint(tmp_path / "run", iterations=1)
    whole = solve(objective, max_iter=12, tol=None)
    solve(objective, max_iter=7, tol=None, checkpoint=place)
    rest = solve(objective, max_iter=12, tol=None, checkpoint=place, seed=5)
    np.testing.assert_array_equal(rest.weights, whole.weights)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"loss": "log"}, "hinge only"),
        ({"loss": "hybrid"}, "hinge only"),
        ({"loss": "perceptron"}, "task cost"),
        ({"l1_ratio": 0.5}, "l1_ratio=0"),
    ],
)
def test_what_it_refuses(options, why):
    with pytest.raises(ArgumentError, match=why):
        solve(chains(**options))
