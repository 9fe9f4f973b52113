"""Sizes that are refused by name, before memory or digits run out, and limits of time."""

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, chain, grid, infer, pairwise, read_uai, to_networkx
from structlearn.errors import GraphError, PotentialError, QueryError, TooWideError

RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


@pytest.mark.parametrize("size", [1e13, -1e13, 1e308, -1e308])
def test_potentials_that_drown_all_others_are_refused(size):
    table = np.array([[size, 0.0], [0.0, 0.0]])
    with pytest.raises(PotentialError, match="tables"):
        pairwise(np.zeros((4, 2)), RING, table)
    with pytest.raises(PotentialError, match="potentials"):
        pairwise(np.zeros((4, 2)), RING, 0 * table).with_potentials(np.full(24, size))


@pytest.mark.parametrize("method", ["auto", "tree", "junction_tree", "enumeration", "gibbs"])
def test_more_draws_than_memory_holds_are_refused(method):
    graph = chain(np.zeros((3, 2)), np.eye(2))
    with pytest.raises(
        TooWideError, match=r"n_samples=1000000000000 draws need 3000000000000 .*fewer"
    ):
        infer(graph, "samples", method=method, n_samples=10**12)
    with pytest.raises(TooWideError, match="fewer"):
        infer(graph, "samples", method=method, n_samples=10**30)


def test_masked_tables_are_refused():
    graph = FactorGraph()
    graph.add_variable("a", 2)
    with pytest.raises(PotentialError, match="mask"):
        graph.add_factor(["a"], np.ma.masked_equal([1.0, -9999.0], -9999.0))
    graph.add_factor(["a"], np.ma.masked_equal([1.0, 2.0], -9999.0))


@pytest.mark.parametrize("size", [1e6, 1e9, 1e11, 9e11])
def test_large_rewards_in_a_cycle_leave_marginals_that_sum_to_one(size):
    rng = np.random.default_rng(0)
    graph = pairwise(rng.normal(size=(4, 2)), RING, size + rng.normal(size=(4, 2, 2)))
    plain = pairwise(
        graph.potentials[:8].reshape(4, 2), RING, graph.potentials[8:].reshape(4, 2, 2) - size
    )
    for method in ("junction_tree", "enumeration", "bp", "trw", "gibbs"):
        found = infer(graph, "marginals", method=method, factor_marginals=True, random_state=0)
        np.testing.assert_allclose(found.marginals.array().sum(axis=1), 1.0, atol=1e-12)
        assert found.factor_marginals[5].sum() == pytest.approx(1.0, abs=1e-12)
    right = infer(plain, "marginals", method="enumeration")
    exact = infer(graph, "marginals", method="junction_tree")
    np.testing.assert_allclose(exact.marginals.flat, right.marginals.flat, atol=1e-15 * size + 1e-9)


def test_what_users_hold_is_not_what_the_graph_holds():
    given = np.zeros(24)
    graph = pairwise(np.zeros((4, 2)), RING, np.eye(2)).with_potentials(given)
    before = infer(graph, "partition").value
    given[:] = 7.0
    assert infer(graph, "partition").value == before
    for array in (graph.potentials, graph.table(0)):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 7.0


@pytest.mark.parametrize("states", [2**31, 2**26])
def test_a_small_file_cannot_ask_for_all_memory(tmp_path, states):
    path = tmp_path / "large.uai"
    path.write_text(f"MARKOV 1 {states} 0")
    graph = read_uai(path)
    for query in ("partition", "marginals", "map", "samples"):
        with pytest.raises(TooWideError, match="max_table"):
            infer(graph, query)


def test_more_best_assignments_than_there_are():
    graph = chain(np.arange(6.0).reshape(3, 2), np.eye(2))
    scores = np.sort(naive.joint(graph).ravel())[::-1]
    found = infer(graph, "map", k=10**9).k_best
    np.testing.assert_allclose([value for value, _ in found], scores)


def test_more_best_assignments_than_memory_holds():
    long = chain(np.zeros((100, 3)), np.eye(3))
    with pytest.raises((QueryError, TooWideError), match="k="):
        infer(long, "map", k=10**9, method="chain")
    assert len(infer(long, "map", k=5).k_best) == 5


def test_wrong_things_are_named():
    with pytest.raises(PotentialError, match="3 tables were given for 2 factors"):
        chain(np.zeros((3, 2)), np.zeros((3, 2, 2)))
    with pytest.raises(GraphError, match="FactorGraph"):
        to_networkx(None)


@pytest.mark.parametrize("query", ["marginals", "map"])
@pytest.mark.parametrize("method", ["bp", "trw"])
def test_the_clock_is_looked_at_after_every_sweep(query, method):
    rng = np.random.default_rng(0)
    graph = grid(rng.normal(size=(6, 6, 2)), 3.0 * np.eye(2))
    answer = infer(graph, query, method=method, time_limit=1e-9, random_state=0)
    assert answer.ended == "time"
    assert answer.iterations == 1
    assert answer.upper == np.inf


def test_no_time_is_no_time_to_look_for_an_order():
    rng = np.random.default_rng(0)
    graph = grid(rng.normal(size=(6, 6, 2)), np.eye(2))
    assert infer(graph, "marginals", time_limit=1e-9).method == "bp"
    assert infer(graph, "marginals", time_limit=1e9).method == "junction_tree"


def test_single_flips_end_with_the_clock():
    n = 400
    graph = FactorGraph()
    graph.add_variables(n, 2)
    graph.add_factor([n - 1], [0.0, 9.0])
    graph.add_factors([[i, i + 1] for i in range(n - 1)], 5.0 * np.eye(2))
    for schedule in ("sequential", "steepest"):
        whole = infer(graph, "map", method="icm", schedule=schedule, time_limit=1e9, restarts=0)
        plain = infer(graph, "map", method="icm", schedule=schedule, restarts=0)
        assert whole.value == plain.value
        assert whole.iterations == plain.iterations


@pytest.mark.parametrize("eps", [None, (0.0, 0.0), (0.4, 0.4)])
def test_a_shared_table_gives_the_answers_of_its_copies(eps):
    rng = np.random.default_rng(1)
    nodes, table = rng.normal(size=(5, 3)), rng.normal(size=(3, 3))
    one, many = chain(nodes, table), chain(nodes, np.repeat(table[None], 4, axis=0))
    a, b = (infer(g, factor_marginals=True, temperatures=eps) for g in (one, many))
    assert a.value == pytest.approx(b.value, abs=1e-12)
    np.testing.assert_allclose(a.marginals.flat, b.marginals.flat, atol=1e-12)
    np.testing.assert_allclose(a.factor_marginals.flat, b.factor_marginals.flat, atol=1e-12)
    assert dict(infer(one, "map", k=3).k_best[2][1]) == dict(infer(many, "map", k=3).k_best[2][1])
    given = {1: 2, 3: 0}
    a, b = (infer(g, evidence=given).marginals.flat for g in (one, many))
    np.testing.assert_allclose(a, b, atol=1e-12)
    np.testing.assert_array_equal(one.potentials, many.potentials)
    assert infer(one, "partition").value == pytest.approx(infer(many, "partition").value)


def test_a_shared_table_is_held_once():
    """Copies of this table would take 384 MB."""
    import tracemalloc

    states = 400
    rng = np.random.default_rng(2)
    tracemalloc.start()
    graph = chain(rng.normal(size=(300, states)), rng.normal(size=(states, states)))
    value = infer(graph, "marginals", n_jobs=1).value
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(value)
    assert most < 40e6
