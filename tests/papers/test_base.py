"""What experiments take and give back: settings, estimates, tables, records."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from papers.base import Claim, Estimate, Report, Settings, Table, Verdict
from papers.catalogue import EXPERIMENTS
from structlearn.errors import ArgumentError


def test_an_estimate_is_a_mean_with_its_standard_error():
    values = np.random.default_rng(0).normal(size=9)
    mean, error = Estimate.of(values)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(values.std(ddof=1) / 3.0)
    assert str(Estimate(1.234, 0.056)) == "1.23 ±0.06"


def test_a_single_trial_has_no_error():
    alone = Estimate.of([2.0])
    assert alone.mean == 2.0
    assert math.isnan(alone.error)
    assert str(alone) == "2.00"


def test_counts_of_trials():
    assert Settings().count(full=20, quick=3) == 20
    assert Settings(quick=True).count(full=20, quick=3) == 3
    assert Settings(trials=5, quick=True).count(full=20, quick=3) == 5


@pytest.mark.parametrize(("name", "given"), [("trials", 0), ("seed", -1), ("seed", 1.5)])
def test_bad_settings_are_named(name, given):
    with pytest.raises(ArgumentError, match=name):
        Settings(**{name: given})


ROWS = [{"loss": "log", "error": 0.123456, "n": 3}, {"loss": "hinge", "error": 12.0, "n": 10}]


def test_columns_of_a_table_are_aligned_to_the_right():
    table = Table.of("Errors", ROWS)
    assert table.columns == ("loss", "error", "n")
    assert table.column("n") == [3, 10]
    assert table.lines() == [
        "Errors",
        " loss   error   n",
        "  log  0.1235   3",
        "hinge      12  10",
    ]
    assert Table.of("", ROWS).lines()[0].split() == ["loss", "error", "n"]


def test_reports_as_text():
    tables = (Table.of("Errors", ROWS), Table.of("", [{"gain": Estimate(1.0, 0.5)}]))
    report = Report(tables, (Claim.that("it is small", True, "it was seen"),))
    lines = report.lines()
    assert lines[1] == "Errors"
    assert lines[-1] == "holds: it is small (it was seen)"
    assert lines.count("") == 3  # before every table and before the claims


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ([1.0, 1.1, 0.9], Verdict.HOLDS),
        ([-1.0, -1.1, -0.9], Verdict.FAILS),
        ([1.0, -1.1, 0.5], Verdict.OPEN),
        ([1.0, 0.2, 0.9], Verdict.OPEN),  # 2.8 standard errors, but of three trials
        ([1.0], Verdict.OPEN),
    ],
)
def test_a_gain_counts_from_two_standard_errors(gains, verdict):
    claim = Claim.above("more is better", gains)
    assert claim.verdict is verdict
    assert str(Estimate.of(gains)) in claim.because
    assert str(claim).startswith(f"{verdict}: more is better (")


def test_gains_can_be_asked_to_be_above_something():
    gains = [1.0, 1.1, 0.9]
    assert Claim.above("by half", gains, than=0.5).verdict is Verdict.HOLDS
    assert Claim.above("by two", gains, than=2.0).verdict is Verdict.FAILS
    assert Claim.that("it is", True, "it was seen").verdict is Verdict.HOLDS
    assert Claim.that("it is", False, "it was seen").verdict is Verdict.FAILS
    assert Claim.apart("theirs", "other data").verdict is Verdict.APART


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ([0.1, 0.2, 0.15], Verdict.HOLDS),  # not 0, but small for sure
        ([-0.1, -0.2, -0.15], Verdict.HOLDS),
        ([0.0, 3.0, -3.0], Verdict.OPEN),  # nothing is known of it
        ([0.9, 1.0, 0.95], Verdict.OPEN),
        ([5.0, 5.1, 5.2], Verdict.FAILS),
        ([-5.0, -5.1, -5.2], Verdict.FAILS),
        ([0.0], Verdict.OPEN),
    ],
)
def test_level_means_that_a_difference_is_small_for_sure(gains, verdict):
    claim = Claim.level("they are level", gains, within=1.0)
    assert claim.verdict is verdict
    assert "from -1 to 1" in claim.because


def test_a_single_trial_is_one_trial_with_its_digits():
    claim = Claim.above("more is better", [-0.0031])
    assert claim.because == "-0.0031 over 1 trial: a single trial has no spread"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_says_what_it_is(name):
    experiment = EXPERIMENTS[name]
    assert experiment.name == name
    assert experiment.asks.endswith((".", "?"))
    assert experiment.item[0].islower()  # it stands within a sentence
    assert experiment.systems


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_units_are_plain_and_all_different(name):
    for settings in (Settings(), Settings(quick=True), Settings(quick=True, seed=1)):
        given = [json.dumps(each, sort_keys=True) for each in EXPERIMENTS[name].units(settings)]
        assert given
        assert len(set(given)) == len(given)
