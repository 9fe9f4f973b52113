"""GraphLabeler against enumeration."""

from __future__ import annotations

import networkx
import numpy as np
import pytest
from naive_model import Example, NaiveModel, check_answers
from scipy.sparse import csr_array

from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.graph import GraphLabeler
from structlearn._src.estimators.structured.sequence import SequenceLabeler

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

EDGES = [[(0, 1), (2, 1), (2, 0)], [(0, 1)], [], [(1, 0), (1, 2)]]
SIZES = [3, 2, 1, 3]


def graphs(seed, states=2, width=2, edge_width=0, masks=False):
    rng = np.random.default_rng(seed)
    X, Y, examples = [], [], []
    for n, edges in zip(SIZES, EDGES, strict=True):
        features = rng.normal(size=(n, width))
        between = rng.normal(size=(len(edges), edge_width)) if edge_width else None
        mask = np.arange(n) == 1 if masks else None
        X.append((features, np.array(edges), between, mask))
        Y.append(rng.integers(0, states, n))
        examples.append(
            Example(
                np.column_stack([features, np.ones(n)]), [edges],
                None if between is None else [between], [] if mask is None else mask.tolist(),
            )
        )  # fmt: skip
    Y[0][0], Y[0][-1] = 0, states - 1
    return X, Y, examples


def fitted(X, Y, **options):
    given = {"max_iter": 30, "C": 3.0, "random_state": 0, "tol": 1e-12, **options}
    return GraphLabeler(**given).fit(X, Y)


@pytest.mark.parametrize("hidden", [None, "node", "layer"])
@pytest.mark.parametrize("edge_width", [0, 2])
def test_objective_and_answers(hidden, edge_width):
    X, Y, examples = graphs(1, edge_width=edge_width)
    labeler = fitted(X, Y, hidden=hidden)
    model = NaiveModel(labeler.weights_, 2, edge_width=edge_width, hidden=hidden, hidden_states=2)
    check_answers(labeler, model, X, examples, 1.0)
    value = model.objective(examples, Y, 3.0, 1.0, 1.0, False)
    assert labeler.history_.best() == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("loss", ["log", "marginal"])
def test_masked_nodes(loss):
    X, Y, examples = graphs(2, states=3, masks=True)
    labeler = fitted(X, Y, loss=loss, solver="auto" if loss == "log" else "descent", max_iter=5)
    model = NaiveModel(labeler.weights_, 3)
    check_answers(labeler, model, X, examples, 1.0)
    kept = [np.delete(y, 1) if len(y) > 1 else y for y in Y]
    temperatures = (1.0, 1.0, False) if loss == "log" else (0.0, 1.0, True)
    value = model.objective(examples, kept, 3.0, *temperatures)
    assert labeler.history_.best() == pytest.approx(value, rel=1e-8)
    for found, best, example in zip(
        labeler.predict(X), labeler.predict_hidden(X), examples, strict=True
    ):
        masked = np.array(example.hidden)
        assert (found[masked] == -1).all()
        assert (best[~masked] == -1).all()
        free, _ = model.hidden_given(example, 1.0)
        assert best[masked].tolist() == np.array(free)[masked].tolist()
    shown = [np.where(np.arange(len(p)) == 1, 7, p) for p in labeler.predict(X)]
    assert labeler.score(X, shown) == 1.0


def test_chain_is_a_sequence():
    rng = np.random.default_rng(3)
    X = [rng.normal(size=(n, 2)) for n in (3, 4, 1)]
    Y = [rng.integers(0, 3, len(x)) for x in X]
    Y[1][:3] = 0, 1, 2
    edges = [[(t, t + 1) for t in range(len(x) - 1)] for x in X]
    options = {"fit_intercept": True, "tol": 1e-10}
    a = fitted(list(zip(X, edges, strict=True)), Y, **options)
    b = SequenceLabeler(C=3.0, **options).fit(X, Y)
    np.testing.assert_allclose(a.weights_, b.weights_, atol=1e-4)


def test_edge_features_alone():
    X, Y, examples = graphs(4, edge_width=2)
    labeler = fitted(X, Y, edges="features")
    nodes, between = np.split(labeler.weights_, [6])
    model = NaiveModel(np.concatenate([nodes, np.zeros(4), between]), 2, edge_width=2)
    check_answers(labeler, model, X, examples, 1.0)


