"""Every way of giving X and y to every estimator works as it should, or is a named error."""

from __future__ import annotations

import datetime
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from structlearn import (
    GraphLabeler,
    GridLabeler,
    InfiniteHMM,
    InfiniteSVM,
    MaxMarginHMM,
    MulticlassClassifier,
    SequenceClassifier,
    SequenceLabeler,
)
from structlearn.errors import ArgumentError, IgnoredOptionWarning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
SIZE, WIDTH = 6, 2
ARRAYS = [RNG.normal(size=(SIZE, WIDTH)).round(2) for _ in range(6)]
NODES = [(x[:, 0] > 0).astype(int) for x in ARRAYS]
WHOLE = [int(x[:, 1].sum() > 0) for x in ARRAYS]
EDGES = np.stack([np.arange(SIZE - 1), np.arange(1, SIZE)], axis=1)
SOLVED = {"max_iter": 8, "random_state": 0}
SWEEPS = {"burn_in": 2, "n_draws": 2, "n_jobs": 1, "n_chains": 1, "random_state": 0}


class Nodes:
    """An estimator of labels of nodes, whose examples are made of arrays by `wrap`."""

    classes = False

    def __init__(self, make, wrap=lambda x: x, form=lambda y: y):
        self.make, self.wrap, self.form = make, wrap, form

    def X(self, parts):
        return [self.wrap(part) for part in parts]

    def fit(self, parts, labels=NODES):
        return self.make().fit(self.X(parts), [self.form(y) for y in labels])

    def answer(self, parts, labels=NODES):
        return [np.ravel(y).tolist() for y in self.fit(parts, labels).predict(self.X(parts))]


class Classes(Nodes):
    """An estimator of one class for every example."""

    classes = True

    def fit(self, parts, labels=WHOLE):
        return self.make().fit(self.X(parts), labels)

    def answer(self, parts, labels=WHOLE):
        return self.fit(parts, labels).predict(self.X(parts)).tolist()


class Rows(Classes):
    """An estimator of one class for every row: the first part is all there is."""

    def X(self, parts):
        return parts[0]

    def fit(self, parts, labels=NODES[0]):
        return self.make().fit(self.X(parts), labels)

    def answer(self, parts, labels=NODES[0]):
        return self.fit(parts, labels).predict(self.X(parts)).tolist()


class Unlabelled(Nodes):
    """An estimator that has no use for labels."""

    def fit(self, parts, labels=None):
        return self.make().fit(self.X(parts))


ESTIMATORS = {
    "SequenceLabeler": Nodes(lambda: SequenceLabeler(**SOLVED)),
    "GraphLabeler": Nodes(lambda: GraphLabeler(**SOLVED), lambda x: (x, EDGES)),
    "GridLabeler": Nodes(
        lambda: GridLabeler(fit_intercept=False, **SOLVED),
        lambda x: x[None] if isinstance(x, np.ndarray) and x.ndim == 2 else x,
        lambda y: y[None] if isinstance(y, np.ndarray) else [y],
    ),
    "SequenceClassifier": Classes(lambda: SequenceClassifier(hidden_states=2, **SOLVED)),
    "MulticlassClassifier": Rows(lambda: MulticlassClassifier(**SOLVED)),
    "InfiniteSVM": Rows(lambda: InfiniteSVM(**SWEEPS)),
    "MaxMarginHMM": Nodes(lambda: MaxMarginHMM(**SWEEPS)),
    "InfiniteHMM": Unlabelled(lambda: InfiniteHMM(**SWEEPS)),
}
LABELLERS = ["SequenceLabeler", "GraphLabeler", "GridLabeler", "MaxMarginHMM"]
CLASSIFIERS = ["SequenceClassifier", "MulticlassClassifier", "InfiniteSVM"]
MISSING = ["MaxMarginHMM", "InfiniteHMM"]  # whose steps may be missing


def frame(x, kind=pd.DataFrame):
    return kind(x, columns=["a", "b"]) if kind is pd.DataFrame else kind(x, schema=["a", "b"])


