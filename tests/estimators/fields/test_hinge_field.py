"""HingeField: the engine of rules, from plain arrays."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog, minimize

from structlearn import HingeField
from structlearn._src.common.errors import ArgumentError, GraphError, InfeasibleError
from structlearn._src.field.hinges import Hinges


def random_field(seed, **options):
    """Hinges of two groups over a few variables, and a sum that must be at least 1."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(3, 9))
    A = rng.integers(-2, 3, (m, n)) * (rng.random((m, n)) < 0.6)
    b = rng.normal(0.0, 1.0, m).round(2)
    A, b = np.vstack([A, -np.ones(n)]).astype(float), np.append(b, 1.0)
    kinds = ["hinge"] * m + ["<="]
    groups, weights = np.append(np.arange(m) % 2, 0), rng.uniform(0.1, 3.0, 2)
    return HingeField(A, b, kinds=kinds, groups=groups, weights=weights, **options), A, b


def exact_linear(A, b, weights):
    """Least energy as a linear program with a slack for every hinge."""
    m, n = len(A) - 1, A.shape[1]
    cost = np.concatenate([np.zeros(n), weights])
    rows = np.hstack([A, np.vstack([-np.eye(m), np.zeros((1, m))])])
    bounds = [(0, 1)] * n + [(0, None)] * m
    return linprog(cost, A_ub=rows, b_ub=-b, bounds=bounds).fun


@pytest.mark.parametrize("seed", range(20))
def test_linear_hinges_reach_the_linear_program(seed):
    field, A, b = random_field(seed)
    exact = exact_linear(A, b, field.weights_[np.arange(len(A) - 1) % 2])
    assert field.energy_ == pytest.approx(exact, rel=1e-5, abs=1e-5)
    assert field.lower_bound_ <= exact + 1e-9
    assert field.violation_ <= 1e-6
    assert field.energy(field.predict()) == pytest.approx(field.energy_)


@pytest.mark.parametrize("seed", range(10))
def test_squared_hinges_reach_what_scipy_finds(seed):
    field, A, _ = random_field(seed, powers=2)
    limit = {"type": "ineq", "fun": lambda y: y.sum() - 1.0}
    found = minimize(
        field.energy, np.full(A.shape[1], 0.6), bounds=[(0, 1)] * A.shape[1], constraints=limit
    )
    assert field.energy_ == pytest.approx(found.fun, rel=1e-4, abs=1e-4)


def test_sparse_and_dense_are_the_same():
    dense, A, b = random_field(3)
    doubled = sparse.coo_array(A) * 0.5
    given = sparse.vstack([doubled]) + sparse.csr_array(A * 0.5)
    options = {"kinds": ["hinge"] * (len(A) - 1) + ["<="], "groups": dense.hinges.groups}
    field = HingeField(given.tocoo(), b, weights=dense.weights_, **options)
    np.testing.assert_array_equal(field.hinges.coefficients, dense.hinges.coefficients)
    np.testing.assert_array_equal(field.predict(), dense.predict())


def test_variables_can_be_given():
    field = HingeField([[1.0, 1.0], [-1.0, 0.0]], [-1.0, 1.0], kinds=["=", "hinge"])
    np.testing.assert_allclose(field.map({1: 0.25}).y, [0.75, 0.25], atol=1e-6)
    np.testing.assert_allclose(field.map([np.nan, 0.5]).y, [0.5, 0.5], atol=1e-6)
    np.testing.assert_allclose(field.map().y, [1.0, 0.0], atol=1e-6)


def test_weights_may_be_set_and_inference_goes_on():
    field = HingeField([[1.0], [-1.0]], [0.0, 1.0], powers=2, groups=[0, 1], weights=[1, 3])
    first = field.map()
    assert field.map() is first
    field.weights_ = [3, 1]
    np.testing.assert_allclose(field.predict(), [0.25], atol=1e-4)
    field.weights_ = 2.0
    np.testing.assert_allclose(field.predict(), [0.5], atol=1e-4)
    assert field.weights_.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("learner", ["paired", "em", "subgradient"])
def test_learning_moves_the_values_to_the_truth(learner):
    n = 20
    pairs = np.eye(n) - np.eye(n, k=1)
    A = np.vstack([-np.eye(n), np.eye(n), pairs[:-1]])
    b = np.concatenate([np.ones(n), np.zeros(n), np.zeros(n - 1)])
    groups = np.repeat([0, 1, 2], [n, n, n - 1])
    field = HingeField(A, b, powers=2, groups=groups)
    truth = np.ones(n)
    truth[::3] = np.nan
    before = np.nanmean((field.predict() - truth) ** 2)
    field.fit(truth, learner=learner, max_iter=10 if learner == "em" else 100, tol=None)
    assert field.weights_[0] > field.weights_[1]
    assert np.nanmean((field.predict() - truth) ** 2) < 0.5 * before
    assert field.value_ < field.history_.value[0]


