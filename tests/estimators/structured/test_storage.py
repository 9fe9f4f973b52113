"""Saved and loaded: the same predictions, no code run, nothing half written."""

from __future__ import annotations

import datetime
import importlib
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

from structlearn import load, save
from structlearn._src.common.errors import ArgumentError, FormatError, StructlearnError
from structlearn._src.estimators import storage as persist
from structlearn._src.estimators.structured.classifier import (
    MulticlassClassifier,
    SequenceClassifier,
)
from structlearn._src.estimators.structured.graph import GraphLabeler, GridLabeler
from structlearn._src.estimators.structured.sequence import SequenceLabeler
from structlearn._src.estimators.structured.storage import FAMILIES
from structlearn._src.files import store
from structlearn._src.files.codec import path_of
from structlearn._src.solve import pick
from structlearn._src.solve.drivers import Cccp, Paired
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.text.columns import parse_columns
from structlearn._src.text.template import parse_template

COLUMNS = parse_columns(b"a N\nb V\nc N\n\na V\nb N\n\nc N\na N\n")
LENGTHS = [3, 2, 2]
LABELS = {
    "strings": [["x", "y", "x"], ["y", "x"], ["x", "ÿ"]],
    "numbers": [[0, 3, 0], [3, 0], [0, 5]],
    "tuples": [[("a", 1), ("b", 2.5), ("a", 1)], [("b", 2.5), ("a", 1)], [("a", 1), ("c", True)]],
    "mixed": [["x", 1, "x"], [1, "x"], ["x", None]],
}


def inputs(kind):
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(n, 4)) for n in LENGTHS]
    return {
        "arrays": arrays,
        "sparse": [csr_array(np.round(array)) for array in arrays],
        "lists": [[["a"], ["b", "ç"], []], [["b"], ["a"]], [["c"], ["a"]]],
        "dictionaries": [[{"w": "a", "n": 0.5}] * n for n in LENGTHS],
        "columns": COLUMNS,
    }[kind]


def fitted(kind="columns", labels="strings", **options):
    given = {"tol": 0.0, "callbacks": [lambda event: event.iteration == 4]}
    if kind == "columns":
        given["template"] = "U1:%x[0,0]\nU2:%x[-1,1]/%x[0,1]\nB2:%x[0,1]\nB"
    return SequenceLabeler(**given | options).fit(inputs(kind), LABELS[labels])


def again(estimator, folder):
    save(estimator, folder / "model")
    return load(folder / "model")


def test_files_of_the_first_release_keep_what_they_forbid(tmp_path):
    labeler = load(Path(__file__).parent / "old" / "bio.model")  # BIO over B, I, O
    forbidden = labeler.plan_.design.forbidden
    assert forbidden.first.tolist() == [False, True, False]
    assert not forbidden.last.any()
    assert np.argwhere(forbidden.pairs).tolist() == [[2, 1]]
    found = labeler.predict([[{"b": 1.0}, {"c": 1.0}, {"b": 1.0}]])
    assert [*found[0]] == ["O", "B", "I"]
    same = again(labeler, tmp_path).plan_.design.forbidden
    np.testing.assert_array_equal(same.pairs, forbidden.pairs)


def assert_same(a, b, X):
    np.testing.assert_array_equal(a.weights_, b.weights_)
    assert a.classes_.dtype == b.classes_.dtype
    assert [*map(type, a.classes_.tolist())] == [*map(type, b.classes_.tolist())]
    for query in ("predict", "predict_marginals"):
        for one, other in zip(getattr(a, query)(X), getattr(b, query)(X), strict=True):
            np.testing.assert_array_equal(one, other)
    assert (a.n_iter_, a.converged_, a.status_) == (b.n_iter_, b.converged_, b.status_)
    np.testing.assert_array_equal(a.history_.value, b.history_.value)


# ---- there and back ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["arrays", "sparse", "lists", "dictionaries", "columns"])
@pytest.mark.parametrize("labels", LABELS)
def test_the_same_predictions(kind, labels, tmp_path):
    estimator = fitted(kind, labels)
    assert_same(estimator, again(estimator, tmp_path), inputs(kind))


