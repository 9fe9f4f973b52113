"""A Dask cluster as a place: what it refuses, what survives, what travels."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from structlearn import SequenceLabeler, on
from structlearn.errors import ArgumentError, IgnoredOptionWarning, PlaceError

LIMIT = 30.0  # seconds within which bad input is refused


def sequences(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 7), 3)) for _ in range(n)]
    Y = [(x[:, 0] > 0).astype(int) for x in X]
    return X, Y


# ---- what goes wrong --------------------------------------------------------------------


def test_errors_of_workers_are_raised_with_their_address(client):
    def wrong(item):
        raise ArgumentError("nothing is right")

    with on(client) as place, pytest.raises(ArgumentError, match="nothing is right") as caught:
        place.map(wrong, [1, 2])
    assert "on worker tcp://" in caught.value.__notes__[0]


def test_a_worker_out_of_memory_is_named(client):
    def greedy(item):
        raise MemoryError("no room for 1 TiB")

    with on(client) as place, pytest.raises(PlaceError, match=r"ran out of memory.*1 TiB"):
        place.map(greedy, [1])


# ---- what is refused -----------------------------------------------------------------------


def test_an_address_without_a_scheduler_is_refused():
    pytest.importorskip("distributed", reason="needs structlearn[dask]")
    began = time.monotonic()
    nowhere = "tcp://127.0.0.1:9"
    with pytest.raises(PlaceError, match=f"no Dask scheduler answers at {nowhere}"), on(nowhere):
        pytest.fail("the block was entered")
    assert time.monotonic() - began < LIMIT


def test_a_closed_client_is_refused(client):
    from distributed import Client

    gone = Client(client.scheduler.address, set_as_default=False)
    gone.close()
    with pytest.raises(PlaceError, match="the Dask client is closed"), on(gone):
        pytest.fail("the block was entered")


def start_worker(address, folder):
    """Start a worker that finds another structlearn first."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    line = ["-m", "distributed.cli.dask_worker", address, "--no-dashboard", "--nthreads", "1"]
    return subprocess.Popen([sys.executable, *line], env=environment, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("code", "message"),
    [("__version__ = '0.0.1'", "has structlearn 0.0.1, but"), ("broken", "cannot import")],
)
def test_workers_with_other_versions_are_refused(code, message, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs structlearn[dask]")
    (tmp_path / "structlearn").mkdir()
    (tmp_path / "structlearn/__init__.py").touch()
    (tmp_path / "structlearn/_version.py").write_text(code)
    with distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as cluster:
        address = cluster.scheduler_address
        worker = start_worker(address, tmp_path)
        try:
            with distributed.Client(address) as client:
                client.wait_for_workers(1, timeout=LIMIT)
            began = time.monotonic()
            with pytest.raises(PlaceError, match=message), on(address):
                pytest.fail("the block was entered")
            assert time.monotonic() - began < LIMIT
        finally:
            worker.terminate()
            worker.wait()


def test_a_cluster_without_workers_is_refused():
    distributed = pytest.importorskip("distributed", reason="needs structlearn[dask]")
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0", silence_logs=50) as cluster,
        pytest.raises(PlaceError, match="no workers"),
        on(cluster.scheduler_address),
    ):
        pytest.fail("the block was entered")


def test_an_objective_that_cannot_be_cut_is_said_to_stay(client):
    from toys import Quadratic

    objective = Quadratic()
    with on(client) as place, pytest.warns(IgnoredOptionWarning, match="cannot be cut"):
        found = place.objective(objective)
    assert found is objective


# ---- what travels --------------------------------------------------------------------------


def test_a_scheduler_by_its_address(client):
    X, Y = sequences()
    with on(client.scheduler.address) as place:
        fitted = SequenceLabeler(solver="lbfgs").fit(X, Y)
        assert place.client is not client
    assert place.client.status == "closed"
    assert client.status == "running"
    assert fitted.converged_


def test_nothing_passes_through_the_scheduler(client, monkeypatch):
    """Weights go from here to one worker, and from worker to worker; heartbeats stay small."""
    from distributed.comm.tcp import TCP

    X, Y = sequences(40)
    X = [np.repeat(x, 500, axis=1) for x in X]
    sent = []
    write = TCP.write

    async def counted(comm, *args, **kwargs):
        n = await write(comm, *args, **kwargs)
        sent.append((comm.local_address, comm.peer_address, n))
        return n

    with on(client) as place:
        there = place.objective(SequenceLabeler().objective(X, Y))
        weights = np.zeros(there.n_weights)
        there.value_gradient(weights, ())
        monkeypatch.setattr(TCP, "write", counted)
        for _ in range(10):
            there.value_gradient(weights, ())
        monkeypatch.undo()
        scheduler = client.scheduler.address
        homes = there.remote.keepers.homes
    of_weights = 8 * len(weights)
    assert of_weights > 20_000
    middle = sum(n for local, peer, n in sent if scheduler in (local, peer))
    assert middle < 0.1 * 10 * of_weights
    to_workers = {home: sum(n for _, peer, n in sent if peer == home) for home in homes}
    assert 10 * of_weights < to_workers[homes[0]] < 1.2 * 10 * of_weights
    assert to_workers[homes[1]] == 0
