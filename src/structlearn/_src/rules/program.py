"""Read a program from files: rules, predicates, and where their data lie.

Both layouts of PSL: one JSON or YAML file (2.4), and a `.psl` file of rules with `.data` files in
YAML (before). No data are read here, and no path to them is looked up.
"""

from __future__ import annotations

import json
import os
import re
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from structlearn._src.common.document import completed
from structlearn._src.common.errors import (
    FormatError,
    IgnoredOptionWarning,
    RuleError,
    choose_one_of,
    did_you_mean,
    warn,
)
from structlearn._src.common.names import SPLITS
from structlearn._src.rules.config import Part, is_true, load, read_text
from structlearn._src.rules.parse import check, parse
from structlearn._src.rules.program_doc import READ_PROGRAM
from structlearn._src.rules.syntax import Predicate, Program

PARTITIONS = ("observations", "targets", "truth")

Row = tuple[str | float, ...]
Source = Path | tuple[Row, ...]

_TOP_KEYS = ("rules", "predicates", "options", "learn", "infer", "validation")
_KEYS = (*PARTITIONS, "types", "arity", "evaluations", "options", "force-open", "open")
#: What PSL would compute itself, by its keys in both layouts.
_COMPUTED = ("type", "function", "model", "implementation", "modeltype", "config")
_TYPES = (
    "UniqueStringID", "UniqueIntID", "String", "Integer", "Long", "Double", "Date",
    "DeferredFunctionalUniqueID",
)  # fmt: skip
#: The metrics of PSL's evaluators, by our names.
EVALUATORS: dict[str, tuple[str, ...]] = {
    "AUCEvaluator": ("auroc", "aupr_trapezoid", "aupr_negative"),
    "CategoricalEvaluator": ("categorical",),
    "ContinuousEvaluator": ("mae", "mse", "rmse"),
    "DiscreteEvaluator": (
        "f1", "precision", "recall", "precision_negative", "recall_negative", "accuracy",
    ),
}  # fmt: skip
#: Options about PSL's own tables and messages, which no answer depends on.
_SILENT = ("runtime.db.", "runtime.log.")
#: Options of metrics, where they are not a threshold alone.
_TAKEN = {"mse": (), "rmse": (), "mae": (), "categorical": ("category", "threshold")}
# The names under which PSL's own examples keep the data of a .psl file.
_ENDINGS = (("", "all"), ("-learn", "learn"), ("-eval", "infer"), ("-infer", "infer"))


@dataclass(frozen=True)
class Evaluation:
    """How a predicate is scored, in PSL's words, such as ``AUCEvaluator``."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    primary: bool = False

    def scores(self) -> list[tuple[str, dict[str, Any]]]:
        """Return metrics, each with options, for `RuleModel.score`."""
        given = {name.rpartition(".")[2]: value for name, value in self.options.items()}
        options: dict[str, Any] = {}
        if self.name == "CategoricalEvaluator":  # for which only a truth of 1 is positive
            options["threshold"] = 1.0
        elif "threshold" in given:
            options["threshold"] = float(given["threshold"])
        if "categoryindexes" in given:
            options["category"] = [int(each) for each in str(given["categoryindexes"]).split(":")]
        taken = {metric: _TAKEN.get(metric, ("threshold",)) for metric in EVALUATORS[self.name]}
        return [
            (metric, {name: options[name] for name in names if name in options})
            for metric, names in taken.items()
        ]


@dataclass(frozen=True)
class Declaration:
    """A predicate of a program with its data."""

    predicate: Predicate
    types: tuple[str, ...] = ()  #: of the arguments, where the file has them; without effect
    #: By partition and split: files, or rows that stand in the program itself.
    data: Mapping[tuple[str, str], tuple[Source, ...]] = field(default_factory=dict)
    evaluations: tuple[Evaluation, ...] = ()

    def sources(self, partition: str, split: str = "infer") -> tuple[Source, ...]:
        """Return what a split uses of a partition: its own data and those for all splits."""
        if split not in SPLITS:
            raise FormatError(choose_one_of("split", split, SPLITS))
        own = () if split == "all" else self.data.get((partition, split), ())
        return self.data.get((partition, "all"), ()) + own


@dataclass(frozen=True)
class ProgramFile:
    """What the files of a program say: `rules`, `declarations` of predicates, and `options`.

    `more` has rules by split that are added to `rules` for this split alone.
    """

    rules: Program
    declarations: tuple[Declaration, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    more: Mapping[str, Program] = field(default_factory=dict)

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The predicates alone."""
        return tuple(declaration.predicate for declaration in self.declarations)

    def rules_for(self, split: str) -> Program:
        """Return the rules of a split: those for all splits, then its own."""
        return self.rules + self.more.get(split, ())


