"""Costs, named losses and penalties, each on its own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.names import PAPERS_LOSSES
from structlearn._src.learn.loss import NAMED, ElasticNet, LossPart, make_cost, make_loss

BORDERS = np.array([0, 3, 4, 9])
LABELS = np.array([0, -1, 2, -1, 1, 1, 2, 0, -1])

# ---- costs -------------------------------------------------------------------------------


@pytest.mark.parametrize("mean", [False, True])
def test_hamming_counts_wrong_labels_or_their_share(mean):
    cost = make_cost("hamming-mean" if mean else "hamming", 3)
    rng = np.random.default_rng(0)
    for _ in range(20):
        guess = rng.integers(0, 3, len(LABELS))
        wrong = [
            [g != y for g, y in zip(guess[a:b], LABELS[a:b], strict=True) if y >= 0]
            for a, b in itertools.pairwise(BORDERS)
        ]
        expected = [sum(w) / (max(len(w), 1) if mean else 1) for w in wrong]
        np.testing.assert_allclose(cost.between(LABELS, guess, BORDERS), expected)


def test_costs_by_label_and_by_pair():
    by_label = np.array([2.0, 0.5, 1.0])
    matrix = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 3.0], [0.0, 0.7, 0.0]])
    for given, full in ((by_label, by_label[:, None] * (1 - np.eye(3))), (matrix, matrix)):
        rows = make_cost(given, 3).rows(LABELS, BORDERS)
        np.testing.assert_allclose(rows, naive.cost_rows(LABELS, full))
    assert make_cost([1, 2, 3], 3).rows(LABELS, BORDERS).dtype == np.float64


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (
            "hinge",
            "cost='hinge' is not known; choose one of 'hamming', 'hamming-mean', 'zero-one'",
        ),
        (np.ones(4), r"cost has shape \(4,\); with 3 labels it must be"),
        (np.zeros((3, 2)), r"cost has shape \(3, 2\)"),
        (np.eye(3), "0 on its diagonal"),
        ([1.0, -1.0, 1.0], "at least 0"),
        ([1.0, np.nan, 1.0], "finite"),
        ([1.0, np.inf, 1.0], "finite"),
    ],
)
def test_costs_that_make_no_sense_are_refused(given, match):
    with pytest.raises(ArgumentError, match=match):
        make_cost(given, 3)


# ---- losses ------------------------------------------------------------------------------


def test_names_stand_for_the_temperatures_of_the_papers():
    expected = {
        "log": (1.0, 1.0, False),
        "hinge": (0.0, 0.0, True),
        "latent-hinge": (0.0, 0.0, True),
        "marginal": (0.0, 1.0, True),
        "eps": (0.5, 0.5, True),
        "perceptron": (0.0, 0.0, False),
    }
    for name, choice in expected.items():
        assert make_loss(name).parts == (LossPart(1.0, *choice),)
        assert make_loss(name).eps_h == choice[1]
    assert set(NAMED) == {*expected, "hybrid"}


def test_temperatures_can_be_chosen():
    assert make_loss("eps", eps_y=0.2).parts == (LossPart(1.0, 0.2, 0.2, True),)
    assert make_loss("eps", eps_y=0.2, eps_h=0.3).parts == (LossPart(1.0, 0.2, 0.3, True),)
    assert make_loss("eps", eps_h=0.3).parts == (LossPart(1.0, 0.5, 0.3, True),)
    assert make_loss("marginal", eps_y=0.1).parts == (LossPart(1.0, 0.1, 1.0, True),)
    assert make_loss("marginal", eps_h=0.1).eps_h == 0.1


def test_hybrid_mixes_and_leaves_out_what_has_no_share():
    both = LossPart(0.3, 1.0, 1.0, False), LossPart(0.7, 0.0, 1.0, True)
    assert make_loss("hybrid", alpha=0.3).parts == both
    assert make_loss("hybrid", alpha=1.0).parts == make_loss("log").parts
    assert make_loss("hybrid", alpha=0.0).parts == make_loss("marginal").parts
    assert make_loss("hybrid", eps_h=0.0, alpha=0.0).parts == make_loss("hinge").parts


@pytest.mark.parametrize("name", [*PAPERS_LOSSES, "MSSVM"])
def test_names_of_papers_are_answered_with_ours(name):
    with pytest.raises(ArgumentError, match="loss") as told:
        make_loss(name)
    assert PAPERS_LOSSES[name.lower()] in str(told.value)


def test_recipes_for_papers_are_losses():
    for recipe in PAPERS_LOSSES.values():
        given = eval(f"dict({recipe})")
        assert make_loss(given.pop("loss"), **given).parts


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("svm", {}, "loss='svm' is not known"),
        ("eps", {"eps_y": -0.1}, "eps_y=-0.1 must lie in"),
        ("eps", {"eps_h": np.nan}, "eps_h=nan must lie in"),
        ("eps", {"eps_y": np.inf}, "eps_y=inf must lie in"),
        ("hybrid", {"alpha": 1.5}, "alpha=1.5 must lie in"),
        ("hybrid", {"alpha": "half"}, "alpha='half' is not a number"),
    ],
)
def test_losses_that_make_no_sense_are_refused(name, options, match):
    with pytest.raises(ArgumentError, match=match):
        make_loss(name, **options)


# ---- penalties ---------------------------------------------------------------------------


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_penalty_is_a_sum_of_a_smooth_part_and_one_for_prox(ratio):
    rng = np.random.default_rng(1)
    penalty, weights = ElasticNet(ratio), rng.normal(size=7)
    squares = 0.5 * (1.0 - ratio) * (weights**2).sum()
    assert penalty.value(weights) == pytest.approx(squares + ratio * np.abs(weights).sum())
    np.testing.assert_allclose(penalty.gradient(weights), (1.0 - ratio) * weights)
    assert penalty.smooth == (ratio == 0.0)
    assert type(ElasticNet(np.float32(ratio)).value(weights)) is float


def test_prox_minimises():
    rng = np.random.default_rng(2)
    penalty, weights = ElasticNet(0.4), rng.normal(size=20)
    found = penalty.prox(weights, 0.8)
    assert (found == 0.0).any()
    lattice = np.linspace(-4.0, 4.0, 80_001)
    for w, v in zip(weights, found, strict=True):
        scores = (lattice - w) ** 2 / (2 * 0.8) + 0.4 * np.abs(lattice)
        assert v == pytest.approx(lattice[scores.argmin()], abs=1e-4)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, np.nan])
def test_shares_outside_the_unit_interval_are_refused(ratio):
    with pytest.raises(ArgumentError, match="l1_ratio"):
        ElasticNet(ratio)
