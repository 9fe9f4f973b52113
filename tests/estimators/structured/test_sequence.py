"""SequenceLabeler against enumeration, and its options against each other."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from naive_model import NaiveModel, chain, check_answers
from scipy.sparse import csr_array

from structlearn._src.common.errors import ArgumentError, QueryError
from structlearn._src.estimators.structured.sequence import SequenceLabeler
from structlearn._src.text.columns import parse_columns
from structlearn._src.text.labels import forbidden_transitions

TEMPERATURES = {"log": (1.0, 1.0, False), "eps": (0.5, 0.5, True)}


def sequences(seed, sizes=(3, 2, 3, 1, 3), width=2, states=3):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, width)) for n in sizes]
    Y = [rng.integers(0, states, n) for n in sizes]
    Y[0][: min(states, sizes[0])] = range(min(states, sizes[0]))
    return X, Y


def fitted(X, Y, **options):
    return SequenceLabeler(
        **{"max_iter": 30, "C": 3.0, "random_state": 0, "tol": 1e-12, **options}
    ).fit(X, Y)


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.parametrize("loss", ["log", "eps"])
@pytest.mark.parametrize("hidden", [None, "node", "layer"])
@pytest.mark.parametrize("bars", [False, True])
def test_objective_and_answers(loss, hidden, bars):
    X, Y = sequences(1)
    forbidden = None
    if bars:
        forbidden = [(2, 0), (1, 1)]
        Y = [np.array(y) for y in ([0, 1, 2], [0, 0], [0, 2, 1], [2], [1, 2, 2])]
    labeler = fitted(X, Y, loss=loss, hidden=hidden, forbidden=forbidden)
    found = forbidden_transitions([0, 1, 2], forbidden) if bars else None
    model = NaiveModel(
        labeler.weights_, 3, hidden=hidden, hidden_states=2,
        bars=(found.first, found.last, found.pairs) if bars else None,
    )  # fmt: skip
    examples = [chain(x) for x in X]
    check_answers(labeler, model, X, examples, TEMPERATURES[loss][1])
    value = model.objective(examples, Y, 3.0, *TEMPERATURES[loss])
    assert labeler.history_.best() == pytest.approx(value, rel=1e-8)
    if hidden:
        for states, example in zip(labeler.predict_hidden(X), examples, strict=True):
            _, h = model.hidden_given(example, TEMPERATURES[loss][1])
            np.testing.assert_array_equal(states, h)


@pytest.mark.parametrize("hidden", [None, "node"])
def test_partial_labels(hidden):
    X, Y = sequences(2)
    Y[2][1], Y[0][0] = -1, -1
    labeler = fitted(X, Y, hidden=hidden)
    model = NaiveModel(labeler.weights_, 3, hidden=hidden, hidden_states=2)
    value = model.objective([chain(x) for x in X], Y, 3.0, 1.0, 1.0, False)
    assert labeler.history_.best() == pytest.approx(value, rel=1e-8)


def test_partial_labels_at_two_temperatures():
    X, Y = sequences(3)
    Y[2][1] = -1
    labeler = fitted(X, Y, loss="marginal", solver="descent", max_iter=5)
    model = NaiveModel(labeler.weights_, 3)
    value = model.objective([chain(x) for x in X], Y, 3.0, 0.0, 1.0, True)
    assert labeler.history_.best() == pytest.approx(value, rel=1e-8)


def test_features_on_transitions():
    X, Y = sequences(4)
    labeler = fitted(X, Y, transitions="features")
    model = NaiveModel(labeler.weights_, 3, edge_width=2)
    examples = [chain(x, x[1:]) for x in X]
    check_answers(labeler, model, X, examples, 1.0)
    value = model.objective(examples, Y, 3.0, 1.0, 1.0, False)
    assert labeler.history_.best() == pytest.approx(value, rel=1e-8)


def test_no_transitions_is_one_node_at_a_time():
    X, Y = sequences(5)
    whole = fitted(X, Y, transitions="none")
    rows = fitted([x[None] for x in np.concatenate(X)], [[y] for y in np.concatenate(Y)])
    np.testing.assert_allclose(whole.weights_, rows.weights_[: len(whole.weights_)], atol=1e-5)
    with pytest.raises(AttributeError, match="no weights for edges"):
        _ = whole.transitions_


def test_weights_of_every_position():
    X, Y = sequences(6, sizes=(3, 3, 3))
    labeler = fitted(X, Y, tied=False)
    nodes, edges = labeler.weights_[:18].reshape(3, 2, 3), labeler.weights_[18:].reshape(2, 3, 3)
    np.testing.assert_array_equal(labeler.transitions_, edges)
    for x, rows in zip(X, labeler.predict_marginals(X), strict=True):
        theta = np.zeros((3, 3, 3))
        for t in range(3):
            shape = [1, 1, 1]
            shape[t] = 3
            theta = theta + (x[t] @ nodes[t]).reshape(shape)
        theta = theta + edges[0][:, :, None] + edges[1][None]
        p = np.exp(theta - np.log(np.exp(theta).sum()))
        expected = [p.sum(axis=(1, 2)), p.sum(axis=(0, 2)), p.sum(axis=(0, 1))]
        np.testing.assert_allclose(rows, expected, atol=1e-8)
    with pytest.raises(ArgumentError, match="alike"):
        labeler.predict([X[0][:2]])
    with pytest.raises(ArgumentError, match="example 1 has 2"):
        fitted([X[0], X[1][:2]], [Y[0], Y[1][:2]], tied=False)


def test_k_best():
    X, Y = sequences(7)
    labeler = fitted(X, Y)
    model = NaiveModel(labeler.weights_, 3)
    for x, found in zip(X, labeler.decode(X, k=4), strict=True):
        scores, rows, _ = model.table(chain(x))
        order = np.argsort(-scores[:, 0])[:4]
        np.testing.assert_allclose([score for score, _ in found], scores[order, 0])
        np.testing.assert_array_equal([labels for _, labels in found], rows[order])
    assert len(labeler.decode([X[3]], k=9)[0]) == 3
    with pytest.raises(QueryError, match="k best"):
        fitted(X, Y, hidden="node").decode(X, k=2)


# ---- input ---------------------------------------------------------------------------------


def test_arrays_matrices_and_tokens_agree():
    X, Y = sequences(8)
    dense = fitted(X, Y)
    sparse = fitted([csr_array(x) for x in X], Y)
    tokens = [[{"a": a, "b": b} for a, b in x] for x in X]
    named = fitted(tokens, [["xyz"[i] for i in y] for y in Y])
    np.testing.assert_allclose(sparse.weights_, dense.weights_, atol=1e-6)
    np.testing.assert_allclose(named.weights_, dense.weights_, atol=1e-6)
    assert [p.tolist() for p in named.predict(tokens)] == [
        ["xyz"[i] for i in p] for p in dense.predict(X)
    ]
    assert (dense.n_features_in_, sparse.n_features_in_, named.n_features_in_) == (2, 2, 2)


def test_sparse_space_keeps_the_pairs_seen():
    X = [[["a"], ["b"]], [["b"], ["a"], ["c"]]]
    Y = [["x", "y"], ["y", "x", "x"]]
    labeler = fitted(X, Y, features="sparse")
    seen = {("a", "x"), ("b", "y"), ("c", "x")}
    assert len(labeler.weights_) == len(seen) + len({"xy", "yx", "xx"})
    assert {(f, label) for f, label, _ in labeler.top_features(10)} == seen
    assert labeler.transitions_[1, 1] == 0.0  # y after y was never seen
    full = fitted(X, Y, features="dense")
    assert len(full.weights_) == 3 * 2 + 4
    with pytest.raises(ArgumentError, match="sparse features"):
        fitted(*sequences(0), features="sparse")


def test_sparse_space_on_edges():
    X = [[["a"], ["b"]], [["b"], ["a"], ["c"]]]
    Y = [["x", "y"], ["y", "x", "x"]]
    labeler = fitted(X, Y, features="sparse", transitions="features")
    assert len(labeler.weights_) == 3 + 3 + len({("b", "xy"), ("a", "yx"), ("c", "xx")})


COLUMNS = b"the D\ncat N\n\na D\ndog N\nsleeps V\n"
TAGS = [["D", "N"], ["D", "N", "V"]]


@pytest.mark.parametrize(
    ("template", "n_weights"),
    [
        ("U1:%x[0,0]\nB", 5 * 3 + 9),
        ("U1:%x[0,0]", 5 * 3),
        ("U1:%x[0,0]\nB1:%x[0,0]", 5 * 3 + 3 * 9),
        ("U1:%x[0,0]\nB1:%x[0,0]\nB", 5 * 3 + 9 + 3 * 9),
    ],
)
def test_columns_by_template(template, n_weights):
    columns = parse_columns(COLUMNS)
    labeler = fitted(columns, TAGS, template=template)
    assert len(labeler.weights_) == n_weights
    assert [p.tolist() for p in labeler.predict(columns)] == TAGS
    with pytest.raises(ArgumentError, match="trained on Columns"):
        labeler.predict([[["the"]]])


def test_columns_and_tokens_agree():
    tokens = [[["U1:the"], ["U1:cat"]], [["U1:a"], ["U1:dog"], ["U1:sleeps"]]]
    a = fitted(parse_columns(COLUMNS), TAGS, template="U1:%x[0,0]\nB", features="sparse")
    b = fitted(tokens, TAGS, features="sparse")
    np.testing.assert_allclose(a.weights_, b.weights_, atol=1e-6)
    assert a.top_features(3) == [(f, y, pytest.approx(w)) for f, y, w in b.top_features(3)]


# ---- what is forbidden ---------------------------------------------------------------------


def test_prediction_keeps_to_the_scheme():
    rng = np.random.default_rng(0)
    names = ["B-A", "I-A", "B-B", "I-B", "O"]
    Y = [["B-A", "I-A", "O"], ["O", "B-B", "I-B"], ["B-A", "B-B", "O"]]
    X = [rng.normal(size=(3, 4)) for _ in Y]
    for hidden in (None, "node", "layer"):
        labeler = fitted(X, Y, forbidden="BIO", hidden=hidden, max_iter=10)
        rule = forbidden_transitions(labeler.classes_.tolist(), "BIO")
        number = {name: i for i, name in enumerate(labeler.classes_)}
        assert set(number) == set(names)
        for labels in labeler.predict([10 * rng.normal(size=(6, 4)) for _ in range(20)]):
            codes = [number[name] for name in labels]
            assert not rule.first[codes[0]]
            assert not any(rule.pairs[a, b] for a, b in pairwise(codes))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (["O", "I"], "'I' after 'O' at position 1"),
        (["I", "O"], "begins with 'I'"),
        ([None, "I"], None),
    ],
)
def test_training_example_that_is_forbidden(labels, words):
    X, Y = [np.eye(2)] * 2, [["B", "I"], labels]
    if words is None:
        fitted(X, Y, forbidden="BIO")
        return
    with pytest.raises(ArgumentError, match=f"sequence 1.*{words}"):
        fitted(X, Y, forbidden="BIO")


def test_gap_that_nothing_can_fill():
    X, Y = [np.eye(3), np.eye(3)], [["a", "b", "a"], ["a", None, "b"]]
    with pytest.raises(ArgumentError, match="sequence 1 has unknown labels"):
        fitted(X, Y, forbidden=[("a", "a"), ("b", "b")])


def test_sequence_that_cannot_be_labelled():
    labeler = fitted([np.eye(2)], [["B", "E"]], forbidden="BIOES")
    with pytest.raises(QueryError, match="example 1 has no labelling"):
        labeler.predict([np.eye(2), np.eye(2)[:1]])


# ---- folds and bad input -------------------------------------------------------------------


def test_score_counts_names():
    X, Y = sequences(9)
    labeler = fitted(X, Y)
    predicted = labeler.predict(X)
    true = [p.copy() for p in predicted]
    assert labeler.score(X, true) == 1.0
    true[0][0] = 77  # never seen
    true[1][:] = -1  # hidden
    assert labeler.score(X, true) == pytest.approx(9 / 10)
    weights = [2.0, 1.0, 1.0, 1.0, 1.0]
    assert labeler.score(X, true, weights) == pytest.approx((9 + 2) / (10 + 3))
    with pytest.raises(ArgumentError, match="example 0 has labels"):
        labeler.score(X, [y[:-1] for y in true])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, Y: (X, Y[:-1]), "X has 5 examples and Y has 4"),
        (lambda X, Y: (X, [Y[0][:2], *Y[1:]]), "example 0 has labels of shape"),
        (lambda X, Y: ([X[0][:0], *X[1:]], [Y[0][:0], *Y[1:]]), "example 0 of X is empty"),
        (lambda X, Y: ([X[0] * np.nan, *X[1:]], Y), "feature 0 of node 0 of example 0"),
        (lambda X, Y: ([*X[:-1], X[-1][:, :1]], Y), "features of example 4 have shape"),
        (lambda X, Y: ([], []), "X is empty"),
        (lambda X, Y: (X, [[[0]] * 3, *Y[1:]]), "not hashable"),
        (lambda X, Y: (X, [0] * 5), "labels of example 0 are 0"),
        (lambda X, Y: (X, [-np.ones_like(y) for y in Y]), "no known label"),
        (lambda X, Y: (7, Y), "X is a int"),
    ],
)
def test_bad_input_is_named_before_training(change, words):
    calls = []
    labeler = SequenceLabeler(callbacks=[calls.append])
    with pytest.raises(ArgumentError, match=words):
        labeler.fit(*change(*sequences(0)))
    assert not calls
    assert not hasattr(labeler, "weights_")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "what"}, "loss='what'"),
        ({"C": 0}, "C=0"),
        ({"hidden": "all"}, "hidden='all'"),
        ({"hidden_states": 0}, "hidden_states=0"),
        ({"features": "some"}, "features='some'"),
        ({"transitions": "some"}, "transitions='some'"),
        ({"forbidden": iter([(0, 1)])}, "forbidden=.*a list of pairs"),
        ({"forbidden": [(0, 1)], "transitions": "none"}, "forbidden transitions need"),
        ({"solver": "newton"}, "solver='newton'"),
        ({"random_state": "x"}, "random_state='x'"),
    ],
)
def test_bad_options_are_named(options, words):
    with pytest.raises(ArgumentError, match=words):
        SequenceLabeler(**options).fit(*sequences(0))
