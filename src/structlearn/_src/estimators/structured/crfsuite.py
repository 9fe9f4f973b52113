"""The parameters of sklearn-crfsuite, in ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from structlearn._src.common import checks
from structlearn._src.common.errors import (
    ArgumentError,
    IgnoredOptionWarning,
    did_you_mean,
    warn,
)

#: Algorithms: what they are here, or why they are not.
_ALGORITHMS = {
    "lbfgs": {"solver": "lbfgs"},
    "l2sgd": {"solver": "sgd"},
    "ap": {"loss": "perceptron"},
}
_MISSING = ("pa", "arow")
#: Details of CRFsuite's own solvers, which ours do not have; no model depends on them much.
_DETAILS = (
    "num_memories", "epsilon", "period", "linesearch", "max_linesearch", "calibration_eta",
    "calibration_rate", "calibration_samples", "calibration_candidates", "calibration_max_trials",
    "model_filename", "keep_tempfiles", "trainer_cls",
)  # fmt: skip
_ONLY_MISSING = ("pa_type", "c", "error_sensitive", "averaging", "variance", "gamma")
_KNOWN = (
    "algorithm", "c1", "c2", "min_freq", "all_possible_states", "all_possible_transitions",
    "max_iterations", "delta", "verbose", *_DETAILS, *_ONLY_MISSING,
)  # fmt: skip


def from_crfsuite(given: Mapping[str, Any], ours: set[str]) -> dict[str, Any]:
    """Return parameters of a `SequenceLabeler` for those of `sklearn_crfsuite.CRF`.

    Names that are `ours` pass; what has no counterpart is refused, or ignored with a warning.

    Examples
    --------
    >>> sorted(from_crfsuite({"c1": 0.1, "c2": 0.2}, set()).items())
    [('C', 2.0), ('features', 'sparse'), ('l1_ratio', 0.2), ('solver', 'owlqn')]
    """
    theirs = {name: value for name, value in given.items() if name in _KNOWN}
    own = {name: value for name, value in given.items() if name not in _KNOWN}
    for name in own:
        if name not in ours:
            hint = did_you_mean(name, [*_KNOWN, *ours])
            raise ArgumentError(
                f"{name!r} is a parameter of neither sklearn_crfsuite.CRF nor SequenceLabeler{hint}"
            )
    found = {**_algorithm(theirs), "features": _space(theirs), **_penalty(theirs)}
    if found.get("l1_ratio") and theirs.get("algorithm", "lbfgs") == "lbfgs":
        found["solver"] = "owlqn"
    if theirs.get("min_freq"):
        found["min_count"] = max(1, math.ceil(checks.number("min_freq", theirs["min_freq"])))
    for name, here in (("max_iterations", "max_iter"), ("delta", "tol")):
        if theirs.get(name) is not None:
            found[here] = theirs[name]
    if theirs.get("verbose"):
        found["progress"] = True
    _warn([name for name in _DETAILS if theirs.get(name) is not None])
    return found | own


def _algorithm(given: Mapping[str, Any]) -> dict[str, Any]:
    name = given.get("algorithm") or "lbfgs"
    odd = [each for each in _ONLY_MISSING if given.get(each) is not None]
    if name in _MISSING or odd:
        what = f"{odd[0]!r}, a parameter of pa or arow," if odd else f"algorithm={name!r}"
        raise ArgumentError(
            f"{what} is not available; SequenceLabeler(loss='hinge') also learns with a margin"
        )
    known = tuple(_ALGORITHMS)
    return dict(_ALGORITHMS[checks.one_of("algorithm", name, known)])


def _space(given: Mapping[str, Any]) -> str:
    states = bool(given.get("all_possible_states"))
    if states != bool(given.get("all_possible_transitions")):
        raise ArgumentError(
            "all_possible_states and all_possible_transitions differ, but weights are either for "
            "the pairs seen in training (features='sparse', both False) or for all "
            "(features='dense', both True); give the same for both"
        )
    return "dense" if states else "sparse"


def _penalty(given: Mapping[str, Any]) -> dict[str, float]:
    """Weights of absolute values and of squares, as `C` and the share of the former."""
    if given.get("algorithm") == "ap":
        return {}
    default = 1.0  # of c2, in CRFsuite
    lasso, ridge = (
        checks.number(name, value if (value := given.get(name)) is not None else otherwise, low=0.0)
        for name, otherwise in (("c1", 0.0), ("c2", default))
    )
    total = lasso + 2.0 * ridge
    if total == 0.0:
        return {"C": math.inf}
    return {"C": 1.0 / total} | ({"l1_ratio": lasso / total} if lasso else {})


def _warn(names: list[str]) -> None:
    if names:
        are = "is a detail" if len(names) == 1 else "are details"
        hint = "; save the model by structlearn.save" if "model_filename" in names else ""
        warn(
            f"{', '.join(names)} {are} of CRFsuite without a counterpart here, and ignored{hint}",
            IgnoredOptionWarning,
        )
