"""Clusters of two processes on this machine, whose workers may be killed."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

START = 30  # seconds in which workers are back


@contextmanager
def two_workers():
    """Give a client of a cluster with two workers of one thread."""
    distributed = pytest.importorskip("distributed", reason="needs structlearn[dask]")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def revive(client):
    """Wait until both workers are back, and ask for another one if they do not come."""
    try:
        client.wait_for_workers(2, timeout=START)
    except TimeoutError:  # Dask does not replace a worker that was killed while it was starting
        client.cluster.scale(len(client.cluster.workers) + 1)
        client.wait_for_workers(2, timeout=4 * START)
