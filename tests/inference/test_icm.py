from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import config

import naive
from structlearn import FactorGraph, grid
from structlearn._src.common import threads
from structlearn._src.common.watch import Watch
from structlearn._src.graph.joined import join
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.icm import ICM, climb, unary_labels
from structlearn._src.kernels.graph import local

KINDS = ("loopy", "tree", "chain")
SEEDS = st.integers(0, 2**32 - 1)


def make(seed, zeros, n=6):
    rng = np.random.default_rng(seed)
    graph = naive.random_graph(rng, n, kind=KINDS[seed % 3], zeros=zeros)
    return graph, rng.integers(graph.cards)


def contradiction():
    """Two variables that must be equal and must differ, and a free one."""
    graph = FactorGraph()
    graph.add_variables(3, 2)
    graph.add_factor([0, 1], np.where(np.eye(2), 0.0, -np.inf))
    graph.add_factor([0, 1], np.where(np.eye(2), -np.inf, 0.5))
    graph.add_factor([2], [0.0, 1.0])
    return graph


def ask(graph, query="map", **options):
    options.setdefault("rng", np.random.default_rng(0))
    problem = Problem(graph.wiring, graph.potentials, 0.0, 0.0)
    return ICM().run(problem, query, Options(**options))


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3, 0.7]), st.booleans())
def test_every_step_lowers_the_energy_and_the_end_is_a_local_optimum(seed, zeros, steepest):
    graph, labels = make(seed, zeros)
    for _ in range(100):
        before = naive.energy(graph, labels)
        end = climb(graph.wiring, graph.potentials, labels, steepest=steepest, limit=1)
        after = naive.energy(graph, end.labels)
        assert not naive.lower(before, after, tol=1e-12)
        labels = end.labels
        if end.done[0]:
            break
    assert end.done[0]
    assert naive.steepest_flip(graph, labels) is None


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3, 0.7]))
def test_sweeps_follow_the_naive_version(seed, zeros):
    graph, labels = make(seed, zeros)
    for _ in range(4):
        expected = naive.icm_sweep(graph, labels.tolist())
        labels = climb(graph.wiring, graph.potentials, labels, limit=1).labels
        assert labels.tolist() == expected


def _one_flip(graph, labels):
    labels = labels.copy()
    steps, done = np.zeros(1, np.int64), np.zeros(1, np.bool_)
    local.steepest(graph.wiring, graph.potentials, labels, 1, 0, 1, steps, done)
    assert steps[0] == 1 - done[0]
    return labels, done[0]


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from([0.0, 0.3, 0.7]), st.booleans())
def test_steepest_takes_the_steepest_flip_each_time(seed, zeros, ties):
    graph, start = make(seed, zeros)
    if ties:  # whole numbers: sums are exact and many flips are equally good
        graph = graph.with_potentials(np.round(graph.potentials))
    path, labels, done = [start.tolist()], start, False
    while not done:
        expected = naive.steepest_flip(graph, labels.tolist())
        labels, done = _one_flip(graph, labels)
        assert done == (expected is None)
        assert done or labels.tolist() == expected
        path.append(labels.tolist())
    # In one go, with the gains kept between flips, it goes the same way.
    end = climb(graph.wiring, graph.potentials, start, steepest=True)
    assert end.labels.tolist() == path[-1]
    assert end.steps[0] == len(path) - 2


@pytest.mark.parametrize("states", [2, 4])
def test_steepest_keeps_its_gains_right_on_the_way(states):
    # The whole path in one go against one flip at a time from fresh conditionals.
    rng = np.random.default_rng(states)
    graph = grid(rng.normal(size=(7, 6, states)), rng.normal(size=(71, states, states)))
    labels, done, flips = rng.integers(graph.cards), False, 0
    end = climb(graph.wiring, graph.potentials, labels, steepest=True)
    while not done:
        labels, done = _one_flip(graph, labels)
        flips += not done
    np.testing.assert_array_equal(end.labels, labels)
    assert end.steps[0] == flips > 20


