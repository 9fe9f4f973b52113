"""Estimators keep scikit-learn's contract without importing it."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from structlearn import (
    InfiniteHMM,
    InfiniteSVM,
    MaxMarginHMM,
    MulticlassClassifier,
    RuleModel,
    SequenceLabeler,
)
from structlearn._src.common.errors import ArgumentError

X = np.arange(12.0)[:, None] % 6
Y = np.array(["low", "high"])[(X[:, 0] > 2).astype(int)]
FAMILIES = {
    "structured": SequenceLabeler(loss="hinge", C=2.0),
    "rows": MulticlassClassifier(C=2.0),
    "states": InfiniteHMM(burn_in=3),
    "labelled states": MaxMarginHMM(n_draws=7),
    "components": InfiniteSVM(thin=2),
    "rules": RuleModel("1: P(A) -> Q(A)", tol=0.5),
}


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("name", list(FAMILIES))
def test_parameters_go_in_and_out(name):
    estimator = FAMILIES[name]
    parameters = estimator.get_params()
    assert list(parameters) == sorted(parameters)
    again = clone(estimator)
    assert type(again) is type(estimator)
    assert isinstance(again, BaseEstimator)
    assert again is not estimator
    assert again.get_params() == parameters
    assert again.set_params() is again


@pytest.mark.parametrize("name", list(FAMILIES))
def test_unknown_parameters_are_named(name):
    with pytest.raises(ArgumentError, match=r"time_limits.*did you mean 'time_limit'"):
        clone(FAMILIES[name]).set_params(time_limits=1.0)


def test_nothing_is_set_if_one_name_is_wrong():
    estimator = SequenceLabeler()
    with pytest.raises(ValueError, match="sed"):
        estimator.set_params(C=3.0, sed=1)
    assert estimator.C == 1.0


def test_parameters_of_parameters():
    estimator = SequenceLabeler(cost=MulticlassClassifier())
    assert estimator.get_params()["cost__C"] == 1.0
    assert "cost__C" not in estimator.get_params(deep=False)
    estimator.set_params(cost__C=2.0, cost=MulticlassClassifier(tol=0.5))
    assert (estimator.cost.C, estimator.cost.tol) == (2.0, 0.5)


def test_repr_has_what_differs():
    assert repr(SequenceLabeler(loss="hinge", C=2.0)) == "SequenceLabeler(C=2.0, loss='hinge')"
    assert repr(MulticlassClassifier()) == "MulticlassClassifier()"
    with sklearn.config_context(print_changed_only=False):
        assert "tol=0.0001" in repr(SequenceLabeler())


def run_alone(code):
    """What a fresh process prints, which has not imported scikit-learn."""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return told.stdout.splitlines()


def test_without_scikit_learn():
    code = """
import pickle, sys, structlearn
labeler = structlearn.SequenceLabeler(loss="hinge", C=2.0)
print(labeler)
print(len(repr(structlearn.SequenceLabeler(template="U" * 999))) < 400)
print(labeler.set_params(cost=structlearn.SequenceLabeler(), cost__C=3.0).get_params()["cost__C"])
print(hasattr(labeler, "weights_"), hasattr(labeler, "__deepcopy__"))
print(pickle.loads(pickle.dumps(labeler)).loss, "sklearn" in sys.modules)
"""
    line = "SequenceLabeler(C=2.0, loss='hinge')"
    assert run_alone(code) == [line, "True", "3.0", "False False", "hinge False"]


def test_scikit_learn_may_come_later():
    code = """
import structlearn
old = structlearn.MulticlassClassifier(C=2.0)
try:
    old.classes_
except AttributeError as error:
    print(type(error).__name__)
import sklearn.base
sklearn.set_config(enable_metadata_routing=True)
print(old.set_fit_request(sample_weight=True) is old)
print(isinstance(old, sklearn.base.BaseEstimator), sklearn.base.is_classifier(old))
print(type(sklearn.base.clone(old)).__name__, old)
"""
    assert run_alone(code) == [
        "NotFittedError", "True", "True True", "MulticlassClassifier MulticlassClassifier(C=2.0)",
    ]  # fmt: skip


@pytest.mark.parametrize("first", ["__sklearn_tags__()", "get_metadata_routing()", "_repr_html_()"])
def test_what_only_scikit_learn_has_brings_it(first):
    code = f"""