@completed(READ_PROGRAM)
def read_program(
    model: str | Path,
    data: str | Path | Mapping[str, str | Path] | None = None,
    *,
    greedy: bool = False,
) -> ProgramFile:
    """Read a program in either layout."""
    path = Path(model)
    if path.suffix != ".psl":
        whole = load(path, "the model")
        if data is not None:
            whole.wrong("the model contains its own data: give a .data file with a .psl file only")
        return _read_config(whole, greedy)
    entries: dict[str, Part] = {}
    files = _data_files(path, data)
    for split, file in files.items():
        _add_entries(entries, split, file)
    declarations = tuple(map(_declaration, entries.values()))
    known = declarations if files else None  # rules alone, for data that come from elsewhere
    return ProgramFile(_rules(Part(path, "", path.name), known, greedy), declarations)


def _read_config(whole: Part, greedy: bool) -> ProgramFile:
    config = whole.parts(_TOP_KEYS)
    predicates = config["predicates"].parts() if "predicates" in config else {}
    entries = [replace(part, name=key) for key, part in predicates.items()]
    declarations = tuple(map(_declaration, entries))
    names = {each.predicate.name.lower() for each in declarations}
    if len(names) < len(declarations):
        whole.wrong("a predicate is declared twice, as case does not matter: declare it once")
    if sum(one.primary for each in declarations for one in each.evaluations) > 1:
        whole.wrong("several evaluations are primary: at most one can be")
    splits = {name: config[name].parts(("rules", "options")) for name in SPLITS if name in config}
    rules, *more = (
        _rules(replace(part["rules"], name=name), declarations, greedy) if "rules" in part else ()
        for name, part in {"rule": config, **splits}.items()
    )
    if not any((rules, *more)):
        whole.wrong("there are no rules: give at least one in 'rules'")
    options = {name: value for part in (config, *splits.values()) for name, value in _options(part)}
    own = [name for entry in entries for name, _ in _options(entry.parts())]
    scored = [name for each in declarations for one in each.evaluations for name in one.options]
    unknown = [name for name in scored if not name.endswith((".threshold", ".categoryindexes"))]
    told = dict.fromkeys(n for n in (*options, *own, *unknown) if not n.startswith(_SILENT))
    if told:
        reason = f"PSL's options {', '.join(told)} have no effect here"
        warn(f"{whole.path.name}: {reason}", IgnoredOptionWarning)
    return ProgramFile(rules, declarations, options, dict(zip(splits, more, strict=True)))


def _options(parts: Mapping[str, Part]) -> Iterator[tuple[str, Any]]:
    if "options" in parts:
        yield from ((name, part.value) for name, part in parts["options"].parts().items())


