"""Paired learning on grids: curves of objective against message sweeps."""

from __future__ import annotations

import numpy as np
import pytest

from papers.base import Settings, Unit
from papers.experiments import paired

(EXPERIMENT,) = paired.EXPERIMENTS


def test_sweeps_until_a_value_is_reached():
    found = {"sweeps": [10, 20, 30], "values": [3.0, 1.0, 2.0]}
    assert [paired.until(found, x) for x in (3.0, 1.5, 0.5)] == [10.0, 20.0, float("inf")]


@pytest.fixture(scope="module")
def units():
    given = EXPERIMENT.units(Settings(quick=True))
    small = [each | {"shape": [4, 4], "steps": 12} for each in given]
    return [Unit(each, EXPERIMENT.work(**each)) for each in small]


def test_everyone_begins_with_the_same_weights_and_gains(units):
    assert [unit.given["way"] for unit in units] == [
        "to convergence", "2 sweeps", "5 sweeps", "10 sweeps",
    ]  # fmt: skip
    for unit in units:
        values, sweeps = unit.found["values"], unit.found["sweeps"]
        assert len(values) == len(sweeps) == 12
        assert min(values) < values[0]
        assert (np.diff(sweeps) > 0).all()


def test_few_sweeps_are_fewer(units):
    converged, few, *_ = (unit.found["sweeps"] for unit in units)
    assert few[-1] < converged[-1]
    assert few[-1] <= 2 * 2 * (12 + 1)  # both worlds, and once before the first step


def test_the_report(units):
    report = EXPERIMENT.report(units)
    (table,) = report.tables
    assert table.column("worlds") == list(paired.WAYS)
    assert table.column("never")[0] == 0
    assert len(report.claims) == 1
    assert EXPERIMENT.pictures["curves"](units) is not None
