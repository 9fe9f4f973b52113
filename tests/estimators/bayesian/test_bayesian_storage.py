"""Infinite models saved and loaded: the same answers, few arrays, and nothing taken on trust."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from papers.comparators import InfiniteLogit, SwitchingSVM, TruncatedSVM
from structlearn import load, save
from structlearn._src.common.errors import ArgumentError, FormatError, StructlearnError
from structlearn._src.common.names import RUN_ONLY
from structlearn._src.estimators import storage as persist
from structlearn._src.estimators.bayesian.infinite_hmm import InfiniteHMM
from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM
from structlearn._src.files import store

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(n, 2)) + 3.0 * (n % 2) for n in (12, 9, 5)]
STEPS = [np.where(x[:, 0] > x[:, 1], "up", "down") for x in X]
GAPS = [np.where(np.arange(len(x))[:, None] == 3, np.nan, x) for x in X]
WORDS = [list("abbacab"), list("cab")]
ROWS, CLASSES = np.concatenate(X), np.concatenate(STEPS)
pytestmark = pytest.mark.filterwarnings("ignore::structlearn.errors.BurnInWarning")
FEW = {"burn_in": 3, "n_draws": 4, "n_start": 3, "random_state": 5}
ONE = {"n_chains": 1, **FEW}
ROUNDS = {"n_components": 3, "max_iter": 3, "random_state": 0}

MODELS = {
    "points": (InfiniteHMM(n_chains=2, **FEW), GAPS, None),
    "diagonal": (InfiniteHMM(covariance="diagonal", alpha0=2.0, **ONE), X, None),
    "symbols": (InfiniteHMM(emission="categorical", thin=2, **ONE), WORDS, None),
    "no draws yet": (InfiniteHMM(time_limit=0.0, **ONE), X, None),
    "labels": (MaxMarginHMM(**ONE), GAPS, STEPS),
    "labels alone": (MaxMarginHMM(likelihood=False, vote="iterated", **ONE), X, STEPS),
    "label of all": (MaxMarginHMM(**ONE), X, [1, 0, 1]),
    "svm": (InfiniteSVM(n_chains=2, **FEW), ROWS, CLASSES),
    "svm, no draws yet": (InfiniteSVM(n_chains=2, time_limit=0.0, **FEW), ROWS, CLASSES),
    "logit": (InfiniteLogit(concentration=2.0, **ONE), ROWS, CLASSES == "up"),
    "truncated": (TruncatedSVM(**ROUNDS), ROWS, CLASSES.astype(object)),
    "switching": (SwitchingSVM(**ROUNDS), X, STEPS),
    "switching, labels alone": (SwitchingSVM(likelihood=False, **ROUNDS), X, STEPS),
}
TOLD = (
    "classes_", "symbols_", "n_states_", "states_", "transitions_", "starts_", "means_",
    "covariances_", "probabilities_", "n_components_", "assigned_", "shares_", "n_iter_",
    "status_", "n_features_in_", "offsets_",
)  # fmt: skip
ASKED = ("predict", "predict_proba", "predict_steps")
_fits: dict = {}


def fitted(name):
    if name not in _fits:
        model, given, labels = MODELS[name]
        _fits[name] = model.fit(given, labels)
    return _fits[name], MODELS[name][1]


def assert_equal(one, two):
    """Lists of arrays may have arrays of different lengths."""
    if isinstance(one, list):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)
    else:
        np.testing.assert_equal(two, one)
        assert np.asarray(one).dtype == np.asarray(two).dtype


def answers(model, given):
    """All that a fitted model can be asked."""
    found = {name: getattr(model, name) for name in TOLD if hasattr(model, name)}
    found |= {name: getattr(model, name)(given) for name in ASKED if hasattr(model, name)}
    for name in ("traces", "diagnostics", "similarity"):
        if hasattr(model, name):
            found[name] = getattr(model, name)()
    if isinstance(model, InfiniteHMM):
        found["score"] = model.score(given)
    return found


# ---- there and back ----------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_the_same_answers(name, tmp_path):
    model, given = fitted(name)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert type(again) is type(model)
    assert again.get_params() == model.get_params() | dict.fromkeys(RUN_ONLY & vars(model).keys())
    expected, found = answers(model, given), answers(again, given)
    assert expected.keys() == found.keys()
    for question, answer in expected.items():
        assert_equal(answer, found[question])


def test_everything_learnt_is_kept(tmp_path):
    for name in MODELS:
        model, _ = fitted(name)
        save(model, tmp_path / "model")
        assert vars(load(tmp_path / "model")).keys() == vars(model).keys()


@pytest.mark.parametrize("name", ["points", "labels", "svm"])
def test_chains_go_on_from_a_file(name, tmp_path):
    model, given, labels = copy.deepcopy(MODELS[name])
    save(model.set_params(warm_start=True).fit(given, labels), tmp_path / "model")
    again = load(tmp_path / "model")
    for one in (model, again):
        one.set_params(n_draws=6).fit(given, labels)
    assert len(again.draws_) == 6 * model.n_chains
    for a, b in zip(model.chains_, again.chains_, strict=True):
        for one, two in zip(a.draws, b.draws, strict=True):
            np.testing.assert_array_equal(one[0], two[0])
    with pytest.raises(ArgumentError, match=r"warm_start=True .* differ"):
        again.fit(given[1:], None if labels is None else labels[1:])


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_makes_the_same_file(name, tmp_path):
    """The order of parameters included: whoever compares files sees no change."""
    save(fitted(name)[0], tmp_path / "one")
    save(load(tmp_path / "one"), tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_equal_fits_make_equal_files(tmp_path):
    for name, n_jobs in (("a", 1), ("b", 2)):
        for kind in ("points", "labels", "svm", "truncated"):
            model, given, labels = copy.deepcopy(MODELS[kind])
            if hasattr(model, "n_jobs"):
                model.n_jobs = n_jobs
            save(model.fit(given, labels), tmp_path / f"{kind} {name}")
    for kind in ("points", "labels", "svm", "truncated"):
        pair = [(tmp_path / f"{kind} {name}").read_bytes() for name in "ab"]
        assert pair[0] == pair[1]


def test_many_draws_are_few_arrays(tmp_path):
    for name in MODELS:
        save(fitted(name)[0], tmp_path / "model")
        assert len(store.read(tmp_path / "model", persist.SCHEMA)[0]) < 25


def test_names_of_features(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(ROWS, columns=["width", "height"])
    for model in (InfiniteSVM(**ONE), TruncatedSVM(**ROUNDS)):
        save(model.fit(table, CLASSES), tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.feature_names_in_.tolist() == ["width", "height"]
        np.testing.assert_array_equal(again.predict(table), model.predict(table))


# ---- what cannot be saved ----------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [InfiniteHMM, MaxMarginHMM, InfiniteSVM, InfiniteLogit, TruncatedSVM, SwitchingSVM]
)
def test_only_fitted_models(kind, tmp_path):
    with pytest.raises(ArgumentError, match=f"this {kind.__name__} is not fitted"):
        save(kind(), tmp_path / "model")
    mine = type("Mine", (kind,), {})
    with pytest.raises(ArgumentError, match=f"a Mine cannot .* subclass of {kind.__name__}"):
        save(mine(), tmp_path / "model")
    with pytest.raises(ArgumentError, match=f"give one of .*{kind.__name__}"):
        save("text", tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    changed = copy.copy(fitted("points")[0]).set_params(burn_in=-1)
    with pytest.raises(ArgumentError, match=r"could not be loaded again .*burn_in=-1"):
        save(changed, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_parameters_that_were_set_after_the_fit_wait_for_the_next(tmp_path):
    model, given = fitted("points")
    later = {"emission": "categorical", "degrees": 0.5, "covariance": "diagonal"}
    save(copy.copy(model).set_params(**later), tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.emission == "categorical"
    for question, answer in answers(model, given).items():
        assert_equal(answer, answers(again, given)[question])


# ---- what cannot be loaded ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["labels", "svm", "switching"])
def test_files_cut_short(name, tmp_path):
    save(fitted(name)[0], tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    for size in [0, 8, *range(100, len(data), len(data) // 10), len(data) - 1]:
        (tmp_path / "cut").write_bytes(data[:size])
        with pytest.raises(FormatError, match="cut"):
            load(tmp_path / "cut")


def _arrays(name, folder):
    save(fitted(name)[0], folder / "model")
    arrays, meta = store.read(folder / "model", persist.SCHEMA)
    return arrays, meta["model"]


def _refused(arrays, tree, folder):
    store.write(folder / "bad", arrays, {"model": tree}, persist.SCHEMA)
    with pytest.raises(FormatError, match=str(folder / "bad")):
        load(folder / "bad")


TOLERANT = ("trace", "classes_")  # any numbers will do: no compiled code reads them


@pytest.mark.parametrize("name", MODELS)
def test_arrays_that_do_not_fit(name, tmp_path):
    """Every array, in turn: not finite, longer, of another type, of another shape, not there."""
    arrays, tree = _arrays(name, tmp_path)
    for place, array in arrays.items():
        if any(word in place for word in TOLERANT):
            continue
        others = [array[None], array.astype("f4")]
        if "shares_" not in place:  # of as many rows as there were
            others += [array[:-1], np.concatenate([array, array[:1]])]
        if array.dtype.kind == "f":
            others += [np.full_like(array, np.nan), np.full_like(array, np.inf)]
        for other in others:
            _refused(arrays | {place: other}, tree, tmp_path)
        _refused({key: own for key, own in arrays.items() if key != place}, tree, tmp_path)


@pytest.mark.parametrize("name", ["points", "labels", "svm", "switching"])
def test_arrays_in_each_others_places(name, tmp_path):
    """What is not refused has the same shape, and leads to other answers at most."""
    arrays, tree = _arrays(name, tmp_path)
    given, refused = fitted(name)[1], 0
    places = [place for place in arrays if ".trace." not in place]
    for one, two in zip(places, [*places[1:], places[0]], strict=True):
        swapped = arrays | {one: arrays[two], two: arrays[one]}
        store.write(tmp_path / "bad", swapped, {"model": tree}, persist.SCHEMA)
        try:
            load(tmp_path / "bad").predict(given)
        except FormatError:
            refused += 1
    assert refused >= len(places) - 3


CHANGES = {
    "a state too high": ("points", "paths", lambda a: a.__setitem__((0, 0), 200)),
    "a state that never occurs": ("points", "paths", lambda a: a.fill(1)),
    "borders": ("points", "offsets_", lambda a: a.__setitem__(1, 10**9)),
    "an empty sequence": ("points", "offsets_", lambda a: a.__setitem__(1, 0)),
    "transitions below 0": ("points", "rows", np.negative),
    "transitions that sum to 2": ("points", "rows", lambda a: np.multiply(a, 2.0, out=a)),
    "a concentration of 0": ("points", "alpha", lambda a: a.fill(0.0)),
    "no deviation": ("points", "scale_", lambda a: a.fill(0.0)),
    "roots": ("labels", "parameters.0.1", lambda a: np.negative(a, out=a)),
    "components": ("svm", "assigned", lambda a: a.__setitem__((0, 0), 200)),
    "prior": ("svm", "prior_.scale", lambda a: a.fill(0.0)),
    "scales": ("svm", "after.scale", lambda a: np.negative(a, out=a)),
    "degrees": ("svm", "after.degrees", lambda a: a.fill(0.5)),
    "scales by mean field": ("truncated", "after_.scale", lambda a: np.negative(a, out=a)),
    "strength": ("switching", "after_.strength", lambda a: a.fill(0.0)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_numbers_that_cannot_be(change, tmp_path):
    name, end, edit = CHANGES[change]
    arrays, tree = _arrays(name, tmp_path)
    place = next(place for place in arrays if place.endswith(end))
    found = edit(arrays[place])
    arrays[place] = arrays[place] if found is None else found
    _refused(arrays, tree, tmp_path)


def test_a_path_that_cannot_be(tmp_path):
    """All transitions of one draw go to where no path has been: their slices would be 0."""
    arrays, tree = _arrays("points", tmp_path)
    paths, rows = (next(a for p, a in arrays.items() if p.endswith(e)) for e in ("paths", "rows"))
    size = int(paths[0].max()) + 2
    rows[: size**2].reshape(size, size)[:] = np.arange(size) == size - 1
    _refused(arrays, tree, tmp_path)


def _learnt(tree):
    return tree["parts"]["learnt"]["parts"]


def _chains(tree):
    return _learnt(tree)["chains"]["parts"]


FACTS = {
    "another estimator": lambda t: t.update(kind="max-margin-hmm"),
    "of another family": lambda t: t.update(kind="infinite-svm"),
    "no estimator": lambda t: t.update(kind="normal-wishart"),
    "unknown": lambda t: t.update(kind=["infinite-hmm"]),
    "parameters": lambda t: t["parts"]["parameters"]["parts"].update(thin=0),
    "emission": lambda t: _learnt(t)["settings_"]["parts"].update(emission="categorical"),
    "covariance": lambda t: _learnt(t)["settings_"]["parts"].update(covariance="diagonal"),
    "too few degrees": lambda t: _learnt(t)["settings_"]["parts"].update(degrees=0.5),
    "parameters of the fit": lambda t: _learnt(t)["settings_"]["parts"].update(thin=0),
    "a parameter too few": lambda t: _learnt(t)["settings_"]["parts"].pop("thin"),
    "a parameter too many": lambda t: _learnt(t)["settings_"]["parts"].update(thinner=1),
    "other data": lambda t: _learnt(t)["given_"]["parts"].update({"numbers of features": 3}),
    "features": lambda t: _learnt(t).update(n_features_in_=3),
    "status": lambda t: _learnt(t).update(status_=7),
    "more draws": lambda t: _chains(t)["n_draws"]["items"].__setitem__(0, 9),
    "fewer than no draws": lambda t: _chains(t)["n_draws"]["items"].__setitem__(0, -1),
    "more sweeps": lambda t: _chains(t)["n_sweeps"]["items"].__setitem__(0, 90),
    "no chains": lambda t: _chains(t).update(n_draws={"kind": "list", "items": []}),
    "no streams": lambda t: _chains(t).update(streams={"kind": "list", "items": []}),
    "a stream of another kind": lambda t: _chains(t)["streams"]["items"][0]["parts"].update(
        bit_generator="MT19937"
    ),
    "a part too many": lambda t: _learnt(t)["states"]["parts"]["parameters"]["items"].append(
        {"kind": "list", "items": []}
    ),
}


@pytest.mark.parametrize("change", FACTS)
def test_facts_that_do_not_fit(change, tmp_path):
    arrays, tree = _arrays("points", tmp_path)
    FACTS[change](tree)
    _refused(arrays, tree, tmp_path)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # a number may be huge now
@pytest.mark.parametrize("name", ["points", "symbols", "labels", "svm", "switching"])
def test_damaged_files_are_refused_or_whole(name, tmp_path):
    """A changed byte is found, or leaves a model that works and complains by name."""
    model, given = fitted(name)
    save(model, tmp_path / "model")
    data, rng, refused = (tmp_path / "model").read_bytes(), np.random.default_rng(0), 0
    for _ in range(60):
        place, value = int(rng.integers(len(data))), int(rng.integers(256))
        (tmp_path / "bad").write_bytes(data[:place] + bytes([value]) + data[place + 1 :])
        try:
            load(tmp_path / "bad").predict(given)
        except StructlearnError as error:
            refused += isinstance(error, FormatError)
    assert refused > 10
