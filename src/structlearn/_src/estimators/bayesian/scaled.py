"""Features with mean 0 and deviation 1: how they are learnt, and classifiers of rows of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.estimators.base import ClassifierMixin, as_classes
from structlearn._src.estimators.bayesian.fitted_settings import FittedSettings
from structlearn._src.estimators.bayesian.observed import unmasked
from structlearn._src.sample.normal_wishart import NormalWishart

_FAR = 1e100  # the squares of larger numbers, and of the inverses of these, leave floating point


def scale_of(X: Floats) -> tuple[Floats, Floats]:
    """Return mean and deviation of every feature, a deviation of 1 for those that are constant.

    Deviations that rounding explains count as none, as in scikit-learn's StandardScaler.
    """
    _check_sizes(X)
    centre = X.mean(axis=0)
    variances = X.var(axis=0)
    error = len(X) * np.finfo(np.float64).eps
    constant = variances <= error * variances + (error * centre) ** 2
    return centre, np.where(constant | (np.ptp(X, axis=0) == 0.0), 1.0, np.sqrt(variances))


def scaled(X: Floats, centre: Floats, scale: Floats) -> Floats:
    """Return features less their means, in deviations; refuse those too large to be squared."""
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray((X - centre) / scale)
    far = np.abs(found) > _FAR
    if far.any():
        row, feature = np.argwhere(far)[0]
        raise ArgumentError(
            f"feature {feature} is {X[row, feature]:.3g} somewhere, more than {_FAR:g} deviations "
            f"from its mean in training; give numbers of the same size as there"
        )
    return found


def _check_sizes(X: Floats) -> None:
    """Refuse features whose squares would be too large for floating point, or vanish."""
    largest = np.abs(X).max(axis=0)
    small = (largest < 1.0 / _FAR) & (np.ptp(X, axis=0) > 0.0)
    for feature in np.flatnonzero(small | (largest > _FAR)):
        raise ArgumentError(
            f"feature {feature} has numbers of up to {largest[feature]:.3g}, which cannot be "
            f"squared; give it in other units, where the largest is from {1 / _FAR:g} to {_FAR:g}"
        )


def with_intercept(X: Floats) -> Floats:
    """Return the features of classifiers: a last one is always 1."""
    return np.column_stack([X, np.ones(len(X))])


def prior_scale(spread: float, degrees: float, least: int) -> float:
    """Return what the diagonal of a scale matrix is for an expected variance of `spread`.

    There is an expected variance above ``least + 1`` degrees of freedom only; elsewhere the scale
    is `spread` itself.
    """
    return spread * max(degrees - least - 1.0, 1.0)


def degrees_of_freedom(degrees: float | None, least: int) -> float:
    """Return the degrees of freedom of covariances, which must be `least` or more.

    The diagonals of smaller ones may vanish in a draw.
    """
    given = least + 2.0 if degrees is None else degrees
    return checks.number("degrees", given, low=float(least), open_high=True)


def wishart(width: int, spread: float, strength: float, degrees: float | None) -> NormalWishart:
    """Return the prior of the Gaussians of scaled features."""
    freedom = degrees_of_freedom(degrees, width)
    scale = prior_scale(spread, freedom, width) * np.eye(width)
    return NormalWishart(np.zeros(width), float(strength), freedom, scale)


class Scaled(ClassifierMixin, FittedSettings):
    """Base class of classifiers of rows that see features with mean 0 and deviation 1."""

    n_features_in_: int

    def _read(self, X: Any, y: Any) -> tuple[Floats, Ints]:
        """Learn the classes and the scale; return rows and numbers of classes."""
        from sklearn.utils.validation import validate_data

        checks.not_dates("the features", X)
        X, y = validate_data(self, unmasked(X), as_classes(y), dtype=np.float64)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ArgumentError(
                f"y has one class only, {self.classes_.tolist()[0]!r}; a classifier needs two"
            )
        self.centre_, self.scale_ = scale_of(X)
        return X, labels.astype(np.int64)

    def _scaled(self, X: Floats) -> Floats:
        return scaled(X, self.centre_, self.scale_)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of all classes (rows, classes)."""
        from sklearn.utils.validation import validate_data

        fitted = self._with_fitted_params()
        checks.not_dates("the features", X)
        X = validate_data(self, unmasked(X), reset=False, dtype=np.float64)
        return fitted._shares(fitted._scaled(X))

    def predict(self, X: Any) -> Any:
        """Return the most probable class of every row."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def _shares(self, scaled: Floats) -> Floats:
        raise NotImplementedError
