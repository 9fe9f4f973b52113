"""Where fits begin and end, and fits without a penalty."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from structlearn import MulticlassClassifier, SequenceLabeler, load, save
from structlearn._src.common.errors import ArgumentError
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.frank_wolfe import FrankWolfe


def sequences(seed=0, n=30):
    """Noisy sequences that no weights separate."""
    rng = np.random.default_rng(seed)
    Y = [rng.integers(2, size=5) for _ in range(n)]
    X = [np.c_[y + rng.normal(0.0, 1.5, len(y)), np.ones(len(y))] for y in Y]
    return X, Y


@pytest.mark.parametrize("init", ["zeros", "random", "auto"])
def test_weights_begin_where_they_are_told_to(init):
    X, Y = sequences()
    seen = []

    def first(event):
        seen.append(event.history.value[0])
        return True

    labeler = SequenceLabeler(
        init=init, hidden="node", random_state=0, callbacks=[first], solver="lbfgs"
    ).fit(X, Y)
    zeros = labeler.objective(X, Y).value(np.zeros(len(labeler.weights_)))
    assert (seen[0] == zeros) == (init == "zeros")


def test_a_fit_ends_at_a_gradient():
    X, Y = sequences()
    ends = {}
    for bound in (1.0, 1e-4):
        labeler = SequenceLabeler(solver="lbfgs", tol=None, gradient_tol=bound).fit(X, Y)
        gradient = labeler.objective(X, Y).value_gradient(labeler.weights_)[1]
        assert np.linalg.norm(gradient) <= bound
        assert labeler.converged_
        ends[bound] = labeler.n_iter_
    assert ends[1.0] < ends[1e-4] < 1000


@pytest.mark.parametrize("solver", ["lbfgs", "auto", Descent(search="exact")])
def test_infinite_C_is_no_penalty(solver):
    X, Y = sequences()
    labeler = SequenceLabeler(C=np.inf, solver=solver, tol=1e-9).fit(X, Y)
    objective = SequenceLabeler(C=1.0).objective(X, Y)

    def losses(weights):
        value, gradient, _ = objective.value_gradient(weights)
        return value - 0.5 * weights @ weights, gradient - weights

    best = minimize(losses, np.zeros(objective.n_weights), jac=True, tol=1e-10)
    assert labeler.value_ == pytest.approx(best.fun, rel=1e-6)
    assert labeler.value_ == pytest.approx(losses(labeler.weights_)[0], rel=1e-12)


def test_infinite_C_can_be_saved_and_taught_in_parts(tmp_path):
    X, Y = sequences()
    labeler = SequenceLabeler(C=np.inf, random_state=0)
    labeler.partial_fit(X[:10], Y[:10])
    labeler.partial_fit(X[10:], Y[10:])
    assert np.isfinite(labeler.weights_).all()
    save(labeler.fit(X, Y), tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.inf == again.C
    np.testing.assert_array_equal(again.weights_, labeler.weights_)


def test_solvers_whose_dual_needs_a_penalty_refuse():
    X, Y = sequences()
    with pytest.raises(ArgumentError, match="finite C"):
        SequenceLabeler(loss="hinge", C=np.inf, solver=FrankWolfe()).fit(X, Y)
    with pytest.raises(ArgumentError, match="Pegasos"):
        MulticlassClassifier(C=np.inf, solver="pegasos").fit(np.eye(3), [0, 1, 2])


@pytest.mark.parametrize(
    "wrong", [{"init": "ones"}, {"gradient_tol": -1.0}, {"C": np.nan}, {"C": 1e200}, {"C": 0.0}]
)
def test_wrong_words_are_refused(wrong):
    X, Y = sequences()
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        SequenceLabeler(**wrong).fit(X, Y)
