"""Exact inference on chains against enumeration and a slow recursion."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from structlearn import FactorGraph
from structlearn._src.common import threads
from structlearn._src.common.arrays import offsets_of
from structlearn._src.common.errors import QueryError
from structlearn._src.graph.joined import join
from structlearn._src.inference import chain_batch
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.chain import ChainInference
from structlearn._src.inference.chain_batch import Chains

CHAIN = ChainInference()


def ask(graph, query, eps=1.0, **options):
    problem = Problem(graph.wiring, graph.potentials, eps, eps)
    chosen = Options(**options)
    assert CHAIN.refuses(problem, query, chosen) == ""
    return CHAIN.run(problem, query, chosen)


def some_paths(rng, zeros=0.0):
    """Disjoint paths and lone variables, some factors doubled, all directions, mixed cards."""
    graph = FactorGraph()
    cards = rng.integers(1, 4, int(rng.integers(1, 8)))
    graph.add_variables(len(cards), cards)
    safe = rng.integers(0, cards)

    def add(scope):
        table = rng.normal(0, 2, cards[scope])
        table[rng.random(table.shape) < zeros] = -np.inf
        table[tuple(safe[scope])] = rng.normal()
        graph.add_factor([int(v) for v in scope], table)

    order = rng.permutation(len(cards))
    for pair in itertools.pairwise(order):
        if rng.random() < 0.7:
            for _ in range(int(rng.integers(1, 3))):
                add(rng.permutation(pair))
    for v in rng.integers(0, len(cards), len(cards)):
        add(np.array([v]))
    return graph


def check_marginals(graph, result, distribution, atol=1e-9):
    wiring = graph.wiring
    for v in range(graph.n_variables):
        mine = result.beliefs[wiring.belief_offsets[v] : wiring.belief_offsets[v + 1]]
        np.testing.assert_allclose(mine, naive.marginal(distribution, [v]), atol=atol)
    for f in range(graph.n_factors):
        mine = result.factor_beliefs[wiring.table_offsets[f] : wiring.table_offsets[f + 1]]
        right = naive.marginal(distribution, list(graph.scope(f))).ravel()
        np.testing.assert_allclose(mine, right, atol=atol)


def log_partition(nodes, edges, borders):
    """Slow log-domain recursion in long doubles; `edges` is one table or one per edge."""
    nodes, edges, out = nodes.astype(np.longdouble), edges.astype(np.longdouble), []
    for c, (start, stop) in enumerate(itertools.pairwise(borders)):
        alpha = nodes[start]
        for t in range(start + 1, stop):
            table = edges[0] if len(edges) == 1 else edges[t - 1 - c]
            alpha = nodes[t] + np.logaddexp.reduce(alpha[:, None] + table, axis=0)
        out.append(np.logaddexp.reduce(alpha))
    return np.array(out, float)


def ragged(rng, n_chains, longest, K):
    borders = offsets_of(rng.integers(1, longest + 1, n_chains))
    return rng.normal(size=(borders[-1], K)), borders


# ---- against enumeration -----------------------------------------------------------------


@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize("make", [naive.random_graph, some_paths])
def test_value_and_marginals(make, zeros):
    rng = np.random.default_rng(5)
    for _ in range(25):
        kind = {"kind": "chain"} if make is naive.random_graph else {}
        graph = make(rng, zeros=zeros, **kind)
        for eps in (1.0, 0.3, 1e-3, 0.0):
            value, distribution = naive.value_and_distribution(graph, eps, eps)
            result = ask(graph, "marginals", eps, factor_marginals=True)
            np.testing.assert_allclose(result.value, value, rtol=1e-12, atol=1e-12)
            check_marginals(graph, result, distribution)
            np.testing.assert_allclose(
                ask(graph, "partition", eps).value, value, rtol=1e-12, atol=1e-12
            )


def test_result_is_marked_exact():
    result = ask(some_paths(np.random.default_rng(0)), "partition")
    assert result.exact
    assert result.lower == result.upper == result.value
    assert result.converged.all()
    assert (result.iterations == 1).all()
    assert len(result.beliefs) == 0
    assert len(result.factor_beliefs) == 0


def test_best_labels_reach_the_value():
    rng = np.random.default_rng(6)
    for _ in range(30):
        graph = some_paths(rng, zeros=rng.choice([0.0, 0.5]))
        result = ask(graph, "map", 0.0)
        value, _ = naive.value_and_distribution(graph, 0.0, 0.0)
        np.testing.assert_allclose(result.value, value, rtol=1e-13, atol=1e-13)
        np.testing.assert_allclose(naive.score(graph, result.labels), value, atol=1e-12)


def test_ties_go_to_the_lowest_label_from_the_end():
    graph = FactorGraph()
    graph.add_variables(3, 2)
    graph.add_factors([(0, 1), (1, 2)], [[0.0, 1.0], [1.0, 0.0]])
    assert ask(graph, "map", 0.0).labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_k_best_against_sorted_enumeration(zeros):
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 5):
        graph = naive.random_graph(rng, n, 3, kind="chain", zeros=zeros)
        right = np.sort([naive.score(graph, x) for x in naive.assignments(graph.cards)])[::-1]
        right = right[right > -np.inf]
        for k in (2, 7, 300):
            result = ask(graph, "map", 0.0, k=k)
            values = [value[0] for value, _ in result.best]
            np.testing.assert_allclose(values, right[:k], atol=1e-12)
            assert len({tuple(labels) for _, labels in result.best}) == len(values)
            scores = [naive.score(graph, labels) for _, labels in result.best]
            np.testing.assert_allclose(scores, values, atol=1e-12)
            np.testing.assert_array_equal(result.best[0][1], result.labels)


def test_k_best_of_many_graphs_pads_those_with_few():
    rng = np.random.default_rng(8)
    graphs = [naive.random_graph(rng, n, 3, kind="chain") for n in (1, 4, 2)]
    both = Problem(*joined(graphs), 0.0, 0.0)
    result = CHAIN.run(both, "map", Options(k=20))
    assert len(result.best) == 20
    for g, graph in enumerate(graphs):
        own = ask(graph, "map", 0.0, k=20).best
        first, last = both.wiring.graph_variables[g : g + 2]
        for r, (value, labels) in enumerate(result.best):
            if r < len(own):
                assert value[g] == own[r][0][0]
                np.testing.assert_array_equal(labels[first:last], own[r][1])
            else:
                assert value[g] == -np.inf
                assert (labels[first:last] == -1).all()


def joined(graphs):
    return join([g.wiring for g in graphs]), np.concatenate([g.potentials for g in graphs])


def test_many_graphs_are_answered_one_by_one():
    rng = np.random.default_rng(9)
    graphs = [some_paths(rng, zeros=0.3) for _ in range(12)]
    wiring, potentials = joined(graphs)
    result = CHAIN.run(Problem(wiring, potentials), "marginals", Options(factor_marginals=True))
    own = [ask(g, "marginals", factor_marginals=True) for g in graphs]
    np.testing.assert_allclose(result.value, [r.value[0] for r in own], atol=1e-12)
    for field in ("beliefs", "factor_beliefs"):
        right = np.concatenate([getattr(r, field) for r in own])
        np.testing.assert_allclose(getattr(result, field), right, atol=1e-12)


# ---- draws -------------------------------------------------------------------------------


def chi_square(counts, expected):
    """Pearson's statistic over cells of at least 5, in standard deviations from its mean."""
    assert counts[expected == 0].sum() == 0
    big = expected >= 5
    seen = np.append(counts[big], counts[~big].sum())
    right = np.append(expected[big], expected[~big].sum())
    seen, right = seen[right > 0], right[right > 0]
    free = max(len(right) - 1, 1)
    return (((seen - right) ** 2 / right).sum() - free) / np.sqrt(2 * free)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_draws_follow_the_joint_distribution(wide, zeros):
    rng = np.random.default_rng(10)
    for _ in range(3):
        graph = naive.random_graph(rng, 4, 3, kind="chain", zeros=zeros)
        if wide:  # one hopeless state, so far down that sums need logs
            graph.add_factor([2], [0.0, -400.0, *[0.0] * (graph.cards[2] - 2)])
        _, distribution = naive.value_and_distribution(graph)
        draws = ask(graph, "samples", n_samples=20_000, rng=rng).draws
        assert draws.shape == (20_000, 4)
        cell = np.ravel_multi_index(tuple(draws.T), distribution.shape)
        counts = np.bincount(cell, minlength=distribution.size)
        assert chi_square(counts, 20_000 * distribution.ravel()) < 5


