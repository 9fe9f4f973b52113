"""Fields and models of rules in files: texts and numbers, so that loading runs no code.

Both are kinds of the file of all estimators. Models of rules have one of their own too, in JSON
that people can read. Atoms stay where they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from structlearn._src.common.errors import DataNotFoundError, FormatError, StructlearnError
from structlearn._src.common.paths import PathLike, as_path, write_bytes
from structlearn._src.common.watch import Ending
from structlearn._src.estimators.storage import Family
from structlearn._src.field.hinges import Hinges
from structlearn._src.files.store import check_schema

SCHEMA = "structlearn.rules/1"
_KEYS = {"schema", "rules", "parameters", "fit"}
_PARAMETERS = ("tol", "max_iter")
#: How learning went; earlier files, which are read too, lack `ended_`.
_FACTS = ("value_", "n_iter_", "converged_", "status_", "ended_")


def _describe(estimator: Any) -> dict[str, Any]:
    """Parameters of a model of rules, or of a field, and how its learning went."""
    found = vars(estimator)
    facts = {name: found[name] for name in _FACTS if name in found}
    if "ended_" in facts:
        facts["ended_"] = str(facts["ended_"])
    return {"parameters": {name: found[name] for name in _PARAMETERS}, "fit": facts}


def restore(make: Any, parts: Mapping[str, Any], *made_of: Any, **parameters: Any) -> Any:
    """Make an estimator as it was described; `parameters` take the place of those in the file."""
    kept = {name: parts["parameters"][name] for name in _PARAMETERS}
    estimator = make(*made_of, **(kept | parameters))
    facts = {name: value for name, value in parts["fit"].items() if name in _FACTS}
    if "ended_" in facts:
        facts["ended_"] = Ending(facts["ended_"])
    vars(estimator).update(facts)
    return estimator


@dataclass(frozen=True)
class FieldFamily(Family):
    """Fields as forms and weights, models of rules as texts; both with how learning went."""

    def parts(self, kind: str, estimator: Any) -> dict[str, Any]:
        """Return what an estimator is made of."""
        if kind == "rule-model":
            return _describe(estimator) | {"rules": estimator.rules_}
        made_of = {"hinges": asdict(estimator.hinges), "weights": estimator.weights_}
        return _describe(estimator) | made_of

    def build(self, kind: str, parts: dict[str, Any]) -> Any:
        """Return an estimator from its parts."""
        from structlearn._src.estimators.fields.hinge_field import HingeField
        from structlearn._src.estimators.fields.rule_model import RuleModel

        if kind == "rule-model":
            return restore(RuleModel, parts, list(parts["rules"]))
        return restore(HingeField, parts, Hinges(**parts["hinges"]), weights=parts["weights"])


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


# ---- models of rules in JSON ---------------------------------------------------------------


def save_rules(path: PathLike, model: Any) -> None:
    """Write a model; others see the old file or the whole new one."""
    record = {"schema": SCHEMA, "rules": model.rules_, **_describe(model)}
    record["sha256"] = _checksum(record)
    write_bytes(path, (json.dumps(record, indent=1) + "\n").encode())


def load_rules(path: PathLike, make: Any, parameters: Mapping[str, Any]) -> Any:
    """Make a model of what `save_rules` has written."""
    try:
        record = json.loads(as_path(path).read_bytes())
    except FileNotFoundError:
        raise DataNotFoundError(f"there is no file {str(path)!r}: check the path") from None
    except (ValueError, RecursionError) as reason:  # no JSON, a number too long, lists too deep
        raise FormatError(f"{path}: this is not a model of rules ({reason})") from None
    schema = record.get("schema") if isinstance(record, dict) else None
    check_schema(path, schema, SCHEMA, "; files of PSL are read by RuleModel.from_file")
    with _damaged(path):
        if record.pop("sha256", None) not in (None, _checksum(record)):  # earlier files have none
            raise FormatError("its checksum does not match; remove it if you edited the file")
        if not record.keys() <= _KEYS:
            raise FormatError(f"there is no place for {max(record.keys() - _KEYS)!r}")
        for rule in record["rules"]:
            if not isinstance(rule, str):
                raise FormatError(f"{rule!r} is no rule")
        return restore(make, record, list(record["rules"]), **parameters)


def _checksum(record: Mapping[str, Any]) -> str:
    """Return what changes with any fact, but not with blanks and the order of the facts."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


@contextmanager
def _damaged(path: PathLike) -> Iterator[None]:
    """Say which file is at fault."""
    try:
        yield
    except (StructlearnError, KeyError, TypeError, ValueError, AttributeError) as reason:
        raise FormatError(f"{path}: the model in the file is damaged ({reason})") from None
