"""Draws of paths: threads, calls of kernels and memory change none of them."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from structlearn._src.sample import hmm
from structlearn._src.sample.emission import Categorical, Gaussian
from structlearn._src.sample.hmm import HmmModel
from structlearn._src.sample.paths import draw_paths
from structlearn._src.sample.priors import NormalWishart

OFFSETS = np.append(0, np.cumsum(np.random.default_rng(0).integers(1, 40, 60)))
N = int(OFFSETS[-1])


@pytest.fixture(scope="module")
def model():
    """Points and symbols of three levels."""
    rng = np.random.default_rng(1)
    level = rng.integers(3, size=N)
    prior = NormalWishart(np.zeros(2), 0.1, 5.0, 2.0 * np.eye(2))
    points = Gaussian(4.0 * level[:, None] + rng.normal(size=(N, 2)), rng.random(N) < 0.9, prior)
    return HmmModel(OFFSETS, (points, Categorical(level, np.ones(3))), 1.0, 1.0)


def _drawn(model):
    rng = np.random.default_rng(2)
    state = hmm.start(model, rng.integers(5, size=N), rng)
    return state, draw_paths(model, state, rng)


def test_statistics_are_those_of_the_paths(model):
    state, (new, found, n_open, log_density) = _drawn(model)
    assert n_open >= state.n_states
    expected = hmm.statistics(model, new)
    np.testing.assert_array_equal(found.counts, expected.counts)
    for own, other in zip(found.emitted, expected.emitted, strict=True):
        for a, b in zip(own, other, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
    for k, positions in enumerate(found.members):
        np.testing.assert_array_equal(positions, np.flatnonzero(new.states == k))
    logs = hmm.log_densities(model, new)
    assert log_density == pytest.approx(logs[np.arange(N), new.states].sum())


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
@pytest.mark.parametrize("most", [0, 2**20])
def test_threads_calls_and_memory_change_no_draw(model, n_jobs, most, monkeypatch):
    """Pieces of some positions, of which a call of a kernel draws one or two for each thread."""
    monkeypatch.setattr("structlearn._src.sample.hmm._PIECE", 50)
    _, alone = _drawn(replace(model))
    monkeypatch.setattr("structlearn._src.sample.paths._TAKEN", 1)
    monkeypatch.setattr("structlearn._src.sample.paths._AT_ONCE", 2)
    monkeypatch.setattr("structlearn._src.sample.memory._MOST", most)
    own = replace(model, n_jobs=n_jobs)
    for again in (own, own, pickle.loads(pickle.dumps(own))):  # memory is used a second time
        _, found = _drawn(again)
        np.testing.assert_array_equal(found.state.states, alone.state.states)
        np.testing.assert_array_equal(found.statistics.counts, alone.statistics.counts)
        assert found.log_density == alone.log_density