def spoiled(value, dtype=float):
    """One entry of the first array is another."""

    def change(x):
        if x is not ARRAYS[0]:
            return x
        new = x.astype(dtype)
        new[2, 1] = value
        return new

    return change


# ---- X -------------------------------------------------------------------------------------

SAME = {
    "columns first": np.asfortranarray,
    "every other row": lambda x: np.repeat(x, 2, axis=0)[::2],
    "long double": lambda x: x.astype(np.longdouble),
    "objects": lambda x: x.astype(object),
    "mask without effect": np.ma.array,
}
SAME_NESTED = {"lists": lambda x: x.tolist(), "tuples": lambda x: tuple(map(tuple, x.tolist()))}
SAME_FRAMES = {
    "pandas": frame,
    "polars": lambda x: frame(x, pl.DataFrame),
    "nullable": lambda x: frame(x).astype("Float64"),
    "numbered columns": pd.DataFrame,
}
REFUSED = {
    "mask": lambda x: np.ma.masked_equal(x, x[0, 0]),
    "infinity": spoiled(np.inf),
    "complex": lambda x: x.astype(complex),
    "dates": lambda x: x.astype("datetime64[s]"),
    "one dimension": lambda x: x[:, 0],
    "none": lambda x: None,
    "a number": lambda x: 3.0,
    "no features": lambda x: x[:, :0],
    "other width": lambda x: x if x is ARRAYS[0] else x[:, :1],
    "empty": lambda x: x[:0],
}
REFUSED_FRAMES = {
    "missing": lambda x: frame(x).astype("Float64").mask(frame(x) > 1.0),
    "text": lambda x: frame(x).assign(b="seven"),
    "days": lambda x: frame(x).assign(b=datetime.date(2020, 1, 1)),
    "another order": lambda x: frame(x) if x is ARRAYS[0] else frame(x)[["b", "a"]],
    "other names": lambda x: frame(x) if x is ARRAYS[0] else frame(x).rename(columns={"b": "c"}),
}


def forms(tables, names, without=()):
    """Pairs of an estimator and a form, by name."""
    cases = [(name, form) for name in names for table in tables for form in table.items()]
    left = [(name, form) for name, form in cases if (name, form[0]) not in without]
    return pytest.mark.parametrize(
        ("name", "form"),
        [(name, form[1]) for name, form in left],
        ids=[f"{name}-{form[0]}" for name, form in left],
    )


FRAMED = [name for name in ESTIMATORS if name != "GridLabeler"]


@forms([SAME, SAME_NESTED], [n for n in ESTIMATORS if n != "GridLabeler"])
def test_other_arrays_are_the_same(name, form):
    case = ESTIMATORS[name]
    assert case.answer([form(x) for x in ARRAYS]) == case.answer(ARRAYS)


@forms([SAME], ["GridLabeler"])
def test_other_images_are_the_same(name, form):
    case = ESTIMATORS[name]
    assert case.answer([form(x) for x in ARRAYS]) == case.answer(ARRAYS)


@forms([SAME_FRAMES], FRAMED)
def test_frames_are_the_same(name, form):
    case = ESTIMATORS[name]
    assert case.answer([form(x) for x in ARRAYS]) == case.answer(ARRAYS)


@forms(
    [REFUSED],
    ESTIMATORS,
    without={
        *((name, "mask") for name in MISSING),  # these are steps that are missing
        *((name, "other width") for name in ("MulticlassClassifier", "InfiniteSVM")),
        ("GridLabeler", "one dimension"),
        ("GraphLabeler", "no features"),  # it has an intercept
    },
)
def test_what_cannot_be_features_is_refused(name, form):
    with pytest.raises((ValueError, TypeError)) as error:
        ESTIMATORS[name].fit([form(x) for x in ARRAYS])
    assert len(str(error.value)) > 20


@forms(
    [REFUSED_FRAMES],
    FRAMED,
    without={
        *((n, o) for n in CLASSIFIERS[1:] for o in ("another order", "other names")),
    },
)
def test_what_cannot_be_frames_is_refused(name, form):
    with pytest.raises((ValueError, TypeError)) as error:
        ESTIMATORS[name].fit([form(x) for x in ARRAYS])
    assert len(str(error.value)) > 20


