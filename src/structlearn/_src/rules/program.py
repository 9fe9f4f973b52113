"""Read a program from files: rules, predicates, and where their data lie.

Both layouts of PSL: one JSON file (2.4), and a `.psl` file of rules with `.data` files in YAML
(before). No data are read here, and no path is looked up.
"""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from structlearn._src.common.errors import (
    DataNotFoundError,
    FormatError,
    RuleError,
    choose_one_of,
    did_you_mean,
)
from structlearn._src.common.names import SPLITS
from structlearn._src.rules.check import check
from structlearn._src.rules.parse import parse
from structlearn._src.rules.syntax import Predicate, Program, Rule

PARTITIONS = ("observations", "targets", "truth")

Row = tuple[str | float, ...]
Source = Path | tuple[Row, ...]

_TOP_KEYS = ("rules", "predicates", "options", "learn", "infer", "validation")
_KEYS = (*PARTITIONS, "types", "arity", "evaluations", "options", "function", "model")
# The names under which PSL's own examples keep the data of a .psl file.
_MOST_ENTRIES = 10**6  # of a .data file with all its aliases written out
_ENDINGS = (("", "all"), ("-learn", "learn"), ("-eval", "infer"), ("-infer", "infer"))


@dataclass(frozen=True)
class Evaluation:
    """How a predicate is scored, in PSL's words, such as ``AUCEvaluator``."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    primary: bool = False


@dataclass(frozen=True)
class Declaration:
    """A predicate of a program with its data.

    Attributes
    ----------
    predicate
        Its name and arity, and whether it is open.
    types
        PSL's types of the arguments; empty where the file has none. They have no effect.
    data
        By partition and split: files, or rows that stand in the program itself.
    evaluations
        How it is scored.
    """

    predicate: Predicate
    types: tuple[str, ...] = ()
    data: Mapping[tuple[str, str], tuple[Source, ...]] = field(default_factory=dict)
    evaluations: tuple[Evaluation, ...] = ()

    def sources(self, partition: str, split: str = "infer") -> tuple[Source, ...]:
        """Return what a split uses of a partition: its own data and those for all splits."""
        for name, given, allowed in (
            ("partition", partition, PARTITIONS),
            ("split", split, SPLITS),
        ):
            if given not in allowed:
                raise FormatError(choose_one_of(name, given, allowed))
        own = () if split == "all" else self.data.get((partition, split), ())
        return self.data.get((partition, "all"), ()) + own


@dataclass(frozen=True)
class ProgramFile:
    """What the files of a program say: `rules`, `declarations` of predicates, and `options`."""

    rules: Program
    declarations: tuple[Declaration, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The predicates alone."""
        return tuple(declaration.predicate for declaration in self.declarations)


def read_program(
    model: str | Path,
    data: str | Path | Mapping[str, str | Path] | None = None,
    *,
    greedy: bool = False,
) -> ProgramFile:
    """Read a program in either layout.

    Parameters
    ----------
    model
        A JSON file of PSL 2.4, or a file of rules that ends in ``.psl``.
    data
        The ``.data`` files of a ``.psl`` file: one path, or a mapping from split to path. Without,
        ``NAME.data``, ``NAME-learn.data`` and ``NAME-infer.data`` or ``NAME-eval.data`` beside it
        are used if they are there.
    greedy
        See `parse`.

    Returns
    -------
    ProgramFile
        Rules that are checked against the predicates. Paths lie in the folder of their file.

    Raises
    ------
    RuleError
        If a rule is wrong, with the file and the place.
    FormatError
        If a file does not follow its format.
    """
    path = Path(model)
    text = _read(path)
    if path.suffix == ".psl":
        return _read_psl(path, text, _data_files(path, data), greedy)
    if data is not None:
        _wrong(path, "the model has its data in itself: give a .data file with a .psl file only")
    return _read_json(path, text, greedy)


def _read_json(path: Path, text: str, greedy: bool) -> ProgramFile:
    config = _json(path, text)
    _check_keys(path, "the model", config, _TOP_KEYS)
    predicates = _mapping(path, "'predicates'", config.get("predicates", {}))
    declarations = tuple(_declaration(path, key, entry) for key, entry in predicates.items())
    rules: list[Rule] = []
    for number, line in enumerate(_list(path, "'rules'", config.get("rules", [])), start=1):
        with _naming(f"{path.name}, rule {number}"):
            program = parse(_string(path, f"rule {number}", line), greedy=greedy)
            rules += check(program, (each.predicate for each in declarations))
    if not rules:
        _wrong(path, "there are no rules: give at least one in 'rules'")
    return ProgramFile(tuple(rules), declarations, config.get("options") or {})


