"""Figures 1 and 2 of the hybrid loss, on small versions with known answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from papers_toys import quick

from papers.base import Settings, Table, Unit, Verdict
from papers.catalogue import EXPERIMENTS
from papers.experiments import hybrid
from papers.experiments.hybrid import (
    ALPHAS,
    PENALTIES,
    Choice,
    Mixture,
    Sample,
    alpha_claim,
    choices,
    draw,
    error,
    fit,
)


def test_tied_labels_are_drawn_at_random():
    probabilities = np.array([0.46, 0.34, 0.2])
    assert error(np.array([2.0, 1.0, 0.0]), probabilities) == pytest.approx(0.54)
    assert error(np.array([1.0, 1.0005, 0.0]), probabilities) == pytest.approx(0.6)
    assert error(np.zeros(3), probabilities) == pytest.approx(2 / 3)


def test_only_the_hinge_misses_a_label_that_is_best_but_not_dominant():
    done = [Unit({}, hybrid.without_dominance(k)) for k in (3, 6)]
    report = hybrid.figure_1(done)
    (table,) = report.tables
    assert table.column("hinge") == pytest.approx([2 / 3, 5 / 6])
    assert max(table.column("spread of hinge scores")) < 1e-3
    assert table.column("log") == table.column("hybrid") == pytest.approx([0.54, 0.54])
    assert max(table.column("threshold of alpha")) < 0.5
    assert {claim.verdict for claim in report.claims} == {Verdict.HOLDS}


@pytest.mark.parametrize(
    ("loss", "share"),
    # The slope of the hinge along the score of the best label is 1 - 2 * 0.46 = 0.08, so that the
    # probability p of that label has alpha * (p - 0.46) + (1 - alpha) * 0.08 = 0.
    [("log", 0.46), ("hybrid", 0.38)],
)
def test_fits_agree_with_the_optimum_on_paper(loss, share):
    sample = Sample(np.ones((3, 2)), np.arange(3))
    weights = fit(Choice(loss, 1e4, 0.5), sample, np.array([0.46, 0.27, 0.27]))
    scores = sample.inputs[0] @ weights
    gap = math.log(2 * share / (1 - share))
    assert scores[0] - scores[1:] == pytest.approx([gap, gap], abs=5e-3)


def test_only_the_hybrid_has_shares_to_try():
    assert choices("log", (1.0, 2.0)) == [Choice("log", 1.0), Choice("log", 2.0)]
    assert [c.alpha for c in choices("hybrid", (1.0,))] == list(ALPHAS)


def test_mixtures_are_as_described():
    inputs, labels = draw(20_000, 0.3, np.random.default_rng(0))
    assert (inputs[:, -1] == 10.0).all()
    vague = (inputs[:, :-1] == np.resize([1.0, -1.0], 100)).all(axis=1)
    assert vague.mean() == pytest.approx(0.3, abs=0.01)
    shares = np.bincount(labels[vague], minlength=5) / vague.sum()
    assert shares == pytest.approx([0.4, 0.15, 0.15, 0.15, 0.15], abs=0.02)
    assert np.bincount(labels[~vague]) / (~vague).sum() == pytest.approx([0.2] * 5, abs=0.02)
    for y in range(5):
        cells = inputs[~vague & (labels == y), :-1]
        assert (cells.mean(), cells.std()) == pytest.approx((2 + y, 0.6), abs=0.01)


def test_the_choice_is_made_by_validation_and_judged_by_the_test():
    mixture = Mixture.drawn(30, 0.5, np.random.default_rng(3))
    accuracy, chosen = mixture.accuracy("log")
    shares = {}
    for penalty in PENALTIES:
        choice = Choice("log", 1.0 / (penalty * 30))
        weights = fit(choice, mixture.train)
        shares[choice] = [
            float(np.mean((part.inputs @ weights).argmax(1) == part.labels))
            for part in (mixture.validation, mixture.test)
        ]
    assert shares[chosen] == [max(share for share, _ in shares.values()), accuracy]
    assert len({share for share, _ in shares.values()}) > 1


def test_duels_count_wins_losses_and_ties():
    rows = [
        {"hinge": 0.5, "log": 0.6, "hybrid": 0.7},
        {"hinge": 0.9, "log": 0.6, "hybrid": 0.6},
        {"hinge": 0.5, "log": 0.4, "hybrid": 0.5},
    ]
    counted = hybrid.duels(Table.of("", rows))
    assert counted.column("wins") == [1, 2, 1]
    assert counted.column("losses") == [1, 0, 2]
    assert counted.column("ties") == [1, 1, 0]
    gains = [cell.mean for cell in counted.column("mean gain (%)")]
    assert gains == pytest.approx([-10 / 3, 20 / 3, -10.0])


def test_all_cells_of_figure_2_are_units_with_seeds_of_their_own():
    every = EXPERIMENTS["mixtures"].units(Settings(trials=2))
    assert len(every) == 120
    assert len({(unit["rho"], unit["m"]) for unit in every}) == 60
    assert len({tuple(unit["seed"]) for unit in every}) == 120


def test_the_quick_version():
    done = quick(EXPERIMENTS["mixtures"])
    report = EXPERIMENTS["mixtures"].report(done)
    counts, cells = report.tables
    assert cells.column("m") == [30, 30]
    assert len(counts.rows) == 3
    assert len(report.claims) == 4
    pytest.importorskip("matplotlib")
    for name, axes in (("mixtures", 3), ("consistency", 1)):
        found = done if name == "mixtures" else quick(EXPERIMENTS[name], most=1)
        (draw,) = EXPERIMENTS[name].pictures.values()
        assert len(draw(found).axes) == axes


@pytest.mark.parametrize(
    ("chosen", "verdict"),
    [
        ([0.1, 0.9, 0.99], Verdict.HOLDS),
        ([0.5, 0.5, 0.999], Verdict.FAILS),
        ([0.5, 0.9], Verdict.FAILS),
    ],
)
def test_alpha_is_close_to_1_in_most_cases(chosen, verdict):
    assert alpha_claim(chosen).verdict is verdict