@pytest.mark.parametrize("name", [n for n in ESTIMATORS if n not in MISSING])
@pytest.mark.parametrize("bad", [np.nan, 1e200])
def test_numbers_that_are_none_are_refused(name, bad):
    with pytest.raises(ValueError, match=r"(?i)nan|1e\+|missing|large"):
        ESTIMATORS[name].fit([spoiled(bad)(x) for x in ARRAYS])


@pytest.mark.parametrize("name", FRAMED)
@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame])
def test_columns_are_told_apart_by_name(name, kind):
    case = ESTIMATORS[name]
    parts = [frame(x, kind) for x in ARRAYS]
    fitted = case.fit(parts)
    assert fitted.feature_names_in_.tolist() == ["a", "b"]
    turned = [part[["b", "a"]] for part in parts]
    with pytest.raises(ValueError, match=r"names|columns"):
        fitted.predict(case.X(turned))
    with pytest.warns(UserWarning, match="names"):
        fitted.predict(case.X(ARRAYS))
    with pytest.warns(UserWarning, match="names"):
        case.fit(ARRAYS).predict(case.X(parts))


@pytest.mark.parametrize("name", ["SequenceLabeler", "GraphLabeler", "SequenceClassifier"])
def test_sparse_matrices_are_the_same(name):
    case = ESTIMATORS[name]
    assert case.answer([csr_array(x) for x in ARRAYS]) == case.answer(ARRAYS)
    for bad in (np.nan, 1e200):
        with pytest.raises(ArgumentError, match=r"nan|1e\+200"):
            case.fit([csr_array(spoiled(bad)(x)) for x in ARRAYS])


@pytest.mark.parametrize("name", ["SequenceLabeler", "GraphLabeler", "SequenceClassifier"])
@pytest.mark.parametrize(
    "whole",
    [
        frame(ARRAYS[0]),
        frame(ARRAYS[0], pl.DataFrame),
        csr_array(ARRAYS[0]),
        {"a": ARRAYS[0]},
        "a b",
    ],
)
def test_one_thing_is_no_list_of_examples(name, whole):
    with pytest.raises(ArgumentError, match=r"X is a .* list of examples"):
        ESTIMATORS[name].make().fit(whole, WHOLE if name == "SequenceClassifier" else NODES)


def test_edges_mask_nothing():
    bad = [
        (ARRAYS[0], np.ma.masked_equal(EDGES, 2)),
        (ARRAYS[0], EDGES, None, np.ma.masked_equal([0] * 6, 0)),
    ]
    for graph, words in zip(bad, ("edges", "hidden nodes"), strict=True):
        with pytest.raises(ArgumentError, match=words):
            GraphLabeler().fit([graph], NODES[:1])


# ---- labels --------------------------------------------------------------------------------

