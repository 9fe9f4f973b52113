"""Paths in a wiring, and its tables in the layout of chains and back."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from structlearn import FactorGraph
from structlearn._src.inference.chain import find_paths
from structlearn._src.kernels.graph import paths as kernel


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
    kernel.carry(wiring, *places, graph.potentials.copy(), False)
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
    kernel.carry(graph.wiring, *places, factors, True)
    np.testing.assert_array_equal(factors, graph.potentials)