def test_draws_in_blocks_are_the_same_draws():
    rng = np.random.default_rng(11)
    batch = Chains(rng.normal(size=(7, 3)), rng.normal(size=(1, 3, 3)), np.array([0, 3, 7]))
    whole = batch.draw(50, np.random.default_rng(1))
    values = np.empty(2)
    parts = batch.draw(50, np.random.default_rng(1), uniforms=3 * 7, values=values)
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_array_equal(values, batch.log_partition())


def test_draws_at_temperature_zero_are_the_best_labels():
    graph = some_paths(np.random.default_rng(12))
    best = ask(graph, "map", 0.0).labels
    draws = ask(graph, "samples", 0.0, n_samples=3).draws
    np.testing.assert_array_equal(draws, np.tile(best, (3, 1)))


# ---- numbers at the edge -----------------------------------------------------------------


def test_long_chain_against_slow_recursion():
    rng = np.random.default_rng(13)
    nodes, edges = rng.normal(0, 2, (100_000, 3)), rng.normal(0, 2, (1, 3, 3))
    borders = np.array([0, 100_000])
    right = log_partition(nodes, edges, borders)
    values, beliefs, _ = Chains(nodes, edges, borders).marginals()
    np.testing.assert_allclose(values, right, rtol=1e-12)
    np.testing.assert_allclose(beliefs.sum(axis=1), 1.0, atol=1e-11)
    np.testing.assert_allclose(Chains(nodes, edges, borders).log_partition(), right, rtol=1e-12)


