"""Elimination: the guard, the orders, odd graphs, and draws."""

from __future__ import annotations

import itertools
import re
import tracemalloc

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, chain, grid, hidden_grid, infer, infer_many, tree
from structlearn._src.common.errors import TooWideError
from structlearn._src.graph.joined import join
from structlearn._src.graph.wiring import HIDDEN
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.junction import EliminationTree, JunctionTree, order_for
from structlearn._src.inference.order import find_order, hopeless


def exact(graph, query="marginals", **options):
    return infer(graph, query, method="junction_tree", **options)


def free(graph):
    """No variable has to wait for another."""
    return np.zeros(graph.n_variables, bool)


def by_hand(graph, variables):
    """Separators of an elimination order, with sets of neighbours."""
    near = {v: set() for v in range(graph.n_variables)}
    for f in range(graph.n_factors):
        for v in graph.scope(f).tolist():
            near[v] |= set(graph.scope(f).tolist()) - {v}
    separators = []
    for v in variables.tolist():
        separators.append(near.pop(v))
        for u in separators[-1]:
            near[u] = (near[u] | separators[-1]) - {u, v}
    return separators


# ---- the guard ---------------------------------------------------------------------------


@pytest.mark.parametrize("side", [25, 60])
def test_too_wide_a_graph_is_refused_before_memory_is_taken(side):
    graph = grid(np.zeros((side, side, 4)), np.zeros((4, 4)))
    _ = graph.wiring, graph.potentials
    tracemalloc.start()
    with pytest.raises(TooWideError) as caught:
        exact(graph, "partition")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60 * 2**20  # the smallest table refused would fill 256 MiB
    text = str(caught.value)
    found = re.search(r"over (\d+) variables(.*) \(induced width (\d+)(.*)\): .* entries", text)
    width = int(found[3])
    assert int(found[1]) == width + 1
    # A large graph is not ordered to the end just to be refused.
    assert (found[2] == found[4] == " or more") == (side == 60)
    assert width >= (25 if side == 25 else 12)
    assert re.search(r"[\d.e+]+ [MGTP]iB in all", text)
    assert "max_table allows 3.36e+07 entries" in text
    assert "method='bp'" in text
    assert isinstance(caught.value, MemoryError)


def test_bytes_and_entries_of_a_refusal_are_right():
    """A clique of 12 three-state variables: 3^12 entries, messages of 3^11 + 3^10 + ... + 1."""
    graph = FactorGraph()
    graph.add_variables(12, 3)
    graph.add_factors([(i, j) for i in range(12) for j in range(i)], np.zeros((3, 3)))
    with pytest.raises(TooWideError) as caught:
        exact(graph, "partition", max_table=1000)
    size = 8 * sum(3**i for i in range(12)) / 2**20
    assert f"induced width 11): {3**12:.3g} entries" in str(caught.value)
    assert f"{size:.3g} MiB in all" in str(caught.value)


def test_the_limit_is_on_the_largest_table():
    graph = grid(np.zeros((3, 3, 2)), np.zeros((2, 2)))
    largest = round(find_order(graph.wiring, free(graph)).largest)
    assert largest == 16  # the treewidth of a 3 x 3 grid is 3
    assert exact(graph, "partition", max_table=largest).value == pytest.approx(9 * np.log(2))
    with pytest.raises(TooWideError, match="max_table allows 15 entries"):
        exact(graph, "partition", max_table=largest - 1)


def test_a_refusal_hands_over_to_the_next_method():
    rng = np.random.default_rng(0)
    graph = grid(rng.normal(size=(4, 4, 2)), rng.normal(size=(2, 2)))
    for query, method in (("marginals", "bp"), ("map", "portfolio"), ("samples", "gibbs")):
        assert infer(graph, query, max_table=8, random_state=0).method == method
        assert infer(graph, query, random_state=0).method == "junction_tree"


def test_hidden_before_outputs_can_be_too_wide_where_any_order_is_not():
    """Marginal MAP must eliminate the hidden layer of a grid first; MAP need not."""
    n = 6
    layers = np.zeros((n, n, 2)), np.zeros((n, n, 2))
    graph = hidden_grid(*layers, np.zeros((2, 2)), np.zeros((2, 2)))
    assert exact(graph, "map", max_table=2**10).value == pytest.approx(0.0)
    with pytest.raises(TooWideError):
        exact(graph, "marginal_map", max_table=2**20)


# ---- orders ------------------------------------------------------------------------------


