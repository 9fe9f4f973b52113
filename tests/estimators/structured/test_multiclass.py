"""MulticlassClassifier: scikit-learn's checks, and its linear models as oracles."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import estimator_checks_generator

from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.classifier import MulticlassClassifier

CHECKS = list(estimator_checks_generator(MulticlassClassifier(), mark="skip"))


@pytest.mark.parametrize("number", range(len(CHECKS)))
@pytest.mark.filterwarnings("ignore")  # several checks provoke warnings on purpose
def test_scikit_learn_check(number):
    estimator, check = CHECKS[number]
    check(estimator)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


def as_coefficients(classifier, width):
    return classifier.weights_.reshape(width, -1).T


@pytest.mark.parametrize("C", [0.1, 1.0, 5.0])
def test_log_loss_is_logistic_regression(iris, C):
    X, y = iris
    mine = MulticlassClassifier(C=C, fit_intercept=False, tol=1e-13).fit(X, y)
    theirs = LogisticRegression(C=C, fit_intercept=False, tol=1e-12, max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(as_coefficients(mine, 4), theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(mine.predict_proba(X), theirs.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(mine.decision_function(X), X @ as_coefficients(mine, 4).T, atol=1e-9)


def test_weighted_log_loss_is_logistic_regression(iris):
    X, y = iris
    weights = np.random.default_rng(0).random(len(y))
    options = {"fit_intercept": False, "class_weight": {0: 2.0, 1: 0.5, 2: 1.0}}
    mine = MulticlassClassifier(tol=1e-13, **options).fit(X, y, weights)
    theirs = LogisticRegression(tol=1e-12, max_iter=10**5, **options).fit(X, y, weights)
    np.testing.assert_allclose(as_coefficients(mine, 4), theirs.coef_, atol=1e-5)
    balanced = MulticlassClassifier(tol=1e-13, class_weight="balanced").fit(X[30:], y[30:])
    counts = np.bincount(y[30:])
    by_hand = MulticlassClassifier(
        tol=1e-13, class_weight=dict(enumerate(len(y[30:]) / (3 * counts)))
    ).fit(X[30:], y[30:])
    np.testing.assert_allclose(balanced.weights_, by_hand.weights_, atol=1e-8)


def test_two_classes_share_the_penalty(iris):
    X, y = iris
    X, y = X[:100], y[:100]
    mine = MulticlassClassifier(C=1.0, fit_intercept=False, tol=1e-13).fit(X, y)
    theirs = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-12, max_iter=10**5).fit(X, y)
    np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=1e-4)


def crammer_singer(W, X, y, C):
    scores = X @ W.T
    raised = scores + 1.0 - np.eye(len(W))[y]
    return 0.5 * (W**2).sum() + C * (raised.max(axis=1) - scores[np.arange(len(y)), y]).sum()


def test_hinge_is_crammer_singer(iris):
    X, y = iris
    X = X - X.mean(axis=0)
    mine = MulticlassClassifier(
        loss="hinge", C=0.1, fit_intercept=False, tol=1e-5, random_state=0, max_iter=3000
    ).fit(X, y)
    theirs = LinearSVC(
        multi_class="crammer_singer", C=0.1, fit_intercept=False, tol=1e-9, max_iter=10**6
    ).fit(X, y)
    best = crammer_singer(theirs.coef_, X, y, 0.1)
    value = crammer_singer(as_coefficients(mine, 4), X, y, 0.1)
    assert value == pytest.approx(best, rel=2e-5)
    assert mine.history_.gap[-1] <= 1e-5 * value


@pytest.mark.parametrize("loss", ["log", "hinge", "hybrid", "eps"])
def test_sparse_input_and_intercept(iris, loss):
    X, y = iris
    options = {"loss": loss, "random_state": 0, "max_iter": 50}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        dense = MulticlassClassifier(**options).fit(X, y)
        sparse = MulticlassClassifier(**options).fit(csr_array(X), y)
        column = MulticlassClassifier(fit_intercept=False, **options)
        column.fit(np.column_stack([X, np.ones(len(X))]), y)
    # Searches amplify rounding; those at low temperatures most.
    close = {"atol": 1e-2} if loss == "hybrid" else {"rtol": 1e-6, "atol": 1e-8}
    for other in (sparse, column):
        assert other.value_ == pytest.approx(dense.value_, rel=1e-4)
        np.testing.assert_allclose(other.weights_, dense.weights_, **close)
    np.testing.assert_array_equal(dense.predict(csr_array(X)), dense.predict(X))
    assert dense.n_features_in_ == 4


def test_minus_one_is_a_class(iris):
    X, y = iris
    y = np.array([-1, 1, 5])[y]
    classifier = MulticlassClassifier().fit(X, y)
    assert classifier.classes_.tolist() == [-1, 1, 5]
    assert set(classifier.predict(X)) == {-1, 1, 5}


def test_dominance(iris):
    X, y = iris
    classifier = MulticlassClassifier(C=0.01).fit(X, y)
    p, found = classifier.predict_proba(X), classifier.dominance(X.tolist(), y)
    np.testing.assert_allclose(found.best, p.max(axis=1))
    np.testing.assert_allclose(found.true, p[np.arange(len(y)), y])
    assert found.count == (p.max(axis=1) < 0.5).sum()


def test_in_the_company_of_scikit_learn(iris):
    X, y = iris
    names = np.array(["a", "b", "c"])[y]
    model = make_pipeline(StandardScaler(), MulticlassClassifier())
    assert cross_val_score(model, X, names, cv=3).min() > 0.9
    search = GridSearchCV(MulticlassClassifier(), {"C": [1e-4, 1.0], "loss": ["log"]}, cv=3)
    assert search.fit(X, names).best_params_["C"] == 1.0


def test_partial_fit_approaches_fit(iris):
    X, y = iris
    X = StandardScaler().fit_transform(X)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    online = MulticlassClassifier(C=0.1, random_state=0)
    for first in range(0, 150, 30):
        part = slice(first, first + 30)
        online.partial_fit(X[part], y[part], classes=[0, 1, 2])
    assert (online.n_iter_, online.n_seen_) == (5, 150)
    whole = MulticlassClassifier(C=0.1).fit(X, y)
    assert online.score(X, y) > 0.85
    cosine = online.weights_ @ whole.weights_
    assert cosine > 0.9 * np.linalg.norm(online.weights_) * np.linalg.norm(whole.weights_)
    with pytest.raises(ArgumentError, match="cannot change"):
        online.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ArgumentError, match="a few examples at a time"):
        MulticlassClassifier(solver="lbfgs").partial_fit(X, y)


def test_unknown_class_in_partial_fit(iris):
    X, y = iris
    online = MulticlassClassifier(random_state=0).partial_fit(X[:100], y[:100])
    with pytest.raises(ArgumentError, match="class 2 of example 0"):
        online.partial_fit(X[100:], y[100:])


def test_limit_warns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 5)), rng.integers(0, 3, 50)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        MulticlassClassifier(max_iter=1, C=100.0, tol=1e-10).fit(X, y)


def test_not_fitted():
    classifier = MulticlassClassifier()
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(classifier, method)(np.eye(2))
    assert not hasattr(classifier, "classes_")


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_are_those_of_decisions(classes, intercept):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    y = (np.arange(30) % classes + (X[:, 0] > 1)).astype(int) % classes
    fitted = MulticlassClassifier(fit_intercept=intercept).fit(X, y)
    assert fitted.coef_.shape == (1 if classes == 2 else 3, 4)
    found = X @ fitted.coef_.T + fitted.intercept_
    np.testing.assert_allclose(np.squeeze(found), fitted.decision_function(X), atol=1e-12)
    assert (fitted.intercept_ == 0).all() != intercept
    chosen = RFE(MulticlassClassifier(), n_features_to_select=1).fit(X, X[:, 2] > 0)
    assert chosen.support_.tolist() == [False, False, True, False]


def test_features_are_called_as_in_the_frame():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 2)), columns=["age", "height"])
    fitted = MulticlassClassifier().fit(X, X["height"] > 0)
    assert fitted.top_features(1)[0][0] == "height"
