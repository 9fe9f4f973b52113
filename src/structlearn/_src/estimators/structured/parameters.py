"""What the parameters of estimators may be, by name: all are checked before any work."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.checks import MOST
from structlearn._src.common.errors import ArgumentError, IgnoredOptionWarning, warn
from structlearn._src.common.names import (
    DRIVERS,
    EDGES,
    HIDDEN,
    INITS,
    OLD_DRIVERS,
    SPACES,
    TRANSITIONS,
)
from structlearn._src.common.watch import is_progress
from structlearn._src.estimators.base import callbacks, threads
from structlearn._src.inference.names import OFFERED
from structlearn._src.learn.loss import check_cost
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.solve.pick import check_solver
from structlearn._src.text.template import as_template

Rule = Callable[[str, Any], object]


def check_parameters(given: Mapping[str, Any]) -> None:
    """Refuse values that no estimator could use; parameters without a rule are left alone."""
    for name, value in given.items():
        if name in _RULES:
            _RULES[name](name, value)


def warn_unused(given: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Warn about parameters that were changed but count only beside others."""
    for name, (other, values) in _ONLY_WITH.items():
        if {name, other} <= given.keys() and not _among(given[other], values):
            default = defaults[name]
            if type(given[name]) is not type(default) or given[name] != default:
                warn(
                    f"{name}={given[name]!r} has no effect with {other}={given[other]!r}, but only "
                    f"with {' or '.join(map(repr, values))}; leave it out, or change {other}",
                    IgnoredOptionWarning,
                )


def _check_class_weight(given: Any) -> None:
    """Refuse what is neither "balanced" nor a mapping from class to weight."""
    if isinstance(given, str) and given == "balanced":
        return
    if not isinstance(given, Mapping):
        raise ArgumentError(
            f"class_weight={given!r} must be None, 'balanced', or a mapping from class to weight"
        )
    for name, weight in given.items():
        checks.number(f"class_weight[{name!r}]", weight, low=0.0, high=MOST)


def _among(given: Any, values: tuple[Any, ...]) -> bool:
    return isinstance(given, str) and given in values


def _or_none(rule: Rule) -> Rule:
    return lambda name, given: None if given is None else rule(name, given)


def _one_of(*allowed: str) -> Rule:
    return lambda name, given: checks.one_of(name, given, allowed)


def _alone(check: Callable[[Any], object]) -> Rule:
    """Return the rule of a check that knows the name by itself."""
    return lambda _, given: check(given)


def _such(fits: Callable[[Any], bool], need: str) -> Rule:
    """Return the rule that something must be what it `need`s to be."""

    def rule(name: str, given: Any) -> None:
        if not fits(given):
            raise ArgumentError(f"{name}={given!r} must be {need}")

    return rule


def _weight(name: str, given: Any) -> None:
    """Check the weight of the losses; infinity stands for no penalty."""
    if not (isinstance(given, float) and given == math.inf):
        checks.number(name, given, low=0.0, open_low=True, high=MOST)


def _path(given: Any) -> bool:
    return isinstance(given, str | os.PathLike | Checkpoint)


def _four_or_eight(given: Any) -> bool:
    return isinstance(given, int | np.integer) and given in (4, 8)


#: Parameters that count only where another has one of these values.
_ONLY_WITH = {
    "alpha": ("loss", ("hybrid",)),
    "cost": ("loss", ("hinge", "latent-hinge", "marginal", "eps", "hybrid")),
    "hidden_states": ("hidden", HIDDEN),
    "sweeps": ("driver", ("paired",)),
}
_SHARE = partial(checks.number, low=0.0, high=1.0)
_COUNT = partial(checks.integer, low=1)

_RULES: dict[str, Rule] = {
    "C": _weight,
    "alpha": _SHARE,
    "l1_ratio": _SHARE,
    "cost": _alone(check_cost),
    "class_weight": _or_none(_alone(_check_class_weight)),
    "solver": _alone(check_solver),
    "driver": _one_of(*DRIVERS, *OLD_DRIVERS),
    "max_iter": _COUNT,
    "tol": _or_none(partial(checks.number, low=0.0, open_high=True)),
    "gradient_tol": _or_none(partial(checks.number, low=0.0)),
    "init": _one_of(*INITS),
    "inference": _one_of(*OFFERED),
    "sweeps": _or_none(_COUNT),
    "warm_start": checks.boolean,
    "n_jobs": _alone(threads),
    "time_limit": _or_none(partial(checks.number, low=0.0)),
    "progress": _such(is_progress, "a function of the fraction done and a few words, or True"),
    "callbacks": _alone(callbacks),
    "checkpoint": _or_none(_such(_path, "the path of a file, or a Checkpoint")),
    "tied": checks.boolean,
    "hidden": _or_none(_one_of(*HIDDEN)),
    "hidden_states": _COUNT,
    "features": _one_of(*SPACES),
    "transitions": _one_of(*TRANSITIONS),
    "edges": _one_of(*EDGES),
    "fit_intercept": checks.boolean,
    "template": _or_none(_alone(as_template)),
    "min_count": _COUNT,
    "neighbours": _such(_four_or_eight, "4 or 8"),
    "directions": checks.boolean,
}
