"""How much examples count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.checks import MOST
from structlearn._src.common.errors import ArgumentError, IgnoredOptionWarning, warn
from structlearn._src.model.model import Examples


def sample_weights(given: Any, n: int) -> Floats:
    """Return one weight per example, all 1 if none are given."""
    if given is None:
        return np.ones(n)
    checks.not_masked("sample_weight", given)
    try:
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"sample_weight={given!r} must be an array of numbers") from None
    weights = np.full(n, float(weights)) if weights.ndim == 0 else weights
    if weights.shape != (n,) or not ((weights >= 0) & (weights < MOST)).all():  # not so NaN
        raise ArgumentError(
            f"sample_weight of shape {weights.shape} was given for {n} examples; it must hold one "
            f"number of at least 0, and below {MOST:g}, for each"
        )
    if not weights.any():
        raise ArgumentError("sample_weight is zero for all examples; at least one must count")
    return weights


def check_class_weight(given: Any) -> None:
    """Refuse what is neither "balanced" nor a mapping from class to weight."""
    if isinstance(given, str) and given == "balanced":
        return
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"class_weight={given!r} must be None, 'balanced', or a mapping from class to weight"
        )
    for name, weight in given.items():
        checks.number(f"class_weight[{name!r}]", weight, low=0.0, high=MOST)


def class_weights(given: Any, classes: Any, examples: Examples) -> Floats:
    """Weight of every example: the mean weight of its labels, or 1 where none is known.

    Classes that a mapping does not name have weight 1; "balanced" weights are inversely
    proportional to how often each class occurs.
    """
    if given is None:
        return np.ones(examples.n_examples)
    labels = examples.labels
    borders = examples.structure.variables
    known = labels >= 0
    each = np.where(known, _by_state(given, classes, labels[known])[labels], 0.0)
    count = np.add.reduceat(known, borders[:-1])
    return np.where(count > 0, np.add.reduceat(each, borders[:-1]) / count.clip(1), 1.0)


def _by_state(given: Any, classes: Any, labels: Any) -> Floats:
    n = len(classes)
    if isinstance(given, str):
        count = np.bincount(labels, minlength=n)
        return len(labels) / (n * np.maximum(count, 1))
    names = classes.tolist()
    absent = [name for name in given if name not in names]
    if absent:
        warn(
            f"class_weight names {absent[0]!r}, which is no class here, so that its weight has no "
            f"effect; the classes are {names}",
            IgnoredOptionWarning,
        )
    return np.array([float(given.get(name, 1.0)) for name in names])
