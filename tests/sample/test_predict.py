"""Predictions of draws: against sums over all paths, and summaries that know no numbering."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structlearn._src.sample.emission import Categorical
from structlearn._src.sample.hdp import Process
from structlearn._src.sample.hinge import Hinge
from structlearn._src.sample.hmm import HmmModel, HmmState, log_densities
from structlearn._src.sample.label_emission import LabelEmission
from structlearn._src.sample.predict import iterated_votes, state_marginals, weighted_votes
from structlearn._src.sample.summary import Summary

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
    np.testing.assert_allclose(weighted_votes(model, labelled, draws), expected)


def test_votes_without_rounds_are_those_of_drawn_states(setting):
    """Many copies of one draw: their votes have the shares of the weighted ones."""
    model, labelled, draws = setting
    rng = np.random.default_rng(1)
    many = [draws[0]] * 1500
    found = iterated_votes(model, labelled, many, 0, rng)
    np.testing.assert_allclose(found, weighted_votes(model, labelled, draws[:1]), atol=0.06)
    once = iterated_votes(model, labelled, draws, 3, rng)
    np.testing.assert_allclose(once.sum(axis=1), 1.0)
    assert set(np.unique(once)) <= {0.0, 0.5, 1.0}


# ---- summaries ---------------------------------------------------------------------------


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
    draw = _draw(rng, 3)._replace(states=np.array([2, 2, 2, 0, 1, 1]))
    draws = [_renamed(draw, names) for names in itertools.permutations(range(3))]
    summary = Summary.of(draws)
    assert summary.n_states == 3
    alone = Summary.of([draw])
    pooled = summary.pooled([d.parameters[0][0] for d in draws])
    np.testing.assert_allclose(pooled, draw.parameters[0][0][[2, 1, 0]])  # most frequent first
    np.testing.assert_allclose(summary.state_shares(), np.eye(3)[[0, 0, 0, 2, 1, 1]])
    for found, expected in zip(summary.transitions(), alone.transitions(), strict=True):
        np.testing.assert_allclose(found, expected)
        np.testing.assert_allclose(found.sum(axis=-1), 1.0)


def test_states_that_match_none_are_left_out():
    rng = np.random.default_rng(3)
    two = _draw(rng, 2)._replace(states=np.array([0, 0, 0, 1, 1]))
    more = _draw(rng, 3)._replace(states=np.array([0, 0, 2, 1, 1]))
    summary = Summary.of([two, two, more])
    assert summary.n_states == 2
    assert sorted(summary.matches[2].tolist()) == [-1, 0, 1]
    shares = summary.state_shares()
    np.testing.assert_allclose(shares.sum(axis=1), [1.0, 1.0, 2.0 / 3.0, 1.0, 1.0])
    beliefs = np.tile([0.5, 0.3, 0.2], (5, 1))
    np.testing.assert_allclose(summary.moved(beliefs, 2), [[0.5, 0.3]] * 5)
