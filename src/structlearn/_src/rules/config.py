"""Files of settings, JSON or YAML, taken apart with errors that name the place."""

from __future__ import annotations

import json
import re
import reprlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from structlearn._src.common.errors import DataNotFoundError, FormatError, did_you_mean

_MOST_ENTRIES = 10**6  # of a file of YAML with all its aliases written out


@dataclass(frozen=True)
class Part:
    """A part of a file: its value, and what it is called in errors."""

    path: Path
    name: str
    value: Any

    def wrong(self, reason: str) -> NoReturn:
        """Refuse the file."""
        raise FormatError(f"{self.path.name}: {reason}")

    def _need(self, kind: type, words: str) -> Any:
        if not isinstance(self.value, kind):
            self.wrong(f"{self.name} is {reprlib.repr(self.value)}: it must be {words}")
        return self.value

    def text(self) -> str:
        """Return the value, which must be a text."""
        return self._need(str, "a text")

    def items(self) -> list[Part]:
        """Return the entries of a list."""
        return [replace(self, value=each) for each in self._need(list, "a list")]

    def parts(self, allowed: tuple[str, ...] = ()) -> dict[str, Part]:
        """Return the entries of a mapping; none of other keys than those that are allowed."""
        for key in self._need(dict, "a mapping"):
            if allowed and key not in allowed:
                hint = did_you_mean(str(key), allowed) or f"; known are {', '.join(allowed)}"
                self.wrong(f"{self.name} has the unknown key {key!r}{hint}")
        return {
            key: replace(self, name=f"{key!r} of {self.name}", value=value)
            for key, value in self.value.items()
        }


def read_text(path: Path) -> str:
    """Return the text of a file."""
    if not path.is_file():
        raise DataNotFoundError(f"there is no file {str(path)!r}: check the path")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path.name} is not UTF-8 text at byte {error.start}") from None


def load(path: Path, name: str) -> Part:
    """Read JSON, also as loosely written as PSL allows, or YAML, by the name of the file."""
    text = read_text(path)
    if path.suffix != ".json":
        return Part(path, name, _yaml(path, text))
    bare = _COMMA.sub(_strict, _LOOSE.sub(_strict, text))
    try:
        return Part(path, name, json.loads(bare, object_pairs_hook=_unique))
    except json.JSONDecodeError as error:
        place = f"(line {error.lineno}, column {error.colno})"
        raise FormatError(f"{path.name}: this is not JSON: {error.msg} {place}") from None
    except (ValueError, RecursionError) as error:  # a key twice, a number too long, deep brackets
        raise FormatError(f"{path.name}: this is not JSON that can be read: {error}") from None


# A text, one in single quotes, a number, or a comment; possessive, so that none is read twice.
_TEXT = r'("(?:\\.|[^"\\])*+(?:"|\Z))'
_LOOSE = re.compile(
    _TEXT + r"|'((?:\\.|[^'\\])*+)(?:'|\Z)|([+-]?\d[\w.+-]*+)|//[^\n]*|\#[^\n]*|/\*.*?(?:\*/|\Z)",
    re.DOTALL,
)
_COMMA = re.compile(_TEXT + r"|,(?=\s*+[\]}])", re.DOTALL)


def _strict(hit: re.Match[str]) -> str:
    """Write a piece of loose JSON as JSON, in the same place."""
    text, single, number = (*hit.groups(), None, None)[:3]
    if single is not None:
        return '"' + re.sub(r"""\\'|(?<!\\)\"""", lambda quote: _QUOTES[quote[0]], single) + '"'
    if number is not None:
        return re.sub(r"^(-?)\+?0*(?=\d)", r"\1", number)
    return text or re.sub(r"[^\n]", " ", hit[0])


_QUOTES = {"\\'": "'", '"': '\\"'}


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Make a mapping of pairs: of a key that comes twice one value would be lost."""
    made: dict[str, Any] = {}
    for key, value in pairs:
        if key in made:
            raise ValueError(f"the key {key!r} comes twice")
        made[key] = value
    return made


def _yaml(path: Path, text: str) -> Any:
    """Read YAML with every scalar as text, so that a predicate may be called ``No``."""
    import yaml

    class Loader(yaml.BaseLoader):  # type: ignore[misc]
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
            names = [(key.value, None) for key, _ in node.value if isinstance(key.value, str)]
            try:
                _unique(names)
            except ValueError as error:
                raise yaml.MarkedYAMLError(
                    problem=str(error), problem_mark=node.start_mark
                ) from None
            return super().construct_mapping(node, deep)

    try:
        found = yaml.load(text, Loader) or {}
        many = _entries(found, {})
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # a number too long, no letter
        mark = getattr(error, "problem_mark", None)
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        reason = getattr(error, "problem", None) or error
        raise FormatError(f"{path.name}: this is not YAML: {reason}{place}") from None
    except RecursionError:
        raise FormatError(
            f"{path.name}: this is nested too deeply, or an alias stands for itself"
        ) from None
    if many > _MOST_ENTRIES:
        raise FormatError(
            f"{path.name}: its aliases make more than {_MOST_ENTRIES} entries: write them out"
        )
    return found


def _entries(value: Any, known: dict[int, int]) -> int:
    """Count what a value would be with its aliases written out, without doing so."""
    if not isinstance(value, list | dict):
        return 1
    if id(value) not in known:
        inner = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_entries(each, known) for each in inner)
    return known[id(value)]


def is_true(given: Any) -> bool:
    """Tell whether something in a file means yes, as a truth value or as text."""
    return str(given).lower() == "true"
