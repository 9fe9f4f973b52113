"""Workers that are killed: their work is done by others, to the same result."""

from __future__ import annotations

import os
import signal

import numpy as np
import pytest

from structlearn import SequenceLabeler, on
from structlearn.errors import PlaceError

START = 30  # seconds in which workers are back


@pytest.fixture(scope="module")
def mortal():
    """A cluster of its own: whoever comes later must not wait for workers that are starting."""
    distributed = pytest.importorskip("distributed", reason="needs structlearn[dask]")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture
def client(mortal):
    mortal.wait_for_workers(2, timeout=START)
    return mortal


def sequences(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 7), 3)) for _ in range(n)]
    return X, [(x[:, 0] > 0).astype(int) for x in X]


def kill_one(client, n=0):
    """Kill a worker as the system would that is out of memory; return its address."""
    pids = client.run(os.getpid, on_error="ignore")  # another may just have died
    worker = sorted(pids)[n % len(pids)]
    os.kill(pids[worker], signal.SIGKILL)
    return worker


class KillingCallback:
    """Kills a worker after some iterations."""

    def __init__(self, client, *iterations):
        self.client = client
        self.iterations = iterations
        self.killed = []

    def __call__(self, event):
        if event.iteration in self.iterations:
            self.killed.append(kill_one(self.client, len(self.killed) % 2))


def test_a_fit_survives_workers_that_are_killed(client):
    X, Y = sequences()
    settings = {"solver": "lbfgs", "tol": 1e-9}
    here = SequenceLabeler(**settings).fit(X, Y)
    killing = KillingCallback(client, 2, 4, 6)
    with on(client):
        there = SequenceLabeler(**settings, callbacks=[killing]).fit(X, Y)
    assert len(killing.killed) == 3
    assert there.converged_
    assert there.value_ == pytest.approx(here.value_, rel=1e-8)
    np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-4)


def test_tasks_survive_workers_that_are_killed(client, tmp_path):
    def suicidal(item):
        marker = tmp_path / str(item)
        if item == 2 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item**2

    with on(client) as place:
        assert place.map(suicidal, range(6)) == [0, 1, 4, 9, 16, 25]


def test_work_that_kills_every_worker_is_named(client):
    def deadly(item):
        if item == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with on(client) as place, pytest.raises(PlaceError, match="died over part 1"):
        place.map(deadly, range(3))
    with on(client) as place:  # and those that came after it work
        assert place.map(abs, [-1, 1]) == [1, 1]
