"""Comparators in files: mixtures by mean field (shares, Gaussians, sticks, weights), and logits."""

from __future__ import annotations

from typing import Any

from papers import checks
from papers.comparators.mean_field import Machine, MeanField, SwitchingSVM, TruncatedSVM
from structlearn._src.common.watch import Ending
from structlearn._src.estimators.bayesian.storage import (
    GAUSSIANS,
    check_names,
    check_scale,
    check_settings,
    check_wishart,
    mixture_family,
)
from structlearn._src.files import file_checks
from structlearn.extend import Family


def _usual_ending(model: MeanField) -> Ending:
    """How rounds ended if nothing came between: what files without a status mean."""
    return Ending.LIMIT if model.n_iter_ >= model.settings_["max_iter"] else Ending.DONE


def _extra_state(model: MeanField) -> dict[str, Any]:
    unusual = {} if model.ended_ is _usual_ending(model) else {"status_": model.status_}
    return {"weights": model.machine_.weights, **unusual}


def _restore(model: MeanField, given: dict[str, Any]) -> None:
    """Refuse what would lead compiled code astray; set the machine."""
    fitted = check_settings(model)
    checks.integer("n_iter_", model.n_iter_)
    model.status_ = str(Ending(given.get("status_", _usual_ending(model))))
    K = fitted.n_components
    D = check_scale(model)
    file_checks.floats("the shares", model.shares_, (len(model.shares_), K))
    check_wishart("the components", model.after_, (K,), D)
    if isinstance(model, SwitchingSVM):
        L = check_names("classes", model.coder_.names)
        file_checks.floats("the starts", model.log_start_, (K,))
        file_checks.floats("the transitions", model.log_transitions_, (K, K))
    else:
        assert isinstance(model, TruncatedSVM)
        L = check_names("classes", model.classes_)
        file_checks.floats("the sizes of components", model.log_weights_, (K,))
    model.machine_ = Machine(float(fitted.C), float(fitted.variance))
    model.machine_.weights = file_checks.floats("the weights", given["weights"], (K, L, D + 1))


FAMILIES = (
    Family(
        estimators={
            "truncated-svm": "papers.comparators.mean_field:TruncatedSVM",
            "switching-svm": "papers.comparators.mean_field:SwitchingSVM",
        },
        fitted_attribute="shares_",
        learnt=(
            "n_features_in_", "feature_names_in_", "classes_", "coder_", "centre_", "scale_",
            "shares_", "after_", "log_weights_", "log_start_", "log_transitions_", "n_iter_",
            "settings_",
        ),
        restore=_restore,
        extra_state=_extra_state,
        records=GAUSSIANS,
    ),
    mixture_family(
        {"infinite-logit": "papers.comparators.infinite_logit:InfiniteLogit"}
    ),
)  # fmt: skip
