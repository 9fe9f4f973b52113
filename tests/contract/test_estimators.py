"""Every estimator keeps the same promises: structured ones many, all families some."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import structlearn
from structlearn import (
    GraphLabeler,
    GridLabeler,
    HingeField,
    InfiniteHMM,
    InfiniteSVM,
    MaxMarginHMM,
    MulticlassClassifier,
    RuleModel,
    SequenceClassifier,
    SequenceLabeler,
)
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.watch import Ending
from structlearn._src.estimators.check import CHECKS, make_case, toy
from structlearn.extend import check_structured_estimator

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ESTIMATORS = {
    "sequences": SequenceLabeler(),
    "sequences, hinge": SequenceLabeler(loss="hinge"),
    "sequences, hidden": SequenceLabeler(hidden="node", loss="marginal"),
    "sequences, positions": SequenceLabeler(tied=False, transitions="features"),
    "grids": GridLabeler(edges="symmetric"),
    "grids, hidden": GridLabeler(hidden="layer", directions=True),
    "graphs": GraphLabeler(loss="hybrid"),
    "graphs, cccp": GraphLabeler(hidden="node", driver="cccp"),
    "classifier": SequenceClassifier(hidden_states=2),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_promise(name, check):
    check(make_case(ESTIMATORS[name]))


class Forgetful(SequenceLabeler):
    """Breaks a promise: fitting changes a parameter."""

    def fit(self, X, Y, sample_weight=None):
        self.C = self.C + 1.0
        return super().fit(X, Y, sample_weight)


class Careless(SequenceLabeler):
    """Breaks a promise: predicting changes its input."""

    def predict(self, X, joint=False):
        X[0][:] = 0.0
        return super().predict(X, joint)


@pytest.mark.parametrize(
    ("estimator", "words"), [(Forgetful(), "leaves the parameters"), (Careless(), "not changed")]
)
def test_broken_promises_are_found(estimator, words):
    with pytest.raises(AssertionError, match=words):
        check_structured_estimator(estimator)


def test_others_need_examples():
    with pytest.raises(ArgumentError, match="give some as X and Y"):
        check_structured_estimator(MulticlassClassifier())


# ---- all families --------------------------------------------------------------------------

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(24, 2))
SIDES = (ROWS[:, 0] > 0).astype(int)
POINTS, MARKS = np.split(ROWS, [10]), np.split(SIDES, [10])
SOLVED = {"max_iter": 5, "random_state": 0}
SWEEPS = {"burn_in": 3, "n_draws": 3, "n_jobs": 1, "n_chains": 1, "random_state": 0}
RULES = "1: Near(A, B) & Warm(A) -> Warm(B) ^2\n0.5: !Warm(A) ^2"
FORMS = np.array([[1.0, 0.0, -1.0], [-1.0, 1.0, 0.0], [0.0, -1.0, 1.0], [0.0, 0.0, 1.0]])


class Family(NamedTuple):
    """How to make an estimator, and what it learns from and predicts for."""

    make: Callable[[], Any]
    learnt: tuple[Any, ...]
    asked: tuple[Any, ...]

    @classmethod
    def structured(cls, make):
        X, Y = toy(make())
        return cls(make, (X, Y), (X,))

    def fit(self):
        return self.make().fit(*self.learnt)


def make_rules():
    model = RuleModel(RULES, n_jobs=1)
    model.observe(Near=[(0, 1), (1, 2), (2, 0)], Warm=[(0, 1.0)])
    return model.target(Warm=[(1,), (2,)]).truth(Warm=[(1, 1.0), (2, 0.0)])


def make_field():
    return HingeField(FORMS, [0.1, 0.2, 0.3, -0.1], powers=2, groups=[0, 1, 0, 1], n_jobs=1)


FAMILIES = {
    "SequenceLabeler": Family.structured(lambda: SequenceLabeler(**SOLVED)),
    "GridLabeler": Family.structured(lambda: GridLabeler(**SOLVED)),
    "GraphLabeler": Family.structured(lambda: GraphLabeler(**SOLVED)),
    "SequenceClassifier": Family.structured(lambda: SequenceClassifier(hidden_states=2, **SOLVED)),
    "MulticlassClassifier": Family(lambda: MulticlassClassifier(**SOLVED), (ROWS, SIDES), (ROWS,)),
    "InfiniteHMM": Family(lambda: InfiniteHMM(**SWEEPS), (POINTS,), (POINTS,)),
    "MaxMarginHMM": Family(lambda: MaxMarginHMM(**SWEEPS), (POINTS, MARKS), (POINTS,)),
    "InfiniteSVM": Family(lambda: InfiniteSVM(**SWEEPS), (ROWS, SIDES), (ROWS,)),
    "HingeField": Family(make_field, ([1.0, np.nan, 0.0],), ()),
    "RuleModel": Family(make_rules, (), ()),
}
FIELDS = ("HingeField", "RuleModel")  # they predict by the weights that were given


def predicted(family, fitted):
    """What an estimator predicts, as one flat list."""
    found = fitted.predict(*family.asked)
    if isinstance(fitted, RuleModel):
        return list(found["value"])
    return [x for row in found for x in np.ravel(row)]


def parameters(estimator):
    """All parameters as they are now."""
    names = inspect.signature(type(estimator)).parameters
    return {n: repr(getattr(estimator, n)) for n in names if hasattr(estimator, n)}


def test_every_public_estimator_is_in_the_suite():
    public = (getattr(structlearn, name) for name in structlearn.__all__)
    assert set(FAMILIES) == {x.__name__ for x in public if hasattr(x, "predict")}


@pytest.mark.parametrize("name", FAMILIES)
def test_fitting_returns_the_estimator_and_leaves_its_parameters(name):
    estimator = FAMILIES[name].make()
    before = parameters(estimator)
    assert before
    assert estimator.fit(*FAMILIES[name].learnt) is estimator
    assert parameters(estimator) == before


@pytest.mark.parametrize("name", FAMILIES)
def test_equal_fits_predict_alike_and_input_stays(name):
    family = FAMILIES[name]
    given = copy.deepcopy((family.learnt, family.asked))
    one, other = (predicted(family, family.fit()) for _ in range(2))
    assert one
    assert one == other
    np.testing.assert_equal((family.learnt, family.asked), given)


@pytest.mark.parametrize("name", FAMILIES)
def test_how_learning_ended_is_a_fact_with_its_sentence(name):
    fitted = FAMILIES[name].fit()
    assert isinstance(fitted.ended_, Ending)
    assert isinstance(fitted.status_, str)
    assert fitted.status_
    assert not fitted.status_.endswith(".")


@pytest.mark.parametrize("name", [n for n in FAMILIES if n not in FIELDS])
def test_files_keep_what_predicts(name, tmp_path):
    family = FAMILIES[name]
    fitted = family.fit()
    structlearn.save(fitted, tmp_path / "model")
    assert predicted(family, structlearn.load(tmp_path / "model")) == predicted(family, fitted)


@pytest.mark.parametrize("name", [n for n in FAMILIES if n not in FIELDS])
def test_nothing_is_predicted_before_it_is_learnt(name):
    family = FAMILIES[name]
    with pytest.raises(NotFittedError, match=name):
        family.make().predict(*family.asked)


@pytest.mark.parametrize("name", [n for n in FAMILIES if n != "RuleModel"])
def test_copies_predict_alike(name):
    family = FAMILIES[name]
    fitted = family.fit()
    wanted = predicted(family, fitted)
    assert predicted(family, copy.deepcopy(fitted)) == wanted
    assert predicted(family, pickle.loads(pickle.dumps(fitted))) == wanted