def _rules(given: Part, known: tuple[Declaration, ...] | None, greedy: bool) -> Program:
    """Read a list of rules, or the file that is named."""
    texts = {}
    if isinstance(given.value, str):
        file = given.path.parent / given.value
        texts[file.name] = read_text(file)
    else:
        for number, each in enumerate(given.items(), start=1):
            name = (
                f"{given.name} {number}" if given.name == "rule" else f"{given.name} rule {number}"
            )
            texts[f"{given.path.name}, {name}"] = replace(each, name=name).text()
    rules: Program = ()
    for where, text in texts.items():
        try:
            read = parse(text, greedy=greedy)
            rules += read if known is None else check(read, [each.predicate for each in known])
        except RuleError as error:
            reason = f"{where}: {error.reason}"
            raise RuleError(reason, error.text, error.line, error.column) from None
    return rules


def _add_entries(entries: dict[str, Part], split: str, file: Path) -> None:
    """Bring a .data file to the form of the other layout, beside those of other splits."""
    config = load(file, "the file").parts(("predicates", *PARTITIONS))
    predicates = config["predicates"].parts() if "predicates" in config else {}
    for key, part in predicates.items():
        name, _, arity = key.partition("/")
        known = entries.setdefault(name.lower(), Part(file, key, {}))
        if known.name.partition("/")[2] != arity:
            part.wrong(f"{known.name} is declared again as {key}: one predicate has one arity")
        known.value.update(_declared(key, part))
    for partition in PARTITIONS:
        given = config[partition].parts() if partition in config else {}
        for key, part in given.items():
            name = key.partition("/")[0]
            if name.lower() not in entries:
                names = [known.partition("/")[0] for known in predicates]
                hint = did_you_mean(name, names)
                part.wrong(f"{partition!r} names {name!r}, which is not in 'predicates'{hint}")
            paths = [part] if isinstance(part.value, str) else part.items()
            entry = entries[name.lower()].value.setdefault(partition, {})
            if not isinstance(entry, dict):
                part.wrong(f"{partition!r} names {name!r}, which has {partition} already")
            entry[split] = [file.parent / each.text() for each in paths]


def _declared(key: str, part: Part) -> dict[str, Any]:
    """Read ``open`` or ``closed``, or a list of one of them and further settings."""
    entry: dict[str, Any] = {}
    for each in part.items() if isinstance(part.value, list) else [part]:
        if isinstance(each.value, dict):
            entry |= each.value
        elif each.value in ("open", "closed"):
            entry["open"] = each.value == "open"
        elif each.value != "block":  # how PSL may ground, without a meaning
            part.wrong(f"{key} is {reprlib.repr(each.value)}: a predicate is 'open' or 'closed'")
    return entry


def _declaration(whole: Part) -> Declaration:
    key = whole.name
    for name in _COMPUTED:
        if name in whole.value and whole.value[name] != "StandardPredicate":
            whole.wrong(
                f"{key} is a deep predicate or a function, as {name!r} says, which PSL computes by "
                f"code of its own: compute its atoms, and give them as observations"
            )
    entry = whole.parts((*_KEYS, *_COMPUTED))
    types = tuple(each.text() for each in entry["types"].items()) if "types" in entry else ()
    for kind in types:
        if kind not in _TYPES:
            whole.wrong(choose_one_of(f"a type of {key}", kind, _TYPES))
    name, arity = _signature(whole, len(types))
    data: dict[tuple[str, str], tuple[Source, ...]] = {}
    for partition in [each for each in PARTITIONS if each in entry]:
        given = entry[partition]
        splits = given.parts(SPLITS) if isinstance(given.value, dict) else {"all": given}
        data |= {(partition, split): _sources(part, arity) for split, part in splits.items()}
    targets = any(sources for (part, _), sources in data.items() if part == "targets")
    is_open = whole.value.get("open", targets) or is_true(whole.value.get("force-open"))
    if targets and not is_open:
        whole.wrong(f"{key} is closed, but has targets: declare it open, or leave them out")
    evaluations = entry["evaluations"].items() if "evaluations" in entry else []
    return Declaration(
        Predicate(name, arity, is_open), types, data, tuple(map(_evaluation, evaluations))
    )


