"""Every structured estimator keeps the same promises."""

from __future__ import annotations

import pytest

from structlearn import (
    GraphLabeler,
    GridLabeler,
    MulticlassClassifier,
    SequenceClassifier,
    SequenceLabeler,
    check_structured_estimator,
)
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.check import CHECKS, make_case

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