def test_steepest_on_a_large_grid():
    rng = np.random.default_rng(3)
    n = 60 if config.DISABLE_JIT else 300
    graph = grid(rng.normal(size=(n, n, 2)), rng.normal(size=(2 * n * (n - 1), 2, 2)))
    start = unary_labels(graph.wiring, graph.potentials)
    end = climb(graph.wiring, graph.potentials, start, steepest=True)
    assert end.done[0]
    assert end.steps[0] > n * n / 5
    assert graph.score(end.labels) > graph.score(start)
    # Sweeps compute all conditionals afresh and find nothing left to do.
    np.testing.assert_array_equal(
        climb(graph.wiring, graph.potentials, end.labels).labels, end.labels
    )


def test_rounding_left_by_huge_potentials_does_not_hide_a_flip():
    # Each hub flip adds and removes 1e9 at every leaf, which drowns gains of 1e-8.
    graph = FactorGraph()
    graph.add_variables(9, 2)
    graph.add_factor([0], [0.0, 2e10])
    for leaf in range(1, 9):
        graph.add_factor([leaf], [0.0, 1.1e-8 * leaf])
        graph.add_factor([0, leaf], [[1e9 + 0.1, 1e9 + 0.1], [0.0, 0.0]])
    start = np.zeros(9, np.int64)
    end = climb(graph.wiring, graph.potentials, start, steepest=True)
    assert end.done[0]
    assert end.labels.tolist() == [1] * 9


def test_rounding_left_by_huge_potentials_does_not_cause_a_flip():
    # After the hub's flip the leaf's kept scores read 3.6e-7 and 4.8e-7 for 3.5e-7 and 2.5e-7.
    graph = FactorGraph()
    graph.add_variables(2, 2)
    graph.add_factor([0], [0.0, 2e10])
    graph.add_factor([1], [3.5e-7, 2.5e-7])
    graph.add_factor([0, 1], [[1e9, 2.5e9], [0.0, 0.0]])
    assert (2.5e-7 + 2.5e9) - 2.5e9 > (3.5e-7 + 1e9) - 1e9
    end = climb(graph.wiring, graph.potentials, np.zeros(2, np.int64), steepest=True)
    assert end.labels.tolist() == [1, 0]
    assert end.steps[0] == 1


def test_a_lawful_end_beats_a_higher_score():
    result = ask(naive.trap(), restarts=12)
    assert result.labels.tolist() == [1, 1]
    assert result.value[0] == 0.0


def test_a_tie_up_to_rounding_keeps_the_state():
    graph = FactorGraph()
    graph.add_variable(None, 2)
    graph.add_factor([0], [0.1, 0.3])
    graph.add_factor([0], [0.2, 0.0])
    assert 0.1 + 0.2 > 0.3
    for steepest in (False, True):
        for state in (0, 1):
            labels = np.array([state])
            assert (
                climb(graph.wiring, graph.potentials, labels, steepest=steepest).labels[0] == state
            )
            assert labels[0] == state


@pytest.mark.parametrize("steepest", [False, True])
def test_many_graphs_side_by_side_and_threads(steepest, monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "graphs", 0)
    graphs = [make(seed, 0.3, n=1 + seed % 9)[0] for seed in range(12)]
    wiring = join([g.wiring for g in graphs])
    potentials = np.concatenate([g.potentials for g in graphs])
    start = np.random.default_rng(5).integers(wiring.cards)
    parts = np.split(start, wiring.graph_variables[1:-1])
    expected = np.concatenate(
        [
            climb(g.wiring, g.potentials, s, steepest=steepest).labels
            for g, s in zip(graphs, parts, strict=True)
        ]
    )
    for n_jobs in (1, 3):
        found = climb(wiring, potentials, start, steepest=steepest, n_jobs=n_jobs).labels
        np.testing.assert_array_equal(found, expected)


def test_the_first_start_follows_the_unary_factors():
    graph = FactorGraph()
    graph.add_variables(4, 3)
    graph.add_factor([0], [0.0, 2.0, 1.0])
    graph.add_factor([1], [0.0, 2.0, 1.0])
    graph.add_factor([1], [0.0, -np.inf, 0.0])
    graph.add_factor([2, 3], np.arange(9.0).reshape(3, 3))
    assert unary_labels(graph.wiring, graph.potentials).tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize("schedule", ["sequential", "steepest"])
