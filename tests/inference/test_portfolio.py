"""The portfolio against enumeration, and marginal MAP against proved answers on larger models."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, grid, infer, infer_many
from structlearn._src.common.errors import QueryError
from structlearn._src.graph.joined import join
from structlearn._src.graph.wiring import condition
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.icm import climb
from structlearn._src.inference.order import cutset, find_order
from structlearn._src.inference.portfolio import OutputScore, ascend, ascend_by_blocks


def portfolio(graph, query="map", **options):
    return infer(graph, query, method="portfolio", random_state=0, **options)


def some_graphs(seed, count, zeros=0.0, hidden=0.0):
    rng = np.random.default_rng(seed)
    return [
        naive.random_graph(rng, int(rng.integers(2, 8)), max_arity=4, zeros=zeros, hidden=hidden)
        for _ in range(count)
    ]


def random_grid(rng, side, states=2):
    edges = 2 * side * (side - 1)
    nodes = rng.normal(0, 1, (side, side, states))
    return grid(nodes, rng.normal(0, 2, (edges, states, states)))


# ---- joint MAP ---------------------------------------------------------------------------


@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_best_assignment_between_its_bounds(zeros):
    graphs = some_graphs(1, 60, zeros)
    found = proved = 0
    for graph in graphs:
        answer = portfolio(graph)
        best = naive.joint(graph).max()
        assert len(answer.assignment) == graph.n_variables
        assert answer.value == pytest.approx(graph.score(answer.assignment), abs=1e-9)
        assert answer.lower == answer.value <= best + 1e-9
        assert answer.upper >= best - 1e-9 * (1 + abs(best))
        assert answer.exact == ("proved optimal" in answer.status)
        if answer.exact:
            assert answer.value == pytest.approx(best, abs=1e-6)
            proved += 1
        found += answer.value > best - 1e-9
    assert found >= 58
    assert proved >= 10


def test_roles_do_not_matter_for_joint_map():
    for graph in some_graphs(2, 10, hidden=0.5):
        assert portfolio(graph).value == pytest.approx(naive.joint(graph).max(), abs=1e-9)


def test_evidence():
    for graph in some_graphs(3, 20, hidden=0.3):
        table = naive.observed(naive.joint(graph), {0: 0})
        assert portfolio(graph, evidence={0: 0}).value == pytest.approx(table.max(), abs=1e-9)
        answer = portfolio(graph, "marginal_map", evidence={0: 0})
        values = naive.marginal_map_values(graph, table=table)
        assert answer.value <= values.max() + 1e-8


def test_many_at_once():
    graphs = some_graphs(4, 30)
    answers = infer_many(graphs, "map", method="portfolio", random_state=0)
    best = [naive.joint(g).max() for g in graphs]
    assert all(a.value <= b + 1e-9 <= a.upper + 1e-8 for a, b in zip(answers, best, strict=True))
    assert sum(a.value > b - 1e-9 for a, b in zip(answers, best, strict=True)) >= 28


def test_wide_grid_comes_close_to_its_bound():
    """Too wide for elimination with the memory allowed here, easy enough to be solved."""
    rng = np.random.default_rng(5)
    graph = grid(rng.normal(0, 2, (10, 10, 3)), rng.normal(0, 1, (180, 3, 3)))
    exact = infer(graph, "map").value
    answer = infer(graph, "map", max_table=3**4, random_state=0)
    assert answer.method == "portfolio"
    assert answer.value == pytest.approx(exact, abs=1e-9)
    assert exact - 1e-6 <= answer.upper < 1.05 * exact


# ---- marginal MAP ------------------------------------------------------------------------


@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_marginal_map_is_scored_by_the_true_objective(zeros):
    found = 0
    graphs = some_graphs(6, 40, zeros, hidden=0.5)
    for graph in graphs:
        answer = portfolio(graph, "marginal_map")
        values = naive.marginal_map_values(graph)
        outputs = np.flatnonzero(graph.roles != 1).tolist()
        assert list(answer.assignment) == outputs
        attained = values[tuple(answer.assignment[v] for v in outputs)]
        assert answer.value == pytest.approx(attained, abs=1e-8)
        assert answer.lower == answer.value <= values.max() + 1e-8
        assert answer.upper >= values.max() - 1e-8
        found += attained > values.max() - 1e-8
    assert found >= 38


def test_marginal_map_where_hidden_variables_are_too_wide_to_sum():
    rng = np.random.default_rng(7)
    graph = FactorGraph()
    graph.add_variables(2, 2)
    hidden = graph.add_variables(9, 2, role="hidden").tolist()
    pairs = [(a, b) for a in hidden for b in hidden if a < b]
    graph.add_factors(pairs, 0.2 * rng.normal(size=(len(pairs), 2, 2)))
    graph.add_factors([(i, j) for i in (0, 1) for j in hidden], rng.normal(size=(18, 2, 2)))
    answer = portfolio(graph, "marginal_map", max_table=2**4)
    assert "Bethe approximation" in answer.status
    assert answer.lower == -np.inf
    assert not answer.exact
    values = naive.marginal_map_values(graph)
    assert values[tuple(answer.assignment.values())] == pytest.approx(values.max())
    assert answer.value == pytest.approx(values.max(), abs=0.05)


def test_marginal_map_at_another_hidden_temperature():
    for graph in some_graphs(8, 15, hidden=0.5):
        answer = portfolio(graph, "marginal_map", temperatures=(0.0, 0.3))
        values = naive.marginal_map_values(graph, 0.3)
        attained = values[tuple(answer.assignment.values())]
        assert answer.value == pytest.approx(attained, abs=1e-8)
        assert answer.value <= values.max() + 1e-8


def test_clamped_values_are_sums_over_hidden_variables():
    graphs = some_graphs(9, 20, zeros=0.2, hidden=0.5)
    wiring = join([g.wiring for g in graphs])
    problem = Problem(wiring, np.concatenate([g.potentials for g in graphs]), 0.0, 1.0)
    score = OutputScore(problem, Options())
    assert score.exact
    rng = np.random.default_rng(9)
    for _ in range(5):
        labels = rng.integers(0, wiring.cards)
        right = []
        for g, graph in enumerate(graphs):
            mine = labels[wiring.graph_variables[g] : wiring.graph_variables[g + 1]]
            values = naive.marginal_map_values(graph)
            right.append(values[tuple(mine[graph.roles != 1])])
        np.testing.assert_allclose(score.value(labels), right, atol=1e-9)


def test_coordinate_ascent_ends_where_no_single_output_can_improve():
    graphs = some_graphs(10, 15, hidden=0.5)
    wiring = join([g.wiring for g in graphs])
    problem = Problem(wiring, np.concatenate([g.potentials for g in graphs]), 0.0, 1.0)
    score = OutputScore(problem, Options())
    start = np.zeros(wiring.n_variables, np.int64)
    end = ascend(problem, score, start, Options())
    before, after = (score.value(labels) for labels in (start, end))
    assert (after >= before - 1e-12).all()
    for g, graph in enumerate(graphs):
        mine = end[wiring.graph_variables[g] : wiring.graph_variables[g + 1]]
        here = mine[graph.roles != 1].tolist()
        values = naive.marginal_map_values(graph)
        for v in range(len(here)):
            around = values[(*here[:v], slice(None), *here[v + 1 :])]
            assert values[tuple(here)] >= around.max() - 1e-8


# ---- how it behaves ----------------------------------------------------------------------


def test_repeats_with_its_random_state():
    graph = some_graphs(11, 1)[0]
    one, two = (portfolio(graph) for _ in range(2))
    assert dict(one.assignment) == dict(two.assignment)
    assert (one.value, one.upper, one.status) == (two.value, two.upper, two.status)


def test_without_a_possible_assignment_says_so():
    """Three mutually different neighbours in two states cannot be."""
    graph = FactorGraph()
    graph.add_variables(3, 2)
    differ = np.where(np.eye(2, dtype=bool), -np.inf, 0.0)
    graph.add_factors([(0, 1), (1, 2), (2, 0)], differ)
    answer = portfolio(graph)
    assert answer.value == -np.inf
    assert not answer.exact
    assert "no assignment free of forbidden combinations" in answer.status


def test_refuses_other_questions():
    graph = some_graphs(12, 1)[0]
    for query in ("partition", "marginals", "samples"):
        with pytest.raises(QueryError, match=f"not '{query}'"):
            portfolio(graph, query)
    with pytest.raises(QueryError, match="k best"):
        portfolio(graph, k=2)


def test_no_variables_at_all():
    for query in ("map", "marginal_map"):
        answer = portfolio(FactorGraph(), query)
        assert answer.value == 0.0
        assert dict(answer.assignment) == {}


# ---- larger models with proved answers ---------------------------------------------------


def models(folder, name):
    """Graphs of a bench file, and the proved values of their marginal MAP."""
    with np.load(folder / "bench_gm" / f"{name}.npz") as data:
        fields = {k: data[k] for k in data.files}
    graphs = []
    for unary, pair in zip(fields["unary"], fields["pair"], strict=True):
        graph = FactorGraph()
        graph.add_variables(len(unary), unary.shape[1])
        graph.set_roles({int(h): "hidden" for h in fields["h"]})
        graph.add_factors(np.arange(len(unary))[:, None], unary)
        graph.add_factors(fields["edges"], pair)
        graphs.append(graph)
    with np.load(folder / "bench_gm" / f"{name.rsplit('_', 1)[0]}_mmap.npz") as data:
        return graphs, data["value"]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "by_portfolio", "by_messages"),
    [("hiddenchain40_k4_x100", 97, 94), ("hiddengrid6x6x2_k4_x20", 19, 17)],
)
def test_marginal_map_on_hidden_chains_and_grids(data_folder, name, by_portfolio, by_messages):
    graphs, best = models(data_folder, name)
    for method, needed in (("portfolio", by_portfolio), ("bp", by_messages)):
        answers = infer_many(graphs, "marginal_map", method=method, damping=0.3, random_state=0)
        value = np.array([a.value for a in answers])
        assert (value <= best + 1e-6).all()
        assert (value > best - 1e-6).sum() >= needed
        assert all(a.lower == a.value for a in answers)


# ---- block ascent ------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [8, 64, 512])
def test_what_a_cutset_leaves_has_small_tables(limit):
    rng = np.random.default_rng(0)
    for _ in range(10):
        wiring = random_grid(rng, 8).wiring
        cut = cutset(wiring, limit, rng)
        rest = condition(wiring, np.zeros(wiring.table_offsets[-1]), np.where(cut, 0, -1)).wiring
        order = find_order(rest, np.zeros(rest.n_variables, np.bool_))
        # The second search is greedy anew: it may do a little worse than the one that cut.
        assert order.largest <= 4 * limit
        assert cut.any()
        assert not cut.all()


def test_nothing_is_cut_from_a_narrow_graph():
    wiring = random_grid(np.random.default_rng(1), 4).wiring
    assert not cutset(wiring, 2**12, np.random.default_rng(0)).any()


def test_cutsets_differ_from_round_to_round():
    wiring = random_grid(np.random.default_rng(1), 10).wiring
    rng = np.random.default_rng(0)
    assert len({cutset(wiring, 2**5, rng).tobytes() for _ in range(5)}) > 1


def test_block_ascent_never_lowers_the_score_and_finds_optima_that_flips_miss():
    rng = np.random.default_rng(2)
    stuck = found = 0
    for _ in range(20):
        graph = random_grid(rng, 4)
        best, _ = naive.value_and_distribution(graph, 0.0, 0.0)
        labels = climb(graph.wiring, graph.potentials, rng.integers(graph.cards)).labels
        start = graph.score(labels)
        problem = Problem(graph.wiring, graph.potentials, 0.0, 0.0)
        value = graph.score(ascend_by_blocks(problem, labels, 8, Options(rng=rng)))
        assert value >= start
        stuck += start < best - 1e-9
        found += value > best - 1e-9
    assert stuck >= 10  # flips alone rarely get there
    assert found >= 18


def test_bounds_over_time_close_in_on_the_value():
    rng = np.random.default_rng(3)
    graphs = [grid(rng.normal(size=(n, n, 3)), rng.normal(size=(3, 3))) for n in (5, 7)]
    fixed = [{0: 1}, {}]
    for answer in infer_many(graphs, "map", method="portfolio", evidence=fixed, random_state=0):
        seconds, lower, upper = answer.bounds.T
        assert len(seconds) == answer.iterations
        assert (np.diff(seconds) >= 0).all()
        assert (np.diff(lower) >= 0).all()
        assert (np.diff(upper[np.isfinite(upper)]) <= 1e-9).all()
        assert (lower[-1], upper[-1]) == pytest.approx((answer.lower, answer.upper))
        assert (lower <= answer.value + 1e-9).all()
        assert (upper >= answer.value - 1e-9).all()
    assert infer(graphs[0], "map", method="junction_tree").bounds is None
