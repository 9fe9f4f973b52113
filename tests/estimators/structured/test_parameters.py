"""Every parameter of every estimator: wrong values are named before any work, right ones pass."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from structlearn import (
    GraphLabeler,
    GridLabeler,
    MulticlassClassifier,
    SequenceClassifier,
    SequenceLabeler,
)
from structlearn._src.common.errors import StructlearnError
from structlearn._src.estimators.check import toy
from structlearn._src.estimators.storage import load, save
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.online import Online
from structlearn._src.solve.stochastic import Stochastic

KINDS = (GraphLabeler, GridLabeler, MulticlassClassifier, SequenceClassifier, SequenceLabeler)
FLAGS = ("warm_start", "tied", "fit_intercept", "directions")
OTHERS = ("forbidden",)  # what it may be depends on the labels

#: For every parameter wrong types, numbers out of range and misspelt names, and what is needed.
WRONG = {
    "loss": (("lgo", 3, None), "'log', 'hinge'"),
    "alpha": (("a", None, -1, 1.5, np.nan, True), r"\[0, 1\]"),
    "eps_y": (("a", -1, np.nan, np.inf), r"\[0, inf\)"),
    "eps_h": (("a", -1, np.nan, np.inf), r"\[0, inf\)"),
    "cost": (("haming", 3, None, ["a"], [[[1.0]]]), "'hamming', 'hamming-mean'.*array"),
    "C": (("a", None, 0, -1, -np.inf, np.nan, 1e101), r"\(0, 1e\+100\]"),
    "l1_ratio": (("a", None, -1, 1.5), r"\[0, 1\]"),
    "class_weight": (("balance", 3, [1, 2]), "None, 'balanced', or a mapping"),
    "solver": (("lbgfs", 3, None), "lbfgs"),
    "driver": (("ccp", 3, None), "'subgradient', 'cccp', 'paired'"),
    "max_iter": (("a", None, 0, 1.5), "a whole number of at least 1"),
    "tol": (("a", -1, np.inf), r"\[0, inf\)"),
    "gradient_tol": (("a", -1, np.nan), r"\[0, inf\]"),
    "init": (("ones", 3, None), "'auto', 'zeros', 'random'"),
    "inference": (("exat", 3, None), "'auto', 'exact', 'bp'"),
    "sweeps": (("a", 0, 1.5), "a whole number of at least 1"),
    "random_state": (("a", -1, 1.5), "a whole number of at least 0"),
    "n_jobs": (("a", 0, -2, 1.5), "a whole number"),
    "time_limit": (("a", -1, np.nan), r"\[0, inf\]"),
    "progress": (("a", 3), "a function"),
    "callbacks": (("a", None, [3]), "a list of functions"),
    "checkpoint": ((3,), "the path of a file"),
    "hidden": (("nod", 3), "'node', 'layer'"),
    "hidden_states": (("a", None, 0, 1.5), "a whole number of at least 1"),
    "features": (("dens", 3, None), "'dense', 'sparse'"),
    "transitions": (("tabel", 3, None), "'table', 'features', 'none'"),
    "edges": (("tabel", 3, None), "'table', 'symmetric', 'potts'"),
    "template": ((3, ["U"]), "the text of a template"),
    "min_count": (("a", None, 0, 1.5), "a whole number of at least 1"),
    "neighbours": (("a", None, 5, 4.0), "4 or 8"),
    **dict.fromkeys(FLAGS, (("a", None, 3), "True or False")),
}


def names_of(kind):
    return [field.name for field in dataclasses.fields(kind)]


CASES = [
    pytest.param(kind, name, value, WRONG[name][1], id=f"{kind.__name__}-{name}-{value!r}")
    for kind in KINDS
    for name in names_of(kind)
    if name not in OTHERS
    for value in WRONG[name][0]
]


class Untouched:
    """Input that nobody may look at."""

    def __getattr__(self, name):
        raise AssertionError(f"the input was asked for {name}")

    def __len__(self):
        raise AssertionError("the input was counted")


@pytest.mark.parametrize(("kind", "name", "value", "needed"), CASES)
def test_wrong_values_are_named_before_any_work(kind, name, value, needed):
    estimator = kind(**{name: value})
    for call in (estimator.fit, estimator.partial_fit):
        with pytest.raises(StructlearnError, match=needed) as error:
            call(Untouched(), Untouched())
        assert isinstance(error.value, ValueError)
        assert str(error.value).startswith(f"{name}={value!r} ")


def test_edges_of_grids_have_no_features():
    with pytest.raises(
        ValueError, match=r"edges='features' .* 'table', 'symmetric', 'potts', 'none'"
    ):
        GridLabeler(edges="features").fit(Untouched(), Untouched())


@pytest.mark.parametrize("text", ["", "X", "U1:%y[0,0]"])
def test_templates_are_parsed_before_any_work(text):
    with pytest.raises(ValueError, match="template"):
        SequenceLabeler(template=text).fit(Untouched(), Untouched())


@pytest.mark.parametrize("forbidden", ["BOI", 3, [1], [(0, 1, 2)]], ids=repr)
def test_rules_that_are_none(forbidden):
    X, Y = toy(SequenceLabeler())
    with pytest.raises(StructlearnError, match=r"'BIO', 'BIOES', 'IOB1'|a pair of labels"):
        SequenceLabeler(forbidden=forbidden).fit(X, Y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [GraphLabeler, GridLabeler, SequenceLabeler])
def test_truth_values_of_numpy(kind, tmp_path):
    given = {name: np.False_ for name in FLAGS if name in names_of(kind)}
    given["fit_intercept"] = np.True_
    X, Y = toy(kind())
    labeler = kind(max_iter=3, **given).fit(X, Y)
    plain = kind(max_iter=3, **{name: bool(value) for name, value in given.items()}).fit(X, Y)
    np.testing.assert_array_equal(labeler.weights_, plain.weights_)
    assert labeler.top_features() == plain.top_features()
    save(labeler, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").weights_, plain.weights_)


# ---- how a fit ends --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_iter": 1, "solver": Lbfgs()}, r"stopped at max_iter=1 .*; raise max_iter"),
        ({"loss": "hinge", "solver": Descent()}, r"stuck: .*; the weights are the best so far"),
        (
            {"solver": Stochastic("fixed", 1e300)},
            r"diverged: .*; the weights are those from before",
        ),
    ],
    ids=["limit", "stuck", "diverged"],
)
def test_fits_that_do_not_arrive_warn(options, words):
    X, Y = toy(SequenceLabeler())
    with pytest.warns(ConvergenceWarning, match=words), np.errstate(all="ignore"):
        labeler = SequenceLabeler(random_state=0, **options).fit(X, Y)
    assert not labeler.converged_
    assert np.isfinite(labeler.weights_).all()


def test_a_fit_that_a_callback_ended_does_not_warn():
    X, Y = toy(SequenceLabeler())
    assert not SequenceLabeler(callbacks=[lambda event: True]).fit(X, Y).converged_


# ---- what solvers share ------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [Online, Stochastic])
@pytest.mark.parametrize(
    ("name", "value"),
    [("rule", "adagard"), ("step_size", 0), ("average", 2), ("horizon", 0), ("evaluate", "a")],
)
def test_wrong_settings_of_stochastic_solvers(solver, name, value):
    with pytest.raises(ValueError, match=f"{name}={value!r}"):
        solver(**{name: value})
