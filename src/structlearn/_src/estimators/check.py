"""What every structured estimator promises, as checks that anybody can run."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.structured.classifier import (
    SequenceClassifier,
    StructuredClassifier,
)
from structlearn._src.estimators.structured.graph import GraphLabeler, GridLabeler
from structlearn._src.estimators.structured.sequence import SequenceLabeler

_WIDTH = 3  # features of toy examples, of which the largest is the label
_QUERIES = ("predict", "predict_marginals", "predict_proba", "predict_hidden", "decode")


class Case(NamedTuple):
    """An estimator, not fitted, with data for it."""

    estimator: Any
    X: Any
    Y: Any

    def fit(self, X: Any = None, Y: Any = None, weights: Any = None, **options: Any) -> Any:
        """Return a fresh estimator, fitted; to the data of the case unless others are given."""
        new = self.fresh(**options)
        return new.fit(self.X if X is None else X, self.Y if Y is None else Y, weights)

    def fresh(self, **options: Any) -> Any:
        """Return the estimator, not fitted, with a seed and a low limit on iterations."""
        return clone(self.estimator).set_params(**{"random_state": 0, "max_iter": 20, **options})


def check_structured_estimator(estimator: Any, X: Any = None, Y: Any = None) -> None:
    """Check that an estimator of structures satisfies the contract of this library.

    It is the equivalent of `sklearn.utils.estimator_checks.check_estimator` for structured, ragged
    input: parameters are left unchanged, equal fits are equal, sample weights are equivalent to
    repetition, bad input is rejected by name, and scikit-learn's model selection tools work.

    Parameters
    ----------
    estimator : object
        An estimator that is not fitted; it is cloned.
    X, Y : list, optional
        A few examples that it can learn from. The estimators of this library need none.

    Raises
    ------
    AssertionError
        The contract is violated; the message says how.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.extend import check_structured_estimator
    >>> check_structured_estimator(SequenceLabeler())
    """
    case = make_case(estimator, X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for check in CHECKS:
            check(copy.deepcopy(case))


def make_case(estimator: Any, X: Any = None, Y: Any = None) -> Case:
    """Return an estimator with data for it."""
    if X is None or Y is None:
        X, Y = toy(estimator)
    return Case(estimator, X, Y)


def toy(estimator: Any, n: int = 8, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Return examples that an estimator can learn from, all of one size."""
    rng = np.random.default_rng(seed)
    if isinstance(estimator, GridLabeler):
        return _labelled([rng.normal(size=(2, 3, _WIDTH)) for _ in range(n)])
    X, Y = _labelled([rng.normal(size=(4, _WIDTH)) for _ in range(n)])
    if isinstance(estimator, SequenceLabeler):
        return X, Y
    if isinstance(estimator, SequenceClassifier):
        return X, [("low", "high")[i % 2] for i in range(n)]
    if isinstance(estimator, GraphLabeler):
        edges = np.array([(0, 1), (2, 1), (2, 3)])
        return [(x, edges) for x in X], Y
    raise ArgumentError(
        f"there are no examples for a {type(estimator).__name__}; give some as X and Y"
    )