def test_groups_that_are_not_learnt_keep_their_weights():
    field = HingeField([[1.0], [-1.0]], [0.0, 1.0], powers=2, groups=[0, 1], weights=[1.0, 1.0])
    field.fit([1.0], learnt=np.array([False, True]), C=50.0, max_iter=5, tol=None)
    assert field.weights_[0] == 1.0
    assert field.weights_[1] > 1.0


def test_numbers_of_any_kind_are_numbers():
    A = [[1.0, -1.0], [-1.0, 1.0], [1.0, 0.0]]
    b = [0.1, 0.0, -0.3]
    plain = HingeField(A, b, weights=[1.0], max_iter=100, time_limit=50.0).predict()
    options = {"max_iter": np.int8(100), "time_limit": np.float16(50.0), "tol": np.float32(1e-6)}
    np.testing.assert_allclose(HingeField(A, b, **options).predict(), plain, atol=1e-4)
    for kind in (object, np.longdouble, ">f8"):
        field = HingeField(np.array(A, kind), np.array(b, kind))
        np.testing.assert_array_equal(field.predict(), plain)


def test_forms_that_are_there_already():
    hinges = random_field(0)[0].hinges
    assert isinstance(hinges, Hinges)
    field = HingeField.of(hinges, 1.0, tol=1e-3)
    assert (field.tol, field.weights_.tolist()) == (1e-3, [1.0, 1.0])
    assert "1 hard constraints over" in repr(field)


@pytest.mark.parametrize(
    ("A", "b", "options", "error", "words"),
    [
        ([1.0], 0.0, {}, GraphError, r"A has shape \(1,\): it must be \(forms, variables\)"),
        ([[1.0], []], 0.0, {}, GraphError, "A is not an array of numbers"),
        ([[np.nan]], 0.0, {}, GraphError, "coefficients must be finite"),
        ([[1.0]], np.nan, {}, GraphError, "b must be finite"),
        ([[1.0]], [0.0, 1.0], {}, GraphError, r"b has shape \(2,\), but A has 1 rows"),
        ([[1.0]], 0.0, {"kinds": ">="}, ArgumentError, "kinds has '>=': choose one of 'hinge'"),
        ([[1.0]], 0.0, {"kinds": None}, ArgumentError, "kinds has None: choose one of 'hinge'"),
        ([[1.0]], 0.0, {"kinds": ["=", "="]}, GraphError, r"kinds has shape \(2,\)"),
        ([[1.0]], 0.0, {"kinds": [[]]}, ArgumentError, "kinds has"),
        ([[1.0]], 0.0, {"weights": "x"}, ArgumentError, "weights='x'"),
        ([[1.0]], 0.0, {"powers": 3}, GraphError, "powers"),
        ([[1.0]], 0.0, {"groups": [0.5]}, GraphError, "groups must be whole numbers"),
        ([[1.0]], 0.0, {"groups": [-1]}, ArgumentError, "count from 0"),
        ([[1.0]], 0.0, {"weights": -1.0}, ArgumentError, "at least 0"),
        ([[1.0]] * 2, 0.0, {"groups": [0, 2], "weights": [1, 1]}, ArgumentError, "3 groups"),
    ],
)
def test_bad_arrays(A, b, options, error, words):
    with pytest.raises(error, match=words):
        HingeField(A, b, **options)


def test_bad_values():
    field = random_field(0)[0]
    with pytest.raises(ArgumentError, match="fixed has shape"):
        field.map([0.5])
    with pytest.raises(ArgumentError, match="give one for each"):
        field.energy([0.5])
    for odd in ("x", ["a"], slice(1)):
        with pytest.raises(ArgumentError, match="truth="):
            field.fit(odd)
        with pytest.raises(ArgumentError, match="y="):
            field.energy(odd)
    with pytest.raises(ArgumentError, match="fit has no option 'lerner'"):
        field.fit(np.ones(field.hinges.n_variables), lerner="em")
    with pytest.raises(ArgumentError, match="no weight to learn"):
        HingeField([[1.0, 0.0]], -1.0, kinds="<=").fit([1.0, np.nan])


def test_contradictions():
    field = HingeField([[1.0], [-1.0]], [-0.2, 0.8], kinds="<=")
    with pytest.raises(InfeasibleError) as caught:
        field.predict()
    assert caught.value.forms == [0, 1]