@pytest.mark.parametrize(
    "options",
    [
        {"features": "sparse"},
        {"features": "sparse", "hidden": "node"},
        {"hidden": "layer", "hidden_states": 3, "loss": "marginal"},
        {"forbidden": [("y", "y")]},
        {"forbidden": frozenset({("y", "y")})},
        {"forbidden": {("y", "y")}, "class_weight": {"x": 2.0}, "random_state": 3},
        {"cost": np.array([1.0, 2.0, 1.5]), "loss": "hinge", "C": 3},
        {"solver": Cccp(Lbfgs(memory=3), inner_iter=2)},
        {"random_state": np.random.default_rng(0)},
        {"template": parse_template("U1:%x[0,0]")},
    ],
    ids=lambda options: ",".join(options),
)
def test_every_choice(options, tmp_path):
    estimator = fitted(**options)
    found = again(estimator, tmp_path)
    assert_same(estimator, found, COLUMNS)
    kept, expected = found.get_params(), estimator.get_params()
    for name in ("callbacks", "checkpoint", "progress"):
        assert not kept.pop(name)
        expected.pop(name)
    if not isinstance(expected["random_state"], (int, type(None))):
        expected["random_state"] = None
    np.testing.assert_equal(kept, expected)


def test_everything_learnt_is_kept(tmp_path):
    estimator = fitted()
    learnt = {name for name in vars(estimator) if name.endswith("_")}
    found = again(estimator, tmp_path)
    assert learnt == {name for name in vars(found) if name.endswith("_")}
    assert found.value_ == estimator.value_
    assert found.ended_ is estimator.ended_


def test_weights_for_every_position(tmp_path):
    X = [array[:2] for array in inputs("arrays")]
    estimator = SequenceLabeler(tied=False, fit_intercept=True, C=10.0)
    estimator.fit(X, [labels[:2] for labels in LABELS["strings"]])
    assert_same(estimator, again(estimator, tmp_path), X)


def _others():
    """Estimators of every other kind, with what they were fitted to."""
    rng = np.random.default_rng(1)
    stop = {"tol": 0.0, "random_state": 0, "callbacks": [lambda event: event.iteration == 4]}
    rows, names = rng.normal(size=(9, 3)), ["a", "b", "ç"] * 3
    images = [rng.normal(size=(2, 3)), rng.normal(size=(3, 2))]
    pixels = [(image > 0).astype(int) for image in images]
    edges = np.array([[0, 1], [1, 2]])
    graphs = [(rng.normal(size=(3, 2)), edges, rng.normal(size=(2, 1))) for _ in range(3)]
    nodes = [["x", "y", "x"], ["y", "y", None], ["x", "x", "y"]]
    sequences = inputs("arrays")
    return {
        "classes": (MulticlassClassifier(**stop), rows, names),
        "classes by number": (MulticlassClassifier(**stop), csr_array(rows), [-1, 2, 4] * 3),
        "classes as objects": (MulticlassClassifier(**stop), rows, np.array(names, object)),
        "true or false": (MulticlassClassifier(**stop), rows, [True, False, True] * 3),
        "images": (GridLabeler(edges="potts", **stop), images, pixels),
        "directions": (GridLabeler(neighbours=8, directions=True, **stop), images, pixels),
        "graphs": (GraphLabeler(edges="symmetric", **stop), graphs, nodes),
        "hidden graphs": (GraphLabeler(hidden="node", **stop), graphs, nodes),
        "whole sequences": (
            SequenceClassifier(hidden_states=2, **stop),
            sequences,
            ["u", "v", "u"],
        ),
        "tokens": (SequenceClassifier(**stop), inputs("lists"), [1, 2, 1]),
    }


