"""Clusters of two processes on this machine, for all tests of places that need one."""

from __future__ import annotations

import pytest

from clusters import revive, two_workers


@pytest.fixture(scope="session")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(scope="module")
def _mortal_cluster():
    """A cluster of its own: whoever comes later must not wait for workers that are starting."""
    with two_workers() as client:
        yield client


@pytest.fixture
def mortal(_mortal_cluster):
    """A client with two workers that may be killed."""
    revive(_mortal_cluster)
    return _mortal_cluster
