"""Fields and models of rules in files of all estimators; atoms stay where they are."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from structlearn._src.estimators.fields.hinge_field import HingeField
from structlearn._src.estimators.fields.rule_model import RuleModel
from structlearn._src.estimators.storage import Family
from structlearn._src.field.hinges import Hinges
from structlearn._src.rules.rule_file import describe, read_description


@dataclass(frozen=True)
class FieldFamily(Family):
    """Fields as forms and weights, models of rules as texts; both with how learning went."""

    def parts(self, kind: str, estimator: Any) -> dict[str, Any]:
        """Return what an estimator is made of."""
        if kind == "rule-model":
            return describe(estimator) | {"rules": estimator.rules_}
        made_of = {"hinges": asdict(estimator.hinges), "weights": estimator.weights_}
        return describe(estimator) | made_of

    def build(self, kind: str, parts: dict[str, Any]) -> Any:
        """Return an estimator from its parts."""
        parameters, facts = read_description(parts)
        estimator: HingeField | RuleModel
        if kind == "rule-model":
            estimator = RuleModel(list(parts["rules"]), **parameters)
        else:
            hinges = Hinges(**parts["hinges"])
            estimator = HingeField(hinges, weights=parts["weights"], **parameters)
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
