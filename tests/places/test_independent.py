"""Predictions, questions about graphs, chains of samplers and searches, on two workers."""

from __future__ import annotations

import os

import numpy as np
import pytest

from structlearn import (
    GridLabeler,
    InfiniteHMM,
    MulticlassClassifier,
    SequenceLabeler,
    chain,
    infer_many,
    on,
)
from structlearn.errors import EvidenceError


def sequences(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 7), 3)) for _ in range(n)]
    return X, [(x[:, 0] + 0.3 * rng.normal(size=len(x)) > 0).astype(int) for x in X]


@pytest.fixture(scope="module")
def labeler():
    return SequenceLabeler(callbacks=[lambda event: None]).fit(*sequences())


@pytest.mark.parametrize("method", ["predict", "predict_marginals", "decode"])
def test_predictions_are_the_same(method, labeler, client):
    X, _ = sequences(25, seed=1)
    here = getattr(labeler, method)(X)
    with on(client):
        there = getattr(labeler, method)(X)
    assert len(here) == len(there) == 25
    assert repr(here) == repr(there)


def test_options_travel(client):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(3, 3, 1)) for _ in range(8)]
    Y = [(x[..., 0] > 0).astype(int) for x in X]
    labeler = GridLabeler(hidden="node", max_iter=3, tol=None, random_state=0).fit(X, Y)
    with on(client):
        there = labeler.predict(X, joint=True), labeler.predict_hidden(np.array(X))
    here = labeler.predict(X, joint=True), labeler.predict_hidden(X)
    for a, b in zip(here, there, strict=True):
        assert all(map(np.array_equal, a, b))


def test_classes_are_joined_to_one_array(client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    classifier = MulticlassClassifier().fit(X, (X[:, 0] > 0).astype(int))
    with on(client):
        there = classifier.predict(X), classifier.predict_proba(X)
    assert np.array_equal(there[0], classifier.predict(X))
    assert np.array_equal(there[1], classifier.predict_proba(X))


def test_work_is_done_by_the_workers(client):
    with on(client) as place:
        assert {*place.map(lambda _: os.getpid(), range(8))} <= {*client.run(os.getpid).values()}


def test_a_block_within_a_block_counts(labeler, client):
    X, _ = sequences(25, seed=1)
    sent = []
    with on(client) as place:
        place.map = lambda function, items: sent.append(len(items)) or []
        with on("threads"):
            assert len(labeler.predict(X)) == 25
    assert not sent


# ---- graphs --------------------------------------------------------------------------------


def graphs(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return [chain(rng.normal(size=(int(rng.integers(2, 6)), 2)), np.eye(2)) for _ in range(n)]


@pytest.mark.parametrize("query", ["marginals", "map", "partition"])
def test_graphs_are_answered_the_same(query, client):
    evidence = [{0: 1} if i % 3 == 0 else None for i in range(12)]
    here = infer_many(graphs(), query, evidence=evidence)
    with on(client):
        there = infer_many(graphs(), query, evidence=evidence, n_jobs=1)
    assert [a.value for a in there] == pytest.approx([a.value for a in here])
    if query == "map":
        assert [dict(a.assignment) for a in there] == [dict(a.assignment) for a in here]


def test_parts_draw_different_numbers(client):
    same = [chain(np.zeros((6, 2)), np.eye(2))] * 8
    with on(client):
        found = infer_many(same, "samples", n_samples=20, random_state=0)
        again = infer_many(same, "samples", n_samples=20, random_state=0)
    draws = [np.asarray(answer.samples) for answer in found]
    assert not any(np.array_equal(draws[0], other) for other in draws[1:])
    assert all(map(np.array_equal, draws, (np.asarray(answer.samples) for answer in again)))


def test_wrong_evidence_is_refused_alike(client):
    for evidence in ([None], [{0: 7}] * 12):
        with pytest.raises(EvidenceError), on(client):
            infer_many(graphs(), evidence=evidence)


# ---- samplers and searches -----------------------------------------------------------------


def test_chains_draw_the_same_on_workers(client):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(15, 2)) + 4 * (i % 2) for i in range(4)]
    settings = {"burn_in": 5, "n_draws": 5, "n_chains": 3, "n_start": 4, "random_state": 0}
    here = InfiniteHMM(**settings).fit(X)
    with on(client):
        there = InfiniteHMM(**settings).fit(X)
    assert there.ended_ == here.ended_ == "done"
    for name, values in here.traces().items():
        assert np.array_equal(values, there.traces()[name])
    with on(client):  # and they go on from there
        more = there.set_params(warm_start=True, n_draws=8).fit(X)
    assert [len(each.draws) for each in more.chains_] == [8, 8, 8]


def test_a_time_limit_ends_chains_on_workers(client):
    X = [np.random.default_rng(0).normal(size=(30, 2))]
    with on(client), pytest.warns(match="before the first draw"):
        sampled = InfiniteHMM(burn_in=10**6, n_chains=2, time_limit=0.5, random_state=0).fit(X)
    assert sampled.ended_ == "time"


def test_folds_of_a_search_run_on_workers(client):
    from sklearn.model_selection import GridSearchCV

    X, Y = sequences(12)
    search = GridSearchCV(SequenceLabeler(max_iter=5, tol=None), {"C": [0.1, 1.0]}, cv=2)
    here = search.fit(X, Y).cv_results_["mean_test_score"]
    with on(client):
        there = search.fit(X, Y).cv_results_["mean_test_score"]
    assert there == pytest.approx(here)
