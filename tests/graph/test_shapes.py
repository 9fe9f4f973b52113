"""Builders of the usual shapes: who is linked to whom, with which table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structlearn import chain, grid, hidden_chain, hidden_grid, infer, pairwise, tree
from structlearn._src.common.errors import GraphError, PotentialError
from structlearn._src.graph.shapes import chain_edges, grid_edges


def edges_of(graph):
    return [
        tuple(graph.scope(f).tolist()) for f in range(graph.n_factors) if len(graph.scope(f)) == 2
    ]


def test_pairwise_scores():
    rng = np.random.default_rng(0)
    nodes, tables = rng.normal(size=(4, 3)), rng.normal(size=(3, 3, 3))
    edges = [(0, 2), (3, 1), (2, 3)]
    graph = pairwise(nodes, edges, tables)
    for labels in itertools.product(range(3), repeat=4):
        own = sum(nodes[v, x] for v, x in enumerate(labels))
        links = sum(t[labels[a], labels[b]] for (a, b), t in zip(edges, tables, strict=True))
        assert graph.score(labels) == pytest.approx(own + links)


def test_chain():
    nodes, tables = np.arange(8.0).reshape(4, 2), np.arange(12.0).reshape(3, 2, 2)
    graph = chain(nodes, tables)
    assert edges_of(graph) == [(0, 1), (1, 2), (2, 3)]
    np.testing.assert_array_equal(graph.table(5), tables[1])
    assert edges_of(chain(nodes, tables[0])) == edges_of(graph)
    one = chain([[0.0, 1.0]], np.zeros((2, 2)))
    assert (one.n_variables, one.n_factors) == (1, 1)
    assert infer(graph).method == "chain"


def test_tree_with_parents():
    tables = np.arange(12.0).reshape(3, 2, 2)
    graph = tree(np.zeros((5, 2)), [-1, 0, 0, -1, 3], tables)
    assert edges_of(graph) == [(0, 1), (0, 2), (3, 4)]
    np.testing.assert_array_equal(graph.table(7), tables[2])  # axis 0 belongs to the parent
    assert tree(np.zeros((1, 2)), [-1], np.zeros((2, 2))).n_factors == 1


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ([1, 2, 0], "the parents form a cycle"),
        ([-1, 2, 1], "the parents form a cycle"),
        ([-1, 0], "2 parents were given for 3 nodes"),
        ([-1, 0, 3], "names variable 3"),
        ([-1, 1, 0], "variable 1 occurs twice"),
    ],
)
def test_bad_parents_are_refused(parents, words):
    with pytest.raises(GraphError, match=words):
        tree(np.zeros((3, 2)), parents, np.zeros((2, 2)))


@pytest.mark.parametrize("neighbours", [4, 8])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 4), (3, 1), (3, 4)])
def test_grid_links_exactly_the_neighbours(rows, columns, neighbours):
    """Cells that touch at a side, or with 8 neighbours also at a corner."""
    cells = list(itertools.product(range(rows), range(columns)))
    reach = 1 if neighbours == 4 else 2
    right = {
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(cells), 2)
        if max(abs(a[0] - b[0]), abs(a[1] - b[1])) == 1
        and abs(a[0] - b[0]) + abs(a[1] - b[1]) <= reach
    }
    edges = [tuple(sorted(e)) for e in grid_edges(rows, columns, neighbours).tolist()]
    assert len(edges) == len(set(edges))
    assert set(edges) == right
    graph = grid(np.zeros((rows, columns, 2)), np.zeros((2, 2)), neighbours)
    assert [tuple(sorted(e)) for e in edges_of(graph)] == edges


def test_grid_tables_follow_grid_edges():
    rng = np.random.default_rng(1)
    nodes = rng.normal(size=(2, 3, 2))
    edges = grid_edges(2, 3, 8)
    tables = rng.normal(size=(len(edges), 2, 2))
    graph = grid(nodes, tables, 8)
    np.testing.assert_array_equal(graph.table(4), nodes[1, 1])
    for i, edge in enumerate(edges):
        assert graph.scope(6 + i).tolist() == edge.tolist()
        np.testing.assert_array_equal(graph.table(6 + i), tables[i])


def test_hidden_chain_roles_and_links():
    rng = np.random.default_rng(2)
    outputs, hidden = rng.normal(size=(3, 2)), rng.normal(size=(3, 4))
    moves, emissions = rng.normal(size=(2, 4, 4)), rng.normal(size=(3, 2, 4))
    graph = hidden_chain(outputs, hidden, moves, emissions)
    assert graph.roles.tolist() == [0, 0, 0, 1, 1, 1]
    assert graph.cards.tolist() == [2, 2, 2, 4, 4, 4]
    assert edges_of(graph) == [(3, 4), (4, 5), (0, 3), (1, 4), (2, 5)]
    for y in itertools.product(range(2), repeat=3):
        for h in itertools.product(range(4), repeat=3):
            right = sum(
                outputs[t, y[t]] + hidden[t, h[t]] + emissions[t, y[t], h[t]] for t in range(3)
            )
            right += sum(moves[t, h[t], h[t + 1]] for t in range(2))
            assert graph.score([*y, *h]) == pytest.approx(right)


def test_hidden_grid_roles_and_links():
    rng = np.random.default_rng(3)
    outputs, hidden = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 2, 2))
    for neighbours, count in ((4, 4), (8, 6)):
        graph = hidden_grid(outputs, hidden, np.eye(2), np.zeros((3, 2)), neighbours)
        assert graph.roles.tolist() == [0] * 4 + [1] * 4
        assert len(edges_of(graph)) == count + 4
        assert edges_of(graph)[-4:] == [(i, i + 4) for i in range(4)]
        inside = {tuple(e) for e in (grid_edges(2, 2, neighbours) + 4).tolist()}
        assert set(edges_of(graph)[:-4]) == inside


def test_edges_of_short_chains():
    assert chain_edges(0).tolist() == []
    assert chain_edges(1).tolist() == []
    assert chain_edges(3).tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: chain(np.zeros(3), np.zeros((2, 2))), r"nodes has shape \(3,\); need \(variables"),
        (lambda: chain(np.zeros((0, 2)), np.zeros((2, 2))), r"nodes has shape \(0, 2\)"),
        (lambda: chain(np.zeros((3, 0)), np.zeros((0, 0))), r"nodes has shape \(3, 0\)"),
        (lambda: grid(np.zeros((3, 2)), np.zeros((2, 2))), r"needs \(rows, columns, states\)"),
        (lambda: grid(np.zeros((2, 2, 2)), np.zeros((2, 2)), 6), "neighbours=6: a grid has 4 or 8"),
        (
            lambda: hidden_chain(np.zeros((3, 2)), np.zeros((2, 2)), np.eye(2), np.eye(2)),
            "3 outputs but 2 hidden variables",
        ),
        (
            lambda: hidden_grid(np.zeros((2, 2, 2)), np.zeros((2, 3, 2)), np.eye(2), np.eye(2)),
            "with the same rows and columns",
        ),
        (
            lambda: hidden_grid(np.zeros((2, 2)), np.zeros((2, 2)), np.eye(2), np.eye(2)),
            "outputs and hidden have shapes",
        ),
        (lambda: pairwise(np.zeros((3, 2)), [(0, 3)], np.eye(2)), "names variable 3"),
        (lambda: pairwise(np.zeros((3, 2)), [(1, 1)], np.eye(2)), "variable 1 occurs twice"),
    ],
)
def test_bad_shapes_are_refused(build, words):
    with pytest.raises(GraphError, match=words):
        build()


@pytest.mark.parametrize(
    "build",
    [
        lambda: chain(np.full((3, 2), np.nan), np.zeros((2, 2))),
        lambda: chain(np.zeros((3, 2)), np.full((2, 2), np.inf)),
        lambda: chain(np.zeros((3, 2)), np.zeros((3, 3))),
        lambda: chain(np.zeros((3, 2)), np.zeros((5, 2, 2))),
        lambda: grid(np.full((2, 2, 2), np.nan), np.zeros((2, 2))),
        lambda: hidden_grid(np.full((2, 2, 2), np.nan), np.zeros((2, 2, 2)), np.eye(2), np.eye(2)),
    ],
)
def test_bad_potentials_are_refused(build):
    with pytest.raises(PotentialError):
        build()
