"""Summaries of draws, whatever numbers their states have."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structlearn._src.sample import summary
from structlearn._src.sample.hdp import Process
from structlearn._src.sample.hmm import HmmState
from structlearn._src.sample.summary import Summary


def _draw(rng, states):
    K = max(states) + 1
    rows = rng.dirichlet(np.ones(K + 1), K + 1)
    logs = np.log(rng.dirichlet(np.ones(3), K))
    return HmmState(np.array(states), Process(1.0, 1.0, rows[0], rows), ((logs,),))


def _renamed(draw, names):
    """The same draw with other numbers of its states: state `i` becomes ``names[i]``."""
    back = np.argsort(names)
    columns = np.append(back, len(names))
    rows = draw.process.rows[np.append(0, back + 1)][:, columns]
    process = Process(1.0, 1.0, draw.process.sticks[columns], rows)
    parameters = tuple(tuple(a[back] for a in arrays) for arrays in draw.parameters)
    return HmmState(np.asarray(names)[draw.states], process, parameters)


def test_a_summary_does_not_depend_on_the_numbers_of_states():
    rng = np.random.default_rng(2)
    draw = _draw(rng, [2, 2, 2, 0, 1, 1])
    draws = [_renamed(draw, names) for names in itertools.permutations(range(3))]
    found = Summary.of(draws)
    assert found.n_states == 3
    alone = Summary.of([draw])
    pooled = found.pooled([d.parameters[0][0] for d in draws])
    np.testing.assert_allclose(pooled, draw.parameters[0][0][[2, 1, 0]])  # most frequent first
    np.testing.assert_allclose(found.state_shares(), np.eye(3)[[0, 0, 0, 2, 1, 1]])
    for rows, expected in zip(found.transitions(), alone.transitions(), strict=True):
        np.testing.assert_allclose(rows, expected)
        np.testing.assert_allclose(rows.sum(axis=-1), 1.0)


def test_states_that_match_none_are_left_out():
    rng = np.random.default_rng(3)
    two = _draw(rng, [0, 0, 0, 1, 1])
    more = _draw(rng, [0, 0, 2, 1, 1])
    found = Summary.of([two, two, more])
    assert found.n_states == 2
    assert sorted(found.matches[2].tolist()) == [-1, 0, 1]
    shares = found.state_shares()
    np.testing.assert_allclose(shares.sum(axis=1), [1.0, 1.0, 2.0 / 3.0, 1.0, 1.0])
    beliefs = np.tile([0.5, 0.3, 0.2], (5, 1))
    np.testing.assert_allclose(found.moved(beliefs, 2), [[0.5, 0.3]] * 5)


def test_partitions_are_compared_whatever_their_numbers():
    rng = np.random.default_rng(3)
    one = rng.integers(3, size=60)
    for names in itertools.permutations(range(3)):
        two = np.array(names)[one]
        table = summary.overlap(one, two, 3, 3)
        assert summary.distance(table) == pytest.approx(0.0, abs=1e-12)
        assert summary.match(table).tolist() == list(names)
    other = rng.integers(3, size=60)
    assert summary.distance(summary.overlap(one, other, 3, 3)) > 0.5


def test_states_left_over_match_none():
    assert summary.match(np.array([[5, 0], [0, 4], [1, 1]])).tolist() == [0, 1, -1]
    assert summary.match(np.array([[5, 0], [3, 0]])).tolist() == [0, -1]


def test_central_draw_is_the_one_that_most_agree_with():
    base = np.repeat([0, 1, 2], 20)
    nearly, far = base.copy(), np.arange(60) % 3
    nearly[0] = 1
    draws = [far, base, 2 - base, nearly, base]
    assert summary.central(draws) in (1, 2, 4)
    similar = summary.similarity(draws, np.array([0, 1, 25]))
    np.testing.assert_allclose(similar, [[1, 0.6, 0.2], [0.6, 1, 0.2], [0.2, 0.2, 1]])