def _signature(whole: Part, n_types: int) -> tuple[str, int]:
    """Read the name and the arity: behind a slash, as a key, or as the number of types."""
    name, _, written = whole.name.partition("/")
    given = {str(arity) for arity in (written, whole.value.get("arity"), n_types) if arity}
    if not re.fullmatch(r"[A-Za-z$_][A-Za-z0-9$_]*", name):
        whole.wrong(f"{whole.name!r} is no predicate: write a name and an arity, as in 'Knows/2'")
    if len(given) != 1 or not re.fullmatch(r"[1-9][0-9]{0,3}", min(given)):
        found = f"the arities {sorted(given)}" if given else "no arity"
        whole.wrong(f"{whole.name} has {found}: write one number from 1 to 9999, as in '{name}/2'")
    return name, int(min(given))


def _sources(part: Part, arity: int) -> tuple[Source, ...]:
    """Read a path, or a list of paths and rows; all rows together are one source."""
    given = [part] if isinstance(part.value, str) else part.items()
    rows = [_row(each, arity) for each in given if isinstance(each.value, list)]
    files = [
        each.value if isinstance(each.value, Path) else part.path.parent / each.text()
        for each in given
        if not isinstance(each.value, list)
    ]
    if any(len(row) > arity for row in rows):  # then all rows have a value
        rows = [(*row, 1.0)[: arity + 1] for row in rows]
    return (*files, tuple(rows)) if rows else tuple(files)


def _row(part: Part, arity: int) -> Row:
    texts = tuple(map(str, part.value))
    try:
        value = tuple(map(float, texts[arity:]))
    except ValueError:
        value = (0.0, 0.0)
    if len(texts) < arity or len(value) > 1:
        part.wrong(
            f"{reprlib.repr(part.value)} in {part.name} should have {arity} arguments and perhaps "
            f"a value"
        )
    return texts[:arity] + value


def _evaluation(part: Part) -> Evaluation:
    known = ("evaluator", "options", "primary")
    entry = {"evaluator": part} if isinstance(part.value, str) else part.parts(known)
    if "evaluator" not in entry:
        part.wrong(f"{part.name} names no 'evaluator': give one of {', '.join(EVALUATORS)}")
    name = entry["evaluator"].text()
    short = name.rpartition(".")[2]
    if short not in EVALUATORS:
        part.wrong(choose_one_of("evaluator", name, tuple(EVALUATORS)))
    primary = "primary" in entry and is_true(entry["primary"].value)
    evaluation = Evaluation(short, dict(_options(entry)), primary)
    try:
        evaluation.scores()
    except ValueError as error:
        part.wrong(f"{part.name} has options that are no numbers ({error})")
    return evaluation


def _data_files(
    path: Path, data: str | Path | Mapping[str, str | Path] | None
) -> Mapping[str, Path]:
    if isinstance(data, str | Path):
        return {"all": Path(data)}
    if data is not None:
        parts = Part(path, "data", dict(data)).parts(SPLITS)
        return {split: Path(part.value) for split, part in parts.items()}
    beside = [(split, path.with_name(f"{path.stem}{end}.data")) for end, split in _ENDINGS]
    return {split: file for split, file in beside if file.is_file()}


# ---- and write it again ---------------------------------------------------------------------


def learned_json(program: ProgramFile, rules: list[str], folder: Path) -> str:
    """Write a program with the rules of learning as a model of PSL 2.4, to be put into a folder."""
    predicates = {
        f"{each.predicate.name}/{each.predicate.arity}": _entry(each, folder)
        for each in program.declarations
    }
    config = {"options": dict(program.options), "rules": rules[: len(program.rules)]}
    for split, more in program.more.items():
        texts = rules[len(program.rules) :] if split == "learn" else list(map(str, more))
        config[split] = {"rules": texts}
    return json.dumps(config | {"predicates": predicates}, indent=1) + "\n"


def _entry(declared: Declaration, folder: Path) -> dict[str, Any]:
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
