"""What models that sample share: going on with chains, failed fits, parameters set later."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

from papers.comparators import SwitchingSVM, TruncatedSVM
from structlearn._src.common.checks import generator
from structlearn._src.common.errors import ArgumentError, BurnInWarning, MixingWarning
from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM
from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM
from structlearn._src.sample import summary

ONE = {"random_state": 0, "n_jobs": 1, "n_chains": 1}
FEW = {"burn_in": 4, "n_draws": 2, "n_start": 4, **ONE}
ROUNDS = {"n_components": 3, "max_iter": 3, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2)) + np.repeat([[0, 0], [5, 5]], 20, axis=0)
Y = (X[:, 0] > 2.5).astype(int)
HMM, LABELLED, SVM = InfiniteHMM(**FEW), MaxMarginHMM(**FEW), InfiniteSVM(**FEW)
SYMBOLS = InfiniteHMM(emission="categorical", **FEW)
WORD = [list("abab" * 5)]


def warm(model, *data):
    return copy.deepcopy(model).set_params(warm_start=True).fit(*data)


# ---- going on ----------------------------------------------------------------------------


OTHERS = [
    (HMM, (X,), (X[:, :1],), "the numbers of features differ"),
    (HMM, (X,), (np.hstack([X, X]),), "the numbers of features differ"),
    (HMM, (X,), (X[:39],), "the lengths of sequences differ"),
    (HMM, (X,), ([X[:20], X[20:]],), "the lengths of sequences differ"),
    (HMM, (X,), (X * 100,), "the values of steps differ"),
    (HMM, (X,), (np.where(np.arange(40)[:, None] == 3, np.nan, X),), "the values of steps differ"),
    (SYMBOLS, (WORD,), ([list("abac" * 5)],), "the labels or symbols differ"),
    (SYMBOLS, (WORD,), ([list("abba" * 5)],), "the values of steps differ"),
    (LABELLED, (X, Y), (X, np.arange(40) % 3), "the labels or symbols differ"),
    (LABELLED, (X, Y), (X, np.array(["n", "y"])[Y]), "the labels or symbols differ"),
    (LABELLED, (X, Y), (X, 1 - Y), "the labels of steps differ"),
    (SVM, (X, Y), (X[:, :1], Y), "the numbers of features differ"),
    (SVM, (X, Y), (X[1:], Y[1:]), "the numbers of rows differ"),
    (SVM, (X, Y), (X, Y + 1), "the classes differ"),
    (SVM, (X, Y), (X + 1, Y), "the rows differ"),
    (SVM, (X, Y), (X, 1 - Y), "the labels differ"),
]


@pytest.mark.parametrize(("model", "before", "now", "words"), OTHERS)
def test_chains_do_not_go_on_with_other_data(model, before, now, words):
    fitted = warm(model, *before)
    with pytest.raises(ArgumentError, match=f"{words}; .*warm_start=False"):
        fitted.fit(*now)
    fitted.set_params(warm_start=False).fit(*now)


@pytest.mark.parametrize(
    "change",
    [
        {"covariance": "diagonal"}, {"emission": "categorical"}, {"n_chains": 3}, {"burn_in": 9},
        {"burn_in": 2}, {"thin": 3}, {"random_state": 9}, {"alpha0": 2.0}, {"spread": 0.5},
        {"n_start": 3}, {"n_moves": 1}, {"merge": False},
    ],
)  # fmt: skip
def test_chains_do_not_go_on_with_other_parameters(change):
    fitted = warm(HMM, X)
    ((name, value),) = change.items()
    words = rf"{name} was {getattr(fitted, name)!r} and is {value!r};"
    with pytest.raises(ArgumentError, match=words.replace("(", r"\(").replace(")", r"\)")):
        fitted.set_params(**change).fit(X)


def test_chains_with_labels_do_not_go_on_without_likelihood_nor_with_fewer_draws():
    fitted = warm(LABELLED, X, Y).set_params(vote="iterated").fit(X, Y)
    with pytest.raises(ArgumentError, match="n_draws=1, but chains have 2 draws already"):
        fitted.set_params(n_draws=1).fit(X, Y)
    with pytest.raises(ArgumentError, match="likelihood was True and is False"):
        fitted.set_params(likelihood=False).fit(X, Y)


# ---- what an ending promises -------------------------------------------------------------


def _interrupt(fraction, words):
    raise KeyboardInterrupt


@pytest.mark.parametrize("early", [{"time_limit": 0.0}, {"progress": _interrupt}])
@pytest.mark.parametrize(("model", "data"), [(HMM, (X,)), (LABELLED, (X, Y)), (SVM, (X, Y))])
def test_an_end_in_burn_in_is_said_and_can_be_made_good(model, data, early):
    # One move: a first sweep whose time is over leaves the others out.
    model = copy.deepcopy(model).set_params(n_moves=1, **early)
    with pytest.warns(BurnInWarning, match=r"burn_in=4"):
        model.fit(*data)
    assert model.ended_.early
    assert not any(chain.draws for chain in model.chains_)
    assert len(model.predict(data[0])) > 0
    whole = copy.deepcopy(model).set_params(time_limit=None, progress=None).fit(*data)
    model.set_params(time_limit=None, progress=None, warm_start=True).fit(*data)
    assert model.status_ == "done"
    for name, values in whole.traces().items():
        np.testing.assert_array_equal(model.traces()[name], values)


def test_an_end_after_burn_in_has_draws_and_says_nothing():
    told = []

    def tell(fraction, words):
        told.append(words)
        if len(told) == 6:
            raise KeyboardInterrupt

    model = InfiniteHMM(**FEW | {"n_draws": 9}, progress=tell).fit(X)
    assert model.status_ == "interrupted"
    assert len(model.draws_) == 2


LEVELS = np.repeat([0.0, 4.0, 8.0, 12.0], 25)[:, None]
STUCK = {"n_chains": 4, "burn_in": 0, "n_draws": 12, "n_start": 12, "n_moves": 0, "merge": False}


def test_chains_that_do_not_agree_are_a_warning():
    noisy = LEVELS + RNG.normal(size=LEVELS.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MixingWarning, match=r"R-hat of \w+ is .*n_draws"):
            InfiniteHMM(**STUCK, random_state=1).fit(noisy)
        two = RNG.normal(size=(60, 1)) + np.repeat([[0.0], [30.0]], 30, axis=0)
        model = InfiniteHMM(n_chains=2, burn_in=60, n_draws=60, random_state=0).fit(two)
    assert model.n_states_ == 2


# ---- fits that fail, and parameters that are set later -----------------------------------

FAILING = [
    (HMM, (X,), (X[:, :1],), {"degrees": 0.5}),
    (SYMBOLS, (WORD,), ([[None]],), {}),
    (LABELLED, (X, Y), (X[:, :1], Y * 0), {}),
    (LABELLED, (X, Y), (X[:, :1], Y), {"degrees": 0.5}),
    (SVM, (X, Y), (X[:, :1], ["a"] * 40), {}),
    (SVM, (X, Y), (X[:, :1], Y + 1), {"random_state": "x"}),
    (TruncatedSVM(**ROUNDS), (X, Y), (X[:, :1], ["a"] * 40), {}),
    (TruncatedSVM(**ROUNDS), (X, Y), (X[:, :1], Y + 1), {"random_state": "x"}),
    (SwitchingSVM(**ROUNDS), (X, Y), (X[:, :1], Y * 0), {}),
    (SwitchingSVM(**ROUNDS), (X, Y), (X[:, :1], Y + 1), {"random_state": "x"}),
]


@pytest.mark.parametrize(("model", "good", "bad", "change"), FAILING)
def test_a_fit_that_fails_leaves_the_model_as_it_was(model, good, bad, change):
    model = copy.deepcopy(model).fit(*good)
    before, learnt = model.predict(good[0]), dict(vars(model))
    with pytest.raises(ArgumentError):
        model.set_params(**change).fit(*bad)
    assert {**vars(model), **dict.fromkeys(change)} == {**learnt, **dict.fromkeys(change)}
    np.testing.assert_array_equal(model.predict(good[0]), before)


def test_an_error_in_the_midst_of_more_draws_leaves_the_chains_as_they_were():
    def stop(fraction, words):
        raise ZeroDivisionError

    model = warm(HMM, X)
    with pytest.raises(ZeroDivisionError):
        model.set_params(n_draws=6, progress=stop).fit(X)
    assert [chain.sweeps for chain in model.chains_] == [6]


def test_nothing_of_an_earlier_fit_is_left():
    model = copy.deepcopy(HMM).fit(X).set_params(emission="categorical").fit(WORD)
    assert not hasattr(model, "n_features_in_")
    assert model.symbols_.tolist() == ["a", "b"]


LATER = [
    (HMM, {"emission": "categorical", "covariance": "diagonal", "degrees": 0.5, "alpha0": -1.0}),
    (MaxMarginHMM(vote="iterated", n_rounds=2, **FEW), {"likelihood": False, "C": 1e6}),
    (MaxMarginHMM(likelihood=False, **FEW), {"likelihood": True}),
    (SVM, {"C": 1e6, "spread": 9.0, "variance": -1.0}),
    (TruncatedSVM(**ROUNDS), {"n_components": 7, "C": 9.0}),
    (SwitchingSVM(likelihood=False, **ROUNDS), {"n_components": 7, "likelihood": True, "C": 0.0}),
]


@pytest.mark.parametrize(("model", "change"), LATER)
def test_predictions_go_by_the_parameters_of_the_fit(model, change):
    model = copy.deepcopy(model).fit(X, Y)
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(**change).predict(X), before)


def test_burn_in_of_traces_and_emission_of_attributes_are_those_of_the_fit():
    model = copy.deepcopy(HMM).fit(X)
    shape = model.traces()["n_states"].shape
    model.set_params(burn_in=5, emission="categorical")
    assert model.traces()["n_states"].shape == shape == (1, 2)
    assert model.means_.shape == (model.n_states_, 2)


def test_votes_are_chosen_and_checked_when_they_are_asked_for():
    model = copy.deepcopy(LABELLED).fit(X, Y)
    assert model.set_params(vote="iterated").predict([X])[0].shape == (40,)
    with pytest.raises(ArgumentError, match="vote='nonsense' is not known"):
        model.set_params(vote="nonsense").predict([X])


# ---- seeds and summaries -----------------------------------------------------------------


def test_sums_of_short_integers_do_not_wrap_around():
    counts = {"burn_in": 100, "n_draws": 20, "thin": 5}
    short = {name: np.int8(count) for name, count in counts.items()}
    one, two = (InfiniteHMM(**{**FEW, **given}).fit(X[:8]) for given in (counts, short))
    assert [len(chain.draws) for chain in two.chains_] == [20]
    np.testing.assert_array_equal(two.traces()["n_states"], one.traces()["n_states"])


@pytest.mark.parametrize(
    ("model", "change"),
    [
        *((model, {"spread": 1e-9}) for model in (HMM, LABELLED, SVM)),
        *((m, {name: 1e20}) for m in (LABELLED, SVM) for name in ("C", "cost", "variance")),
        (TruncatedSVM(**ROUNDS), {"C": 1e20}),
    ],
)
def test_parameters_beyond_rounding_are_refused(model, change):
    odd = copy.deepcopy(model).set_params(**change)
    with pytest.raises(ArgumentError, match=f"{next(iter(change))}="):
        odd.fit(X) if isinstance(model, InfiniteHMM) else odd.fit(X, Y)


def test_what_is_no_list_and_no_truth_value_is_refused():
    with pytest.raises(ArgumentError, match="Y is float32; give a list of labels"):
        copy.deepcopy(LABELLED).fit([X], np.float32(0.5))
    with pytest.raises(ArgumentError, match="X is ndarray; give a list of sequences"):
        copy.deepcopy(HMM).fit(np.array(0.5))
    with pytest.raises(ArgumentError, match=r"warm_start=.* must be True or False"):
        copy.deepcopy(HMM).set_params(warm_start=np.array([True, True])).fit(X)


@pytest.mark.parametrize("seed", [0, 2])
@pytest.mark.parametrize("model", [LABELLED, SVM])
def test_parameters_at_the_border_are_taken(model, seed):
    largest = dict.fromkeys(("C", "cost", "variance"), 1e9) | {"spread": 1e-8}
    fitted = copy.deepcopy(model).set_params(**largest, random_state=seed).fit(X, Y)
    assert all(np.isfinite(trace).all() for trace in fitted.traces().values())


def test_an_older_random_state_is_a_seed():
    draws = [generator(np.random.RandomState(3)).random() for _ in range(2)]
    assert draws[0] == draws[1] != generator(3).random()
    state = np.random.RandomState(3)
    assert generator(state).random() != generator(state).random()
    with pytest.raises(ArgumentError, match="random_state='x' must be"):
        generator("x")


@pytest.mark.parametrize("model", [LABELLED, SVM, TruncatedSVM(**ROUNDS), SwitchingSVM(**ROUNDS)])
def test_all_models_take_an_older_random_state(model):
    model = copy.deepcopy(model).set_params(random_state=np.random.RandomState(0))
    assert model.fit(X, Y).score(X, Y) > 0.5


def test_summaries_have_the_number_of_states_of_most_draws():
    """Also where the draw in the middle of all has another."""
    noise, others = np.random.default_rng(5).normal(size=(30, 1)), 0
    given = FEW | {"n_draws": 30, "spread": 0.5, "alpha0": 3.0, "gamma0": 3.0}
    for seed in range(6):
        model = InfiniteHMM(**given | {"random_state": seed}).fit(noise)
        most = np.bincount([draw.n_states for draw in model.draws_]).argmax()
        assert model.n_states_ == len(model.means_) == len(model.transitions_) == most
        assert max(model.states_[0]) < most
        middle = model.draws_[summary.central([draw.states for draw in model.draws_])]
        others += middle.n_states != most
    assert others > 0
