"""Models of rules in files: texts and numbers in JSON, so that loading runs no code."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from structlearn._src.common.errors import DataNotFoundError, FormatError, StructlearnError
from structlearn._src.common.paths import PathLike, as_path, write_bytes
from structlearn._src.common.watch import Ending
from structlearn._src.files.store import check_schema
from structlearn._src.rules.program import Declaration, ProgramFile

SCHEMA = "structlearn.rules/1"
_KEYS = {"schema", "rules", "parameters", "fit"}
_PARAMETERS = ("tol", "max_iter")
#: How learning went; `ended_` is not in files of before, which also load.
_FACTS = ("value_", "n_iter_", "converged_", "status_", "ended_")


def describe(model: Any) -> dict[str, Any]:
    """Parameters of a model of rules, or of a field, and how its learning went."""
    found = vars(model)
    facts = {name: found[name] for name in _FACTS if name in found}
    if "ended_" in facts:
        facts["ended_"] = str(facts["ended_"])
    return {"parameters": {name: found[name] for name in _PARAMETERS}, "fit": facts}


def read_description(record: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both again."""
    facts = {name: value for name, value in record["fit"].items() if name in _FACTS}
    if "ended_" in facts:
        facts["ended_"] = Ending(facts["ended_"])
    return {name: record["parameters"][name] for name in _PARAMETERS}, facts


def save(path: PathLike, model: Any) -> None:
    """Write a model; others see the old file or the whole new one."""
    record = {"schema": SCHEMA, "rules": model.rules_, **describe(model)}
    record["sha256"] = _checksum(record)
    write_bytes(path, (json.dumps(record, indent=1) + "\n").encode())


def load(path: PathLike) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """Return the rules, the parameters, and how learning went."""
    try:
        record = json.loads(as_path(path).read_bytes())
    except FileNotFoundError:
        raise DataNotFoundError(f"there is no file {str(path)!r}: check the path") from None
    except (ValueError, RecursionError) as reason:  # no JSON, a number too long, lists too deep
        raise FormatError(f"{path}: this is not a model of rules ({reason})") from None
    schema = record.get("schema") if isinstance(record, dict) else None
    check_schema(path, schema, SCHEMA, "; files of PSL are read by RuleModel.from_file")
    with damaged(path):
        if record.pop("sha256", None) not in (None, _checksum(record)):  # files of before have none
            raise FormatError("its checksum does not fit; whoever changed it on purpose removes it")
        if not record.keys() <= _KEYS:
            raise FormatError(f"there is no place for {max(record.keys() - _KEYS)!r}")
        return [_text(rule) for rule in record["rules"]], *read_description(record)


def _checksum(record: Mapping[str, Any]) -> str:
    """Return what changes with any fact, but not with blanks and the order of the facts."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()


@contextmanager
def damaged(path: PathLike) -> Iterator[None]:
    """Say which file is at fault."""
    try:
        yield
    except (StructlearnError, KeyError, TypeError, ValueError, AttributeError) as reason:
        raise FormatError(f"{path}: the model in the file is damaged ({reason})") from None


def _text(given: Any) -> str:
    if not isinstance(given, str):
        raise FormatError(f"{given!r} is no rule")
    return given


# ---- PSL's own layout ----------------------------------------------------------------------


def learned_json(program: ProgramFile, rules: list[str], folder: Path) -> str:
    """Write a program with the rules of learning as a model of PSL 2.4, to be put into a folder."""
    predicates = {
        f"{each.predicate.name}/{each.predicate.arity}": _declared(each, folder)
        for each in program.declarations
    }
    config = {"options": dict(program.options), "rules": rules[: len(program.rules)]}
    for split, more in program.more.items():
        texts = rules[len(program.rules) :] if split == "learn" else list(map(str, more))
        config[split] = {"rules": texts}
    return json.dumps(config | {"predicates": predicates}, indent=1) + "\n"


def _declared(declared: Declaration, folder: Path) -> dict[str, Any]:
    entry: dict[str, Any] = {"types": list(declared.types)} if declared.types else {}
    if declared.predicate.open:
        entry["force-open"] = True
    for (partition, split), sources in declared.data.items():
        places = entry.setdefault(partition, {}).setdefault(split, [])
        for source in sources:
            if isinstance(source, Path):
                places.append(os.path.relpath(source, folder))
            else:
                places += map(list, source)
    evaluations = [
        {"evaluator": each.name, "options": dict(each.options), "primary": each.primary}
        for each in declared.evaluations
    ]
    return entry | ({"evaluations": evaluations} if evaluations else {})
