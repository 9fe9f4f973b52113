"""What the ending of a fit promises, on problems that were made to break it."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from structlearn import GridLabeler, MulticlassClassifier, SequenceLabeler
from structlearn._src.common.errors import CheckpointWarning
from structlearn._src.common.watch import Ending
from structlearn._src.files import store
from structlearn._src.solve.drivers import Cccp
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.loop import run
from structlearn._src.solve.stochastic import Stochastic
from toys import Hidden

SEEDS = range(4)


def quietly(model, X, Y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, Y)


# ---- smooth losses: Newton's method knows the optimum ----------------------------------------


def least(X, y):
    """Newton's method on two classes, whose weights are opposite: u is their difference."""
    A = np.column_stack([X, np.ones(len(X))])
    sign = np.where(y == 1, 1.0, -1.0)

    def value(u):
        return 0.25 * u @ u + np.logaddexp(0.0, -sign * (A @ u)).sum()

    u = np.zeros(A.shape[1])
    for _ in range(200):
        p = expit(-sign * (A @ u))
        gradient = 0.5 * u - A.T @ (sign * p)
        hessian = 0.5 * np.eye(len(u)) + (A.T * (p * (1.0 - p))) @ A
        scale = 1.0 / np.sqrt(np.diag(hessian))
        step = -scale * np.linalg.solve(hessian * scale[:, None] * scale, scale * gradient)
        length = 1.0
        while value(u + length * step) > value(u) + 1e-4 * length * (gradient @ step):
            length /= 2.0
            if length < 1e-12:
                return value(u)
        u = u + length * step
    return value(u)


