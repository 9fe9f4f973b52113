"""Hidden groups: rules that lean, folds of users, and what groups say of parties."""

from __future__ import annotations

import numpy as np
import pytest

from papers.data.politicians import Politicians
from papers.experiments.groups import FOLDS, Groups, Village
from papers.experiments.trust import objective_of


@pytest.fixture(scope="module")
def village():
    """Two parties, who retweet and mention their own; users 0 to 19 are the most retweeted."""
    parties = ["D", "R"] * 10 + ["D", "R"] * 20
    rng = np.random.default_rng(0)
    fans = range(20, 60)
    retweets = [
        (u, t)
        for u in fans
        for t in range(20)
        if rng.random() < (0.8 if parties[u] == parties[t] else 0.05)
    ]
    mentions = [(u, v) for u in fans for v in fans if u != v and parties[u] == parties[v]]
    pairs = {"retweet": retweets, "mention": mentions, "follow": mentions[::3]}
    people = Politicians(parties, {kind: np.array(links) for kind, links in pairs.items()})
    return Village(people, np.arange(len(people.users)) % FOLDS)


def test_users_and_top_users(village):
    assert village.people.top == list(range(20))
    assert village.people.users == list(range(20, 60))
    assert village.people.retweets.shape == (40, 20)
    assert village.people.among("mention", {20, 21, 22}) == [(20, 22), (22, 20)]


def test_rules_lean_apart_for_the_two_parties(village):
    rules = list(village.rules(village.people.retweets))
    assert len(rules) == 4 * 20 + 4
    up = np.array([rule.weight for rule in rules[: 4 * 20 : 4]])
    assert (up[::2] > 1.0).all() != (up[1::2] > 1.0).all()
    assert (up > 0.0).all()


def test_the_fold_is_not_there_when_learning(village):
    learn, test = village.split(3)
    labels = learn.tables.labels()
    assert (~np.isnan(labels)).sum() == 4 * 20  # retweets of the fold before
    assert learn.tables.relation("User").size == 36
    assert test.tables.relation("User").size == 40


def test_groups_tell_the_parties_and_predict(village):
    learn, test = village.split(0)
    objective = objective_of(learn)
    judge = Groups(objective, test, negative=False)
    found = judge.of_parties(village.people, test, objective.start)
    assert found["area"] > 0.95
    assert sum(map(sum, found["counts"].values())) == 40
    scores = village.baselines(0)
    assert scores["popularity within the true party"] > scores["popularity"]
    assert judge(objective.start) > scores["popularity"]
