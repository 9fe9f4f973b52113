"""Truncated mixtures in files: shares, Gaussians, sticks and weights of their components."""

from __future__ import annotations

from typing import Any

from papers.comparators.mean_field import Machine, MeanField, SwitchingSVM, TruncatedSVM
from structlearn._src.common import checks
from structlearn._src.estimators.bayesian import file_checks as expect
from structlearn._src.estimators.codec import Family, Kinds, record
from structlearn._src.sample.normal_wishart import NormalWishart

_LEARNT = (
    "n_features_in_", "feature_names_in_", "classes_", "coder_", "centre_", "scale_", "shares_",
    "after_", "log_weights_", "log_start_", "log_transitions_", "n_iter_",
    "settings_",
)  # fmt: skip


def _recall(model: MeanField, given: dict[str, Any]) -> None:
    """Refuse what would lead compiled code astray; set the machine."""
    fitted = expect.settings(model)
    checks.integer("n_iter_", model.n_iter_)
    K, D = fitted.n_components, expect.scale(model)
    expect.floats("the shares", model.shares_, (len(model.shares_), K))
    expect.wishart("the components", model.after_, (K,), D)
    if isinstance(model, SwitchingSVM):
        L = expect.classes(model)
        expect.floats("the starts", model.log_start_, (K,))
        expect.floats("the transitions", model.log_transitions_, (K, K))
    else:
        assert isinstance(model, TruncatedSVM)
        L = expect.class_array(model.classes_)
        expect.floats("the sizes of components", model.log_weights_, (K,))
    model.machine_ = Machine(float(fitted.C), float(fitted.variance))
    model.machine_.weights = expect.floats("the weights", given["weights"], (K, L, D + 1))


KINDS = Kinds(
    Family("shares_", _LEARNT, lambda model: {"weights": model.machine_.weights}, _recall),
    {"truncated-svm": TruncatedSVM, "switching-svm": SwitchingSVM},
    {"normal-wishart": record(NormalWishart)},
)
