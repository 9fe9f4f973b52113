"""Chains go to ArviZ with their axes."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from structlearn import InfiniteHMM
from structlearn.errors import ArgumentError

X = np.repeat([0.0, 5.0, 0.0], 20)[:, None] + np.random.default_rng(0).normal(size=(60, 1))


@pytest.fixture(scope="module")
def model():
    return InfiniteHMM(burn_in=20, n_draws=10, n_chains=2, random_state=0).fit(X)


def by_name(*, posterior=None, sample_stats=None):
    """The call of ArviZ before 1.0."""
    return posterior, sample_stats


def by_group(data):
    """The call since then."""
    return data["posterior"], data["sample_stats"]


@pytest.mark.parametrize("from_dict", [by_name, by_group])
def test_traces_are_handed_over(model, monkeypatch, from_dict):
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(from_dict=from_dict))
    posterior, stats = model.to_arviz()
    traces = model.traces()
    assert {*posterior, "log_density"} == {*traces}
    assert posterior["n_states"].shape == (2, 10)
    np.testing.assert_array_equal(posterior["n_states"], traces["n_states"])
    np.testing.assert_array_equal(stats["lp"], traces["log_density"])


def test_arviz_itself(model):
    arviz = pytest.importorskip("arviz")
    data = model.to_arviz()
    assert data.posterior["n_states"].dims == ("chain", "draw")
    found = arviz.summary(data, var_names=["n_states"])["mean"].iloc[0]
    assert float(found) == pytest.approx(model.traces()["n_states"].mean(), abs=0.01)


def test_without_arviz(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match="pip install arviz"):
        model.to_arviz()


def test_lengths_in_the_place_of_labels_are_refused():
    small = InfiniteHMM(burn_in=2, n_draws=2, n_chains=1, random_state=0)
    with pytest.raises(ArgumentError, match=r"2 numbers that add up to the 60 rows.*lengths="):
        small.fit(X, [20, 40])
    assert [len(path) for path in small.fit(X, lengths=[20, 40]).states_] == [20, 40]
    small.fit(X, np.zeros(60, int))  # labels are ignored, as pipelines want
