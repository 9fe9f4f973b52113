"""Graphs to and from networkx."""

from __future__ import annotations

import sys

import networkx
import numpy as np
import pytest

import naive
from structlearn import FactorGraph
from structlearn._src.common.errors import ArgumentError, GraphError, PotentialError
from structlearn._src.graph.exchange import from_networkx, to_networkx


def assert_identical(one, other):
    assert one.names == other.names
    np.testing.assert_array_equal(one.cards, other.cards)
    np.testing.assert_array_equal(one.roles, other.roles)
    np.testing.assert_array_equal(one.wiring.scope_offsets, other.wiring.scope_offsets)
    np.testing.assert_array_equal(one.wiring.scopes, other.wiring.scopes)
    np.testing.assert_array_equal(one.potentials, other.potentials)


@pytest.mark.parametrize("seed", range(10))
def test_factor_graphs_come_back_the_same(seed):
    kind = ["tree", "loopy", "chain", "forest"][seed % 4]
    graph = naive.random_graph(np.random.default_rng(seed), 6, 3, 3, kind, zeros=0.2, hidden=0.4)
    g = to_networkx(graph)
    assert networkx.is_bipartite(g)
    assert g.number_of_edges() == len(graph.wiring.scopes)
    assert_identical(from_networkx(g), graph)


@pytest.mark.parametrize("names", [["rain", ("factor", 1), 7], [2, 1, 0], [False, True, "x"]])
def test_names_come_back_the_same(names):
    graph = FactorGraph()
    graph.add_variables(names[:2], [2, 3], role="observed")
    graph.add_variables(names[2:], 4)
    graph.add_factor([names[2], names[0]], np.arange(8.0).reshape(4, 2))
    graph.add_factor([names[1]], [0, -np.inf, 1])
    assert_identical(from_networkx(to_networkx(graph)), graph)


@pytest.mark.parametrize("n_variables", [0, 3])
def test_graphs_without_factors_come_back(n_variables):
    graph = FactorGraph()
    graph.add_variables(n_variables, 3, role="hidden")
    assert_identical(from_networkx(to_networkx(graph)), graph)


def test_attributes_of_nodes():
    graph = FactorGraph()
    graph.add_variable("a", 2)
    graph.add_variable("b", 3, role="hidden")
    graph.add_factor(["b", "a"], np.arange(6.0).reshape(3, 2))
    g = to_networkx(graph)
    assert g.nodes["b"] == {"bipartite": 0, "states": 3, "role": "hidden"}
    assert g.nodes["factor", 0]["scope"] == ("b", "a")
    g.nodes["factor", 0]["table"][:] = 9  # a copy: the graph stays as it is
    assert graph.table(0)[0, 0] == 0


@pytest.mark.parametrize("seed", range(5))
def test_ordinary_graphs_are_pairwise_models(seed):
    rng = np.random.default_rng(seed)
    g = networkx.Graph()
    cards = dict(zip("dcab", rng.integers(2, 4, 4).tolist(), strict=True))
    for node, states in cards.items():
        g.add_node(node, states=states)
    g.nodes["a"]["potential"] = rng.normal(size=cards["a"])
    edges = [("a", "d"), ("b", "c"), ("d", "b")]  # some against the order d, c, a, b
    order = list(g)
    for u, v in edges:
        first, last = sorted((u, v), key=order.index)
        g.add_edge(u, v, table=rng.normal(size=(cards[first], cards[last])))
    graph = from_networkx(g)
    assert graph.names == tuple(order)
    for labels in naive.assignments(cards.values()):
        state = dict(zip(order, labels, strict=True))
        expected = g.nodes["a"]["potential"][state["a"]]
        for u, v in edges:
            first, last = sorted((u, v), key=order.index)
            expected += g.edges[u, v]["table"][state[first], state[last]]
        assert graph.score(state) == pytest.approx(expected)


def test_directed_edges_lead_from_axis_0_to_axis_1():
    g = networkx.DiGraph()
    g.add_nodes_from([("x", {"states": 2}), ("y", {"states": 3, "role": "hidden"})])
    g.add_edge("y", "x", table=np.arange(6.0).reshape(3, 2))
    graph = from_networkx(g)
    assert graph.score({"x": 1, "y": 2}) == 5
    assert graph.roles.tolist() == [0, 1]


def test_parallel_edges_are_factors_each():
    g = networkx.MultiGraph()
    for weight in (1.0, 10.0):
        g.add_edge(0, 1, table=weight * np.eye(2))
    assert from_networkx(g).score([1, 1]) == 11


def test_defaults_for_nodes_that_say_nothing():
    g = networkx.Graph()
    g.add_node("p", potential=[0.0, 1.0, 2.0, 3.0])
    g.add_node("q")
    graph = from_networkx(g, states=5, role="hidden")
    assert graph.cards.tolist() == [4, 5]
    assert graph.roles.tolist() == [1, 1]
    assert from_networkx(networkx.path_graph(0)).n_variables == 0


def edge(**data):
    g = networkx.Graph()
    g.add_edge("u", "v", **data)
    return g


def factor(**data):
    g = networkx.Graph()
    g.add_edge("f", "v")
    g.nodes["f"].update(data)
    return g


def mixed():
    g = factor(scope=("v",), table=[0, 0])
    g.add_edge("v", "w", table=np.eye(2))
    return g


def loop():
    g = networkx.Graph()
    g.add_edge("u", "u", table=np.eye(2))
    return g


def node(**data):
    g = networkx.Graph()
    g.add_node("u", **data)
    return g


@pytest.mark.parametrize(
    ("g", "error", "words"),
    [
        ([(0, 1)], GraphError, "not a list"),
        (edge(), GraphError, "'u' - 'v' has no table"),
        (edge(table=np.eye(3)), PotentialError, r"shape \(3, 3\)"),
        (loop(), GraphError, "twice"),
        (factor(scope=("v",)), GraphError, "no table"),
        (factor(scope=("v", "w"), table=np.eye(2)), GraphError, "neighbours"),
        (mixed(), GraphError, "joins two variables"),
        (node(states=0), ArgumentError, "states of node 'u'=0"),
        (node(states=2.5), ArgumentError, "states of node 'u'=2.5"),
        (node(role="boss"), ArgumentError, "role of node 'u'='boss'"),
        (node(states=2, potential=[1, 2, 3]), PotentialError, "shape"),
    ],
)
def test_graphs_that_are_no_models_are_refused(g, error, words):
    with pytest.raises(error, match=words):
        from_networkx(g)


def test_none_is_no_node():
    graph = FactorGraph()
    graph.add_variables([None])
    with pytest.raises(GraphError, match="None"):
        to_networkx(graph)


def test_without_networkx_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    for call in (to_networkx, from_networkx):
        with pytest.raises(ImportError, match=r"pip install structlearn\[networkx\]"):
            call(FactorGraph())