@pytest.mark.parametrize("scale", [30.0, 300.0, 1e4, 1e6])
def test_extreme_potentials(scale):
    rng = np.random.default_rng(14)
    for zeros in (0.0, 0.4):
        graph = naive.random_graph(rng, 6, 3, kind="chain", zeros=zeros)
        graph = graph.with_potentials(scale * graph.potentials)
        value, distribution = naive.value_and_distribution(graph)
        result = ask(graph, "marginals", factor_marginals=True)
        np.testing.assert_allclose(result.value, value, rtol=1e-12)
        check_marginals(graph, result, distribution, atol=1e-9 + 1e-15 * scale)


def test_extreme_chain_among_tame_ones_changes_nothing_else():
    rng = np.random.default_rng(15)
    nodes, borders = ragged(rng, 20, 6, 4)
    edges = rng.normal(size=(1, 4, 4))
    tame = Chains(nodes, edges, borders).marginals()
    wild = nodes.copy()
    wild[borders[7] : borders[8]] *= 1e4
    values, beliefs, _ = Chains(wild, edges, borders).marginals()
    np.testing.assert_allclose(values, log_partition(wild, edges, borders), rtol=1e-12)
    others = np.arange(20) != 7
    np.testing.assert_array_equal(values[others], tame[0][others])
    rows = np.repeat(others, np.diff(borders))
    np.testing.assert_array_equal(beliefs[rows], tame[1][rows])


def test_state_that_fades_away_and_is_then_the_only_one_left():
    n = 400
    nodes = np.tile([0.0, -5.0], (n, 1))
    nodes[-1] = [-np.inf, 0.0]
    stay = np.array([[[0.0, -np.inf], [-np.inf, 0.0]]])
    values, beliefs, pairs = Chains(nodes, stay, np.array([0, n])).marginals("each")
    np.testing.assert_allclose(values, -5.0 * (n - 1))
    np.testing.assert_allclose(beliefs, np.tile([0.0, 1.0], (n, 1)), atol=1e-12)
    right = np.tile([[0.0, 0.0], [0.0, 1.0]], (n - 1, 1, 1))
    np.testing.assert_allclose(pairs, right, atol=1e-12)


def test_state_that_was_never_possible_does_not_overflow():
    n = 400
    nodes = np.tile([0.0, 5.0], (n, 1))
    nodes[0] = [0.0, -np.inf]
    stay = np.array([[[0.0, -np.inf], [-np.inf, 0.0]]])
    values, beliefs, _ = Chains(nodes, stay, np.array([0, n])).marginals("sum")
    assert values == 0.0
    np.testing.assert_array_equal(beliefs, np.tile([1.0, 0.0], (n, 1)))


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_impossible_graph(scale):
    graph = FactorGraph()
    graph.add_variables(4, 2)
    graph.add_factor([0], [0.0, -np.inf])
    graph.add_factor([0, 1], [[-np.inf, -np.inf], [scale, 0.0]])
    graph.add_factor([2, 3], [[scale, -scale], [0.0, 0.0]])
    fine = some_paths(np.random.default_rng(16))
    wiring, potentials = joined([graph, fine])
    for eps in (1.0, 0.0):
        problem = Problem(wiring, potentials, eps, eps)
        options = Options(factor_marginals=True, n_samples=2)
        result = CHAIN.run(problem, "marginals", options)
        assert result.value[0] == -np.inf
        right, _ = naive.value_and_distribution(fine, eps, eps)
        np.testing.assert_allclose(result.value[1], right)
        assert (result.beliefs[:8] == 0).all()
        assert (result.factor_beliefs[:10] == 0).all()
        assert result.beliefs[8:].sum() == pytest.approx(fine.n_variables)
        draws = CHAIN.run(problem, "samples", options).draws
        assert (draws[:, :4] == -1).all()
        assert (draws[:, 4:] >= 0).all()
    labels = CHAIN.run(problem, "map", Options()).labels
    assert (labels[:4] == -1).all()
    assert (labels[4:] >= 0).all()


