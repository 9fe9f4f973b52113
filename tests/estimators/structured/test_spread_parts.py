"""Dask bags and delayed partitions: the model of one process."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from clusters import two_workers
from structlearn import GridLabeler, SequenceLabeler, on
from structlearn.errors import ArgumentError, PlaceError


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def sequences(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 6), 3)) for _ in range(n)]
    Y = [np.array(["a", "b", "c"])[(x[:, 0] > 0).astype(int) + (x[:, 1] > 1)] for x in X]
    Y[-1][:] = "d"  # a label that only the last partition has
    return X, Y


def lazy(client, items, n_parts, how):
    dask = pytest.importorskip("dask")
    if how == "bag":
        bag = pytest.importorskip("dask.bag")
        return bag.from_sequence(items, npartitions=n_parts)
    borders = np.linspace(0, len(items), n_parts + 1).astype(int)
    return [dask.delayed(items[i:j]) for i, j in pairwise(borders)]


@pytest.mark.parametrize("how", ["bag", "delayed"])
def test_partitions_give_the_model_of_one_process(client, how):
    X, Y = sequences()
    here = SequenceLabeler(solver="lbfgs").fit(X, Y)
    with on(client):
        there = SequenceLabeler().fit(lazy(client, X, 5, how), lazy(client, Y, 5, how))
    assert there.classes_.tolist() == here.classes_.tolist()
    assert there.n_seen_ == len(X)
    assert there.value_ == pytest.approx(here.value_, rel=1e-4)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=0.05)


def test_hidden_labels_in_a_later_partition(client):
    rng = np.random.default_rng(0)
    Y = [(rng.random((4, 4)) < 0.5).astype(int) for _ in range(6)]
    X = [y[..., None] + 0.5 * rng.normal(size=(4, 4, 1)) for y in Y]
    Y[-1] = np.where(rng.random((4, 4)) < 0.5, -1, Y[-1])
    given = {"max_iter": 40, "tol": None, "solver": "lbfgs", "random_state": 0, "inference": "bp"}
    here = GridLabeler(**given).fit(X, Y)
    with on(client):
        there = GridLabeler(**given).fit(lazy(client, X, 3, "bag"), lazy(client, Y, 3, "bag"))
    assert there.value_ == pytest.approx(here.value_, rel=1e-3)


def test_what_partitions_cannot_be(client):
    X, Y = sequences()
    bags = lazy(client, X, 4, "bag"), lazy(client, Y, 4, "bag")
    with pytest.raises(PlaceError, match="on"):
        SequenceLabeler().fit(*bags)
    with on(client):
        with pytest.raises(ArgumentError, match="partitions"):
            SequenceLabeler().fit(bags[0], lazy(client, Y, 3, "bag"))
        with pytest.raises(ArgumentError, match="Y"):
            SequenceLabeler().fit(bags[0], Y)
        with pytest.raises(ArgumentError, match="class_weight"):
            SequenceLabeler(class_weight="balanced").fit(*bags)
        tokens = [[[f"w{i}"] for i in range(n, n + 2)] for n in range(8)]
        labels = [["a", "b"]] * 8
        with pytest.raises(ArgumentError, match="features"):
            SequenceLabeler().fit(lazy(client, tokens, 4, "bag"), lazy(client, labels, 4, "bag"))
