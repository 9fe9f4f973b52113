"""Infinite hidden Markov models as a user meets them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from sklearn.base import clone

from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM

SHORT = {"burn_in": 40, "n_draws": 20, "n_start": 6, "random_state": 0, "n_chains": 1}


def _chain(rng, n, stay=0.9, K=3):
    z = np.zeros(n, int)
    for t in range(1, n):
        z[t] = z[t - 1] if rng.random() < stay else rng.integers(K)
    return z


def _agree(one, two):
    """Whether two partitions are the same up to a few positions."""
    table = np.zeros((max(one) + 1, max(two) + 1))
    np.add.at(table, (one, two), 1)
    return min(table.max(0).sum(), table.max(1).sum()) / len(one)


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    z = _chain(rng, 400)
    means = np.array([[-4.0, 100.0], [0.0, 108.0], [4.0, 100.0]])
    return z, means[z] + rng.normal(size=(400, 2)), means


@pytest.fixture(scope="module")
def fitted(points):
    _, X, _ = points
    return InfiniteHMM(**SHORT | {"n_chains": 2}).fit([X[:150], X[150:]])


def test_states_are_found(points, fitted):
    z, X, means = points
    assert fitted.n_states_ == 3
    assert fitted.status_ == "done"
    assert len(fitted.draws_) == 40
    assert [len(own) for own in fitted.states_] == [150, 250]
    assert _agree(np.concatenate(fitted.states_), z) > 0.97
    assert _agree(fitted.predict(X, lengths=[100, 300])[1], z[100:]) > 0.97
    np.testing.assert_allclose(np.sort(fitted.means_[:, 0]), means[:, 0], atol=0.4)
    np.testing.assert_allclose(fitted.covariances_, np.tile(np.eye(2), (3, 1, 1)), atol=0.5)
    assert np.all(np.diag(fitted.transitions_) > 0.8)
    np.testing.assert_allclose(fitted.transitions_.sum(1), 1.0)
    np.testing.assert_allclose(fitted.starts_.sum(), 1.0)
    sizes = np.bincount(np.concatenate(fitted.states_))
    assert np.all(np.diff(sizes) <= 0)
    np.testing.assert_allclose(fitted.predict_proba([X])[0].sum(1), 1.0, atol=0.2)


def test_what_draws_have_in_common(points, fitted):
    z, _, _ = points
    similar = fitted.similarity([0, 10, 200, 399])
    assert similar.shape == (4, 4)
    same = z[[0, 10, 200, 399]][:, None] == z[[0, 10, 200, 399]]
    assert np.all((similar > 0.5) == same)
    traces = fitted.traces()
    assert {name: draws.shape for name, draws in traces.items()} == dict.fromkeys(
        ("n_states", "alpha0", "gamma0", "log_density"), (2, 20)
    )
    found = fitted.diagnostics()["log_density"]
    assert found["mean"] == pytest.approx(traces["log_density"].mean())
    assert 0 < found["effective_size"] <= 80


def test_score_is_the_log_density_in_the_units_of_the_data():
    """One state only: the density of new points against the Gaussian they came from."""
    rng = np.random.default_rng(1)
    X, new = 50.0 + 7.0 * rng.normal(size=(600, 1)), 50.0 + 7.0 * rng.normal(size=(200, 1))
    model = InfiniteHMM(**SHORT | {"n_start": 1, "n_moves": 0}).fit(X)
    gaps = np.full((5, 1), np.nan)
    expected = norm(50.0, 7.0).logpdf(new).mean()
    assert model.score([new, np.vstack([new[:3], gaps])]) == pytest.approx(expected, abs=0.05)


def test_score_sums_over_paths():
    rng = np.random.default_rng(2)
    X = np.concatenate([rng.normal(-3, 1, (30, 1)), rng.normal(3, 1, (30, 1))])
    model = InfiniteHMM(**SHORT | {"n_draws": 1}).fit(X)
    (draw,), new = model.draws_, np.array([[-2.0], [np.nan], [1.0]])
    K, rows = draw.n_states, draw.process.rows[:, :-1]
    rows = rows / rows.sum(1, keepdims=True)
    means, bands = draw.parameters[0][0][:, 0], draw.parameters[0][1][:, 0, 0]
    scaled = (new - model.centre_) / model.scale_
    logs = np.where(np.isnan(new), 0.0, norm(means, 1 / bands).logpdf(scaled))
    values = [
        np.log(rows[0, a]) + logs[0, a] + np.log(rows[a + 1, b]) + logs[1, b]
        + np.log(rows[b + 1, c]) + logs[2, c]
        for a in range(K) for b in range(K) for c in range(K)
    ]  # fmt: skip
    expected = logsumexp(values) / 2 - np.log(model.scale_[0])
    assert model.score([new]) == pytest.approx(expected)


def test_missing_steps_do_not_matter_much(points):
    z, X, _ = points
    X = X.copy()
    gone = np.arange(0, 400, 7)
    X[gone] = np.nan
    model = InfiniteHMM(covariance="diagonal", **SHORT).fit([X])
    assert model.n_states_ == 3
    assert _agree(model.states_[0], z) > 0.95


def test_symbols():
    rng = np.random.default_rng(3)
    z = _chain(rng, 500, 0.95, 2)
    X = np.where(rng.random(500) < 0.9, z, 2)
    words = np.array(["a", "b", "c"], object)[X]
    words[5] = None
    model = InfiniteHMM(emission="categorical", **SHORT).fit([words[:200], words[200:]])
    assert model.symbols_.tolist() == ["a", "b", "c"]
    assert _agree(np.concatenate(model.states_), z) > 0.9
    np.testing.assert_allclose(model.probabilities_.sum(1), 1.0)
    assert -1.0 < model.score([words]) < 0.0
    with pytest.raises(ArgumentError, match="'z'"):
        model.predict([["a", "z"]])


def test_models_can_be_pickled(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.states_[0], fitted.states_[0])
    assert again.ended_ is fitted.ended_


# ---- with labels -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def labelled():
    """Two states whose classifiers point in opposite ways: no linear classifier does."""
    rng = np.random.default_rng(4)
    z = _chain(rng, 600, 0.95, 2)
    X = 4.0 * z[:, None] + rng.normal(size=(600, 1))
    y = ((X[:, 0] > 4.0 * z) == (z == 1)).astype(int)
    return X, np.array(["no", "yes"])[y], z


def test_labels_of_steps(labelled):
    X, y, z = labelled
    half = y[:300].astype(object)
    half[::5] = None
    model = MaxMarginHMM(**SHORT).fit([X[:300]], [half])
    assert model.classes_.tolist() == ["no", "yes"]
    assert _agree(model.states_[0], z[:300]) > 0.9
    assert model.score([X[300:]], [y[300:]]) > 0.9
    shares = model.predict_proba([X[300:]])[0]
    np.testing.assert_allclose(shares.sum(1), 1.0)
    assert (model.predict([X[300:]])[0] == model.classes_[shares.argmax(1)]).all()
    iterated = (
        clone(model).set_params(vote="iterated", n_rounds=5, n_draws=10).fit([X[:300]], [half])
    )
    assert iterated.score([X[300:]], [y[300:]]) > 0.88


def test_labels_without_likelihood(labelled):
    """States are found by their classifiers alone in training; new ones only by the chain."""
    X, y, _ = labelled
    model = MaxMarginHMM(likelihood=False, **SHORT).fit([X[:300]], [y[:300]])
    own = model.predict_steps([X[:300]])[0]
    assert own.shape == (300, 2)
    assert model.score([X[300:]], [y[300:]]) > 0.4


def test_one_label_for_every_sequence():
    rng = np.random.default_rng(5)
    y = np.arange(24) % 3
    X = [np.array([[-4.0], [0.0], [4.0]])[k] + rng.normal(size=(rng.integers(4, 9), 1)) for k in y]
    model = MaxMarginHMM(**SHORT).fit(X[:15], y[:15])
    assert model.score(X[15:], y[15:]) > 0.85
    assert model.predict(X[15:]).shape == (9,)
    assert model.predict_proba(X[15:]).shape == (9, 3)
    steps = [np.full(len(x), k) for x, k in zip(X[15:], y[15:], strict=True)]
    assert model.score(X[15:], steps) > 0.8


# ---- what is refused ---------------------------------------------------------------------

ONE, LABELS = np.zeros((4, 2)), [0, 1, 0, 1]
BAD_POINTS = [
    ([ONE, np.zeros((4, 3))], "sequence 1 has 3 features"),
    ([np.zeros((0, 2))], r"shape \(0, 2\)"),
    ([np.zeros(4)], "steps, features"),
    ([[["a", "b"]]], "not an array of numbers"),
    ([], "no sequences"),
    ("text", "a list of sequences"),
    ([np.array([[0.0, 1.0], [np.inf, 1.0]])], "step 1 of sequence 0 is infinite"),
    ([ONE, np.array([[0.0, 1.0], [np.nan, 1.0]])], "step 1 of sequence 1 misses some"),
    ([np.full((3, 2), np.nan)], "every step is missing"),
]


@pytest.mark.parametrize(("X", "words"), BAD_POINTS)
def test_bad_points_are_refused(X, words):
    with pytest.raises(ArgumentError, match=words):
        InfiniteHMM().fit(X)
    with pytest.raises(ArgumentError, match=words):
        MaxMarginHMM().fit(X, [LABELS])


BAD_LABELS = [
    ([[0, 0, 0, 0]], "all labels are 0; at least two"),
    ([[-1, 1, -1, 1]], "all labels are 1, and -1 and None stand for those not known"),
    ([[-1, -1, -1, None]], "every label is missing, as -1"),
    ([[0, 1, 0]], "4 steps and labels of shape"),
    ([LABELS, LABELS], "1 sequences and Y has labels for 2"),
    (3, "give a list"),
]


@pytest.mark.parametrize(("Y", "words"), BAD_LABELS)
def test_bad_labels_are_refused(Y, words):
    with pytest.raises(ArgumentError, match=words):
        MaxMarginHMM().fit([ONE], Y)


BAD_PARAMETERS = [
    ({"alpha0": -1.0}, "alpha0"),
    ({"gamma0": (1.0, 2.0, 3.0)}, "gamma0"),
    ({"gamma0": (1.0, 0.0)}, "gamma0"),
    ({"covariance": "round"}, "covariance"),
    ({"spread": 0.0}, "spread"),
    ({"degrees": 1.9}, r"degrees=1.9 must lie in \[2"),
    ({"degrees": 0.9, "covariance": "diagonal"}, r"degrees=0.9 must lie in \[1"),
    ({"warm_start": 1}, "warm_start"),
    ({"progress": 3}, "progress=3 must be a function"),
    ({"n_start": 0}, "n_start"),
    ({"burn_in": -1}, "burn_in"),
    ({"n_draws": 0}, "n_draws"),
    ({"merge": 3}, "merge"),
    ({"emission": "poisson"}, "emission"),
    ({"pseudo_count": 0.0}, "pseudo_count"),
    ({"time_limit": -1.0}, "time_limit"),
]


@pytest.mark.parametrize(("given", "words"), BAD_PARAMETERS)
def test_bad_parameters_are_refused(given, words):
    with pytest.raises(ArgumentError, match=words):
        InfiniteHMM(**given).fit([ONE])


@pytest.mark.parametrize(
    ("given", "words"),
    [({"C": 0.0}, "C="), ({"vote": "all"}, "vote"), ({"likelihood": 1}, "likelihood")],
)
def test_bad_parameters_of_labels_are_refused(given, words):
    with pytest.raises(ArgumentError, match=words):
        MaxMarginHMM(**given).fit([ONE], [LABELS])


def test_other_widths_and_lengths_are_refused(points, fitted):
    with pytest.raises(ArgumentError, match="training had 2"):
        fitted.predict([np.zeros((3, 1))])
    with pytest.raises(ArgumentError, match="lengths sum to 5"):
        fitted.predict(np.zeros((4, 2)), lengths=[2, 3])
    with pytest.raises(AttributeError, match="gaussian"):
        _ = fitted.probabilities_
    model = InfiniteHMM(emission="categorical")
    with pytest.raises(ArgumentError, match="one dimension"):
        model.fit([ONE])
    with pytest.raises(ArgumentError, match="every symbol is missing"):
        model.fit([[None, -1]])


@pytest.mark.parametrize("given", [-1, 1_000_001, 10**20, 1.5, True])
def test_numbers_of_moves_that_cannot_be_meant(points, given):
    with pytest.raises(ArgumentError, match=r"n_moves=.* at least 0 and at most 1000000"):
        InfiniteHMM(n_moves=given).fit([points[1]])
