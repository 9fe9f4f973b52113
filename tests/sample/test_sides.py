"""Proposals of who leaves in a split: their probabilities, by lists of all sides."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from structlearn._src.kernels.draw.posterior import LAG
from structlearn._src.sample.emission import Categorical, Gaussian
from structlearn._src.sample.hdp import Process, Restaurant, count_transitions
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.priors import NormalGamma, NormalWishart
from structlearn._src.sample.sides import Union, fit_sides, sequential_sides

OFFSETS = np.array([0, 5, 9])
STATES = np.array([0, 1, 0, 2, 1, 2, 0, 0, 2])
ANCHORS = np.array([0, 8])  # of states 0 and 2; state 1 stays as it is
STICKS = np.array([0.3, 0.2, 0.4, 0.1])
PROCESS = Process(1.7, 1.0, STICKS, np.full((4, 4), np.nan))


def _emissions(kind, rng):
    """What positions emit, with one that is not seen."""
    seen = np.arange(9) != 2
    if kind == "symbols":
        return (Categorical(np.where(seen, rng.integers(0, 3, 9), -1), np.array([1.0, 2.0, 0.5])),)
    if kind == "diagonal":
        prior = NormalGamma(np.full(2, 0.3), 0.5, 6.0, np.array([2.0, 3.0]))
    else:
        prior = NormalWishart(np.array([0.3, -0.2]), 0.5, 6.0, np.array([[2.0, 0.4], [0.4, 3.0]]))
    points = Gaussian(np.where(seen[:, None], rng.normal(size=(9, 2)), 0.0), seen, prior)
    if kind != "labels":
        return (points,)
    features = np.column_stack([rng.normal(size=9), np.ones(9)])
    return points, LabelEmission(features, np.where(seen, rng.integers(0, 3, 9), -1), 3, Hinge())


def _proposal(way, kind, rng, process=PROCESS, offsets=OFFSETS):
    emissions = _emissions(kind, rng)
    union = Union.of(STATES, offsets, ANCHORS)
    if way == "fitted":
        return union, emissions, fit_sides(union, emissions, rng)
    found = sequential_sides(union, emissions, process, (0, 2), rng)
    return union, emissions, found


def _all_sides(union):
    """All sides that keep the anchors where they are."""
    for chosen in itertools.product((False, True), repeat=len(union.positions)):
        sides = np.array(chosen)
        if not sides[union.anchors[0]] and sides[union.anchors[1]]:
            yield sides


@pytest.mark.parametrize("way", ["fitted", "sequential"])
@pytest.mark.parametrize("kind", ["points", "diagonal", "symbols", "labels"])
def test_probabilities_add_up_and_are_those_of_draws(way, kind):
    rng = np.random.default_rng(1)
    union, _, proposal = _proposal(way, kind, rng)
    logs = {tuple(sides): proposal.log_probability(sides) for sides in _all_sides(union)}
    assert logsumexp(list(logs.values())) == pytest.approx(0.0, abs=1e-9)
    counts = dict.fromkeys(logs, 0)
    for _ in range(2000):
        sides, log = proposal.draw(rng)
        assert log == pytest.approx(logs[tuple(sides)], abs=1e-9)
        counts[tuple(sides)] += 1
    far = sum(abs(np.exp(log) - counts[sides] / 2000) for sides, log in logs.items()) / 2
    assert far < 0.08


@pytest.mark.parametrize("kind", ["points", "diagonal", "symbols"])
def test_one_after_the_other_is_exact_where_one_choice_is_left(kind):
    """The last position of all, whose state has no successor: its share is that of the target."""
    rng = np.random.default_rng(2)
    states = np.array([0, 1, 0, 2, 1, 2, 0, 2, 0])
    emissions = _emissions(kind, rng)
    union = Union.of(states, OFFSETS, np.array([0, 7]))
    proposal = sequential_sides(union, emissions, PROCESS, (0, 2), rng)
    one, two = union.sides.copy(), union.sides.copy()
    one[-1], two[-1] = False, True
    joints = []
    for sides in (one, two):
        z = states.copy()
        z[union.positions] = np.where(sides, 2, 0)
        value = PROCESS.log_probability(count_transitions(z, OFFSETS, 3))
        value += sum(e.log_evidence(e.statistics(z, 3)).sum() for e in emissions)
        joints.append(value)
    odds = proposal.log_probability(one) - proposal.log_probability(two)
    assert odds == pytest.approx(joints[0] - joints[1], abs=1e-9)


def _known(sides):
    """How many positions of either side its posterior knows where the last of all chooses."""
    known, waiting = [1, 1], [0, 0]
    for k in sides[2:-1]:
        waiting[k] += 1
        if waiting[k] * LAG > known[k]:
            known[k] += waiting[k]
            waiting[k] = 0
    return known


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("kind", ["points", "diagonal"])
def test_posteriors_know_all_but_a_few_and_do_not_drift(kind, seen):
    """The last of many choices, far from the origin, given the points that its sides know."""
    rng = np.random.default_rng(8)
    n = 20_000
    offsets = np.array([0, n])
    states = rng.integers(2, size=n)
    states[:2] = 0, 1
    if kind == "diagonal":
        prior = NormalGamma(np.full(2, 50.0), 0.5, 6.0, np.array([1e-3, 3.0]))
    else:
        prior = NormalWishart(np.full(2, 50.0), 0.5, 6.0, np.diag([1e-3, 3.0]))
    data = rng.normal(50.0, [0.01, 1.0], size=(n, 2))
    emission = Gaussian(data, np.append(np.ones(n - 1, bool), seen), prior)
    # Moments about the prior mean: those about the origin would lose digits themselves.
    centred = Gaussian(data - 50.0, emission.seen, replace(prior, mean=np.zeros(2)))
    known = _known(states)
    assert all(0.9 < known[k] / (states == k).sum() < 1.0 for k in (0, 1))
    union = Union.of(states, offsets, np.array([0, 1]))
    process = Process(1.0, 1.0, np.array([0.45, 0.45, 0.1]), np.full((3, 3), np.nan))
    proposal = sequential_sides(union, (emission,), process, (0, 1), rng)
    logs, joints = [], []
    for last in (0, 1):
        states[-1] = last
        logs.append(proposal.log_probability(states == 1))
        value = process.log_probability(count_transitions(states, offsets, 2))
        before = np.flatnonzero(states[:-1] == last)[: known[last]]
        for sign, positions in ((1, np.append(before, n - 1)), (-1, before)):
            some = centred.subset(positions)
            moments = some.statistics(np.zeros(len(positions), np.int64), 1)
            value += sign * some.log_evidence(moments).sum()
        joints.append(value)
    assert logs[0] - logs[1] == pytest.approx(joints[0] - joints[1], abs=1e-7)


def test_positions_weighed_together_are_weighed_as_if_alone(monkeypatch):
    """Odds do not depend on how many positions are looked at; with gaps in what is seen."""
    rng = np.random.default_rng(3)
    n = 3000
    states = np.repeat(rng.integers(2, size=n // 10), 10)
    states[:2] = 0, 1
    data = rng.normal(size=(n, 3)) + states[:, None]
    prior = NormalWishart(np.zeros(3), 0.5, 6.0, np.eye(3))
    emission = Gaussian(data, rng.random(n) < 0.8, prior)
    union = Union.of(states, np.array([0, n]), np.array([0, 1]))
    process = Process(1.0, 1.0, np.array([0.45, 0.45, 0.1]), np.full((3, 3), np.nan))
    proposal = sequential_sides(union, (emission,), process, (0, 1), rng)
    sides, log = proposal.draw(np.random.default_rng(1))
    monkeypatch.setattr("structlearn._src.sample.sides._TOGETHER", 1)
    again, alone = proposal.draw(np.random.default_rng(1))
    np.testing.assert_array_equal(sides, again)
    assert log == pytest.approx(alone, abs=1e-8)
    assert log == pytest.approx(proposal.log_probability(sides), abs=1e-8)


def test_what_lies_around_a_union():
    """Neighbours by a search through all positions, in sequences of every length."""
    rng = np.random.default_rng(9)
    for _ in range(50):
        offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 5, size=6))])
        states = rng.integers(3, size=offsets[-1])
        anchors = rng.choice(offsets[-1], 2, replace=False)
        union = Union.of(states, offsets, anchors)
        ones = set(states[anchors])
        np.testing.assert_array_equal(union.positions, np.flatnonzero(np.isin(states, [*ones])))
        for t, before, after in zip(union.positions, union.before, union.after, strict=True):
            if t in offsets[:-1]:
                assert before == 0
            else:
                assert before == (-1 if states[t - 1] in ones else 1 + states[t - 1])
            at_end = t + 1 in offsets[1:]
            assert after == (-1 if at_end or states[t + 1] in ones else states[t + 1])


def test_rows_of_a_mixture_join_sides_by_their_sizes():
    """Without emissions: a Chinese restaurant of two tables, whatever the order."""
    alone = np.arange(10)
    union = Union.of(STATES, alone, ANCHORS)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        proposal = sequential_sides(union, (), Restaurant(1.0, 3), (0, 2), rng)
        n = len(union.positions)
        for sides in _all_sides(union):
            right = int(sides.sum())
            expected = np.log([np.prod(np.arange(1, n - right)), np.prod(np.arange(1, right))])
            expected = expected.sum() - np.log(np.prod(np.arange(2, n)))
            assert proposal.log_probability(sides) == pytest.approx(expected)


def test_states_that_are_alike_are_likely_to_be_split_again():
    """Positions shared out at random: what is fitted would hardly ever do so."""
    rng = np.random.default_rng(3)
    n = 200
    states = rng.integers(2, size=n)
    prior = NormalWishart(np.zeros(1), 0.5, 4.0, np.eye(1))
    emissions = (Gaussian(rng.normal(size=(n, 1)), np.ones(n, bool), prior),)
    offsets = np.array([0, n])
    process = Process(1.0, 1.0, np.array([0.45, 0.45, 0.1]), np.full((3, 3), np.nan))
    places = np.array([np.flatnonzero(states == k)[5] for k in (0, 1)])
    union = Union.of(states, offsets, places)
    one = sequential_sides(union, emissions, process, (0, 1), rng)
    other = fit_sides(union, emissions, rng)
    log = one.log_probability(union.sides)
    assert log > -n * np.log(2.0) - 25.0
    assert log > other.log_probability(union.sides) + 20.0
