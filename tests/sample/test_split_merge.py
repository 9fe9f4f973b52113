"""Splits, merges and searches: what they do to states and statistics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from structlearn._src.common import threads
from structlearn._src.sample.emission import Categorical, Gaussian
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.hmm import HmmModel, start, statistics
from structlearn._src.sample.hmm_sampler import HmmSampler, merge_alike
from structlearn._src.sample.priors import NormalWishart
from structlearn._src.sample.split_merge import (
    log_choice,
    merge_states,
    merge_statistics,
    split_and_merge,
    split_or_merge,
    split_states,
)

OFFSETS = np.array([0, 25, 60])


def _model(rng, labels=False, apart=0.0):
    """Two levels of points, and symbols; with labels also classifiers."""
    level = np.repeat([0, 1, 0, 1], 15)
    x = apart * level[:, None] + rng.normal(size=(60, 1))
    prior = NormalWishart(np.zeros(1), 0.1, 3.0, np.eye(1))
    points = Gaussian(x, np.ones(60, bool), prior)
    emissions = (points, Categorical(rng.integers(-1, 3, 60), np.ones(3)))
    if labels:
        features = np.column_stack([x, np.ones(60)])
        emissions = (*emissions, LabelEmission(features, level, 2, Hinge(0.2, 1.0, 1.0)))
    return HmmModel(OFFSETS, emissions, 1.0, 1.0), level


def _same_statistics(one, two):
    np.testing.assert_array_equal(one.counts, two.counts)
    for arrays, others in zip(one.emitted, two.emitted, strict=True):
        for a, b in zip(arrays, others, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)


def test_merged_statistics_are_those_of_merged_states():
    rng = np.random.default_rng(0)
    model, _ = _model(rng, labels=True)
    state = start(model, rng.integers(4, size=60), rng)
    for one, two in ((0, 2), (3, 1)):
        merged = merge_states(state, one, two)
        assert merged.n_states == 3
        assert set(merged.states) == {0, 1, 2}
        together = (state.states == one) | (state.states == two)
        assert len(set(merged.states[together])) == 1
        found = merge_statistics(statistics(model, state), one, two)
        _same_statistics(found, statistics(model, merged))
        assert merged.process.sticks.sum() == pytest.approx(1.0)
        assert np.isnan(merged.process.rows).all()  # to be drawn


def test_a_merge_undoes_a_split():
    rng = np.random.default_rng(1)
    model, _ = _model(rng)
    state = start(model, rng.integers(3, size=60), rng)
    leaving = np.flatnonzero(state.states == 1)[::2]
    split = split_states(state, 1, leaving, 0.3)
    assert split.n_states == 4
    assert np.all(split.states[leaving] == 3)
    assert split.process.sticks[1] == pytest.approx(0.3 * state.process.sticks[1])
    assert split.process.sticks[3] == pytest.approx(0.7 * state.process.sticks[1])
    back = merge_states(split, 1, 3)
    np.testing.assert_array_equal(back.states, state.states)
    np.testing.assert_allclose(back.process.sticks, state.process.sticks)


@pytest.mark.parametrize("labels", [False, True])
def test_statistics_of_accepted_moves_are_right(labels):
    rng = np.random.default_rng(3)
    model, _ = _model(rng, labels, apart=3.0)
    state = start(model, rng.integers(3, size=60), rng)
    found, accepted = statistics(model, state), 0
    for _ in range(60):
        state, found, moved = split_or_merge(model, state, found, rng)
        accepted += moved
        if moved:
            _same_statistics(found, statistics(model, state))
            sizes = {len(array) for own in state.parameters for array in own}
            assert sizes == {state.n_states}
    assert accepted > 0


def test_threads_that_try_moves_ahead_change_no_draw(monkeypatch):
    """Moves that follow an accepted one must not be those that were tried before it."""
    monkeypatch.setitem(threads.GRAIN, "positions", 1)  # so that few positions are worth it
    ends = []
    for n_jobs in (1, 2, 3, 5):
        rng = np.random.default_rng(3)
        model = replace(_model(rng, True, apart=3.0)[0], n_jobs=n_jobs)
        state = start(model, rng.integers(3, size=60), rng)
        state, found, accepted = split_and_merge(model, state, statistics(model, state), 40, rng)
        assert 1 < accepted < 40
        _same_statistics(found, statistics(model, state))
        ends.append((state, accepted))
    for state, accepted in ends[1:]:
        np.testing.assert_array_equal(state.states, ends[0][0].states)
        np.testing.assert_array_equal(state.process.sticks, ends[0][0].process.sticks)
        assert accepted == ends[0][1]


def _halves_found(model, level, rng):
    """Cut every level in two at random; say whether searches of a burn-in leave the levels.

    There are three, as a merge that gains is at times rejected.
    """
    state = start(model, 2 * level + rng.integers(2, size=len(level)), rng)
    for _ in range(3):
        state, _ = merge_alike(model, state, statistics(model, state), rng)
    return np.array_equal(state.states, level)


@pytest.mark.parametrize("labels", [False, True])
def test_states_that_are_alike_are_merged(labels):
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        found.append(_halves_found(*_model(rng, labels, apart=12.0), rng))
    assert sum(found) >= 8  # of thirty seeds, two fail at most


def test_halves_of_states_with_labels_alone_are_merged():
    """Two stretches with opposite rules, each cut in two at random, are two states again."""
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        level = np.repeat([0, 1], 60)
        features = np.column_stack([rng.normal(size=120), np.ones(120)])
        labels = np.where(level == 1, features[:, 0] > 0, features[:, 0] < 0).astype(np.int64)
        part = LabelEmission(features, labels, 2, Hinge(1.0, 1.0, 25.0))
        alone = HmmModel(np.array([0, 120]), (part,), 1.0, 1.0)
        found.append(_halves_found(alone, level, rng))
    assert sum(found) >= 7  # of thirty seeds, three fail: labels tell less than points


def test_states_that_overlap_are_left():
    """Levels that share most points, so that any one split of these is less likely than none.

    The exact posterior has more than one state, and so has what a search leaves.
    """
    known = NormalWishart(np.zeros(1), 0.1, 10.0, 2.0 * np.eye(1))
    exact, searched = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        level = rng.integers(2, size=300)
        x = 1.4 * (level - 0.5)[:, None] + 0.5 * rng.normal(size=(300, 1))
        points = Gaussian(x, np.ones(300, bool), known)
        model = HmmModel(np.array([0, 300]), (points,), 1.0, 1.0)
        state = start(model, level, rng)
        for sweep in range(60):
            state, _ = HmmSampler(model, n_moves=4).step(state, rng, sweep)
            if sweep >= 20:
                exact.append(state.n_states)
        searched.append(merge_alike(model, state, statistics(model, state), rng)[0].n_states)
    assert np.mean(np.array(exact) > 1) > 0.95
    assert min(searched) > 1


def test_the_choice_of_positions_by_states_is_weighed():
    """Two ordered positions: of one state out of n - 1, or one of each of two states out of n."""
    for n, one, two in ((2, 1, 1), (3, 4, 2), (7, 5, 9)):
        together = 1.0 / ((n - 1) * (one + two) * (one + two - 1))
        apart = 1.0 / (n * (n - 1) * one * two)
        assert log_choice(n, one, two) == pytest.approx(np.log(apart / together))
