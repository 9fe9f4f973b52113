"""What makes all estimators estimators in scikit-learn's sense, without importing it.

Importing scikit-learn takes longer than loading a small model and predicting with it. So
`Estimator` begins with a stand-in for scikit-learn's base class, and gets the real one in its
place (`__bases__` can be assigned to) as soon as scikit-learn is there: whoever has imported it
finds instances of its `BaseEstimator`, and whoever has not never waits for it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Set
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError, did_you_mean

_WIDEST = 200  # characters of one parameter in `repr`, so that an array does not fill the screen

_VERBOSE = "progress=True shows how far the work is"  # to whoever looks for what others have


@cache
def _parameters(of: type) -> tuple[str, ...]:
    """Names that a class takes, sorted; reading a signature costs as much as a small fit."""
    given = inspect.signature(of).parameters.values()
    return tuple(sorted(each.name for each in given if each.kind != each.VAR_KEYWORD))


class _StandIn:
    """What is needed of scikit-learn's `BaseEstimator` while nobody has imported it."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        of: type = cls
        return list(_parameters(of))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters as they were given.

        Parameters
        ----------
        deep
            Whether to add the parameters of parameters that are estimators, as ``name__inner``.

        Returns
        -------
        dict
            Values by name.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> SequenceLabeler(C=2.0).get_params()["C"]
        2.0
        """
        found = {name: getattr(self, name) for name in self._get_param_names()}
        if deep:
            for name, value in list(found.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    inner = value.get_params().items()
                    found.update((f"{name}__{key}", part) for key, part in inner)
        return found

    def __repr__(self) -> str:
        default = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        given = {name: repr(getattr(self, name)) for name in self._get_param_names()}
        words = [
            f"{name}={text if len(text) <= _WIDEST else f'{text[:_WIDEST]}...'}"
            for name, text in given.items()
            if text != repr(default[name])
        ]
        return f"{type(self).__name__}({', '.join(words)})"

    def __sklearn_tags__(self) -> Any:
        _join()
        return self.__sklearn_tags__()

    if not TYPE_CHECKING:  # else every misspelt attribute would pass for one of scikit-learn's

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property raised an AttributeError: let it do so again
                return object.__getattribute__(self, name)
            if _is_sklearn(name):
                _join()
                return getattr(self, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class Estimator(_StandIn):
    """Base class of all estimators: parameters are what `__init__` takes."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        if "verbose" in kwargs and "verbose" not in inspect.signature(cls).parameters:
            raise TypeError(f"{cls.__name__} has no parameter 'verbose'; {_VERBOSE}")
        if "sklearn.base" in sys.modules:
            _join()
        return super().__new__(cls)

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; ``name__inner`` is one of the parameter `name`.

        Parameters
        ----------
        **parameters
            New values by the names of parameters.

        Returns
        -------
        Self
            The estimator.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> SequenceLabeler().set_params(C=2.0, loss="hinge").C
        2.0
        """
        known = self.get_params()
        for name in parameters:
            if name.partition("__")[0] not in known:
                hint = f"; {_VERBOSE}" if name == "verbose" else did_you_mean(name, known)
                raise ArgumentError(f"there is no parameter {name!r}{hint}")
        for name, value in sorted(parameters.items(), key=lambda item: "__" in item[0]):
            outer, _, inner = name.partition("__")  # inner ones last: the outer may be new too
            if inner:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, outer, value)
        return self


class _NoMixin:
    """Holds the place of scikit-learn's `ClassifierMixin`."""