def test_small_temperature_approaches_the_maximum():
    rng = np.random.default_rng(17)
    for _ in range(10):
        graph = naive.random_graph(rng, 6, 3, kind="chain", zeros=0.2)
        best = ask(graph, "partition", 0.0).value
        near = ask(graph, "marginals", 1e-3)
        room = 1e-3 * np.log(graph.cards).sum()
        assert best - 1e-12 <= near.value <= best + room
        point = ask(graph, "marginals", 0.0).beliefs
        two = [value[0] for value, _ in ask(graph, "map", 0.0, k=2).best]
        lost = np.exp(-(two[0] - two[1]) / 1e-3) * np.prod(graph.cards)
        np.testing.assert_allclose(near.beliefs, point, atol=lost + 1e-9)


# ---- batches -----------------------------------------------------------------------------


@pytest.mark.parametrize("K", [1, 2, 5, 8, 11])
def test_shared_table_equals_copies_of_it(K):
    rng = np.random.default_rng(18)
    nodes, borders = ragged(rng, 15, 7, K)
    table = rng.normal(size=(1, K, K))
    copies = np.repeat(table, len(nodes) - 15, axis=0)
    one, many = Chains(nodes, table, borders), Chains(nodes, copies, borders)
    for a, b in zip(one.marginals("each"), many.marginals("each"), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)
    np.testing.assert_allclose(one.log_partition(), log_partition(nodes, table, borders))
    for a, b in zip(one.best() + one.k_best(3), many.best() + many.k_best(3), strict=True):
        np.testing.assert_array_equal(a, b)
    draws = [c.draw(4, np.random.default_rng(0)) for c in (one, many)]
    np.testing.assert_array_equal(*draws)


@pytest.mark.parametrize("scale", [1.0, 500.0])
@pytest.mark.parametrize("shared", [True, False])
def test_summed_edge_marginals(scale, shared):
    rng = np.random.default_rng(19)
    nodes, borders = ragged(rng, 15, 7, 5)
    edges = rng.normal(size=(1 if shared else len(nodes) - 15, 5, 5))
    nodes[::3] *= scale  # some chains in logs, others not
    batch = Chains(nodes, edges, borders)
    each, total = batch.marginals("each")[2], batch.marginals("sum")[2]
    assert each.shape == (len(nodes) - 15, 5, 5)
    np.testing.assert_allclose(total[0], each.sum(axis=0), atol=1e-12)


def test_slope_of_the_log_partition_is_the_marginals():
    rng = np.random.default_rng(20)
    nodes, borders = ragged(rng, 4, 5, 3)
    edges = rng.normal(size=(1, 3, 3))
    _, beliefs, pairs = Chains(nodes, edges, borders).marginals("sum")
    by_nodes, by_edges = rng.normal(size=nodes.shape), rng.normal(size=edges.shape)
    up, down = (
        Chains(nodes + h * by_nodes, edges + h * by_edges, borders).log_partition().sum()
        for h in (1e-5, -1e-5)
    )
    slope = (beliefs * by_nodes).sum() + (pairs * by_edges).sum()
    assert (up - down) / 2e-5 == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("shared", [True, False])
def test_threads_and_ranges_change_nothing(monkeypatch, shared):
    rng = np.random.default_rng(21)
    nodes, borders = ragged(rng, 60, 6, 4)
    nodes[::17] *= 1e3
    edges = rng.normal(size=(1 if shared else len(nodes) - 60, 4, 4))

    def everything(n_jobs):
        batch = Chains(nodes, edges, borders, n_jobs)
        draws = batch.draw(5, np.random.default_rng(3))
        return [*batch.marginals("each"), batch.log_partition(), *batch.best(), *batch.k_best(3),
                draws, batch.marginals("sum")[2]]  # fmt: skip

    in_one = everything(1)
    monkeypatch.setitem(threads.GRAIN, "chains", 50)
    for a, b, c in zip(in_one, everything(1), everything(2), strict=True):
        np.testing.assert_array_equal(b, c)
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_large_batch_is_cut_into_ranges(monkeypatch):
    rng = np.random.default_rng(22)
    nodes, borders = ragged(rng, 10_000, 20, 5)
    ranges = []
    real = chain_batch.threads.run
    monkeypatch.setattr(
        chain_batch.threads, "run", lambda f, r, n: (ranges.append(len(r)), real(f, r, n))
    )
    Chains(nodes, rng.normal(size=(1, 5, 5)), borders, 2).best()
    Chains(nodes[: borders[50]], rng.normal(size=(1, 5, 5)), borders[:51], 2).best()
    assert ranges[0] > 1
    assert ranges[1] == 1