def _read_psl(path: Path, text: str, files: Mapping[str, Path], greedy: bool) -> ProgramFile:
    entries: dict[str, dict[str, Any]] = {}
    for split, file in files.items():
        _add_entries(entries, split, file)
    declarations = tuple(
        _declaration(each["file"], each["name"], each["entry"]) for each in entries.values()
    )
    with _naming(path.name):
        rules = parse(text, greedy=greedy)
        if files:
            rules = check(rules, (each.predicate for each in declarations))
    return ProgramFile(rules, declarations)


def _add_entries(entries: dict[str, dict[str, Any]], split: str, file: Path) -> None:
    """Bring a .data file to the form of the JSON layout, beside those of other splits."""
    config = _yaml(file, _read(file))
    _check_keys(file, "the file", config, ("predicates", *PARTITIONS))
    predicates = _mapping(file, "'predicates'", config.get("predicates") or {})
    for key, value in predicates.items():
        name, _, arity = key.partition("/")
        known = entries.setdefault(name.lower(), {"file": file, "name": key, "entry": {}})
        if known["name"].partition("/")[2] != arity:
            _wrong(file, f"{known['name']} is declared again as {key}: one predicate has one arity")
        known["entry"] |= _declared(file, key, value)
    for partition in PARTITIONS:
        for key, value in _mapping(file, f"'{partition}'", config.get(partition) or {}).items():
            name = key.partition("/")[0]
            if name.lower() not in entries:
                names = [key.partition("/")[0] for key in predicates]
                _wrong(
                    file,
                    f"'{partition}' names {name!r}, which is not in 'predicates'"
                    f"{did_you_mean(name, names)}",
                )
            paths = (
                [value] if isinstance(value, str) else _list(file, f"{key} in '{partition}'", value)
            )
            entry = entries[name.lower()]["entry"].setdefault(partition, {})
            entry[split] = [file.parent / _string(file, f"a path of {key}", each) for each in paths]


def _declared(file: Path, key: str, value: Any) -> dict[str, Any]:
    """Read ``open`` or ``closed``, or a list of one of them and further settings."""
    entry: dict[str, Any] = {}
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, dict):
            entry |= part
        elif part in ("open", "closed"):
            entry["open"] = part == "open"
        else:
            _wrong(file, f"{key} is {reprlib.repr(part)}: a predicate is 'open' or 'closed'")
    return entry


def _declaration(path: Path, key: str, entry: Any) -> Declaration:
    entry = _mapping(path, key, entry)
    _check_keys(path, key, entry, (*_KEYS, "open"))
    for unsupported in ("function", "model"):
        if unsupported in entry:
            _wrong(
                path,
                f"{key} is computed by a {unsupported!r} of PSL's own, which cannot run here: "
                f"compute its atoms and give them as observations",
            )
    types = tuple(_list(path, f"'types' of {key}", entry.get("types", [])))
    name, arity = _signature(path, key, entry, len(types))
    data = {
        (partition, split): _sources(path, f"{split} {partition} of {key}", given, arity)
        for partition in PARTITIONS
        if partition in entry
        for split, given in _by_split(path, f"'{partition}' of {key}", entry[partition])
    }
    targets = any(sources for (part, _), sources in data.items() if part == "targets")
    if targets and not entry.get("open", True):
        _wrong(path, f"{key} is closed, but has targets: declare it open, or leave them out")
    evaluations = tuple(
        _evaluation(path, key, each)
        for each in _list(path, f"'evaluations' of {key}", entry.get("evaluations", []))
    )
    predicate = Predicate(name, arity, entry.get("open", targets))
    return Declaration(predicate, types, data, evaluations)


def _signature(path: Path, key: str, entry: Mapping[str, Any], n_types: int) -> tuple[str, int]:
    """Read the name and the arity: behind a slash, as a key, or as the number of types."""
    name, _, written = key.partition("/")
    given = {str(arity) for arity in (written, entry.get("arity"), n_types) if arity}
    if not re.fullmatch(r"[A-Za-z$_][A-Za-z0-9$_]*", name):
        _wrong(path, f"{key!r} is no predicate: write a name and an arity, as in 'Knows/2'")
    if len(given) != 1 or not re.fullmatch(r"[1-9][0-9]{0,3}", min(given)):
        found = f"the arities {sorted(given)}" if given else "no arity"
        _wrong(path, f"{key} has {found}: write one number from 1 to 9999, as in '{name}/2'")
    return name, int(min(given))


