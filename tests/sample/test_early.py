"""What the first positions say of a split."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.sample import early
from structlearn._src.sample.emission import Categorical, Gaussian
from structlearn._src.sample.hdp import Process, Restaurant, count_transitions
from structlearn._src.sample.hmm import HmmModel
from structlearn._src.sample.priors import NormalWishart
from structlearn._src.sample.sides import Union, fit_sides, sequential_sides

OFFSETS = np.array([0, 12, 40])


def _model(rng):
    prior = NormalWishart(np.zeros(2), 0.5, 6.0, np.eye(2))
    points = Gaussian(rng.normal(size=(40, 2)), rng.random(40) < 0.9, prior)
    return HmmModel(OFFSETS, (points, Categorical(rng.integers(-1, 3, 40), np.ones(3))), 1.0, 1.0)


def _union(rng):
    states = rng.choice([0, 1, 2], size=40)
    anchors = np.array([np.flatnonzero(states == k)[3] for k in (0, 2)])
    return states, Union.of(states, OFFSETS, anchors)


def test_of_all_positions_it_is_the_ratio_itself():
    """Without the density of sticks: by the paths of both states, and by those of their union."""
    rng = np.random.default_rng(1)
    model, (states, union) = _model(rng), _union(rng)
    apart = Process(1.7, 1.0, np.array([0.3, 0.2, 0.4, 0.1]), np.full((4, 4), np.nan))
    joint, merged = apart.merge(0, 2), np.where(states == 2, 0, states)
    expected = apart.log_probability(count_transitions(states, OFFSETS, 3)) + 4.2
    expected -= joint.log_probability(count_transitions(merged, OFFSETS, 2))
    for e in model.conjugate:
        expected += e.log_evidence(e.statistics(states, 3)).sum()
        expected -= e.log_evidence(e.statistics(merged, 2)).sum()
    sides = union.sides.astype(np.int64)
    found = early.log_early(model, union, apart, (0, 2), sides, -4.2)
    assert found == pytest.approx(expected)


def test_only_large_states_are_looked_at_to_the_end_of_a_run(monkeypatch):
    rng = np.random.default_rng(2)
    model, (_, union) = _model(rng), _union(rng)
    process = Process(1.0, 1.0, np.full(4, 0.25), np.full((4, 4), np.nan))
    n = len(union.positions)
    assert early.head(model, union, process) == 0
    monkeypatch.setattr(early, "LARGE", n)
    monkeypatch.setattr(early, "_FIRST", 5)
    begin = early.head(model, union, process)
    assert 5 <= begin < n
    assert not union.linked[begin]
    assert union.linked[5:begin].all()
    assert early.head(model, union, Restaurant(1.0, 3)) == 0
    assert early.head(HmmModel(OFFSETS, (), 1.0, 1.0), union, process) == 0


@pytest.mark.parametrize("way", ["fitted", "sequential"])
def test_first_sides_are_drawn_as_among_all(way):
    """What is drawn first stays, and has the probability that it has within the whole."""
    rng = np.random.default_rng(3)
    model, (_, union) = _model(rng), _union(rng)
    process = Process(1.0, 1.0, np.full(4, 0.25), np.full((4, 4), np.nan))
    if way == "fitted":
        proposal = fit_sides(union, model.emissions, rng)
    else:
        proposal = sequential_sides(union, model.emissions, process, (0, 2), rng)
    n = 5 + int(np.flatnonzero(~union.linked[5:])[0])
    uniforms, whole = rng.random(len(union.positions)), np.full(len(union.positions), -1)
    log = proposal.allot(uniforms, whole, len(whole))
    sides = np.full(len(whole), -1)
    first = proposal.allot(uniforms, sides, n)
    assert np.isin(sides[:n], [0, 1]).all()
    again = sides.copy()
    rest = proposal.allot(uniforms, again, len(again))
    np.testing.assert_array_equal(again[:n], sides[:n])
    np.testing.assert_array_equal(again, whole)
    assert rest == pytest.approx(log)
    assert first >= log