SAME_LABELS = {
    "lists": list,
    "whole floats": lambda y: y.astype(float),
    "small": lambda y: y.astype(np.int8),
    "unsigned": lambda y: y.astype(np.uint64),
    "objects": lambda y: y.astype(object),
    "series": pd.Series,
    "nullable": lambda y: pd.Series(y, dtype="Int64"),
    "polars": pl.Series,
    "mask without effect": np.ma.array,
}
NAMES = {
    "text": lambda y: np.array(["no", "yes"])[y],
    "objects": lambda y: np.array(["no", "yes"], object)[y],
    "lists": lambda y: np.array(["no", "yes"])[y].tolist(),
    "series": lambda y: pd.Series(["no", "yes"])[y].reset_index(drop=True),
    "categories": lambda y: pd.Series(np.array(["no", "yes"])[y], dtype="category"),
    "polars": lambda y: pl.Series(np.array(["no", "yes"])[y].tolist()),
}
HIDDEN = {
    "minus one": lambda y: np.where(np.arange(SIZE) == 2, -1, y),
    "floats": lambda y: np.where(np.arange(SIZE) == 2, -1.0, y),
    "none": lambda y: [None if i == 2 else int(k) for i, k in enumerate(y)],
    "masked": lambda y: np.ma.masked_where(np.arange(SIZE) == 2, y),
    "nullable": lambda y: pd.Series(y, dtype="Int64").mask(np.arange(SIZE) == 2),
    "nat": lambda y: [pd.NaT if i == 2 else int(k) for i, k in enumerate(y)],
    "na": lambda y: [pd.NA if i == 2 else int(k) for i, k in enumerate(y)],
    "polars": lambda y: pl.Series([None if i == 2 else int(k) for i, k in enumerate(y)]),
}
REFUSED_LABELS = {
    "signs": lambda y: 2 * y - 1,
    "whole signs": lambda y: 2.0 * y - 1.0,
    "nan": lambda y: np.where(np.arange(SIZE) == 2, np.nan, y),
    "continuous": lambda y: y + 0.5,
    "infinity": lambda y: np.where(y > 0, np.inf, 0),
    "negative": lambda y: -2 * y,
    "unhashable": lambda y: [[k] for k in y],
    "too few": lambda y: y[:-1],
    "a word": lambda y: "nnnnnn",
    "complex": lambda y: y * 1j,
    "fractions": lambda y: [Fraction(int(k), 2) for k in y],
    "all hidden": lambda y: np.full(SIZE, -1),
    "nothing": lambda y: None,
}
LISTED = [name for name in LABELLERS if name != "GridLabeler"]


@forms([SAME_LABELS], LISTED)
def test_other_labels_are_the_same(name, form):
    case = ESTIMATORS[name]
    assert case.answer(ARRAYS, [form(y) for y in NODES]) == case.answer(ARRAYS)


@forms([NAMES], LISTED)
def test_names_are_the_same_as_numbers(name, form):
    case = ESTIMATORS[name]
    found = case.answer(ARRAYS, [form(y) for y in NODES])
    assert found == [[["no", "yes"][k] for k in y] for y in case.answer(ARRAYS)]


@forms([HIDDEN], LISTED)
def test_labels_that_are_not_known(name, form):
    case = ESTIMATORS[name]
    fitted, plain = (case.fit(ARRAYS, [f(y) for y in NODES]) for f in (form, HIDDEN["minus one"]))
    assert fitted.classes_.tolist() == [0, 1]
    found, wanted = (np.ravel(f.predict(case.X(ARRAYS))).tolist() for f in (fitted, plain))
    assert found == wanted


@forms([REFUSED_LABELS], LISTED)
def test_what_cannot_be_labels_is_refused(name, form):
    with pytest.raises(ArgumentError) as error:
        ESTIMATORS[name].fit(ARRAYS, [form(y) for y in NODES])
    assert len(str(error.value)) > 20


IMAGES = {
    name: form
    for name, form in REFUSED_LABELS.items()
    if name not in ("unhashable", "a word", "nothing", "fractions")
}


@forms([IMAGES], ["GridLabeler"])
def test_what_cannot_be_labels_of_pixels_is_refused(name, form):
    with pytest.raises(ArgumentError) as error:
        ESTIMATORS[name].fit(ARRAYS, [form(y) for y in NODES])
    assert len(str(error.value)) > 20


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize(
    "bad",
    [
        lambda y: np.ma.masked_equal(y, 1),
        lambda y: [None, *y[1:]],
        lambda y: [np.nan, *y[1:]],
        lambda y: [pd.NA, *y[1:]],
        lambda y: pd.Series([pd.NA, *y[1:]], dtype="Int64"),
        lambda y: np.asarray(y) + 0.5,
        lambda y: ["a", *y[1:]],
        lambda y: y[:-1],
        lambda y: [[k] for k in y],
        lambda y: None,
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_classes_that_are_none_are_refused(name, bad):
    case = ESTIMATORS[name]
    true = WHOLE if name == "SequenceClassifier" else NODES[0].tolist()
    given = bad(true)
    if isinstance(given, list) and isinstance(given[0], list):
        assert case.answer(ARRAYS, given) == case.answer(ARRAYS, true)  # a column of classes
        return
    with pytest.raises((ValueError, TypeError)) as error:
        case.fit(ARRAYS, given)
    assert len(str(error.value)) > 15


@pytest.mark.parametrize("name", LISTED)
def test_signs_of_which_some_are_not_known_are_still_labels(name):
    """Beside two classes -1 is what is not known, as it is documented."""
    fitted = ESTIMATORS[name].fit(ARRAYS, [HIDDEN["minus one"](y) for y in NODES])
    assert fitted.classes_.tolist() == [0, 1]


# ---- options that have no effect -----------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"alpha": 0.3}, "alpha"),
        ({"cost": "hamming-mean"}, "cost"),
        ({"cost": np.ones(2)}, "cost"),
        ({"hidden_states": 3}, "hidden_states"),
        ({"sweeps": 2}, "sweeps"),
        ({"class_weight": {5: 2.0}}, "class_weight"),
    ],
)
def test_options_without_effect_are_told(options, name):
    with pytest.warns(IgnoredOptionWarning, match=name):
        SequenceLabeler(**options, **SOLVED).fit(ARRAYS, NODES)


