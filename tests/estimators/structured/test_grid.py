"""GridLabeler against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from naive_model import Example, NaiveModel, check_answers

from structlearn._src.common.errors import ArgumentError, TooWideError
from structlearn._src.estimators.structured.graph import GridLabeler

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def edges_of(rows, columns, neighbours):
    """Edges by direction: right, down, and the two diagonals."""
    steps = [(0, 1), (1, 0), (1, 1), (1, -1)][: neighbours // 2]
    out = []
    for dr, dc in steps:
        cells = [(r, c) for r in range(rows) for c in range(columns)]
        out.append([
            (r * columns + c, (r + dr) * columns + c + dc)
            for r, c in cells if r + dr < rows and 0 <= c + dc < columns
        ])  # fmt: skip
    return out


def images(seed, forms=((2, 2), (1, 3), (2, 1)), channels=2, states=2):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(*form, channels)) for form in forms]
    Y = [rng.integers(0, states, form) for form in forms]
    Y[0].flat[:states] = range(states)
    return X, Y


def as_examples(X, neighbours, directions):
    out = []
    for x in X:
        flat = x.reshape(-1, x.shape[2])
        edges = edges_of(*x.shape[:2], neighbours)
        if not directions:
            edges = [[edge for kind in edges for edge in kind]]
        out.append(Example(np.column_stack([flat, np.ones(len(flat))]), edges))
    return out


def fitted(X, Y, **options):
    given = {"max_iter": 30, "C": 3.0, "random_state": 0, "tol": 1e-12, **options}
    return GridLabeler(**given).fit(X, Y)


@pytest.mark.parametrize("hidden", [None, "node", "layer"])
@pytest.mark.parametrize(
    ("neighbours", "directions"), [(4, False), (4, True), (8, False), (8, True)]
)
def test_objective_and_answers(hidden, neighbours, directions):
    X, Y = images(1)
    labeler = fitted(X, Y, hidden=hidden, neighbours=neighbours, directions=directions)
    kinds = neighbours // 2 if directions else 1
    model = NaiveModel(labeler.weights_, 2, kinds, hidden=hidden, hidden_states=2)
    examples = as_examples(X, neighbours, directions)
    check_answers(labeler, model, X, examples, 1.0)
    value = model.objective(examples, [y.ravel() for y in Y], 3.0, 1.0, 1.0, False)
    assert labeler.history_.best() == pytest.approx(value, rel=1e-8)
    shape = (kinds, 2, 2) if directions else (2, 2)
    assert labeler.transitions_.shape == shape


@pytest.mark.parametrize(("edges", "free"), [("table", 9), ("symmetric", 6), ("potts", 1)])
def test_tables(edges, free):
    X, Y = images(2, states=3)
    labeler = fitted(X, Y, edges=edges)
    assert len(labeler.weights_) == 3 * 3 + free
    table = labeler.transitions_
    full = NaiveModel(np.concatenate([labeler.weights_[:9], table.ravel()]), 3)
    check_answers(labeler, full, X, as_examples(X, 4, False), 1.0)
    if edges == "symmetric":
        np.testing.assert_array_equal(table, table.T)
    if edges == "potts":
        np.testing.assert_array_equal(table, table[0, 0] * np.eye(3))


def test_hidden_pixels_and_one_channel():
    X, Y = images(3, channels=1)
    Y[0][0, 0] = -1
    Y[0][1, 1] = 1 - Y[0][0, 1]
    labeler = fitted([x[:, :, 0] for x in X], Y)
    model = NaiveModel(labeler.weights_, 2)
    value = model.objective(as_examples(X, 4, False), [y.ravel() for y in Y], 3.0, 1.0, 1.0, False)
    assert labeler.history_.best() == pytest.approx(value, rel=1e-8)
    predicted = labeler.predict(X)
    assert [p.shape for p in predicted] == [y.shape for y in Y]
    assert labeler.predict_marginals(X)[0].shape == (2, 2, 2)
    right = sum(((p == y) & (y >= 0)).sum() for p, y in zip(predicted, Y, strict=True))
    known = sum((y >= 0).sum() for y in Y)
    assert labeler.score(X, Y) == pytest.approx(right / known)


def test_weights_of_every_pixel():
    X, Y = images(4, forms=((2, 2), (2, 2)))
    labeler = fitted(X, Y, tied=False)
    assert len(labeler.weights_) == 4 * 3 * 2 + 4 * 4
    assert labeler.transitions_.shape == (4, 2, 2)
    with pytest.raises(ArgumentError, match="alike"):
        fitted(*images(4), tied=False)


def test_large_grid_by_belief_propagation():
    rng = np.random.default_rng(0)
    truth = np.zeros((12, 20), np.int64)
    truth[3:9, 5:15] = 1
    X = [truth + rng.normal(0, 0.8, truth.shape) for _ in range(3)]
    options = {"solver": "adagrad", "tol": 1e-4}
    alone = fitted(X, [truth] * 3, edges="none", **options).score(X, [truth] * 3)
    linked = fitted(X, [truth] * 3, edges="potts", **options).score(X, [truth] * 3)
    assert linked > max(alone, 0.9)


def test_hidden_layer_that_is_too_wide_to_be_exact():
    rng = np.random.default_rng(1)
    truth = (np.indices((7, 8)).sum(axis=0) > 6).astype(int)
    X = [truth + rng.normal(0, 0.5, truth.shape) for _ in range(2)]
    labeler = fitted(X, [truth] * 2, loss="marginal", hidden="layer", max_iter=20, tol=1e-4)
    assert labeler.score(X, [truth] * 2) > 0.8
    assert {p.shape for p in labeler.predict_hidden(X)} == {(7, 8)}
    with pytest.raises(TooWideError):
        fitted(X, [truth] * 2, loss="marginal", hidden="layer", inference="exact")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, Y: ([X[0][0, 0], *X[1:]], Y), "image 0 has shape"),
        (lambda X, Y: (X, [Y[0].ravel(), *Y[1:]]), "example 0 has labels of shape"),
        (lambda X, Y: ([X[0][:0], *X[1:]], Y), "example 0 of X is empty"),
        (lambda X, Y: ([X[0] / 0, *X[1:]], Y), "infinity"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_bad_input(change, words):
    with pytest.raises(ArgumentError, match=words):
        fitted(*change(*images(0)))


@pytest.mark.parametrize(
    ("options", "words"), [({"neighbours": 6}, "neighbours=6"), ({"edges": "x"}, "edges='x'")]
)
def test_bad_options(options, words):
    with pytest.raises(ArgumentError, match=words):
        fitted(*images(0), **options)


def test_a_single_image_without_a_list_is_named():
    image = np.zeros((4, 5, 3))
    with pytest.raises(ArgumentError, match=r"single image of 4 x 5 pixels.*fit\(\[X\], \[Y\]\)"):
        GridLabeler().fit(image, np.zeros((4, 5), int))
    labels = np.arange(10).reshape(1, 2, 5) % 2
    assert GridLabeler().fit(np.zeros((1, 2, 5)), labels).predict([np.zeros((2, 5))])[0].shape == (
        2,
        5,
    )
