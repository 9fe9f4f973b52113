"""Rules about trust, their baseline, and the judge of weights."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from papers.experiments import trust
from papers.experiments.trust import Judge, Network, objective_of
from structlearn._src.metrics.ranking import average_precision


@pytest.fixture(scope="module")
def network():
    """Everybody knows everybody; nobody trusts the last two."""
    links = np.array(list(itertools.permutations(range(7), 2)))
    values = (links[:, 1] < 5).astype(float)
    folds = np.random.default_rng(0).permutation(len(links)) % 8
    return Network(links, values, folds)


def test_sixteen_rules_on_triads_and_nine_on_pairs():
    rules = trust.rules()
    assert len(rules) == 16 + 9
    assert all(rule.weight == 1.0 for rule in rules)


def test_the_baseline_by_hand(network):
    fold = 1
    held = network.folds == fold
    prior = network.trust[~held].mean()
    scores = []
    for source, target in network.links[held]:
        total = 0.0
        for column, user in ((0, source), (1, target)):
            same = ~held & (network.links[:, column] == user)
            total += (network.trust[same].sum() + prior) / (same.sum() + 1)
        scores.append(total)
    wanted = average_precision(network.trust[held], np.array(scores), negative=True)
    assert network.means(fold) == pytest.approx(wanted)


def test_hidden_traits_have_no_truth_and_all_rules_learn(network):
    learn, _ = network.split(1)
    objective = objective_of(learn)
    assert objective.n_weights == 25
    labels = learn.tables.labels()
    known = ~np.isnan(labels)
    assert known.sum() == (network.folds == 0).sum()
    assert (~known).sum() == 2 * 7  # two traits of everybody
    fewer = objective_of(learn, learnt=np.arange(25) < 3)
    assert fewer.n_weights == 3


def test_the_judge_knows_good_rules_from_bad(network):
    """Only the worth of the one who is rated matters here, so rules about it rank best."""
    learn, test = network.split(1)
    objective = objective_of(learn)
    judge = Judge(objective, test)
    worth = np.zeros(25)
    worth[[22, 23]] = 1.0
    openness = np.zeros(25)
    openness[[20, 21]] = 1.0
    assert judge(worth) == pytest.approx(1.0)
    assert judge(worth) > judge(openness)
    assert judge(worth) == pytest.approx(1.0)  # it does not matter what was asked before
