"""Tree-reweighted messages: the upper bound holds at any messages, and the forests are forests."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, grid, infer, infer_many
from structlearn._src.common.errors import QueryError
from structlearn._src.graph.joined import join
from structlearn._src.inference.base import Problem
from structlearn._src.inference.messenger import Messenger
from structlearn._src.inference.trw import covering_forests, upper_bound


def trw(graph, query="partition", eps=1.0, **options):
    settings = {"random_state": 0, "temperatures": (eps, eps), **options}
    return infer(graph, query, method="trw", **settings)


def some_graph(rng, zeros):
    graph = naive.random_graph(rng, int(rng.integers(3, 8)), max_arity=4, zeros=zeros)
    return graph.with_potentials(rng.choice([0.3, 1.0, 2.0]) * graph.potentials)


@pytest.mark.parametrize("zeros", [0.0, 0.3])
@pytest.mark.parametrize("eps", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("sweeps", [1, 500])
def test_bound_is_never_below_the_exact_value(zeros, eps, sweeps):
    rng = np.random.default_rng(1)
    for _ in range(30):
        graph = some_graph(rng, zeros)
        value, _ = naive.value_and_distribution(graph, eps, eps)
        answer = trw(graph, eps=eps, max_iter=sweeps, random_state=int(rng.integers(99)))
        assert answer.upper >= value - 1e-9 * (1 + abs(value))
        assert answer.upper < np.inf
        assert not answer.exact


@pytest.mark.parametrize("eps", [1.0, 0.0])
def test_bound_holds_at_any_messages(eps):
    rng = np.random.default_rng(2)
    for _ in range(20):
        graph = some_graph(rng, 0.2)
        forests = covering_forests(graph.wiring, rng)
        problem = Problem(graph.wiring, graph.potentials, eps, eps)
        start = rng.normal(0, 2, graph.wiring.message_offsets[-1])
        messenger = Messenger(problem, appearance=forests.mean(axis=0), start=start)
        value, _ = naive.value_and_distribution(graph, eps, eps)
        assert upper_bound(messenger, forests)[0] >= value - 1e-9 * (1 + abs(value))


def test_messages_improve_the_bound():
    rng = np.random.default_rng(3)
    graph = grid(rng.normal(size=(4, 4, 2)), rng.normal(size=(24, 2, 2)))
    value = infer(graph, "partition").value
    first, last = (trw(graph, max_iter=n) for n in (1, 500))
    assert last.converged
    assert value <= last.upper < first.upper
    # At rest bound and value of the tree-reweighted functional are the same number.
    assert last.upper == pytest.approx(last.value, abs=1e-4)


def test_bound_of_a_known_case():
    """Two edges of a triangle in each of three forests; without messages edges weigh 3/2."""
    graph = FactorGraph()
    graph.add_variables(3, 2)
    coupling = np.array([[1.0, 0.0], [0.0, 1.0]])
    graph.add_factors([[0, 1], [1, 2], [2, 0]], coupling)
    forests = ~np.eye(3, dtype=bool)
    messenger = Messenger(Problem(graph.wiring, graph.potentials), appearance=forests.mean(axis=0))
    # A path of two edges: each sums to e^1.5 + 1 whatever its first end, times two states.
    right = np.log(2) + 2 * np.log(np.exp(1.5) + 1)
    assert upper_bound(messenger, forests)[0] == pytest.approx(right)


@pytest.mark.parametrize("eps", [1.0, 0.5, 0.0])
def test_exact_on_forests(eps):
    rng = np.random.default_rng(4)
    for _ in range(15):
        graph = naive.random_graph(rng, 6, max_arity=4, kind="forest", zeros=0.2)
        naive.tied_down(rng, graph)
        value, distribution = naive.value_and_distribution(graph, eps, eps)
        answer = trw(graph, "marginals", eps)
        assert answer.upper == pytest.approx(value, abs=1e-8)
        assert answer.value == pytest.approx(value, abs=1e-8)
        for v in range(graph.n_variables):
            right = naive.marginal(distribution, [v])
            np.testing.assert_allclose(answer.marginals[v], right, atol=1e-7)


def test_best_assignment_lies_below_the_bound():
    rng = np.random.default_rng(5)
    for _ in range(15):
        graph = some_graph(rng, 0.1)
        answer = trw(graph, "map", 0.0)
        best = naive.joint(graph).max()
        assert answer.value == answer.lower <= best + 1e-9
        assert answer.upper >= best - 1e-9
        assert answer.value == pytest.approx(graph.score(answer.assignment), abs=1e-9)


def test_covering_forests_cover_and_have_no_cycles():
    rng = np.random.default_rng(6)
    for _ in range(30):
        graph = naive.random_graph(rng, int(rng.integers(1, 9)), max_arity=4)
        forests = covering_forests(graph.wiring, rng)
        assert forests.shape[1] == graph.n_factors
        assert forests.any(axis=0).all()
        for forest in forests:
            assert cycle_free([graph.scope(f) for f in np.flatnonzero(forest)])


def cycle_free(scopes):
    """Merge sets of variables by hand."""
    group = {}
    for scope in scopes:
        roots = [group.setdefault(int(v), int(v)) for v in scope]
        if len(set(roots)) < len(roots):
            return False
        group = {v: roots[0] if r in roots else r for v, r in group.items()}
    return True


def test_forests_cover_evenly():
    """In a complete graph no edge may be left with a tiny weight."""
    edges = [(i, j) for i in range(8) for j in range(i)]
    graph = FactorGraph()
    graph.add_variables(8, 2)
    graph.add_factors(edges, np.zeros((2, 2)))
    share = covering_forests(graph.wiring, np.random.default_rng(7)).mean(axis=0)
    assert share.min() > 0.1
    assert share.max() < 0.6


@pytest.mark.parametrize("eps", [1.0, 0.0])
def test_a_batch_has_one_bound_for_each_graph(eps):
    rng = np.random.default_rng(9)
    graphs = [some_graph(rng, 0.2) for _ in range(10)]
    answers = infer_many(graphs, "partition", method="trw", temperatures=(eps, eps), random_state=1)
    for graph, answer in zip(graphs, answers, strict=True):
        value, _ = naive.value_and_distribution(graph, eps, eps)
        assert answer.upper >= value - 1e-9 * (1 + abs(value))
        assert answer.upper <= value + 60.0  # its own bound, not that of the batch
    wiring = join([g.wiring for g in graphs])
    problem = Problem(wiring, np.concatenate([g.potentials for g in graphs]), eps, eps)
    forests = covering_forests(wiring, rng)
    messenger = Messenger(problem, appearance=forests.mean(axis=0))
    messenger.run(20, 1e-6)
    together = upper_bound(messenger, forests)
    for i, graph in enumerate(graphs):
        mine = forests[:, wiring.graph_factors[i] : wiring.graph_factors[i + 1]]
        slots = wiring.scope_offsets[wiring.graph_factors[i : i + 2]]
        start = messenger.messages[slice(*wiring.message_offsets[slots])]
        alone = Messenger(
            Problem(graph.wiring, graph.potentials, eps, eps),
            appearance=mine.mean(axis=0),
            start=start,
        )
        assert upper_bound(alone, mine)[0] == pytest.approx(together[i], abs=1e-9)


def test_refuses_what_it_cannot_bound():
    graph = naive.random_graph(np.random.default_rng(10), 5, hidden=0.5)
    with pytest.raises(QueryError, match="one temperature"):
        infer(graph, "marginal_map", method="trw")
    with pytest.raises(QueryError, match="not 'samples'"):
        infer(graph, "samples", method="trw")
    with pytest.raises(QueryError, match="k best"):
        infer(graph, "map", method="trw", k=2)


def test_evidence_is_part_of_the_bound():
    rng = np.random.default_rng(11)
    for _ in range(10):
        graph = some_graph(rng, 0.0)
        table = naive.observed(naive.joint(graph), {0: 0, 2: 0})
        value, _ = naive.value_and_distribution(graph, table=table)
        answer = trw(graph, evidence={0: 0, 2: 0})
        assert answer.upper >= value - 1e-9


def test_forests_are_the_same_for_any_number_of_threads():
    """Each graph is planned by itself: as if the factors of all were taken in one order."""
    rng = np.random.default_rng(5)
    graphs = [grid(rng.normal(size=(7, 7, 3)), np.eye(3)) for _ in range(60)]
    wiring = join([graph.wiring for graph in graphs])
    found = [covering_forests(wiring, np.random.default_rng(1), n) for n in (1, 2, 3)]
    draw = np.random.default_rng(1)
    taken = np.zeros(wiring.n_factors, np.int64)
    for i, row in enumerate(found[0]):
        order = np.lexsort((draw.random(wiring.n_factors), taken))
        np.testing.assert_array_equal(row, without_cycles(wiring, order))
        taken += row
        assert all((other[i] == row).all() for other in found)


def without_cycles(wiring, order):
    """Take the factors in this order, each unless it closes a cycle."""
    trees = {v: {v} for v in range(wiring.n_variables)}
    taken = np.zeros(wiring.n_factors, bool)
    for f in order:
        scope = wiring.scopes[slice(*wiring.scope_offsets[f : f + 2])].tolist()
        joined = set.union(*(trees[v] for v in scope))
        taken[f] = len(joined) == sum(len(trees[v]) for v in scope)
        if taken[f]:
            trees.update(dict.fromkeys(joined, joined))
    return taken