# ---- hidden variables, refusals ----------------------------------------------------------


def test_marginal_map_leaves_hidden_variables_open():
    graph = naive.random_graph(np.random.default_rng(23), 5, 3, kind="chain", hidden=0.5)
    hidden = graph.roles == 1
    assert 0 < hidden.sum() < 5
    result = ask(graph, "marginal_map", 0.0)
    best = ask(graph, "map", 0.0)
    assert result.value == best.value
    np.testing.assert_array_equal(result.labels, np.where(hidden, -1, best.labels))


def test_marginal_map_of_hidden_variables_only_is_the_sum():
    graph = naive.random_graph(np.random.default_rng(24), 4, 3, kind="chain", hidden=1.1)
    problem = Problem(graph.wiring, graph.potentials, 0.0, 1.0)
    assert CHAIN.refuses(problem, "marginal_map", Options()) == ""
    result = CHAIN.run(problem, "marginal_map", Options())
    np.testing.assert_allclose(result.value, naive.value_and_distribution(graph)[0])
    assert (result.labels == -1).all()


def test_marginal_map_without_hidden_variables_is_map():
    graph = naive.random_graph(np.random.default_rng(25), 5, 3, kind="chain")
    problem = Problem(graph.wiring, graph.potentials, 0.0, 1.0)
    result = CHAIN.run(problem, "marginal_map", Options(k=2))
    right = ask(graph, "map", 0.0, k=2)
    assert result.value == right.value
    np.testing.assert_array_equal(result.labels, right.labels)
    assert len(result.best) == 2


def shaped(n, scopes, states=2):
    graph = FactorGraph()
    graph.add_variables(n, states)
    for scope in scopes:
        graph.add_factor(scope, np.zeros(tuple(graph.cards[list(scope)])))
    return graph


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (shaped(4, [(0, 1), (2, 1), (1, 3)]), "variable 1 is linked to more than two"),
        (shaped(4, [(0, 3), (1, 2), (2, 3), (3, 1)]), "variable 3 is linked to more than two"),
        (shaped(4, [(1, 2), (2, 3), (3, 1)]), "variable 1 is on a cycle"),
        (shaped(3, [(0, 1, 2)]), "one has 3"),
    ],
)
def test_refuses_other_shapes(graph, words):
    problem = Problem(graph.wiring, graph.potentials)
    assert words in CHAIN.refuses(problem, "partition", Options())
    with pytest.raises(QueryError, match=words):
        CHAIN.run(problem, "partition", Options())


def test_refuses_two_temperatures():
    graph = naive.random_graph(np.random.default_rng(23), 5, 3, kind="chain", hidden=0.5)
    problem = Problem(graph.wiring, graph.potentials, 0.0, 1.0)
    assert "one temperature" in CHAIN.refuses(problem, "marginal_map", Options())


def test_refuses_k_best_of_several_paths_or_hidden_variables():
    graph = shaped(5, [(0, 1), (2, 3)])
    problem = Problem(graph.wiring, graph.potentials, 0.0, 0.0)
    assert "graph 0 has 3 separate paths" in CHAIN.refuses(problem, "map", Options(k=2))
    assert CHAIN.refuses(problem, "map", Options()) == ""
    graph = shaped(2, [(0, 1)]).set_roles({0: "hidden"})
    problem = Problem(graph.wiring, graph.potentials, 0.0, 0.0)
    assert "hidden" in CHAIN.refuses(problem, "marginal_map", Options(k=2))


def test_refuses_to_pad_a_lot():
    graph = shaped(2_000, [(i, i + 1) for i in range(1_999)], [400] + [2] * 1_999)
    problem = Problem(graph.wiring, graph.potentials)
    assert "padded" in CHAIN.refuses(problem, "partition", Options())


def test_graph_without_variables():
    empty = FactorGraph()
    for query in ("partition", "marginals", "map", "marginal_map", "samples"):
        assert ask(empty, query, n_samples=2).value == 0.0
    wiring, potentials = joined([empty, shaped(2, [(0, 1)]), empty])
    result = CHAIN.run(Problem(wiring, potentials, 0.0, 0.0), "map", Options(k=2))
    assert result.value.tolist() == [0.0, 0.0, 0.0]
    assert [value.tolist() for value, _ in result.best] == [[0, 0, 0], [-np.inf, 0, -np.inf]]