def _by_split(path: Path, where: str, given: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(given, dict):
        yield "all", given
        return
    _check_keys(path, where, given, SPLITS)
    yield from given.items()


def _sources(path: Path, where: str, given: Any, arity: int) -> tuple[Source, ...]:
    """Read a path, or a list of paths and rows; all rows together are one source."""
    given = [given] if isinstance(given, str) else _list(path, where, given)
    rows = tuple(_row(path, where, each, arity) for each in given if isinstance(each, list))
    files = tuple(
        each if isinstance(each, Path) else path.parent / _string(path, where, each)
        for each in given
        if not isinstance(each, list)
    )
    return (*files, rows) if rows else files


def _row(path: Path, where: str, row: list[Any], arity: int) -> Row:
    *arguments, value = row if len(row) == arity + 1 else (*row, 1.0)
    if len(arguments) != arity or not isinstance(value, int | float):
        shown = reprlib.repr(row)
        _wrong(path, f"{shown} in the {where} should have {arity} arguments and perhaps a value")
    texts = tuple(str(argument) for argument in arguments)
    return texts if len(row) == arity else (*texts, float(value))


def _evaluation(path: Path, key: str, given: Any) -> Evaluation:
    if isinstance(given, str):
        return Evaluation(given)
    entry = _mapping(path, f"an evaluation of {key}", given)
    name = _string(path, f"'evaluator' of {key}", entry.get("evaluator"))
    return Evaluation(name, entry.get("options") or {}, bool(entry.get("primary", False)))


def _data_files(
    path: Path, data: str | Path | Mapping[str, str | Path] | None
) -> Mapping[str, Path]:
    if isinstance(data, str | Path):
        return {"all": Path(data)}
    if data is not None:
        _check_keys(path, "data", data, SPLITS)
        return {split: Path(file) for split, file in data.items()}
    beside = [(split, path.with_name(f"{path.stem}{end}.data")) for end, split in _ENDINGS]
    return {split: file for split, file in beside if file.is_file()}


def _read(path: Path) -> str:
    if not path.is_file():
        raise DataNotFoundError(f"there is no file {str(path)!r}: check the path")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path.name} is not UTF-8 text at byte {error.start}") from None


def _json(path: Path, text: str) -> Mapping[str, Any]:
    """Read JSON with comments and commas at ends, which PSL allows; lines stay where they are."""
    bare = re.sub(
        r'("(?:\\.|[^"\\])*+(?:"|\Z))|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)',
        lambda hit: hit[1] or re.sub(r"[^\n]", " ", hit[0]),
        text,
        flags=re.DOTALL,
    )
    bare = re.sub(r'("(?:\\.|[^"\\])*+(?:"|\Z))|,(?=\s*+[\]}])', lambda hit: hit[1] or " ", bare)
    try:
        return _mapping(path, "the model", json.loads(bare))
    except json.JSONDecodeError as error:
        _wrong(path, f"this is not JSON: {error.msg} (line {error.lineno}, column {error.colno})")
    except (ValueError, RecursionError) as error:  # a number too long, brackets too deep
        _wrong(path, f"this is not JSON that can be read: {error}")


def _yaml(path: Path, text: str) -> Mapping[str, Any]:
    """Read YAML with every scalar as text, so that a predicate may be called ``No``."""
    import yaml

    try:
        found = yaml.load(text, Loader=yaml.BaseLoader) or {}
        if _entries(found, {}) > _MOST_ENTRIES:
            _wrong(path, f"its aliases make more than {_MOST_ENTRIES} entries: write them out")
        return _mapping(path, "the file", found)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        _wrong(path, f"this is not YAML: {error.problem}{place}")
    except yaml.YAMLError as error:
        _wrong(path, f"this is not YAML: {error}")
    except RecursionError:
        _wrong(path, "this is nested too deeply, or an alias stands for itself")


def _entries(value: Any, known: dict[int, int]) -> int:
    """Count what a value would be with its aliases written out, without doing so."""
    if not isinstance(value, list | dict):
        return 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_entries(each, known) for each in inner)
    return known[id(value)]


def _mapping(path: Path, where: str, given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else _wrong_type(path, where, given, "a mapping")


def _list(path: Path, where: str, given: Any) -> list[Any]:
    return given if isinstance(given, list) else _wrong_type(path, where, given, "a list")


def _string(path: Path, where: str, given: Any) -> str:
    return given if isinstance(given, str) else _wrong_type(path, where, given, "a text")


def _wrong_type(path: Path, where: str, given: Any, needed: str) -> NoReturn:
    _wrong(path, f"{where} is {reprlib.repr(given)}: it must be {needed}")


def _check_keys(path: Path, where: str, given: Iterable[str], allowed: tuple[str, ...]) -> None:
    for key in given:
        if key not in allowed:
            hint = did_you_mean(key, allowed) or f"; known are {', '.join(allowed)}"
            _wrong(path, f"{where} has the unknown key {key!r}{hint}")


def _wrong(path: Path, reason: str) -> NoReturn:
    raise FormatError(f"{path.name}: {reason}")


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Say in which file a rule is wrong."""
    try:
        yield
    except RuleError as error:
        reason = f"{where}: {error.reason}"
        raise RuleError(reason, error.text, error.line, error.column) from None