@pytest.mark.parametrize("kind", _others())
def test_every_estimator(kind, tmp_path):
    estimator, X, Y = _others()[kind]
    found = again(estimator.fit(X, Y), tmp_path)
    assert type(found) is type(estimator)
    np.testing.assert_array_equal(found.classes_, estimator.classes_, strict=True)
    for a, b in zip(estimator.predict(X), found.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert found.n_features_in_ == estimator.n_features_in_


def test_every_solver_can_be_saved():
    made = [make() for make in [*pick.SOLVERS.values(), *pick.ONLINE.values()]]
    for solver in [*made, Cccp(Lbfgs()), Paired(Lbfgs())]:
        table = FAMILIES[0].table()
        encoded = table.encode(solver, "solver", {})
        assert encoded["kind"] == solver.name
        assert FAMILIES[0].table().decode(encoded, {}) == solver


def test_every_record_is_where_its_path_says():
    for family in FAMILIES:
        for path in [*family.estimators.values(), *(c.path for c in family.records.values())]:
            module, _, name = path.partition(":")
            assert path_of(getattr(importlib.import_module(module), name)) == path


def test_solvers_are_imported_for_files_that_hold_one():
    """What lists the kinds imports nothing that learns, and not even the estimators."""
    code = (
        "import sys, structlearn._src.estimators.structured.storage\n"
        "print([name for name in sys.modules if name.startswith('structlearn._src.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for folder in ("learn", "solve", "sample", "estimators.structured.sequence"):
        assert f"structlearn._src.{folder}" not in done.stdout


def test_partial_fit_goes_on(tmp_path):
    estimator = SequenceLabeler(random_state=0)
    X, Y = inputs("arrays"), LABELS["strings"]
    found = again(estimator.partial_fit(X, Y), tmp_path)
    assert found.partial_fit(X, Y).n_iter_ == 2
    assert found.n_seen_ == 6


def test_a_loaded_estimator_can_be_fitted_again(tmp_path):
    estimator = fitted(warm_start=True)
    found = again(estimator, tmp_path)
    for one in (estimator, found):
        one.callbacks = [lambda event: event.iteration == 2]
        one.fit(COLUMNS, LABELS["strings"])
    np.testing.assert_array_equal(estimator.weights_, found.weights_)


def test_equal_fits_make_equal_files(tmp_path):
    for name, n_jobs in (("a", 1), ("b", 2)):
        save(fitted(n_jobs=n_jobs, random_state=0), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# ---- what cannot be saved ----------------------------------------------------------------


@pytest.mark.parametrize("what", [3, SequenceLabeler(), None])
def test_only_fitted_estimators(what, tmp_path):
    with pytest.raises(ArgumentError, match=r"cannot be saved|is not fitted"):
        save(what, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_subclass_is_told_from_what_it_came_from(tmp_path):
    class Mine(SequenceLabeler):
        pass

    estimator = Mine(C=10.0).fit(inputs("arrays"), LABELS["strings"])
    with pytest.raises(
        ArgumentError, match=r"a Mine cannot .* subclass of SequenceLabeler, .* fit a"
    ):
        save(estimator, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_labels_that_no_file_can_hold(tmp_path):
    (tmp_path / "model").write_bytes(b"old")
    a, b = datetime.date(2000, 1, 1), datetime.date(2001, 1, 1)
    odd = [[a, b, a], [b] * 2, [None] * 2]
    estimator = SequenceLabeler(C=10.0).fit(inputs("arrays"), odd)
    with pytest.raises(ArgumentError, match=r"model\.learnt\.plan_\.coder\.names\.0 is datetime"):
        save(estimator, tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == b"old"


def test_a_save_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    save(fitted(), tmp_path / "model")
    old = (tmp_path / "model").read_bytes()

    def broken(arrays):
        raise OSError(28, "no space left")

    monkeypatch.setattr(store, "_places", broken)
    with pytest.raises(OSError, match="no space"):
        save(fitted(C=2.0), tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


# ---- models of other packages ------------------------------------------------------------

PLUGIN = """
from dataclasses import dataclass
from structlearn._src.estimators.storage import Family

@dataclass
class Constant:
    answer: float = 0.0
    random_state: int | None = None

    def fit(self):
        self.fitted_ = self.answer + 1.0
        return self

def _restore(model, given):
    assert model.fitted_ == given["fitted_"]

FAMILIES = (Family({"constant": "plugin:Constant"}, "fitted_", ("fitted_",), _restore),)
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A package with an estimator of its own, which an entry point lists."""
    folder = tmp_path / "site"
    (folder / "plugin-1.dist-info").mkdir(parents=True)
    (folder / "plugin.py").write_text(PLUGIN)
    (folder / "plugin-1.dist-info" / "METADATA").write_text("Name: plugin\nVersion: 1\n")
    (folder / "plugin-1.dist-info" / "entry_points.txt").write_text(
        "[structlearn.models]\nconstant = plugin\n"
    )
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module("plugin")
    del sys.modules["plugin"]


def test_other_packages_list_their_models(plugin, tmp_path):
    model = plugin.Constant(answer=2.5).fit()
    save(model, tmp_path / "model")
    found = load(tmp_path / "model")
    assert type(found) is plugin.Constant
    assert vars(found) == vars(model)


def test_a_model_of_a_package_that_is_not_there(tmp_path):
    store.write(
        tmp_path / "model", {}, {"model": {"kind": "constant", "parts": {}}}, persist.SCHEMA
    )
    with pytest.raises(FormatError, match=r"'constant', which no installed package .* papers"):
        load(tmp_path / "model")


# ---- what cannot be loaded ---------------------------------------------------------------


def test_files_cut_short(tmp_path):
    save(fitted(), tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    for size in [0, 1, 7, 8, 9, 100, *range(200, len(data), len(data) // 40), len(data) - 1]:
        (tmp_path / "cut").write_bytes(data[:size])
        with pytest.raises(FormatError, match="cut"):
            load(tmp_path / "cut")


def test_damaged_files_are_refused_or_whole(tmp_path):
    """A changed byte is found, or leaves a model that works and complains by name."""
    estimator = fitted(features="sparse")
    save(estimator, tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        place, value = int(rng.integers(len(data))), int(rng.integers(256))
        (tmp_path / "bad").write_bytes(data[:place] + bytes([value]) + data[place + 1 :])
        try:
            load(tmp_path / "bad").predict(COLUMNS)
        except StructlearnError as error:
            refused += isinstance(error, FormatError)
    assert refused > 100


@pytest.mark.parametrize(
    "data",
    [b"", b"text", pickle.dumps({"weights": 1}), b"\x80\x00\x00\x00\x00\x00\x00\x00" + b"{" * 200],
    ids=["empty", "text", "pickle", "braces"],
)
def test_foreign_files(data, tmp_path):
    (tmp_path / "model").write_bytes(data)
    with pytest.raises(FormatError, match=str(tmp_path / "model")):
        load(tmp_path / "model")


def test_files_of_another_kind_or_a_newer_version(tmp_path):
    save(fitted(), tmp_path / "model")
    arrays, meta = store.read(tmp_path / "model", persist.SCHEMA)
    for schema, words in (("structlearn.model/2", "newer"), ("structlearn.checkpoint/1", "kind")):
        store.write(tmp_path / "other", arrays, {"model": meta["model"]}, schema)
        with pytest.raises(FormatError, match=words):
            load(tmp_path / "other")


def _changed(folder, change):
    """Save a model, change its arrays and its tree by hand, and return the path."""
    save(fitted(features="sparse"), folder / "model")
    arrays, meta = store.read(folder / "model", persist.SCHEMA)
    tree = meta["model"]
    arrays, tree = change(arrays, tree) or (arrays, tree)
    store.write(folder / "model", arrays, {"model": tree}, persist.SCHEMA)
    return folder / "model"


def _named(arrays, end):
    return next(name for name in arrays if name.endswith(end))


CHANGES = {
    "unknown kind": lambda a, t: t.update(kind="os.system"),
    "class by path": lambda a, t: t.update(
        kind="structlearn._src.estimators.structured.sequence.SequenceLabeler"
    ),
    "no kind": lambda a, t: t.pop("kind"),
    "other kind": lambda a, t: t["parts"].update(learnt=t["parts"]["parameters"]),
    "not an estimator": lambda a, t: (a, t["parts"]["learnt"]["parts"]["plan_"]),
    "a number": lambda a, t: (a, 3),
    "nothing": lambda a, t: (a, None),
    "unknown parameter": lambda a, t: t["parts"]["parameters"]["parts"].update(predict=1),
    "missing array": lambda a, t: a.pop(_named(a, "weights_")) is None,
    "fewer weights": lambda a, t: a.update({_named(a, "weights_"): a[_named(a, "weights_")][1:]}),
    "weights of another type": lambda a, t: a.update(
        {_named(a, "weights_"): a[_named(a, "weights_")].astype(np.float32)}
    ),
    "weights not finite": lambda a, t: a[_named(a, "weights_")].fill(np.nan),
    "label too high": lambda a, t: a[_named(a, ".states")].fill(99),
    "label negative": lambda a, t: a[_named(a, ".states")].fill(-1),
    "borders": lambda a, t: a[_named(a, ".offsets")].__setitem__(1, 10**9),
    "borders go back": lambda a, t: a[_named(a, ".offsets")].__setitem__(1, -5),
    "ties": lambda a, t: a.update({_named(a, ".ties"): np.zeros(3, np.int64)}),
    "strings": lambda a, t: a[_named(a, "string_counts")].fill(10**6),
    "keys": lambda a, t: a[_named(a, "key_counts")].fill(10**6),
    "template": lambda a, t: a[_named(a, ".template")].fill(0xFF),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_does_not_fit_together(change, tmp_path):
    path = _changed(tmp_path, lambda a, t: _result(CHANGES[change](a, t)))
    with pytest.raises(FormatError, match=str(path)):
        load(path)


def _result(changed):
    return changed if isinstance(changed, tuple) else None


def test_loading_runs_nothing_by_name(tmp_path):
    """Names in a file lead to the table of kinds alone, never to an import or an attribute."""
    path = _changed(tmp_path, lambda a, t: None)
    text = json.dumps(store.read(path, persist.SCHEMA)[1])
    kinds = {"sequence-labeler", "mapping", "labels", "array", "list", "tuple", "set", "texts"}
    kinds |= {"objects", *FAMILIES[0].records}
    found = {part.split('"')[0] for part in text.split('"kind": "')[1:]}
    assert found <= kinds