def columns(kind, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    if kind == "age and income":
        age, income = rng.uniform(18, 80, 200), rng.lognormal(10, 1, 200)
        X = np.column_stack([age, income, X[:, 0]])
        y = ((age - 50) / 15 + np.log(income / 22000) + X[:, 2] > 0).astype(int)
    elif kind == "year":
        X[:, 3] += 2000.0
    elif kind == "fill value":
        X[7, 3] = 1e20
    else:
        X[:, 3] *= float(kind)
    return X, y


@pytest.mark.parametrize(
    "kind", ["1e3", "1e4", "1e6", "1e-3", "year", "age and income", "fill value"]
)
@pytest.mark.parametrize("solver", ["auto", "descent", "sgd", "adagrad", "pegasos"])
def test_convergence_means_the_optimum_whatever_the_scale_of_a_column(kind, solver):
    if kind == "fill value" and solver != "auto":
        pytest.skip("steps in all directions at once drown in the rounding of such a cell")
    for seed in SEEDS:
        X, y = columns(kind, seed)
        model = quietly(MulticlassClassifier(solver=solver, max_iter=150, random_state=0), X, y)
        assert not model.converged_ or model.value_ <= 1.01 * least(X, y)
        if solver == "auto":
            assert model.converged_
            assert model.value_ <= (1.01 if kind == "fill value" else 1.001) * least(X, y)


def uncentred(seed, n=40):
    rng = np.random.default_rng(seed)
    mean, weights = rng.uniform(0, 100, 4), rng.normal(size=(4, 3))
    X = [rng.normal(size=(int(rng.integers(3, 8)), 4)) for _ in range(n)]
    return [x + mean for x in X], [(x @ weights).argmax(axis=1) for x in X]


@pytest.mark.parametrize("solver", ["sdca", "sgd", "adagrad", "pegasos", "descent"])
@pytest.mark.parametrize("seed", range(2))
def test_convergence_means_the_optimum_on_sequences_that_are_not_centred(solver, seed):
    X, Y = uncentred(seed)
    best = quietly(SequenceLabeler(tol=1e-8, max_iter=5000), X, Y)
    assert best.converged_
    model = quietly(SequenceLabeler(solver=solver, max_iter=300, random_state=0), X, Y)
    assert not model.converged_ or model.value_ <= 1.01 * best.value_


# ---- losses with kinks: the dual of Frank and Wolfe's method knows ---------------------------


@pytest.mark.parametrize("solver", ["sgd", "adagrad", "pegasos", "descent", "annealed"])
@pytest.mark.parametrize("seed", range(2))
def test_convergence_means_the_optimum_of_the_hinge(solver, seed):
    X, Y = uncentred(seed)
    if seed:
        X = [x - np.mean([row for x in X for row in x], axis=0) for x in X]
    best = quietly(SequenceLabeler(loss="hinge", max_iter=3000, random_state=0), X, Y)
    bound = best.value_ - best.history_.gap[np.isfinite(best.history_.gap)][-1]
    model = SequenceLabeler(loss="hinge", solver=solver, max_iter=300, random_state=0)
    quietly(model, X, Y)
    assert not model.converged_ or model.value_ <= 1.01 * best.value_
    assert model.value_ >= bound - 1e-9


def test_a_standstill_that_other_steps_leave_is_called_stalled():
    X, Y = uncentred(0)
    with pytest.warns(ConvergenceWarning, match="scale the features"):
        model = SequenceLabeler(loss="hinge", solver="sgd", random_state=0).fit(X, Y)
    assert (model.ended_, model.converged_) == (Ending.STALLED, False)


def test_the_perceptron_has_converged_only_without_mistakes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (X[:, 0] > 0).astype(int)
    apart = quietly(MulticlassClassifier(loss="perceptron", random_state=0), X, y)
    assert apart.converged_ == (apart.score(X, y) == 1.0)
    y = np.where(rng.random(80) < 0.3, 1 - y, y)
    mixed = quietly(MulticlassClassifier(loss="perceptron", random_state=0), X, y)
    assert not mixed.converged_


# ---- CCCP ------------------------------------------------------------------------------------

INNER = {
    "fixed": Stochastic("fixed", step_size=0.5),
    "root, averaged": Stochastic("root", average=0.5),
    "adagrad, averaged": Stochastic("adagrad", average=0.5, batch_size=4),
    "decaying": Stochastic("decaying", average=0.5),
    "lbfgs": Lbfgs(),
}


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("seed", range(2))
def test_cccp_never_rises_and_converges_only_where_the_gradient_is_small(inner, seed):
    toy = Hidden(seed)
    start = np.random.default_rng(seed).normal(0.0, 0.1, toy.n_weights)
    fit = run(Cccp(INNER[inner], inner_iter=10), toy, start, max_iter=30, tol=1e-6)
    values = fit.history.value
    assert (np.diff(values) <= 1e-12 * abs(values[0])).all()
    if fit.converged:
        further = run(Lbfgs(), toy, fit.weights, max_iter=200, tol=1e-10)
        assert fit.value - further.value <= 1e-3 * abs(fit.value)


def test_cccp_goes_on_where_its_inner_solver_gets_nowhere():
    toy = Hidden(1)
    start = np.random.default_rng(1).normal(0.0, 0.1, toy.n_weights)
    wild = Cccp(Stochastic("fixed", step_size=1e3), inner_iter=3)
    best = run(Cccp(Lbfgs()), toy, start, max_iter=100, tol=1e-8)
    fit = run(wild, toy, start, max_iter=100, tol=1e-8)
    assert fit.value == pytest.approx(best.value, rel=1e-2)


# ---- endings that somebody brings about --------------------------------------------------------


def test_a_time_limit_holds_within_the_search_for_a_first_step():
    image = np.random.default_rng(0).normal(size=(24, 24, 2))
    labels = (image[:, :, 0] > 0).astype(int)
    asked = []
    model = GridLabeler(inference="bp", time_limit=0.0, callbacks=[asked.append])
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model.fit([image], [labels])
    assert (model.ended_, len(asked)) == (Ending.TIME, 1)


def test_a_full_disk_costs_no_work(tmp_path, monkeypatch):
    X, Y = uncentred(1)
    whole = SequenceLabeler().fit(X, Y)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write", full)
    with pytest.warns(CheckpointWarning, match="No space left"):
        model = SequenceLabeler(checkpoint=tmp_path / "run").fit(X, Y)
    np.testing.assert_array_equal(model.weights_, whole.weights_)


def test_a_checkpoint_is_a_file(tmp_path):
    X, Y = uncentred(1)
    with pytest.raises(ValueError, match="checkpoint is a folder"):
        SequenceLabeler(checkpoint=tmp_path).fit(X, Y)
