"""What estimators with hidden states take as sequences and labels, and what they refuse."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler

from papers.comparators import SwitchingSVM, TruncatedSVM
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM
from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM
from structlearn._src.estimators.bayesian.observed import (
    read_labels,
    read_points,
    read_symbols,
    scale_of,
)

FEW = {"burn_in": 4, "n_draws": 3, "n_start": 4, "random_state": 0, "n_chains": 1}
ROUNDS = {"n_components": 3, "max_iter": 3, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2)) + np.repeat([[0, 0], [5, 5]], 20, axis=0)
Y = (X[:, 0] > 2.5).astype(int)


@pytest.fixture(scope="module")
def labelled():
    return MaxMarginHMM(**FEW).fit(X, Y)


@pytest.fixture(scope="module")
def points():
    return InfiniteHMM(**FEW).fit(X)


def same(one, two):
    for a, b in zip(one[:3], two[:3], strict=True):
        np.testing.assert_array_equal(a, b)


# ---- sequences ---------------------------------------------------------------------------


def test_arrays_of_sequences():
    same(read_points(X.reshape(4, 10, 2)), read_points(X, [10] * 4))
    with pytest.raises(ArgumentError, match="a list of sequences needs none"):
        read_points(X.reshape(4, 10, 2), [10] * 4)


def test_what_is_masked_is_missing():
    gaps = np.where(np.arange(40)[:, None] % 7 == 3, np.nan, X)
    hidden = np.ma.masked_array(X, np.isnan(gaps))
    same(read_points(hidden, [20, 20]), read_points(gaps, [20, 20]))
    same(read_points([hidden.round().astype(int)]), read_points([gaps.round()]))
    with pytest.raises(ArgumentError, match="step 1 of sequence 0 misses some features"):
        read_points(np.ma.masked_array(X, np.arange(80).reshape(40, 2) == 3))
    for model in (InfiniteSVM(**FEW), TruncatedSVM(**ROUNDS)):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(hidden, Y)


def test_frames():
    pandas = pytest.importorskip("pandas")
    frame, column = pandas.DataFrame(X), pandas.Series(Y)
    same(read_points(frame, [15, 25]), read_points(X, [15, 25]))
    model = MaxMarginHMM(**FEW).fit(frame, column, lengths=[15, 25])
    assert [len(own) for own in model.predict(frame, lengths=[15, 25])] == [15, 25]
    assert model.score(frame, column, lengths=[15, 25]) > 0.9


BAD = [
    ((X + 1j,), "complex numbers"),
    (({1, 2},), "X is set"),
    ((X, [20.0, 20.0]), "lengths=.* whole numbers"),
    ((X, 40), "lengths=40 must be"),
    ((X, "a"), "lengths='a' must be"),
    ((X, [-1, 41]), "at least 1 each"),
]


@pytest.mark.parametrize(("given", "words"), BAD)
def test_bad_sequences(given, words):
    with pytest.raises(ArgumentError, match=words):
        read_points(*given)


def test_symbols_that_were_not_there(points):
    coder = read_symbols([[0, 1, 2]], None).coder
    with pytest.raises(ArgumentError, match="the symbol 7 was not among those of training"):
        read_symbols([[0, 7]], None, coder)
    with pytest.raises(ArgumentError, match="has the symbol -2; a number as a symbol"):
        read_symbols([[0, -2]], None)


def test_sequences_of_which_nothing_is_seen(points, labelled):
    nothing = np.full((3, 2), np.nan)
    assert labelled.predict([nothing])[0].shape == (3,)
    np.testing.assert_array_equal(labelled.predict([nothing, X])[0], labelled.predict([nothing])[0])
    assert points.predict([nothing])[0].shape == (3,)
    with pytest.raises(ArgumentError, match="every step is missing; a score needs"):
        points.score([nothing])
    words = InfiniteHMM(emission="categorical", **FEW).fit([[0, 1, 0, 1]])
    assert words.predict([[-1, None]])[0].shape == (2,)
    with pytest.raises(ArgumentError, match="every symbol is missing; a score needs"):
        words.score([[-1]])


def test_similarity_of_steps_that_are_not_there(points):
    assert points.similarity([0, 39]).shape == (2, 2)
    for positions in ([0, 40], [-1], [0.5]):
        with pytest.raises(ArgumentError, match="positions"):
            points.similarity(positions)


# ---- sizes of features -------------------------------------------------------------------


def test_features_that_are_constant_but_for_rounding():
    table = np.column_stack([X, np.full(40, 0.1), np.zeros(40), 1e9 + 1e-7 * X[:, 0], 1e-7 * X])
    centre, scale = scale_of(table)
    theirs = StandardScaler().fit(table)
    np.testing.assert_allclose(scale, theirs.scale_)
    np.testing.assert_allclose(centre, theirs.mean_)
    assert scale[2] == 1.0
    assert InfiniteHMM(**FEW).fit(table[:, :3]).scale_[2] == 1.0


MODELS = [
    InfiniteHMM(**FEW), MaxMarginHMM(**FEW), InfiniteSVM(**FEW), TruncatedSVM(**ROUNDS),
    SwitchingSVM(**ROUNDS),
]  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_features_beyond_floating_point(model):
    model = copy.deepcopy(model)
    for by in (1e102, 1e154, 1e-102, 1e-200):
        with pytest.raises(ArgumentError, match=r"feature 0 .* in other units"):
            model.fit(X * by, Y)
    for by in (1e-98, 1e98):
        assert np.isfinite(model.fit(X * by, Y).score(X * by, Y))
        assert model.n_features_in_ == X.shape[1]
    for far in (1e201, 1e308):
        with pytest.raises(ArgumentError, match=r"feature 0 is .* deviations from its mean"):
            model.predict(np.full((3, 2), far))


# ---- labels ------------------------------------------------------------------------------


def test_labels_are_cut_as_the_points_are():
    given, flat = read_points(X, [15, 25]), Y.astype(float)
    for labels in (Y, Y.tolist(), np.ma.masked_array(flat, flat < 0), [Y[:15], Y[15:]]):
        found = read_labels(labels, given)
        np.testing.assert_array_equal(found.numbers, Y)
        assert not found.single
    found = read_labels([1, 0], given)
    assert found.single
    np.testing.assert_array_equal(found.numbers, np.repeat([1, 0], [15, 25]))
    with pytest.raises(ArgumentError, match="2 sequences and Y has labels for 40"):
        read_labels(Y, read_points([X[:15], X[15:]]))
    model = MaxMarginHMM(**FEW).fit(X, Y, lengths=[15, 25])
    assert not model.per_sequence_
    assert model.score(X, Y, lengths=[15, 25]) > 0.9


@pytest.mark.parametrize("model", [MaxMarginHMM(**FEW), SwitchingSVM(**ROUNDS)])
def test_scores(model):
    with pytest.raises(NotFittedError):
        model.score(X, Y)
    with pytest.raises(NotFittedError):
        _ = model.classes_
    model = copy.deepcopy(model).fit(X, Y)
    found = model.predict(X)[0]
    assert model.score(X, Y) == np.mean(found == Y)
    assert model.score(X, Y, lengths=[20, 20]) > 0.9
    new = np.where(np.arange(40) < 10, 7, Y)  # of which training has seen none
    assert model.score(X, new) == np.mean(found == new)
    assert model.score(X, np.array(["a", "b"])[Y]) == 0.0
    assert model.score(X, np.where(np.arange(40) < 10, -1, Y)) == np.mean((found == Y)[10:])
    with pytest.raises(ArgumentError, match="every label is missing; a score needs"):
        model.score(X, np.full(40, -1))


def test_scores_of_whole_sequences():
    rows, labels = [X[i : i + 5] for i in range(0, 40, 5)], ["a"] * 4 + ["b"] * 4
    model = MaxMarginHMM(**FEW).fit(rows, labels)
    assert model.score(rows, labels) == 1.0
    assert model.score(rows, ["c", *labels[1:]]) == 7 / 8
    found = cross_val_score(MaxMarginHMM(**FEW), rows, labels, cv=StratifiedKFold(2))
    assert np.all(found > 0.5)
