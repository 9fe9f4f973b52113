"""Predictions of draws: against sums over all paths."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structlearn._src.sample.emission import Categorical
from structlearn._src.sample.hdp import Process
from structlearn._src.sample.hinge import Hinge, LabelEmission
from structlearn._src.sample.hmm import (
    HmmModel,
    HmmState,
    HmmStatistics,
    RunningStatistics,
    iterated_votes,
    log_densities,
    state_marginals,
    weighted_votes,
)

OFFSETS = np.array([0, 3, 5])


def _draw(rng, K=2):
    rows = rng.dirichlet(np.ones(K + 1), K + 1)
    logs = np.log(rng.dirichlet(np.ones(3), K))
    return HmmState(np.arange(5) % K, Process(1.0, 1.0, rows[0], rows), ((logs,),))


@pytest.fixture
def setting():
    rng = np.random.default_rng(0)
    model = HmmModel(OFFSETS, (Categorical(np.array([0, 2, -1, 1, 1]), np.ones(3)),), 1.0, 1.0)
    features = np.column_stack([rng.normal(size=5), np.ones(5)])
    labelled = LabelEmission(features, np.full(5, -1), 3, Hinge())
    draws = [(_draw(rng), rng.normal(size=(2, 3, 2))) for _ in range(2)]
    return model, labelled, draws


def naive_marginals(model, draw):
    """Log densities of sequences and probabilities of states, by all paths."""
    rows = draw.process.rows[:, :-1] / draw.process.rows[:, :-1].sum(1, keepdims=True)
    logs, values, beliefs = log_densities(model, draw), [], np.zeros((5, 2))
    for start, stop in itertools.pairwise(OFFSETS):
        total = 0.0
        for path in itertools.product(range(2), repeat=int(stop - start)):
            before = [0, *(z + 1 for z in path[:-1])]
            weight = np.prod(
                [rows[b, z] * np.exp(logs[start + t, z])
                 for t, (b, z) in enumerate(zip(before, path, strict=True))]
            )  # fmt: skip
            total += weight
            for t, z in enumerate(path):
                beliefs[start + t, z] += weight
        values.append(np.log(total))
        beliefs[start:stop] /= total
    return np.array(values), beliefs


def test_statistics_are_added_in_the_order_of_their_ranges():
    """However they come: rounding shows the order."""
    rng = np.random.default_rng(2)
    given = [HmmStatistics(np.full((2, 1), i), ((rng.normal(size=3),), ())) for i in range(6)]
    expected = given[0].emitted[0][0].copy()
    for each in given[1:]:
        expected = expected + each.emitted[0][0]
    found = RunningStatistics()
    for i in (2, 0, 5, 1, 4, 3):
        found.add(i, given[i])
    assert np.array_equal(found.total.emitted[0][0], expected)
    assert found.total.counts.tolist() == [[15], [15]]


def test_marginals_sum_over_all_paths(setting):
    model, _, draws = setting
    for draw, _ in draws:
        values, beliefs = state_marginals(model, draw)
        expected = naive_marginals(model, draw)
        np.testing.assert_allclose(values, expected[0])
        np.testing.assert_allclose(beliefs, expected[1])


def test_states_vote_by_their_probabilities(setting):
    model, labelled, draws = setting
    expected = np.zeros((5, 3))
    for draw, weights in draws:
        _, beliefs = naive_marginals(model, draw)
        for t, k in itertools.product(range(5), range(2)):
            expected[t, (weights[k] @ labelled.features[t]).argmax()] += beliefs[t, k] / 2
    np.testing.assert_allclose(weighted_votes(model, labelled.features, draws), expected)


def test_votes_without_rounds_are_those_of_drawn_states(setting):
    """Many copies of one draw: their votes have the shares of the weighted ones."""
    model, labelled, draws = setting
    rng = np.random.default_rng(1)
    many = [draws[0]] * 1500
    found = iterated_votes(model, labelled, many, 0, rng)
    np.testing.assert_allclose(
        found, weighted_votes(model, labelled.features, draws[:1]), atol=0.06
    )
    once = iterated_votes(model, labelled, draws, 3, rng)
    np.testing.assert_allclose(once.sum(axis=1), 1.0)
    assert set(np.unique(once)) <= {0.0, 0.5, 1.0}
