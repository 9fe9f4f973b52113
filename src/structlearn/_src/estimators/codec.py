"""Things as arrays and plain facts: a tree of records, each of which names its kind.

A kind that is not listed does not exist, so that reading a tree runs no code but ours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.common.names import RUN_ONLY
from structlearn._src.files.store import Arrays
from structlearn._src.text.labels import LabelCoder

_PLAIN = (type(None), bool, int, float, str)
_NAMED = {"O": "objects", "U": "texts"}
_LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "entries": dict,
    "objects": lambda items: _objects(items),
    "texts": lambda items: np.array(items, np.str_),
}


class Kind(NamedTuple):
    """How things of one class become parts with names, and are built again from these."""

    of: type
    parts: Callable[[Any], dict[str, Any]]
    build: Callable[[dict[str, Any]], Any]


class Family(NamedTuple):
    """What estimators that learn in the same way have learnt, and how that is checked."""

    sign: str  #: attribute that a fitted one has
    names: tuple[str, ...]  #: attributes that are kept as they are, where there are any
    others: Callable[[Any], dict[str, Any]]  #: the rest of what is kept, laid out for a file
    recall: Callable[[Any, dict[str, Any]], None]  #: check all, and set what `names` lacks


def record(of: type, renamed: Mapping[str, str] | None = None) -> Kind:
    """A class whose arguments are its fields; some may have other names in files."""
    names = [field.name for field in dataclasses.fields(of) if field.init]
    kept = {name: (renamed or {}).get(name, name) for name in names if name not in RUN_ONLY}

    def parts(value: Any) -> dict[str, Any]:
        return {filed: getattr(value, name) for name, filed in kept.items()}

    def build(given: dict[str, Any]) -> Any:
        unknown = sorted(set(given).difference(kept.values()))
        if unknown:
            raise FormatError(f"there is no place for {unknown[0]!r}")
        return of(**{name: given[filed] for name, filed in kept.items() if filed in given})

    return Kind(of, parts, build)


def estimator(of: type, family: Family) -> Kind:
    """An estimator: its parameters as they were given, and what it has learnt."""
    settings = record(of)

    def parts(value: Any) -> dict[str, Any]:
        given = settings.parts(value)
        if isinstance(given["random_state"], (np.random.Generator, np.random.RandomState)):
            given["random_state"] = None
        learnt = {name: vars(value)[name] for name in family.names if name in vars(value)}
        return {"parameters": given, "learnt": learnt | family.others(value)}

    def build(given: dict[str, Any]) -> Any:
        new, learnt = settings.build(given["parameters"]), given["learnt"]
        for name in family.names:
            if name in learnt:
                setattr(new, name, learnt[name])
        family.recall(new, learnt)
        return new

    return Kind(of, parts, build)


def _coder(given: dict[str, Any]) -> LabelCoder:
    coder = LabelCoder(given["names"])
    if coder.names.tolist() != given["names"]:
        raise FormatError("the labels are not in order")
    return coder


def _objects(items: list[Any]) -> NDArray[Any]:
    array = np.empty(len(items), object)
    array[:] = items
    return array


#: What all trees may have.
_COMMON = {
    "mapping": Kind(dict, dict, dict),
    "labels": Kind(LabelCoder, lambda coder: {"names": coder.names.tolist()}, _coder),
}


class Kinds:
    """The kinds that one tree may have.

    Parameters
    ----------
    family
        Of the estimators.
    estimators, others
        Kinds of what may be the root of a tree, and of all else, by their names in files.
    """

    def __init__(
        self, family: Family, estimators: Mapping[str, type], others: Mapping[str, Kind]
    ) -> None:
        roots = {name: estimator(of, family) for name, of in estimators.items()}
        self.family, self.roots = family, roots
        self.by_name: dict[str, Kind] = _COMMON | roots | dict(others)
        self.names = {kind.of: name for name, kind in self.by_name.items()}

    def pack(self, value: Any, place: str, arrays: Arrays) -> Any:
        """Return what JSON can say of a value; its arrays go to `arrays`, named by their place."""
        if isinstance(value, np.generic):
            value = value.item()
        if type(value) in _PLAIN:
            return value
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            arrays[place] = value
            return {"kind": "array", "at": place}
        if isinstance(value, np.ndarray) and value.dtype.kind in _NAMED:
            items = self._packed(value.tolist(), place, arrays)
            return {"kind": _NAMED[value.dtype.kind], "items": items}
        if type(value) in (list, tuple, set, frozenset):
            items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
            return {"kind": type(value).__name__, "items": self._packed(items, place, arrays)}
        if isinstance(value, dict) and not all(type(key) is str for key in value):
            return {"kind": "entries", "items": self._packed(value.items(), place, arrays)}
        if type(value) not in self.names:
            raise ArgumentError(
                f"{place} is {value!r}, which cannot be saved; use strings, numbers, arrays, or "
                f"lists and dictionaries of these"
            )
        name = self.names[type(value)]
        parts = self.by_name[name].parts(value)
        packed = {part: self.pack(x, f"{place}.{part}", arrays) for part, x in parts.items()}
        return {"kind": name, "parts": packed}

    def _packed(self, items: Iterable[Any], place: str, arrays: Arrays) -> list[Any]:
        return [self.pack(item, f"{place}.{i}", arrays) for i, item in enumerate(items)]

    def unpack(self, value: Any, arrays: Arrays) -> Any:
        """Return what `pack` was given."""
        if type(value) in _PLAIN:
            return value
        kind = value["kind"]
        if kind == "array":
            return arrays[value["at"]]
        if kind in _LISTS:
            return _LISTS[kind]([self.unpack(item, arrays) for item in value["items"]])
        if kind not in self.by_name:
            raise FormatError(f"{kind!r} is no kind of thing that belongs here")
        parts = {name: self.unpack(x, arrays) for name, x in value["parts"].items()}
        return self.by_name[kind].build(parts)
