"""Block-coordinate Frank-Wolfe: certificates, invariants, and an optimum found by others."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

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


def with_threads(objective, n_jobs):
    return replace(objective, settings=replace(objective.settings, n_jobs=n_jobs))


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


@pytest.mark.parametrize("batch_size", [1, 6])
@pytest.mark.parametrize("pairwise", [0, 1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_weights_and_cost_are_those_of_the_dual_variables(kind, pairwise, batch_size):
    """The flow is turned into tables, and these into weights and costs, by other code."""
    solver = FrankWolfe(pairwise=pairwise, batch_size=batch_size)
    objective = with_threads(chains(1, **KINDS[kind]), 2)
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


def test_the_result_is_the_best_of_all_searches_and_means():
    """The mean is valued every other time."""
    objective, solver = chains(5, C=3.0), FrankWolfe(passes=1, evaluate=2)
    state = begin(objective, solver)
    least, mean, better = np.inf, 0.0, 0
    for number in range(1, 21):
        least = min(least, objective.value(state["weights"]))
        report = solver.step(objective, state)
        mean = mean + max(2.0 / (number + 1), 0.1) * (state["weights"] - mean)
        if number % 2 == 0 and objective.value(mean) < least:
            least = objective.value(mean)
            better += 1
        assert report.value == pytest.approx(least, rel=1e-12)
        assert objective.value(state["average"]) == pytest.approx(least, rel=1e-12)
    assert better > 0
    assert least < objective.value(np.zeros(objective.n_weights))


def test_parts_of_many_data_are_searched_in_turn_at_first():
    """After one iteration from weights of 0, the dual is much higher than by one search."""
    objective, found = chains(5, n=400, width=8), []
    for few in (50, 400):
        with mock.patch("structlearn._src.solve.frank_wolfe._FEW", few):
            state = begin(objective, FrankWolfe())
            report = FrankWolfe().step(objective, state)
        assert np.isnan(report.value) == (few == 50)
        found.append(dual_value(state))
    assert found[0] > found[1] > 0.0
    fit = solve(objective, max_iter=500, tol=1e-3)
    assert fit.converged
    assert np.isnan(fit.history.gap[0])


@pytest.mark.parametrize("passes", [2, 5])
def test_the_number_of_passes_does_not_change_the_optimum(passes):
    objective = chains(6)
    expected = solve(objective, max_iter=5000, tol=1e-7).value
    fit = solve(objective, FrankWolfe(passes=passes), max_iter=5000, tol=1e-5)
    assert fit.converged
    assert fit.value == pytest.approx(expected, rel=2e-5)


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


# ---- batches ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_the_gap_closes_with_batches(kind):
    objective = with_threads(chains(**KINDS[kind]), 2)
    expected = solve(objective, max_iter=5000, tol=1e-7).value
    fit = solve(objective, FrankWolfe(batch_size=4), max_iter=5000, tol=1e-5)
    assert fit.converged
    assert fit.history.gap[-1] <= 1e-5 * fit.value
    assert fit.value == pytest.approx(expected, rel=2e-5)
    assert fit.value == pytest.approx(objective.value(fit.weights), rel=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse", "pairs", "matrix"])
def test_batches_give_the_same_bits_for_every_number_of_threads(kind):
    objective, solver = chains(3, n=37, **KINDS[kind]), FrankWolfe(batch_size=5)
    runs = [solve(with_threads(objective, n), solver, tol=None, max_iter=7) for n in (1, 2, 3, 8)]
    for other in runs[1:]:
        np.testing.assert_array_equal(other.weights, runs[0].weights)
    alone = solve(objective, FrankWolfe(batch_size=1), tol=None, max_iter=7)
    assert (alone.weights != runs[0].weights).any()


@pytest.mark.parametrize("pairwise", [0, 1])
def test_batches_never_lower_the_dual(pairwise):
    """Even where they are all data."""
    objective, solver = chains(2, n=30, C=3.0), FrankWolfe(pairwise=pairwise, batch_size=30)
    expected = solve(objective, max_iter=20000, tol=1e-7).value
    state = begin(objective, solver)
    last = 0.0
    for _ in range(200):
        solver.step(objective, state)
        assert dual_value(state) >= last - 1e-9
        last = dual_value(state)
    assert 0.97 * expected < last <= expected * (1 + 1e-9)


def test_a_restart_in_batches_changes_nothing(tmp_path):
    objective, place = chains(**KINDS["pairs"]), Checkpoint(tmp_path / "run", iterations=1)
    solver = FrankWolfe(batch_size=3)
    whole = solve(objective, solver, max_iter=12, tol=None)
    solve(with_threads(objective, 2), solver, max_iter=7, tol=None, checkpoint=place)
    rest = solve(with_threads(objective, 3), solver, max_iter=12, tol=None, checkpoint=place)
    np.testing.assert_array_equal(rest.weights, whole.weights)


def test_a_run_goes_on_with_more_threads_than_it_began_with():
    objective = chains(**KINDS["pairs"])
    solver = FrankWolfe(batch_size=3)
    found = []
    for numbers in ((1, 1, 1), (1, 3, 2)):
        state = begin(with_threads(objective, 1), solver)
        for n_jobs in numbers:
            solver.step(with_threads(objective, n_jobs), state)
        found.append(state["weights"])
    np.testing.assert_array_equal(*found)


def test_shards_and_batches_exclude_each_other():
    with pytest.raises(ArgumentError, match="shards=2 and batch_size=4 were given"):
        FrankWolfe(shards=2, batch_size=4)
    assert FrankWolfe(shards=2, batch_size=1).shards == 2


def test_by_default_some_threads_get_batches_where_there_are_many_examples():
    few, many = (chains(n=n, features="sparse") for n in (20, 1600))
    cases = ((few, 4, None), (many, 3, None), (many, 4, 32), (chains(n=1600), 4, None))
    for objective, n_jobs, size in cases:
        assert begin(with_threads(objective, n_jobs), FrankWolfe()).get("batch_size") == size
    with pytest.raises(ArgumentError, match="batch_size=0"):
        FrankWolfe(batch_size=0)
    with pytest.raises(ArgumentError, match="passes=0"):
        FrankWolfe(passes=0)