def test_orders_are_complete_and_their_costs_are_right():
    rng = np.random.default_rng(1)
    for _ in range(40):
        graph = naive.random_graph(rng, int(rng.integers(1, 9)), 4, 4, hidden=0.5, min_card=2)
        later = graph.roles != HIDDEN
        found = find_order(graph.wiring, later)
        assert sorted(found.variables.tolist()) == list(range(graph.n_variables))
        assert found.complete
        separators = by_hand(graph, found.variables)
        borders = found.separator_offsets
        mine = [set(found.separators[a:b].tolist()) for a, b in itertools.pairwise(borders)]
        assert mine == separators
        sizes = [np.prod(graph.cards[list(s)]) for s in separators]
        tables = sizes * graph.cards[found.variables]
        assert found.largest == pytest.approx(tables.max())
        assert found.total == pytest.approx(tables.sum())
        assert found.messages == pytest.approx(sum(sizes))
        widths = {len(s) for s, t in zip(separators, tables, strict=True) if t == tables.max()}
        assert found.width in widths


def test_hidden_variables_come_first_where_temperatures_differ():
    rng = np.random.default_rng(2)
    for _ in range(20):
        graph = naive.random_graph(rng, 8, hidden=0.5)
        hidden = graph.roles == HIDDEN
        order = order_for(Problem(graph.wiring, graph.potentials, 0.0, 1.0), 2**20)
        assert (np.diff(hidden[order.variables].astype(int)) <= 0).all()


def test_trees_have_width_one():
    rng = np.random.default_rng(3)
    for n in (2, 10, 300):
        parents = [-1, *(int(rng.integers(i)) for i in range(1, n))]
        graph = tree(np.zeros((n, 3)), parents, np.zeros((3, 3)))
        found = find_order(graph.wiring, free(graph))
        assert found.width == 1
        assert found.largest == pytest.approx(9)


@pytest.mark.parametrize(("rows", "columns"), [(2, 9), (3, 8), (5, 5)])
def test_grids_have_their_treewidth(rows, columns):
    graph = grid(np.zeros((rows, columns, 2)), np.zeros((2, 2)))
    assert find_order(graph.wiring, free(graph)).width == rows


def test_the_same_graph_gives_the_same_order():
    graph = naive.random_graph(np.random.default_rng(4), 30)
    one, two = (find_order(graph.wiring, free(graph)) for _ in range(2))
    assert one.variables.tolist() == two.variables.tolist()


def test_a_search_that_meets_the_limit_stops():
    graph = grid(np.zeros((12, 12, 2)), np.zeros((2, 2)))
    assert not find_order(graph.wiring, free(graph), limit=64.0).complete


@pytest.mark.parametrize("limit", [2.0**5, 2.0**6, 2.0**9, 2.0**12])
@pytest.mark.parametrize("waiting", [False, True])
def test_a_quick_refusal_is_right(limit, waiting):
    """Where the widest of many graphs is over the limit, so is the search in all of them."""
    rng = np.random.default_rng(0)
    narrow, wide, few = (
        join([grid(np.zeros((rows, 9, 2)), np.zeros((2, 2))).wiring for rows in sizes])
        for sizes in ([3] * 90, [3] * 80 + [11] + [3] * 30, [3, 11, 3])
    )
    for wiring in (narrow, wide, few):
        later = rng.random(wiring.n_variables) < 0.1 * waiting
        found = find_order(wiring, later, limit)
        assert not (hopeless(wiring, later, limit) and found.complete)
        if wiring is not few and not waiting:  # for few variables more orders are tried
            assert hopeless(wiring, later, limit) != found.complete


# ---- odd graphs --------------------------------------------------------------------------


def check(graph, eps=(1.0, 1.0)):
    value, distribution = naive.value_and_distribution(graph, *eps)
    answer = exact(graph, temperatures=eps, factor_marginals=True)
    assert answer.value == pytest.approx(value, abs=1e-9)
    for v in range(graph.n_variables):
        right = naive.marginal(distribution, [v])
        np.testing.assert_allclose(answer.marginals[v], right, atol=1e-9)
    for f in range(graph.n_factors):
        right = naive.marginal(distribution, graph.scope(f).tolist())
        np.testing.assert_allclose(answer.factor_marginals[f], right, atol=1e-9)


