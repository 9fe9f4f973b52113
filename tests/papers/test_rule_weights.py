"""Tasks of rules on small data by hand, and their scores."""

from __future__ import annotations

import numpy as np
import pytest

from papers.base import Settings, Unit
from papers.experiments import rule_weights
from papers.experiments.rule_weights import Relations, Task
from structlearn._src.metrics.ranking import average_precision


@pytest.fixture
def task():
    """Twenty people and two films: one that most like, one that few like."""
    rng = np.random.default_rng(0)
    likes = np.column_stack([rng.random(20) < 0.8, rng.random(20) < 0.2]).astype(float)

    def rows(which):
        return [(i, j, likes[i, j]) for i in np.flatnonzero(which).tolist() for j in (0, 1)]

    def relate(seen, asked):
        both = [row[:2] for row in rows(seen | asked)]
        targets = {"Likes": [row[:2] for row in rows(asked)]}
        return Relations({"Asked": both, "Likes": rows(seen)}, targets, {"Likes": rows(asked)})

    def popular(seen):
        return dict(enumerate(likes[seen].mean(axis=0)))

    rules = "\n".join(
        f"1: Asked(P, '{film}') -> {sign}Likes(P, '{film}') ^2"
        for film in "01"
        for sign in ("", "!")
    )
    folds = np.arange(20) % 5
    return Task("films", rules, "Likes", "aupr", folds, relate, popular), likes


def test_popularity_and_equal_weights_by_hand(task):
    made, likes = task
    scores = made.scores(2)
    held = made.folds == 2
    truth = likes[held].ravel()
    guess = np.tile(likes[~held].mean(axis=0), int(held.sum()))
    assert scores["popularity"] == pytest.approx(average_precision(truth, guess))
    assert scores["equal weights"] == pytest.approx(truth.mean())  # all values are one half
    assert scores["learnt"] >= scores["equal weights"]


def test_a_quick_run_on_citations(data_folder):
    (experiment,) = rule_weights.EXPERIMENTS
    (given,) = experiment.units(Settings(quick=True))
    report = experiment.report([Unit(given, experiment.work(**given))])
    (table,) = report.tables
    assert table.column("program") == ["citeseer"]
    assert len(report.claims) == 1
    scores = [float(table.column(name)[0]) for name in ("popularity", "equal weights", "learnt")]
    assert max(scores) == scores[2]
