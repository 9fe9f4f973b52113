"""Whether what messages claim about a fit can be trusted, and what to do where it cannot.

On graphs with cycles, plain messages approximate the value of a world from either side, and a fit
finds the weights where that errs most in its favour. Tree-reweighted messages bound the value from
above and have one fixed point, so that what is learnt with them is sound, if less sharp. Where the
two disagree, elimination is the judge, as far as it is affordable for a single evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from structlearn._src.common.errors import InferenceWarning, warn
from structlearn._src.inference.names import PREDICTED
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.solve.loop import Fit

#: Times the claimed objective up to which the two kinds of messages agree: on grids of 5 x 12 plain
#: ones were then off by less than 5 %, and above it by up to 120 %.
_FAR = 1.3
#: Times the claimed objective up to which an exact one bears it out, and for the hinge a
#: tree-reweighted one, which was within 2 % of it.
_OFF = 1.1


def trusted(
    objective: StructuredObjective, found: Fit, fit: Callable[[StructuredObjective], Fit]
) -> Fit:
    """Return a fit as it is, or warn that its objective is false, with weights learnt otherwise.

    `fit` learns from another objective. Where the user has chosen plain messages there is a warning
    only; after a fit that the clock or the keyboard ended, no time for it.
    """
    method = objective.settings.method
    if method not in ("auto", "bp", "trw") or found.ended.early or not objective.approximate:
        return found
    if method == "trw" or objective.two_temperatures:
        _warn_of_negative(found, method)
        return found
    summed = any(part.eps_y > 0 for part in objective.loss.parts)
    steady = _by(objective, method="trw")
    bound = steady.value(found.weights)
    if 0 < bound <= (_FAR if summed else _OFF) * found.value:
        return found
    judge = _by(objective, method="auto", times=PREDICTED)
    judge = steady if judge.approximate else judge
    value = bound if judge is steady else judge.value(found.weights)
    if judge is not steady and 0 < value <= _OFF * found.value:
        return found
    said = "tree-reweighted ones" if judge is steady else "exact inference"
    claim = (
        f"plain messages claim an objective of {found.value:.4g}, but {said} {value:.4g}: the "
        f"graphs are too strongly coupled for them"
    )
    if method == "bp":
        warn(f"{claim}; choose inference='trw', or 'exact' for narrow graphs", InferenceWarning)
        return found
    other = fit(steady)
    better = judge.value(other.weights)
    if better <= value:
        warn(f"{claim}. The weights were learnt anew by 'trw', to {better:.4g}", InferenceWarning)
        return other._replace(status=f"{other.status}, by tree-reweighted messages")
    warn(f"{claim}. Weights learnt by 'trw' have {better:.4g}, so they stay", InferenceWarning)
    return found._replace(value=value)


def _warn_of_negative(found: Fit, method: str) -> None:
    """Warn of an objective that no weights have: where temperatures differ messages bound nothing.

    Losses are at least 0, as the free world has all that the clamped one may choose from.
    """
    if found.value < 0.0:
        warn(
            f"the objective is claimed to be {found.value:.4g}, and none is below 0: messages of "
            f"inference={method!r} cannot be trusted here; choose loss='log' or 'latent-hinge', or "
            f"'exact' for narrow graphs",
            InferenceWarning,
        )


def _by(objective: StructuredObjective, **settings: Any) -> StructuredObjective:
    """Return the same objective with other inference."""
    return replace(objective, settings=replace(objective.settings, **settings), warm=None)