@pytest.mark.parametrize("options", [{"template": "U1:%x[0,0]"}, {"min_count": 2}])
def test_options_of_text_are_refused_without_any(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        SequenceLabeler(**options).fit(ARRAYS, NODES)


def test_options_with_effect_are_not_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error", IgnoredOptionWarning)
        for options in (
            {"loss": "hybrid", "alpha": 0.3, "cost": "hamming-mean"},
            {"hidden": "node", "hidden_states": 3},
            {"driver": "paired", "sweeps": 2},
            {"class_weight": {0: 2.0}},
            {"alpha": 0.5, "cost": "hamming", "hidden_states": 2},
        ):
            SequenceLabeler(**options, **SOLVED).fit(ARRAYS, NODES)


# ---- weights and classes -------------------------------------------------------------------

STRUCTURED = ["SequenceLabeler", "GraphLabeler", "SequenceClassifier", "MulticlassClassifier"]


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize(
    "weights",
    [
        [-1.0, *[1.0] * 5],
        [np.nan, *[1.0] * 5],
        [1e200] * 6,
        [None, *[1.0] * 5],
        ["a"] * 6,
        [1.0] * 5,
        np.ones((6, 1)),
        np.ma.masked_equal([0, 1, 1, 1, 1, 1], 0),
        pd.array([pd.NA, 1, 1, 1, 1, 1], dtype="Int64"),
        [0.0] * 6,
    ],
)
def test_weights_that_are_none_are_refused(name, weights):
    case = ESTIMATORS[name]
    labels = {"SequenceClassifier": WHOLE, "MulticlassClassifier": NODES[0]}.get(name, NODES)
    with pytest.raises(ArgumentError, match="sample_weight"):
        case.make().fit(case.X(ARRAYS), labels, sample_weight=weights)


@pytest.mark.parametrize("options", [{"C": 1e200}, {"class_weight": {0: 1e200}}])
def test_weights_beyond_all_measure_are_refused(options):
    with pytest.raises(ArgumentError, match=next(iter(options))):
        SequenceLabeler(**options).fit(ARRAYS, NODES)


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("classes", [{0, 1}, [0, 0, 1], np.array([0.0, 1.0]), pd.Series([0, 1])])
def test_classes_that_may_come(name, classes):
    case = ESTIMATORS[name]
    labels = {"SequenceClassifier": WHOLE, "MulticlassClassifier": NODES[0]}.get(name, NODES)
    fitted = case.make().partial_fit(case.X(ARRAYS), labels, classes=classes)
    assert fitted.classes_.tolist() == [0, 1]
    for bad in ([0, pd.NA], [0, np.nan], [[0, 1]], ["0", 1]):
        with pytest.raises(ValueError, match=r"classes|label|1d"):
            case.make().partial_fit(case.X(ARRAYS), labels, classes=bad)


def test_classes_belong_to_the_caller():
    fitted = SequenceLabeler(**SOLVED).fit(ARRAYS, NODES)
    before = [y.tolist() for y in fitted.predict(ARRAYS)]
    fitted.classes_[:] = 7
    assert [y.tolist() for y in fitted.predict(ARRAYS)] == before