def test_variables_with_very_many_states():
    """More states than a block of the elimination has entries, in the middle and at the end."""
    rng = np.random.default_rng(5)
    for cards in ((5000, 2), (2, 5000), (3, 4097, 2), (70, 80, 90)):
        graph = FactorGraph()
        graph.add_variables(len(cards), cards)
        for v in range(len(cards) - 1):
            graph.add_factor([v, v + 1], rng.normal(size=cards[v : v + 2]))
        if len(cards) == 3 and np.prod(cards) < 10**6:
            graph.add_factor([2, 0], rng.normal(size=(cards[2], cards[0])))
        check(graph)
        check(graph, (0.5, 0.5))


def test_separate_parts_and_lone_variables():
    rng = np.random.default_rng(6)
    graph = FactorGraph()
    graph.add_variables(7, [2, 3, 1, 2, 4, 2, 3])
    graph.add_factor([0, 1], rng.normal(size=(2, 3)))
    graph.add_factor([5, 3], rng.normal(size=(2, 2)))
    graph.add_factor([3], rng.normal(size=2))
    check(graph)
    best = exact(graph, "map")
    assert best.value == pytest.approx(naive.joint(graph).max())
    assert graph.score(best.assignment) == pytest.approx(best.value)


def test_one_variable():
    graph = FactorGraph()
    graph.add_variable("x", 3)
    assert exact(graph).value == pytest.approx(np.log(3))
    np.testing.assert_allclose(exact(graph).marginals["x"], 1 / 3)
    graph.add_factor(["x"], [0.0, 2.0, 1.0])
    assert dict(exact(graph, "map").assignment) == {"x": 1}


@pytest.mark.parametrize("method", ["auto", "junction_tree", "tree", "chain", "enumeration", "bp"])
def test_no_variables_at_all(method):
    graph = FactorGraph()
    for query in ("partition", "marginals", "map", "marginal_map"):
        answer = infer(graph, query, method=method)
        assert answer.value == 0.0
        assert not answer.assignment
        assert not answer.marginals
    if method != "bp":
        assert infer(graph, "samples", method=method, n_samples=4).samples.shape == (4, 0)


def test_everything_observed():
    graph = chain(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.5, 0.0], [0.25, 0.0]]))
    for query in ("partition", "marginals", "map"):
        answer = exact(graph, query, evidence={0: 1, 1: 0})
        assert answer.value == pytest.approx(2.0 + 3.0 + 0.25)
    assert dict(answer.assignment) == {0: 1, 1: 0}


@pytest.mark.parametrize("eps", [(1.0, 1.0), (0.0, 1.0), (0.3, 0.7)])
def test_a_batch_equals_each_alone(eps):
    rng = np.random.default_rng(7)
    graphs = [naive.random_graph(rng, int(rng.integers(1, 7)), hidden=0.4) for _ in range(30)]
    graphs.insert(5, FactorGraph())
    for graph in graphs:
        naive.tied_down(rng, graph)
    options = {"method": "junction_tree", "temperatures": eps, "factor_marginals": True}
    for graph, mine in zip(graphs, infer_many(graphs, **options), strict=True):
        alone = infer(graph, **options)
        assert mine.value == pytest.approx(alone.value, abs=1e-10)
        np.testing.assert_allclose(mine.marginals.flat, alone.marginals.flat, atol=1e-10)
        np.testing.assert_allclose(
            mine.factor_marginals.flat, alone.factor_marginals.flat, atol=1e-10
        )


