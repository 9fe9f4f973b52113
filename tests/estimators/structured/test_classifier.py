"""SequenceClassifier against enumeration of the hidden CRF."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from naive import soft_max
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.classifier import SequenceClassifier

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def sequences(seed, sizes=(3, 1, 4, 2, 3, 3), width=2):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, width)) for n in sizes], np.array(["a", "b", "c"] * 2)


def table(weights, x, K, H):
    """Scores (classes, hidden paths), from the equation."""
    v, B, A, b = np.split(weights, np.cumsum([x.shape[1] * H, K * H, K * H * H]))
    v, B, A = v.reshape(-1, H), B.reshape(K, H), A.reshape(K, H, H)
    paths = list(itertools.product(range(H), repeat=len(x)))
    scores = [
        [
            b[y]
            + sum(x[t] @ v[:, h[t]] + B[y, h[t]] for t in range(len(x)))
            + sum(A[y, h[t], h[t + 1]] for t in range(len(x) - 1))
            for h in paths
        ]
        for y in range(K)
    ]
    return np.array(scores), paths


LOSSES = {"log": (1.0, 1.0, 0.0), "marginal": (0.0, 1.0, 1.0), "hinge": (0.0, 0.0, 1.0)}


@pytest.mark.parametrize("loss", list(LOSSES))
@pytest.mark.parametrize("H", [1, 2])
def test_objective_and_answers(loss, H):
    X, y = sequences(1)
    solver = "lbfgs" if loss == "log" else "descent"
    classifier = SequenceClassifier(
        loss=loss, hidden_states=H, C=2.0, solver=solver, max_iter=8, random_state=0
    ).fit(X, y)
    eps_y, eps_h, costly = LOSSES[loss]
    codes = np.searchsorted(classifier.classes_, y)
    total = 0.5 * classifier.weights_ @ classifier.weights_
    for x, code, given, p, h in zip(
        X, codes, classifier.predict(X), classifier.predict_proba(X),
        classifier.predict_hidden(X), strict=True,
    ):  # fmt: skip
        scores, paths = table(classifier.weights_, x, 3, H)
        inner = np.array([soft_max(row, eps_h) for row in scores])
        total += 2.0 * (soft_max(inner + costly * (np.arange(3) != code), eps_y) - inner[code])
        best = inner.argmax()
        assert given == classifier.classes_[best]
        assert tuple(h) == paths[scores[best].argmax()]
        joint = np.exp(scores - soft_max(scores.ravel(), 1.0))
        np.testing.assert_allclose(p, joint.sum(axis=1), atol=1e-8)
    assert classifier.history_.best() == pytest.approx(total, rel=1e-8)
    assert classifier.transitions_.shape == (3, H, H)
    assert classifier.n_features_in_ == 2


def moving(seed, n=30):
    """Sequences that go up, down or anywhere: only transitions tell the classes apart."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for i in range(n):
        step = (1, 2, None)[i % 3]
        states = [int(rng.integers(3))]
        for _ in range(int(rng.integers(5, 9))):
            states.append((states[-1] + (step or int(rng.integers(3)))) % 3)
        X.append(2.0 * np.eye(3)[states] + rng.normal(0, 0.3, (len(states), 3)))
        y.append(("up", "down", "any")[i % 3])
    return X, y


def test_learns_what_only_transitions_tell():
    X, y = moving(0)
    classifier = SequenceClassifier(hidden_states=3, random_state=0)
    assert cross_val_score(classifier, X, y, cv=3).mean() > 0.85
    blind = SequenceClassifier(hidden_states=1, random_state=0).fit(X, y)
    assert blind.score(X, y) < 0.7


def test_joint_prediction_at_eps_0_is_the_same():
    X, y = moving(1, 12)
    classifier = SequenceClassifier(loss="hinge", random_state=0, max_iter=20).fit(X, y)
    np.testing.assert_array_equal(classifier.predict(X), classifier.predict(X, joint=True))


def test_tokens_weights_and_names():
    X = [[["a"], ["b"]], [["b"], ["c"]], [["a"]], [["c"], ["c"]]]
    y = [1, -1, 1, -1]
    classifier = SequenceClassifier(hidden_states=2, C=10.0, random_state=0).fit(X, y)
    assert classifier.predict(X).tolist() == y
    assert classifier.classes_.tolist() == [-1, 1]
    top = classifier.top_features(2)
    assert {name for name, _, _ in top} <= {"a", "b", "c"}
    assert {state for _, state, _ in top} <= {0, 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X, y[:-1]), "X has 6 examples and y has 5"),
        (lambda X, y: ([X[0][:0], *X[1:]], y), "example 0 of X is empty"),
        (lambda X, y: ([], []), "X is empty"),
    ],
)
def test_bad_input(change, words):
    with pytest.raises(ArgumentError, match=words):
        SequenceClassifier().fit(*change(*sequences(0)))


def test_bad_targets():
    X, _ = sequences(0)
    with pytest.raises(ValueError, match="1d array"):
        SequenceClassifier().fit(X, np.zeros((6, 2)))
    with pytest.raises(ValueError, match="Unknown label type"):
        SequenceClassifier().fit(X, np.linspace(0, 1, 6))