import sys, structlearn
labeler = structlearn.SequenceLabeler()
assert "sklearn" not in sys.modules
labeler.{first}
print(isinstance(labeler, sys.modules["sklearn.base"].BaseEstimator))
"""
    assert run_alone(code) == ["True"]


def test_copies_and_pickles():
    fitted = MulticlassClassifier(C=2.0).fit(X, Y)
    for again in (copy.copy(fitted), copy.deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        assert type(again) is MulticlassClassifier
        assert again.predict(X).tolist() == fitted.predict(X).tolist()


def test_errors_of_properties_are_their_own():
    with pytest.raises(NotFittedError, match="MulticlassClassifier"):
        _ = MulticlassClassifier().classes_
    with pytest.raises(AttributeError, match="no weights for edges"):
        _ = MulticlassClassifier().fit(X, Y).transitions_
    with pytest.raises(AttributeError, match="'SequenceLabeler' object has no attribute 'wights_'"):
        _ = SequenceLabeler().wights_
    with pytest.raises(NotFittedError):
        check_is_fitted(SequenceLabeler())


def test_tags():
    assert is_classifier(MulticlassClassifier())
    assert isinstance(MulticlassClassifier(), ClassifierMixin)
    assert is_classifier(InfiniteSVM())
    assert not is_classifier(SequenceLabeler())
    assert get_tags(SequenceLabeler()).target_tags.required
    assert get_tags(MulticlassClassifier()).classifier_tags is not None
    assert not get_tags(InfiniteHMM()).target_tags.required


# ---- what is borrowed --------------------------------------------------------------------


@pytest.mark.usefixtures("routing")
def test_metadata_is_routed():
    estimator = MulticlassClassifier()
    assert estimator.set_fit_request(sample_weight=True) is estimator
    estimator.set_score_request(sample_weight=True)
    assert clone(estimator).get_metadata_routing().fit.requests == {"sample_weight": True}
    weights = np.where(np.arange(12) < 6, 1.0, 0.0)
    scores = cross_val_score(estimator, X, Y, cv=2, params={"sample_weight": weights + 0.5})
    assert len(scores) == 2
    search = GridSearchCV(estimator, {"C": [0.1, 1.0]}, cv=2).fit(X, Y, sample_weight=weights + 0.5)
    assert type(search.best_estimator_) is MulticlassClassifier


@pytest.mark.usefixtures("routing")
def test_only_metadata_that_a_method_takes_can_be_requested():
    assert not hasattr(InfiniteSVM(), "set_fit_request")
    with pytest.raises(TypeError, match="colour"):
        SequenceLabeler().set_fit_request(colour=True)
    assert SequenceLabeler().set_partial_fit_request(classes=True) is not None


def test_notebooks_get_a_picture():
    estimator = MulticlassClassifier(C=2.0)
    assert "MulticlassClassifier" in estimator._repr_html_()
    assert "text/html" in estimator._repr_mimebundle_()
    pipe = make_pipeline(StandardScaler(), estimator)
    assert "MulticlassClassifier" in pipe._repr_html_()
    assert "MulticlassClassifier(C=2.0)" in repr(pipe).replace("\n", "")


@pytest.mark.usefixtures("routing")
def test_own_subclasses_keep_their_class():
    class Mine(MulticlassClassifier):
        def __init__(self, *, C=1.0, colour="red"):
            super().__init__(C=C)
            self.colour = colour

    estimator = clone(Mine(colour="blue"))
    assert type(estimator) is Mine
    assert estimator.get_params() == {"C": 1.0, "colour": "blue"}
    assert repr(estimator) == "Mine(colour='blue')"
    assert type(estimator.set_fit_request(sample_weight=None)) is Mine
