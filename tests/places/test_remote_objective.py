"""Objectives whose shards are on two workers: the same values, drivers, memories and optima."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from structlearn import Checkpoint, GridLabeler, RuleModel, SequenceLabeler, on
from structlearn._src.learn.world import Budget, count_steps, leaves
from structlearn.solvers import Stochastic


def sequences(n=60, seed=0, hidden=0.0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 7), 3)) for _ in range(n)]
    true = rng.normal(size=(3, 3))
    Y = [(x @ true + rng.normal(size=(len(x), 3))).argmax(1) for x in X]
    if hidden:
        Y = [np.where(rng.random(len(y)) < hidden, -1, y) for y in Y]
    return X, Y


def grids(n=6, seed=0):
    rng = np.random.default_rng(seed)
    Y = [(rng.random((4, 4)) < 0.5).astype(int) for _ in range(n)]
    X = [y[..., None] + rng.normal(size=(4, 4, 1)) for y in Y]
    return X, [np.where(rng.random(y.shape) < 0.3, -1, y) for y in Y]


CASES = {
    "chains": (SequenceLabeler(), sequences()),
    "hinge": (SequenceLabeler(loss="hinge"), sequences()),
    "hidden": (SequenceLabeler(loss="marginal"), sequences(hidden=0.3)),
    "lasso": (SequenceLabeler(l1_ratio=0.5), sequences()),
    "exact grids": (GridLabeler(inference="exact"), grids()),
    "messages": (GridLabeler(inference="bp"), grids()),
}


@pytest.fixture(scope="module", params=CASES)
def pair(request, client):
    """An objective here, and the same on the workers."""
    estimator, (X, Y) = CASES[request.param]
    here = estimator.objective(X, Y)
    with on(client) as place:
        yield here, place.objective(here)


@pytest.fixture
def weights(pair):
    return 0.1 * np.random.default_rng(1).normal(size=pair[0].n_weights)


# ---- values ------------------------------------------------------------------------------


def agree(here, there):
    assert there.value == pytest.approx(here.value, rel=1e-10)
    np.testing.assert_allclose(there.gradient, here.gradient, rtol=1e-8, atol=1e-10)


def test_values_and_gradients_are_the_same(pair, weights):
    here, there = pair
    agree(here.value_gradient(weights), there.value_gradient(weights))
    assert there.value(weights) == pytest.approx(here.value(weights), rel=1e-10)


def test_facts_are_the_same(pair, weights):
    here, there = pair
    names = ("n_weights", "n_examples", "convex", "smooth", "approximate", "abilities", "hints")
    assert all(getattr(here, name) == getattr(there, name) for name in names)
    assert np.array_equal(here.scales, there.scales)
    assert here.data is there.data
    curvatures = here.diagonal(weights), there.diagonal(weights)
    assert curvatures[0] is curvatures[1] or np.array_equal(*curvatures)


def test_some_examples_are_the_same(pair, weights):
    here, there = pair
    which = np.array([here.n_examples - 1, 0, 2])
    agree(here.batch_gradient(weights, which), there.batch_gradient(weights, which))
    first = np.array([0])  # on one of the workers alone
    agree(here.batch_gradient(weights, first), there.batch_gradient(weights, first))
    agree(here.take(first).loss_gradient(weights), there.take(first).loss_gradient(weights))


def test_bounds_are_the_same(pair, weights):
    here, there = pair
    bounds = here.linearise(weights), there.linearise(weights)
    assert bounds[0].convex
    assert bounds[1].convex
    assert bounds[1].value(weights) == pytest.approx(here.value(weights), rel=1e-9)
    agree(*(bound.value_gradient(2 * weights) for bound in bounds))
    which = np.array([1, here.n_examples - 1])
    agree(*(bound.batch_gradient(2 * weights, which) for bound in bounds))


def test_softened_objectives_are_the_same(pair, weights):
    here, there = pair
    softened = here.softened(0.7), there.softened(0.7)
    assert softened[0].smooth == softened[1].smooth
    agree(*(each.value_gradient(weights) for each in softened))
    bound = here.linearise(weights).softened(0.7), there.linearise(weights).softened(0.7)
    agree(*(each.value_gradient(weights) for each in bound))


# ---- memories ----------------------------------------------------------------------------


@pytest.fixture
def loopy(client):
    estimator, (X, Y) = CASES["messages"]
    here = estimator.objective(X, Y)
    with on(client) as place:
        weights = np.random.default_rng(2).normal(size=here.n_weights)
        yield here, place.objective(here), weights


def test_memories_stay_with_their_shards(loopy):
    here, there, weights = loopy
    here, there = (each.with_budget(Budget(1)) for each in (here, there))
    memories = here.begin(), there.begin()
    for _ in range(3):  # each evaluation goes on from the last
        found = (
            here.value_gradient(weights, memories[0]),
            there.value_gradient(weights, memories[1]),
        )
        agree(*found)
    assert count_steps(memories[1]) >= count_steps(memories[0]) > 0
    cold = there.value(weights)
    assert cold != pytest.approx(found[1].value, rel=1e-12)  # so that memory matters here


def test_a_warm_start_is_a_copy(loopy):
    _, there, weights = loopy
    there = there.with_budget(Budget(1))
    memory = there.begin()
    there.value(weights, memory)
    before = [array.copy() for _, array in leaves(memory)]
    warm = there.warmed(memory)
    copy = warm.begin()
    assert count_steps(copy) == count_steps(memory)
    warm.value(weights, copy)
    assert all(map(np.array_equal, before, (array for _, array in leaves(memory))))
    assert not all(map(np.array_equal, before, (array for _, array in leaves(copy))))


def test_what_nobody_remembers_is_forgotten(loopy):
    _, there, weights = loopy
    client = there.remote.keepers.place.client
    keys = there.remote.keepers.keys
    memory = there.begin()

    def kept(dask_worker):
        shards = dask_worker.plugins["structlearn"].kept
        return [len(shards[key].memories) for key in keys if key in shards]

    assert list(client.run(kept).values()) == [[1], [1]]
    del memory
    there.value(weights)
    assert list(client.run(kept).values()) == [[0], [0]]


def test_shards_leave_the_workers_with_their_objective(client):
    with on(client) as place:
        there = place.objective(SequenceLabeler().objective(*sequences()))
        keys = {*there.remote.keepers.keys}

        def kept(dask_worker):
            return keys & {*dask_worker.plugins["structlearn"].kept}

        assert set.union(*client.run(kept).values()) == keys
        del there
        for _ in range(100):  # they are told, and nobody waits for them
            if not any(client.run(kept).values()):
                return
            time.sleep(0.1)
    pytest.fail("shards are still kept")


# ---- fits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("chains", {"solver": "auto"}),
        ("lasso", {"solver": "owlqn"}),
        ("hidden", {"driver": "cccp", "solver": "adagrad", "max_iter": 3, "tol": None}),
        ("messages", {"driver": "paired", "max_iter": 20, "tol": None}),
        ("chains", {"solver": Stochastic(batch_size=20), "max_iter": 4, "tol": None}),
    ],
)
def test_fits_end_where_those_of_one_process_do(name, settings, client):
    estimator, (X, Y) = CASES[name]
    settings = {"tol": 1e-6, "random_state": 0, **settings}
    here = clone(estimator).set_params(**settings).fit(X, Y)
    with on(client):
        there = clone(estimator).set_params(**settings).fit(X, Y)
    assert there.value_ == pytest.approx(here.value_, rel=1e-3)
    if settings["tol"] is None:  # the same steps, so that rounding alone may differ
        np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-6)


def test_the_same_number_of_workers_gives_the_same_bits(client):
    estimator, (X, Y) = CASES["chains"]
    with on(client):
        found = [clone(estimator).fit(X, Y).weights_ for _ in range(2)]
    assert np.array_equal(*found)


def test_checkpoints_gather_memories(client, tmp_path):
    estimator, (X, Y) = CASES["messages"]
    settings = {"driver": "paired", "tol": None, "random_state": 0}

    def fit(max_iter, path):
        place = Checkpoint(path, iterations=1)
        return (
            clone(estimator).set_params(**settings, max_iter=max_iter, checkpoint=place).fit(X, Y)
        )

    with on(client), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of too few iterations
        whole = fit(8, tmp_path / "whole")
        fit(4, tmp_path / "half")
        resumed = fit(8, tmp_path / "half")
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)


@pytest.mark.parametrize("driver", ["subgradient", "paired", "cccp"])
def test_weights_of_rules_end_where_those_of_one_process_do(driver, client):
    rng = np.random.default_rng(0)
    pairs = [
        (f"{kind}{i}", f"{kind}{j}") for kind in "abc" for i, j in rng.integers(8, size=(12, 2))
    ]
    people = [f"{kind}{i}" for kind in "abc" for i in range(8)]

    def fitted():
        model = RuleModel("1: Near(A, B) & Good(A) -> Good(B) ^2\n1: !Good(A) ^2\n1: Good(A) >= 1")
        model.observe(Near=sorted({(a, b) for a, b in pairs if a != b}))
        model.target(Good=[(name,) for name in people])
        truth = [(name, float(i % 3 == 0)) for i, name in enumerate(people)]
        return model.fit({"Good": truth}, driver=driver, max_iter=10, tol=None)

    here = fitted()
    with on(client):
        there = fitted()
    np.testing.assert_allclose(there.weights_, here.weights_, rtol=0.02)
    assert not np.allclose(here.weights_, 1.0, rtol=0.05)
