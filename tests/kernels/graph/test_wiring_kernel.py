"""Kernels of wirings, each against a few lines of plain Python."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from structlearn import FactorGraph
from structlearn._src.graph.wiring import condition, places
from structlearn._src.inference.chain import find_paths
from structlearn._src.kernels.graph import wiring as wire

KINDS = ("tree", "forest", "loopy", "chain")


def graphs(seed, n=6, **options):
    rng = np.random.default_rng(seed)
    return [naive.random_graph(rng, 5, kind=kind, **options) for kind in KINDS for _ in range(n)]


def has_cycle(graph, factors):
    """Walk through the graph of variables and factors: more edges than a forest has nodes."""
    edges = [(("v", int(v)), ("f", f)) for f in factors for v in graph.scope(f)]
    nodes = {node for edge in edges for node in edge}
    group = {node: node for node in nodes}
    for a, b in edges:
        mine, theirs = group[a], group[b]
        if mine == theirs:
            return True
        group = {node: mine if root == theirs else root for node, root in group.items()}
    return False


def test_strides_are_those_of_c_order():
    for graph in graphs(0):
        wiring = graph.wiring
        for f in range(graph.n_factors):
            start, stop = wiring.scope_offsets[f : f + 2]
            table = np.empty(graph.cards[graph.scope(f)])
            assert (8 * wiring.strides[start:stop]).tolist() == list(table.strides)
            assert wiring.table_offsets[f + 1] - wiring.table_offsets[f] == table.size


def test_slots_of_every_variable_are_in_order():
    for graph in graphs(1):
        wiring = graph.wiring
        for v in range(graph.n_variables):
            mine = wiring.slots[wiring.slot_offsets[v] : wiring.slot_offsets[v + 1]]
            assert mine.tolist() == np.flatnonzero(wiring.scopes == v).tolist()


@pytest.mark.parametrize(
    ("scopes", "factor", "variable"), [([0, 1, 1, 1], 1, 1), ([0, 1, 2, 4], 1, 4), ([-1, 0], 0, -1)]
)
def test_bad_scopes_are_found(scopes, factor, variable):
    report = np.zeros(2, np.int64)
    offsets = np.arange(0, len(scopes) + 1, 2)
    assert wire.bad_scope(offsets, np.array(scopes), 4, report)
    assert report.tolist() == [factor, variable]


def test_good_scopes_pass():
    report = np.zeros(2, np.int64)
    assert not wire.bad_scope(np.array([0, 2, 4]), np.array([0, 1, 1, 0]), 2, report)


def test_forests_are_recognised():
    seen = set()
    for graph in graphs(2):
        cyclic = has_cycle(graph, range(graph.n_factors))
        assert graph.wiring.forests().tolist() == [not cyclic]
        seen.add(cyclic)
    assert seen == {True, False}


def test_breadth_first_reaches_neighbours_before_their_neighbours():
    for graph in graphs(3):
        order = graph.wiring.breadth_first().tolist()
        assert sorted(order) == list(range(graph.n_variables))
        scopes = [graph.scope(f).tolist() for f in range(graph.n_factors)]
        expected = []
        for root in range(graph.n_variables):
            queue = [] if root in expected else [root]
            while queue:
                v = queue.pop(0)
                expected.append(v)
                near = [u for scope in scopes if v in scope for u in scope]
                queue += [u for u in dict.fromkeys(near) if u not in expected + queue]
        assert order == expected


def test_spanning_forests_take_what_closes_no_cycle():
    rng = np.random.default_rng(4)
    for graph in graphs(4, zeros=0.0):
        n = graph.n_factors
        ties = rng.integers(4, size=(3, n)) / 4
        taken = np.zeros((3, n), np.bool_)
        counts = np.zeros(n, np.int64)
        rooms = (np.empty(size, np.int64) for size in (graph.n_variables, n, n))
        wire.cover(graph.wiring, ties, 0, 1, counts, *rooms, taken)
        before = np.zeros(n, np.int64)
        for row in range(3):
            chosen = []
            for f in np.lexsort((ties[row], before)):
                if not has_cycle(graph, [*chosen, f]):
                    chosen.append(int(f))
            assert np.flatnonzero(taken[row]).tolist() == sorted(chosen)
            before += taken[row]
        np.testing.assert_array_equal(counts, before)


def test_tables_are_sliced_at_fixed_states():
    rng = np.random.default_rng(5)
    for graph in graphs(5):
        fixed = np.where(rng.random(5) < 0.5, rng.integers(graph.cards), -1)
        small = condition(graph.wiring, graph.potentials, fixed)
        tables = []
        for f in range(graph.n_factors):
            scope = graph.scope(f)
            start, stop = graph.wiring.table_offsets[f : f + 2]
            table = graph.potentials[start:stop].reshape(graph.cards[scope])
            tables.append(table[tuple(slice(None) if fixed[v] < 0 else fixed[v] for v in scope)])
        kept = [table.ravel() for table in tables if table.ndim]
        np.testing.assert_array_equal(small.potentials, np.concatenate([np.empty(0), *kept]))
        gone = sum(float(table) for table in tables if not table.ndim)
        assert small.constant[0] == pytest.approx(gone)
        inside, outside = places(graph.wiring, fixed)
        np.testing.assert_array_equal(graph.potentials[inside], small.potentials)
        whole = [float(table) for table in tables if not table.ndim]
        np.testing.assert_array_equal(graph.potentials[outside], whole)


def test_scores_are_sums_of_entries():
    rng = np.random.default_rng(6)
    for graph in graphs(6, zeros=0.3):
        labels = rng.integers(graph.cards)
        assert graph.wiring.score(graph.potentials, labels)[0] == naive.score(graph, labels)


def test_messages_move_from_tables_to_variables():
    """Whatever the messages, the score of every assignment stays what it was."""
    rng = np.random.default_rng(7)
    for graph in graphs(7, 3):
        wiring = graph.wiring
        messages = rng.normal(size=int(wiring.message_offsets[-1]))
        rest = graph.potentials.copy()
        singles = np.zeros(int(wiring.belief_offsets[-1]))
        wire.reparametrise(wiring, messages, rest, singles)
        for labels in itertools.islice(naive.assignments(graph.cards), 40):
            moved = wiring.score(rest, np.array(labels, np.int64))[0]
            moved += singles[wiring.belief_offsets[:-1] + np.array(labels, np.int64)].sum()
            assert moved == pytest.approx(naive.score(graph, labels), abs=1e-9)


# ---- paths -------------------------------------------------------------------------------


def chains(seed, n=8):
    rng = np.random.default_rng(seed)
    return [naive.random_graph(rng, 6, kind="chain", max_arity=2) for _ in range(n)]


def linked(n, *pairs):
    graph = FactorGraph()
    graph.add_variables(range(n), states=2)
    for a, b in pairs:
        graph.add_factor([a, b], np.zeros((2, 2)))
    return graph


def test_paths_begin_at_their_lower_end():
    paths = find_paths(linked(6, (4, 1), (1, 3), (5, 2)).wiring)
    assert paths.order.tolist() == [0, 2, 5, 3, 1, 4]
    assert paths.offsets.tolist() == [0, 1, 3, 6]
    assert paths.position.tolist() == [0, 4, 1, 3, 5, 2]
    assert paths.chains.tolist() == [0, 1, 1, 2, 2, 2]
    assert not paths.straight


def test_neighbours_lie_side_by_side():
    for graph in chains(0):
        paths = find_paths(graph.wiring)
        for f in range(graph.n_factors):
            scope = graph.scope(f)
            if len(scope) == 2:
                assert abs(np.diff(paths.position[scope])[0]) == 1


@pytest.mark.parametrize(
    ("pairs", "word"),
    [([(0, 1), (0, 2), (0, 3)], "more than two"), ([(1, 2), (2, 3), (3, 1)], "cycle")],
)
def test_what_is_no_path(pairs, word):
    assert word in find_paths(linked(4, *pairs).wiring)


def padded(graph):
    """Nodes and edges of a chain in a batch of one path."""
    wiring = graph.wiring
    paths = find_paths(wiring)
    K = int(graph.cards.max())
    nodes = np.zeros((graph.n_variables, K))
    edges = np.zeros((graph.n_variables - 1, K, K))
    places = paths.position, paths.chains, K, nodes.ravel(), edges.ravel()
    wire.carry(wiring, *places, graph.potentials.copy(), False)
    return paths, nodes, edges, places


def test_gathered_tables_give_the_score():
    rng = np.random.default_rng(1)
    for graph in chains(1):
        paths, nodes, edges, _ = padded(graph)
        labels = rng.integers(graph.cards)
        row = labels[paths.order]
        steps = np.arange(len(row) - 1)
        score = nodes[np.arange(len(row)), row].sum() + edges[steps, row[:-1], row[1:]].sum()
        assert score == pytest.approx(naive.score(graph, labels))


def test_there_and_back():
    """Tables gathered from one factor per node and edge come back as they were."""
    rng = np.random.default_rng(3)
    graph = FactorGraph()
    graph.add_variables(range(4), states=3)
    for v in range(4):
        graph.add_factor([v], rng.normal(size=3))
    for a, b in ((2, 0), (0, 3), (1, 3)):
        graph.add_factor([a, b], rng.normal(size=(3, 3)))
    places = padded(graph)[-1]
    factors = np.empty(len(graph.potentials))
    wire.carry(graph.wiring, *places, factors, True)
    np.testing.assert_array_equal(factors, graph.potentials)
