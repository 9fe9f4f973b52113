"""Fields and models of rules in files of all estimators; atoms stay where they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from structlearn._src.common.watch import Ending
from structlearn._src.estimators.fields.hinge_field import HingeField
from structlearn._src.estimators.fields.rule_model import RuleModel
from structlearn._src.estimators.storage import Family
from structlearn._src.field.hinges import Hinges
from structlearn._src.rules.rule_file import FACTS

_PARAMETERS = ("tol", "max_iter")


@dataclass(frozen=True)
class FieldFamily(Family):
    """Fields as forms and weights, models of rules as texts; both with how learning went."""

    def parts(self, kind: str, estimator: Any) -> dict[str, Any]:
        """Return what an estimator is made of."""
        found = vars(estimator)
        facts = {name: found[name] for name in FACTS if name in found}
        if "ended_" in facts:
            facts["ended_"] = str(facts["ended_"])
        parts = {"parameters": {name: getattr(estimator, name) for name in _PARAMETERS}}
        parts["learnt"] = facts
        if kind == "hinge-field":
            return parts | {"hinges": asdict(estimator.hinges), "weights": estimator.weights_}
        return parts | {"rules": estimator.rules_}

    def build(self, kind: str, parts: dict[str, Any]) -> Any:
        """Return an estimator from its parts."""
        facts = {name: parts["learnt"][name] for name in FACTS if name in parts["learnt"]}
        if "ended_" in facts:
            facts["ended_"] = Ending(facts["ended_"])
        parameters = {name: parts["parameters"][name] for name in _PARAMETERS}
        estimator: HingeField | RuleModel
        if kind == "hinge-field":
            hinges = Hinges(**parts["hinges"])
            estimator = HingeField(hinges, weights=parts["weights"], **parameters)
        else:
            estimator = RuleModel(list(parts["rules"]), **parameters)
        vars(estimator).update(facts)
        return estimator


FAMILIES = [
    FieldFamily(
        estimators={
            "hinge-field": "structlearn._src.estimators.fields.hinge_field:HingeField",
            "rule-model": "structlearn._src.estimators.fields.rule_model:RuleModel",
        },
        fitted_attribute="weights_",
        learnt=(),
        restore=lambda estimator, learnt: None,
    )
]
