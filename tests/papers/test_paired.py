"""Paired learning on grids: curves of objective against message sweeps."""

from __future__ import annotations

import numpy as np
import pytest

from papers.base import Settings
from papers.experiments import paired
from papers.experiments.paired import Curve


def test_sweeps_until_a_value_is_reached():
    curve = Curve("", np.array([10.0, 20, 30]), np.array([3.0, 1.0, 2.0]))
    assert [curve.until(x) for x in (3.0, 1.5, 0.5)] == [10.0, 20.0, float("inf")]


@pytest.fixture(scope="module")
def curves():
    return paired.train(seed=0, shape=(4, 4), steps=12)


def test_everyone_begins_with_the_same_weights_and_gains(curves):
    assert [curve.name for curve in curves] == [
        "to convergence", "2 sweeps", "5 sweeps", "10 sweeps",
    ]  # fmt: skip
    for curve in curves:
        assert len(curve.values) == len(curve.sweeps) == 12
        assert curve.values.min() < curve.values[0]
        assert (np.diff(curve.sweeps) > 0).all()


def test_few_sweeps_are_fewer(curves):
    converged, few, *_ = curves
    assert few.sweeps[-1] < converged.sweeps[-1]
    assert few.sweeps[-1] <= 2 * 2 * (12 + 1)  # both worlds, and once before the first step


def test_the_quick_version():
    record = paired.run(Settings(quick=True))
    (table,) = record.tables
    assert table.column("worlds")[0] == "to convergence"
    assert all(value > 0.0 for value in table.column("objective at the end"))
    assert set(record.pictures) == {"curves"}