def test_threads_change_nothing():
    rng = np.random.default_rng(8)
    graphs = [grid(rng.normal(size=(4, 4, 3)), rng.normal(size=(24, 3, 3))) for _ in range(120)]
    assert sum(len(g.potentials) for g in graphs) > 20_000
    one, two = (infer_many(graphs, method="junction_tree", n_jobs=n) for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        assert a.value == b.value
        np.testing.assert_array_equal(a.marginals.flat, b.marginals.flat)


def test_other_potentials_on_the_same_plan():
    rng = np.random.default_rng(9)
    graph = naive.random_graph(rng, 6)
    problem = Problem(graph.wiring, graph.potentials)
    plan = EliminationTree(problem, order_for(problem, 2**20))
    store = np.full(plan.stores.size, np.nan)
    for _ in range(3):
        other = graph.with_potentials(rng.normal(size=graph.potentials.size))
        value, _ = naive.value_and_distribution(other)
        assert plan.forward(other.potentials, store)[0] == pytest.approx(value, abs=1e-9)


# ---- draws -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["junction_tree", "tree", "chain", "enumeration"])
@pytest.mark.parametrize("eps", [1.0, 0.5])
def test_draws_follow_the_exact_distribution(method, eps):
    """Chi-square over all assignments at once, below the 99.9 % quantile."""
    rng = np.random.default_rng(10)
    kind = {"junction_tree": "loopy", "enumeration": "loopy"}.get(method, method)
    graph = naive.random_graph(rng, 4, max_arity=3, kind=kind)
    graph = graph.with_potentials(0.5 * graph.potentials)
    _, distribution = naive.value_and_distribution(graph, eps, eps)
    n = 20_000
    draws = infer(
        graph, "samples", method=method, n_samples=n, temperatures=(eps, eps), random_state=1
    ).samples
    assert draws.shape == (n, graph.n_variables)
    counts = np.zeros(distribution.shape)
    np.add.at(counts, tuple(draws.T), 1)
    expected = n * distribution
    often = expected > 5
    assert often.sum() > 5
    statistic = ((counts - expected)[often] ** 2 / expected[often]).sum()
    degrees = often.sum()
    # Wilson and Hilferty's approximation of the quantile.
    quantile = degrees * (1 - 2 / (9 * degrees) + 3.09 * np.sqrt(2 / (9 * degrees))) ** 3
    assert statistic < quantile


def test_draws_respect_hard_constraints_and_evidence():
    rng = np.random.default_rng(11)
    for _ in range(10):
        graph = naive.random_graph(rng, 6, zeros=0.3)
        table = naive.joint(graph)
        draws = infer(graph, "samples", n_samples=50, random_state=2).samples
        assert all(table[tuple(row)] > -np.inf for row in draws)
        known = dict(enumerate(draws[0].tolist()[:2]))
        given = infer(graph, "samples", n_samples=50, evidence=known, random_state=2).samples
        assert (given[:, :2] == draws[0, :2]).all()
        assert all(table[tuple(row)] > -np.inf for row in given)


# ---- k best ------------------------------------------------------------------------------


@pytest.mark.parametrize("zeros", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["loopy", "tree", "forest", "chain"])
def test_k_best_against_sorted_enumeration(kind, zeros):
    rng = np.random.default_rng(12)
    for _ in range(10):
        graph = naive.random_graph(rng, 5, kind=kind, zeros=zeros)
        table = naive.joint(graph)
        right = np.sort(table[np.isfinite(table)])[::-1]
        for k in (2, 7, 10**6):
            answer = exact(graph, "map", k=k)
            values = [value for value, _ in answer.k_best]
            np.testing.assert_allclose(values, right[:k], atol=1e-9)
            assert sorted(values, reverse=True) == values
            paths = [tuple(labels.array) for _, labels in answer.k_best]
            assert len(set(paths)) == len(paths)
            np.testing.assert_allclose([table[path] for path in paths], values, atol=1e-9)
        assert paths[0] == tuple(answer.assignment.array)


def test_k_best_of_many_graphs_are_those_of_each():
    rng = np.random.default_rng(13)
    graphs = [naive.random_graph(rng, n, kind="loopy", zeros=0.2) for n in (1, 4, 6)]
    for graph, answer in zip(
        graphs, infer_many(graphs, "map", method="junction_tree", k=9), strict=True
    ):
        alone = exact(graph, "map", k=9)
        assert [v for v, _ in answer.k_best] == pytest.approx([v for v, _ in alone.k_best])
        for (_, mine), (_, single) in zip(answer.k_best, alone.k_best, strict=True):
            assert dict(mine) == dict(single)


def test_k_best_take_no_more_memory_than_can_be_needed():
    """Not a number for every state that each of the assignments could differ by."""
    graph = grid(np.random.default_rng(0).normal(size=(3, 20, 20)), np.eye(20))
    exact(graph, "map", k=2)  # compiles, and makes the plan
    tracemalloc.start()
    found = exact(graph, "map", k=1000).k_best
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found) == 1000
    assert peak < 2**23  # with all of those it would be 42 MiB


def test_k_best_of_what_hidden_variables_are_summed_out_of_is_refused():
    graph = naive.random_graph(np.random.default_rng(14), 5, hidden=0.9)
    problem = Problem(graph.wiring, graph.potentials, 0.0, 1.0)
    assert "hidden" in JunctionTree().refuses(problem, "marginal_map", Options(k=3))
    assert "lower k" in JunctionTree().refuses(problem, "map", Options(k=3, max_table=1))


def test_run_refuses_by_itself():
    graph = grid(np.zeros((8, 8, 4)), np.zeros((4, 4)))
    problem = Problem(graph.wiring, graph.potentials)
    with pytest.raises(TooWideError):
        JunctionTree().run(problem, "partition", Options(max_table=100))
