"""Fitting as all estimators do it: weights, warm and partial fits, limits, restarts."""

from __future__ import annotations

import numpy as np
import pytest
from naive_model import NaiveModel, chain
from sklearn.exceptions import ConvergenceWarning

from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.sequence import SequenceLabeler
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.text.columns import parse_columns


def sequences(seed, n=12, states=3):
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(4, states))
    X = [rng.normal(size=(int(rng.integers(2, 6)), 4)) for _ in range(n)]
    return X, [(x @ weights).argmax(axis=1) for x in X]


@pytest.mark.parametrize("hidden", [None, "node"])
def test_weight_two_is_twice_the_example(hidden):
    X, Y = sequences(0)
    options = {"hidden": hidden, "random_state": 0, "tol": 1e-8}
    counts = np.array([2, 1, 3, 0] * 3)
    weighted = SequenceLabeler(**options).fit(X, Y, counts)
    which = np.repeat(np.arange(12), counts)
    repeated = SequenceLabeler(**options).fit([X[i] for i in which], [Y[i] for i in which])
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, atol=1e-4)


def test_class_weights_average_over_an_example():
    X, Y = sequences(1)
    weight = {0: 2.0, 1: 0.5}
    means = [np.mean([weight.get(int(label), 1.0) for label in y]) for y in Y]
    by_class = SequenceLabeler(class_weight=weight, tol=1e-8).fit(X, Y)
    by_example = SequenceLabeler(tol=1e-8).fit(X, Y, means)
    np.testing.assert_allclose(by_class.weights_, by_example.weights_, atol=1e-6)


@pytest.mark.parametrize("weights", [np.ones(3), -np.ones(12), np.full(12, np.nan), np.zeros(12)])
def test_bad_weights(weights):
    with pytest.raises(ArgumentError, match="sample_weight"):
        SequenceLabeler().fit(*sequences(0), weights)


def test_warm_start_goes_on():
    X, Y = sequences(2)
    labeler = SequenceLabeler(warm_start=True, tol=1e-6).fit(X, Y)
    first = labeler.n_iter_
    labeler.fit(X, Y)
    assert labeler.n_iter_ < first
    with pytest.raises(ArgumentError, match="other features, labels or weights"):
        labeler.fit([x[:, :3] for x in X], Y)
    renamed = [np.where(y == 2, 7, y) for y in Y]
    with pytest.raises(ArgumentError, match="other features, labels or weights"):
        labeler.fit(X, renamed)


def test_partial_fit_keeps_counters_and_vocabulary():
    X = [[["a"], ["b"]], [["b"], ["c"]]]
    online = SequenceLabeler(random_state=0)
    online.partial_fit(X, [["x", "y"], ["y", "y"]], classes=["x", "y", "z"])
    updates = online.state_["updates"]
    online.partial_fit([[["new"], ["a"]]], [["z", "x"]])
    assert online.state_["updates"] > updates
    assert (online.n_iter_, online.n_seen_) == (2, 3)
    assert online.classes_.tolist() == ["x", "y", "z"]
    assert online.n_features_in_ == 3
    with pytest.raises(ArgumentError, match="label 'w'"):
        online.partial_fit(X, [["w", "x"], ["x", "x"]])


def test_partial_fit_says_how_it_ended():
    model = SequenceLabeler(random_state=0)
    model.partial_fit([[["a"], ["b"]]], [["x", "y"]], classes=["x", "y"])
    assert (model.ended_, model.converged_) == ("limit", False)


def test_em_is_cccp():
    X = [[["a"], ["b"]], [["b"], ["b"]]]
    Y = [["x", None], ["y", "y"]]
    em, cccp = (
        SequenceLabeler(driver=driver, random_state=0).fit(X, Y) for driver in ("em", "cccp")
    )
    np.testing.assert_array_equal(em.weights_, cccp.weights_)


def test_partial_fit_learns():
    X, Y = sequences(3, n=60)
    online = SequenceLabeler(random_state=0)
    for first in range(0, 60, 15):
        online.partial_fit(X[first : first + 15], Y[first : first + 15], classes=[0, 1, 2])
    assert online.score(X, Y) > 0.9
    after = SequenceLabeler(random_state=0).fit(X[:30], Y[:30])
    before = after.weights_.copy()
    after.partial_fit(X[30:], Y[30:])
    assert after.n_seen_ == 60
    assert 0 < np.linalg.norm(after.weights_ - before) < np.linalg.norm(before)


def test_progress_callbacks_and_time_limit():
    X, Y = sequences(4)
    told, events = [], []
    labeler = SequenceLabeler(
        progress=lambda fraction, words: told.append((fraction, words)),
        callbacks=[lambda event: events.append(event.iteration)],
        time_limit=0.0,
        tol=1e-12,
    )
    with pytest.warns(ConvergenceWarning, match="time limit"):
        labeler.fit(X, Y)
    assert labeler.n_iter_ == 1
    assert events == [1]
    assert told[0][0] <= 0.01
    assert "iteration 1" in told[0][1]
    assert "time limit" in labeler.status_
    assert not labeler.converged_