def test_weights_of_every_node_and_edge():
    rng = np.random.default_rng(5)
    edges = np.array([(0, 1), (2, 1)])
    X = [(rng.normal(size=(3, 2)), edges, rng.normal(size=(2, 1))) for _ in range(3)]
    Y = [rng.integers(0, 2, 3) for _ in X]
    labeler = fitted(X, Y, tied=False)
    nodes = labeler.weights_[:18].reshape(3, 3, 2)
    tables = labeler.weights_[18:26].reshape(2, 2, 2)
    slopes = labeler.weights_[26:].reshape(2, 2, 2)
    np.testing.assert_array_equal(labeler.transitions_, tables)
    for (x, _, z), rows in zip(X, labeler.predict_marginals(X), strict=True):
        scores = np.stack([np.append(x[i], 1.0) @ nodes[i] for i in range(3)])
        pairs = [tables[e] + z[e, 0] * slopes[e] for e in range(2)]
        theta = np.array([
            [[scores[0, a] + scores[1, b] + scores[2, c] + pairs[0][a, b] + pairs[1][c, b]
              for c in range(2)] for b in range(2)] for a in range(2)
        ])  # fmt: skip
        p = np.exp(theta) / np.exp(theta).sum()
        expected = [p.sum(axis=(1, 2)), p.sum(axis=(0, 2)), p.sum(axis=(0, 1))]
        np.testing.assert_allclose(rows, expected, atol=1e-8)
    other = [(X[0][0], edges[::-1], X[0][2]), X[1]]
    with pytest.raises(ArgumentError, match="edges differ"):
        fitted(other, Y[:2], tied=False)


def test_matrices_and_tokens():
    X, Y, _ = graphs(6)
    plain = fitted([x[:2] for x in X], Y)
    sparse = fitted([(csr_array(x[0]), x[1]) for x in X], Y)
    tokens = fitted([([{"a": a, "b": b} for a, b in x[0]], x[1]) for x in X], Y)
    np.testing.assert_allclose(sparse.weights_, plain.weights_, atol=1e-6)
    np.testing.assert_allclose(tokens.weights_, plain.weights_, atol=1e-6)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (np.eye(2), "graph 0 is a ndarray"),
        ((np.eye(2), [(0, 2)]), "graph 0 has 2 nodes and an edge from 0 to 2"),
        ((np.eye(2), [(1, 1)]), "edge from 1 to 1"),
        ((np.eye(2), [(0, 1, 1)]), "edges of graph 0 have shape"),
        ((np.eye(2), [(0.0, 1.0)]), "type float64"),
        ((np.eye(2), [(0, 1)], np.ones((2, 1))), "1 edges and features for 2"),
        ((np.eye(2), [(0, 1)], None, [1, 0]), "hidden nodes of graph 0"),
    ],
)
def test_bad_graphs(graph, words):
    with pytest.raises(ArgumentError, match=words):
        fitted([graph], [[0, 1]])


def test_edge_features_for_some():
    X = [(np.eye(2), [(0, 1)], np.ones((1, 1))), (np.eye(2), [(0, 1)])]
    with pytest.raises(ArgumentError, match="graph 1 has no edge features"):
        fitted(X, [[0, 1]] * 2)


def test_graphs_of_networkx_are_edges():
    rng = np.random.default_rng(0)
    pairs = [("u", "w"), ("v", "w"), ("w", "x")]
    graph = networkx.Graph()
    graph.add_nodes_from("uvwx")
    graph.add_edges_from(pairs)
    edges = [["uvwx".index(a), "uvwx".index(b)] for a, b in graph.edges()]
    X = [rng.normal(size=(4, 2)) for _ in range(5)]
    Y = [(x[:, 0] > 0).astype(int) for x in X]
    plain, named = (
        GraphLabeler(max_iter=5, tol=None).fit([(x, given) for x in X], Y)
        for given in (edges, graph)
    )
    np.testing.assert_array_equal(plain.weights_, named.weights_)
    with pytest.raises(ArgumentError, match="graph 0 has 4 nodes in networkx"):
        named.predict([(X[0][:3], graph)])