def test_the_best_of_all_starts_counts_graph_by_graph(schedule):
    graphs = [make(seed, 0.2)[0] for seed in range(8)]
    wiring = join([g.wiring for g in graphs])
    problem = Problem(wiring, np.concatenate([g.potentials for g in graphs]), 0.0, 0.0)
    rng = np.random.default_rng(9)
    options = Options(restarts=6, schedule=schedule, rng=np.random.default_rng(9))
    steepest = schedule == "steepest"
    starts = [unary_labels(wiring, problem.potentials)]
    starts += [rng.integers(wiring.cards) for _ in range(6)]
    scores = [
        wiring.score(
            problem.potentials, climb(wiring, problem.potentials, s, steepest=steepest).labels
        )
        for s in starts
    ]
    assert len({int(i) for i in np.argmax(scores, axis=0)}) > 1
    result = ICM().run(problem, "map", options)
    np.testing.assert_array_equal(result.value, np.max(scores, axis=0))
    np.testing.assert_array_equal(result.value, wiring.score(problem.potentials, result.labels))
    np.testing.assert_array_equal(result.lower, result.value)
    assert result.upper is None
    assert result.converged.all()
    assert not result.exact
    assert result.status == "local optimum under single flips, best of 7 starts"


def test_bounded_by_the_true_maximum():
    found = 0
    for seed in range(10):
        graph, _ = make(seed, 0.2)
        result = ask(graph, restarts=5)
        best, _ = naive.value_and_distribution(graph, 0.0, 0.0)
        assert result.value[0] <= best + 1e-9
        found += result.value[0] > best - 1e-9
    assert found >= 8  # small graphs: five starts nearly always find it


@pytest.mark.parametrize("schedule", ["sequential", "steepest"])
def test_a_contradiction_is_named(schedule):
    result = ask(contradiction(), schedule=schedule, restarts=2)
    assert result.value[0] == result.lower[0] == -np.inf
    assert result.labels[2] == 1
    # One constraint is broken either way; the better score breaks the first.
    assert result.labels[0] != result.labels[1]
    assert result.status.startswith("no assignment free of forbidden combinations found;")


def test_limits_and_interrupts_are_named():
    rng = np.random.default_rng(0)
    graph = grid(rng.normal(size=(20, 20, 3)), rng.normal(size=(760, 3, 3)))
    assert "stopped short of a local optimum" in ask(graph, max_iter=1).status
    late = ask(graph, restarts=4, watch=Watch(time_limit=0.0))
    assert late.status == "local optimum under single flips, one start; time limit reached"

    def interrupt(fraction, words):
        if words.startswith("2 of"):
            raise KeyboardInterrupt

    result = ask(graph, restarts=4, watch=Watch(progress=interrupt))
    assert result.status == "local optimum under single flips, best of 2 starts; interrupted"
    assert result.value[0] == pytest.approx(graph.score(result.labels))


def test_same_seed_same_answer():
    graph, _ = make(0, 0.2, n=12)
    one, two = (ask(graph, restarts=3, rng=np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one.labels, two.labels)


def test_what_is_refused():
    graph, _ = make(0, 0.0)
    problem = Problem(graph.wiring, graph.potentials, 0.0, 0.0)
    icm = ICM()
    assert icm.refuses(problem, "map", Options()) == ""
    assert icm.refuses(problem, "marginal_map", Options()) == ""
    assert "'marginals'" in icm.refuses(problem, "marginals", Options())
    assert "one assignment" in icm.refuses(problem, "map", Options(k=3))
    warm = Problem(graph.wiring, graph.potentials, 1.0, 1.0)
    assert "temperature" in icm.refuses(warm, "map", Options())
    # Without hidden variables marginal MAP is MAP, whatever the hidden temperature.
    mixed = Problem(graph.wiring, graph.potentials, 0.0, 1.0)
    assert icm.refuses(mixed, "marginal_map", Options()) == ""
    graph.set_roles({0: "hidden"})
    mixed = Problem(graph.wiring, graph.potentials, 0.0, 1.0)
    assert "hidden" in icm.refuses(mixed, "marginal_map", Options())


def test_no_variables_and_no_factors():
    empty = ask(FactorGraph())
    assert empty.value.tolist() == [0.0]
    assert empty.labels.size == 0
    lone = FactorGraph()
    lone.add_variables(2, 3)
    for schedule in ("sequential", "steepest"):
        assert ask(lone, schedule=schedule).value.tolist() == [0.0]