def test_interrupt_keeps_the_best_weights():
    X, Y = sequences(5)

    def interrupt(event):
        if event.iteration == 3:
            raise KeyboardInterrupt

    labeler = SequenceLabeler(callbacks=[interrupt], tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        labeler.fit(X, Y)
    assert "interrupted" in labeler.status_
    with pytest.warns(ConvergenceWarning):
        three = SequenceLabeler(max_iter=3, tol=1e-12).fit(X, Y)
    np.testing.assert_array_equal(labeler.weights_, three.weights_)


def test_checkpoint_goes_on_where_it_was(tmp_path):
    X, Y = sequences(6)
    options = {"checkpoint": tmp_path / "state", "tol": 1e-10}

    def stop(event):
        return event.iteration == 4

    SequenceLabeler(callbacks=[stop], **options).fit(X, Y)
    resumed = SequenceLabeler(**options).fit(X, Y)
    whole = SequenceLabeler(tol=1e-10).fit(X, Y)
    np.testing.assert_array_equal(resumed.weights_, whole.weights_)
    with pytest.raises(ArgumentError, match=r"C=1\.0"):
        SequenceLabeler(C=2.0, **options).fit(X, Y)


@pytest.mark.parametrize("kind", ["path", "checkpoint"])
def test_a_checkpoint_knows_what_it_was_learnt_from(tmp_path, kind):
    X, Y = sequences(6)
    path = tmp_path / "state"
    place = path if kind == "path" else Checkpoint(path, iterations=2)
    columns = parse_columns(b"a N\nb V\n\nc N\n")

    def fit(X=X, Y=Y, weight=None, **options):
        stop = [lambda event: event.iteration == 2]
        return SequenceLabeler(checkpoint=place, callbacks=stop, **options).fit(X, Y, weight)

    fit()
    before = path.read_bytes()
    others = {
        "labels": {"Y": [(y + 1) % 3 for y in Y]},
        "one label": {"Y": [[*Y[0][:-1], (Y[0][-1] + 1) % 3], *Y[1:]]},
        "a label unknown": {"Y": [[*Y[0][:-1], -1], *Y[1:]]},
        "one feature": {"X": [X[0] + 1e-9, *X[1:]]},
        "order": {"X": X[::-1], "Y": Y[::-1]},
        "sample_weight": {"weight": np.arange(1.0, 13.0)},
        "class_weight": {"class_weight": {0: 2.0}},
        "forbidden": {"forbidden": [(7, 7)]},
        "inference": {"inference": "exact"},
        "random_state": {"random_state": 1},
        "columns": {"X": columns, "Y": [["x", "y"], ["z"]]},
    }
    for other in others.values():
        with pytest.raises(ArgumentError, match="the checkpoint was saved with"):
            fit(**other)
        assert path.read_bytes() == before
    fit(max_iter=7, tol=0.1, n_jobs=1, time_limit=9.0, progress=lambda *_: None)


@pytest.mark.parametrize("hidden", [None, "node"])
def test_equal_data_in_new_arrays_goes_on(tmp_path, hidden):
    """Sets, generators and arrays among the parameters are told by what they hold."""
    X, Y = sequences(6)
    counts = []
    for _ in range(2):
        labeler = SequenceLabeler(
            checkpoint=tmp_path / "state",
            max_iter=5,
            tol=0.0,
            hidden=hidden,
            loss="eps",
            cost=np.ones(3),
            class_weight={np.int64(0): np.float64(2.0)},
            random_state=np.random.default_rng(0),
            callbacks=[lambda event: counts.append(event.iteration)],
        )
        with pytest.warns(ConvergenceWarning):
            labeler.fit([x.copy(order="F") for x in X], [y.tolist() for y in Y])
    assert counts == [1, 2, 3, 4, 5]  # the second had nothing left to do


def test_random_state_of_numpy():
    X, Y = sequences(7)
    a, b = (
        SequenceLabeler(hidden="node", random_state=np.random.RandomState(3)).fit(X, Y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(a.weights_, b.weights_)


def test_dominance():
    X, Y = sequences(8)
    X, Y = [x[:3] for x in X], [y[:3] for y in Y]
    labeler = SequenceLabeler(C=0.1).fit(X, Y)
    found, model = labeler.dominance(X, Y), NaiveModel(labeler.weights_, 3)
    for x, y, true, best in zip(X, Y, found.true, found.best, strict=True):
        scores, rows, _ = model.table(chain(x))
        p = np.exp(scores[:, 0]) / np.exp(scores).sum()
        assert best == pytest.approx(p.max())
        assert true == pytest.approx(p[(rows == y).all(axis=1)].item())


def test_a_callback_can_predict_with_the_weights_of_the_moment():
    X = [[["a"], ["b"], ["c"]], [["b"], ["c"], ["a"]]]
    Y = [["x", "y", "y"], ["y", "y", "x"]]
    scores = []

    def score(event):
        now = event.current()
        assert np.array_equal(now.weights_, event.weights)
        scores.append(now.score(X, Y))

    labeler = SequenceLabeler(callbacks=[score], max_iter=20, random_state=0).fit(X, Y)
    assert scores[-1] == labeler.score(X, Y) == 1.0
    assert len(scores) == labeler.n_iter_