class ClassifierMixin(_NoMixin):
    """Tells scikit-learn that an estimator gives one class to every example."""

    if TYPE_CHECKING:
        predict: Any

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the fraction of examples whose predicted class is the true one.

        Parameters
        ----------
        X : list, or array of shape (examples, features)
            Examples, as in `fit`.
        y : array-like of shape (examples,)
            True classes.
        sample_weight : array-like of shape (examples,), optional
            Weight of each example.

        Returns
        -------
        float
            Accuracy between 0 and 1.

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> classifier = MulticlassClassifier(C=10.0).fit([[0.0], [1.0], [2.0]], ["a", "a", "b"])
        >>> classifier.score([[0.0], [0.1]], ["a", "b"])
        0.5
        """
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))


def check_is_fitted(estimator: Any, attribute: str) -> None:
    """Refuse an estimator without the attribute that fitting gives it."""
    if not hasattr(estimator, attribute):
        from sklearn.exceptions import NotFittedError

        raise NotFittedError(
            f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with "
            f"appropriate arguments before using this estimator."
        )


def as_classes(given: Any, argument: str = "y") -> Any:
    """Return classes as an array; they must be of one kind, and none may be missing."""
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import assert_all_finite, column_or_1d

    if np.ma.is_masked(given):
        raise ArgumentError(f"{argument} masks some classes; leave out those entries")
    given = list(given) if isinstance(given, Set) else given
    if not isinstance(given, list | tuple):
        given = np.asarray(given)
    elif any(isinstance(name, str) for name in given):
        given = np.fromiter(given, object)  # NumPy would make all of them text
    array = column_or_1d(given, warn=True)
    if array.dtype == object:
        kinds = {isinstance(name, str) for name in array.tolist() if name is not None}
        if len(kinds) > 1:
            raise ArgumentError(
                f"some of the classes in {argument} are text and others are not, so that they have "
                f"no order; make all text"
            )
        absent = (None, getattr(sys.modules.get("pandas"), "NA", None))
        missing = [i for i, name in enumerate(array.tolist()) if any(name is x for x in absent)]
        if missing:
            raise ArgumentError(
                f"entry {missing[0]} of {argument} is {array[missing[0]]}, and each needs a class: "
                f"leave it out"
            )
        array = np.array(array.tolist())
    assert_all_finite(array, input_name=argument)
    check_classification_targets(array)
    return array


def sample_weights(given: Any, n: int) -> Floats:
    """Return one weight per example, all 1 if none are given."""
    if given is None:
        return np.ones(n)
    checks.not_masked("sample_weight", given)
    weights = checks.numbers("sample_weight", given)
    weights = np.full(n, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (n,) or not ((weights >= 0) & (weights < checks.MOST)).all():  # not so NaN
        raise ArgumentError(
            f"sample_weight of shape {weights.shape} was given for {n} examples; it must hold one "
            f"number of at least 0, and below {checks.MOST:g}, for each"
        )
    if not weights.any():
        raise ArgumentError("sample_weight is zero for all examples; at least one must be positive")
    return weights


# ---- what only concerns how a fit runs ---------------------------------------------------


def threads(n_jobs: Any) -> int | None:
    """Return the number of threads as other layers take it: None, not -1, for all cores."""
    everything = n_jobs is None or (checks.integer("n_jobs", n_jobs, low=-1) == -1)
    return None if everything else checks.integer("n_jobs", n_jobs, low=1)


def callbacks(given: Any) -> tuple[Any, ...]:
    """Return the functions to call after every iteration."""
    if not isinstance(given, list | tuple) or not all(map(callable, given)):
        raise ArgumentError(f"callbacks={given!r} must be a list of functions of one event")
    return tuple(given)


# ---- when scikit-learn is there ----------------------------------------------------------


def _is_sklearn(name: str) -> bool:
    """Whether a name may be one of scikit-learn's; if that is not loaded, few are worth a look."""
    if name.startswith("__"):
        return False
    asked = name == "get_metadata_routing" or name.startswith("_repr_")
    return asked or name.endswith("_request") or "sklearn.base" in sys.modules


def _join() -> None:
    """Put scikit-learn's classes into the places that are held for them."""
    from sklearn import base

    if issubclass(Estimator, base.BaseEstimator):
        return
    ClassifierMixin.__bases__ = (base.ClassifierMixin,)
    Estimator.__bases__ = (base.BaseEstimator,)
    for each in _below(Estimator):  # as if it were defined now: adds `set_fit_request` and its like
        super(each, each).__init_subclass__()


def _below(kind: Any) -> Iterator[Any]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


if "sklearn.base" in sys.modules:
    _join()