def _labelled(X: list[Floats]) -> tuple[list[Any], list[Any]]:
    """Label every node by its largest feature; the first examples have every label."""
    Y: list[Ints] = [x.argmax(axis=-1) for x in X]
    for y in Y[: len(Y) // 2]:
        y.flat[:_WIDTH] = range(_WIDTH)
    return X, Y


def _is(true: Any, promise: str) -> None:
    if not true:
        raise AssertionError(f"broken promise: {promise}")


# ---- parameters --------------------------------------------------------------------------


def check_parameters(case: Case) -> None:
    """Parameters come back as they were given, and clones have the same."""
    given = case.estimator.get_params()
    again = clone(case.estimator)
    _is(_same(again.get_params(), given), "a clone has the same parameters")
    _is(again.set_params(**given) is again, "set_params returns the estimator")
    _is(_same(again.get_params(), given), "set_params sets what get_params returns")


def check_fit_leaves_parameters(case: Case) -> None:
    """Fitting changes no parameter and returns the estimator."""
    new = case.fresh()
    before = copy.deepcopy(new.get_params())
    _is(new.fit(case.X, case.Y) is new, "fit returns the estimator")
    _is(_same(new.get_params(), before), "fit leaves the parameters alone")


def check_not_fitted(case: Case) -> None:
    """Questions before fitting are refused."""
    for name in _QUERIES:
        if hasattr(case.estimator, name):
            error = _error(partial(getattr(clone(case.estimator), name), case.X))
            _is(isinstance(error, NotFittedError), f"{name} before fit raises NotFittedError")


# ---- fits --------------------------------------------------------------------------------


def check_repeatable(case: Case) -> None:
    """The same seed gives the same model, whatever the number of threads."""
    first, again, threads = case.fit(n_jobs=1), case.fit(n_jobs=1), case.fit(n_jobs=2)
    _is(np.array_equal(first.weights_, again.weights_), "the same seed gives the same weights")
    _is(_close(first.weights_, threads.weights_), "n_jobs does not change the weights")
    _is(_same(first.predict(case.X), threads.predict(case.X)), "n_jobs does not change labels")


def check_input_is_kept(case: Case) -> None:
    """Neither fitting nor predicting changes what was given."""
    X, Y = copy.deepcopy(case.X), copy.deepcopy(case.Y)
    fitted = case.fit(X, Y)
    fitted.predict(X)
    fitted.score(X, Y)
    _is(_same(X, case.X) and _same(Y, case.Y), "X and Y are not changed")


def check_pickle(case: Case) -> None:
    """A fitted estimator comes back from a pickle with the same answers."""
    fitted = case.fit()
    again = pickle.loads(pickle.dumps(fitted))
    _is(_same(again.predict(case.X), fitted.predict(case.X)), "a pickle predicts the same")


def check_sample_weight(case: Case) -> None:
    """A weight of 2 is the example twice, a weight of 0 its absence; order does not matter."""
    counts = np.resize([1, 2, 0, 3], len(case.X))
    counts[: len(case.X) // 2] = 1  # so that all labels stay
    which = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    weighted = case.fit(weights=counts, **_EXACT)
    repeated = case.fit(_pick(case.X, which), _pick(case.Y, which), **_EXACT)
    _is(_close(weighted.weights_, repeated.weights_, 1e-3), "weights count examples, in any order")


def check_partial_fit(case: Case) -> None:
    """Learning goes on over calls, without new labels."""
    new = case.fresh(solver="auto", driver="subgradient")
    classes = case.fit(max_iter=1).classes_
    for _ in range(2):
        _is(new.partial_fit(case.X, case.Y, classes=classes) is new, "partial_fit returns self")
    _is(_same(new.classes_, classes), "partial_fit keeps the classes given")
    _is(np.isfinite(new.score(case.X, case.Y)), "after partial_fit there are predictions")


# ---- answers -----------------------------------------------------------------------------


def check_answers(case: Case) -> None:
    """Predictions have the form of the labels; probabilities sum to 1; scores are shares."""
    fitted = case.fit()
    predicted = fitted.predict(case.X)
    _is(len(predicted) == len(case.Y), "there is one prediction per example")
    for found, true in zip(predicted, case.Y, strict=True):
        _is(np.shape(found) == np.shape(true), "a prediction has the form of the labels")
    known = {*fitted.classes_.tolist(), -1}
    _is(all(set(np.ravel(p).tolist()) <= known for p in predicted), "predictions are classes")
    _is(0.0 <= fitted.score(case.X, case.Y) <= 1.0, "a score is a share")
    name = "predict_proba" if isinstance(fitted, StructuredClassifier) else "predict_marginals"
    for rows in getattr(fitted, name)(case.X):
        _is(np.allclose(rows.sum(axis=-1), 1.0), f"{name} sums to 1")


def check_model_selection(case: Case) -> None:
    """Cross-validation, searches and pipelines of scikit-learn work."""
    estimator = case.fresh()
    scores = cross_val_score(estimator, case.X, case.Y, cv=2, error_score="raise")
    _is(np.isfinite(scores).all(), "cross_val_score works")
    search = GridSearchCV(estimator, {"C": [0.1, 1.0]}, cv=2, error_score="raise")
    _is(search.fit(case.X, case.Y).best_params_["C"] in (0.1, 1.0), "GridSearchCV works")
    pipeline = make_pipeline(PerExample(), estimator).fit(case.X, case.Y)
    _is(_same(pipeline.predict(case.X), case.fit().predict(case.X)), "Pipeline works")


class PerExample(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """The simplest transformer of structures: a copy of every example."""

    def fit(self, X: Any, Y: Any = None) -> PerExample:
        """Learn nothing."""
        self.n_examples_ = len(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return a copy of every example."""
        return [copy.deepcopy(x) for x in X]


# ---- bad input ---------------------------------------------------------------------------


def check_bad_input(case: Case) -> None:
    """Bad input is named before any step is taken."""
    X, Y = case.X, case.Y
    _refused(case, [], [], "an empty X")
    _refused(case, X, Y[:-1], "fewer labels than examples")
    _refused(case, [_spoiled(X[0]), *X[1:]], Y, "NaN among the features")
    _refused(case, [_emptied(X[0]), *X[1:]], Y, "an empty example")
    if not isinstance(case.estimator, StructuredClassifier):
        _refused(case, X, [Y[0][:-1], *Y[1:]], "fewer labels than nodes")
        _refused(case, X, [_unhashable(Y[0]), *Y[1:]], "labels that cannot be labels")
        _refused(case, X, [None] * len(X), "no labels at all")


def check_bad_parameters(case: Case) -> None:
    """Parameters out of range are named before any step is taken."""
    for name, value in (("C", -1.0), ("loss", "no such loss"), ("max_iter", 0), ("tol", -1.0)):
        _refused(case, case.X, case.Y, f"{name}={value!r}", **{name: value})


def _refused(case: Case, X: Any, Y: Any, what: str, **options: Any) -> None:
    steps: list[Any] = []
    new = case.fresh(callbacks=[steps.append], **options)
    error = _error(lambda: new.fit(X, Y))
    named = isinstance(error, ValueError) and str(error)
    _is(named, f"{what} is refused with a ValueError that says so, not with {error!r}")
    _is(not steps and not hasattr(new, "weights_"), f"{what} is refused before any step")


def _error(call: Callable[[], Any]) -> BaseException | None:
    try:
        call()
    except Exception as error:
        return error
    return None


def _spoiled(x: Any) -> Any:
    """The same example with one feature that is not a number."""
    if isinstance(x, tuple):
        return _spoiled(x[0]), *x[1:]
    array = np.array(x, np.float64)
    array.flat[0] = np.nan
    return array


def _emptied(x: Any) -> Any:
    return (_emptied(x[0]), x[1][:0]) if isinstance(x, tuple) else x[:0]


def _unhashable(y: Any) -> Any:
    labels = np.empty(np.shape(y), object)
    labels[...] = y
    labels.flat[0] = ["not", "hashable"]
    return labels


# ---- comparing ---------------------------------------------------------------------------

_EXACT = {"loss": "log", "solver": "auto", "driver": "subgradient", "tol": 1e-9, "max_iter": 500}


def _pick(values: Any, which: Any) -> list[Any]:
    return [values[i] for i in which]


def _close(a: Any, b: Any, tol: float = 1e-8) -> bool:
    return bool(np.allclose(a, b, rtol=tol, atol=tol))


def _same(a: Any, b: Any) -> bool:
    """Whether two nests of lists, tuples, mappings and arrays are equal."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if a is b or (type(a) is type(b) and a == b):
        return True
    return hasattr(a, "__dict__") and hasattr(b, "__dict__") and _same(vars(a), vars(b))


CHECKS: tuple[Callable[[Case], None], ...] = (
    check_parameters, check_fit_leaves_parameters, check_not_fitted, check_repeatable,
    check_input_is_kept, check_pickle, check_sample_weight, check_partial_fit,
    check_answers, check_model_selection, check_bad_input, check_bad_parameters,
)  # fmt: skip
