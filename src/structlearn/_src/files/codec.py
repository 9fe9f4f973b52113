"""Values as arrays and JSON: a tree of records, each of which names its kind.

A kind that no table lists does not exist, so that reading a tree runs no code but ours. Classes are
listed by their paths and imported when one of their values is met.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.files.store import Arrays

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


def _objects(items: list[Any]) -> NDArray[Any]:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def path_of(of: type) -> str:
    """Return where a class is: its module and its name."""
    return f"{of.__module__}:{of.__qualname__}"


def defaults_of_later(value: Any) -> dict[str, Any]:
    """Return the defaults of fields marked as later, which files have where they differ."""
    marked = [each for each in dataclasses.fields(value) if each.metadata.get("later")]
    return {each.name: each.default for each in marked}


@dataclasses.dataclass(frozen=True)
class Codec:
    """How values of one class become parts with names, and are built again from these.

    A class with the methods `state` and `from_state` speaks for itself; the parts of a dataclass
    are its fields, those that first files lack, by their metadata ``later``, where they differ from
    their defaults. `parts` and `build` stand in for these where they are given.

    Parameters
    ----------
    path
        Module and name of the class, as in ``"package.module:Class"``.
    renamed
        Names of fields in files, where they differ.
    left_out
        Fields that are not stored.
    parts
        Returns the parts of a value by name.
    build
        Returns a value from the class and the parts.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from structlearn.extend import Codec
    >>> codec = Codec(
    ...     "fractions:Fraction",
    ...     parts=lambda x: {"top": x.numerator, "bottom": x.denominator},
    ...     build=lambda of, parts: of(parts["top"], parts["bottom"]),
    ... )
    >>> codec.decode(codec.encode(Fraction(2, 6)))
    Fraction(1, 3)
    """

    path: str  #: module and name of the class, as in ``"package.module:Class"``
    renamed: Mapping[str, str] = dataclasses.field(default_factory=dict)  #: fields' names in files
    left_out: frozenset[str] = frozenset()  #: fields that are not kept
    parts: Callable[[Any], dict[str, Any]] | None = None
    build: Callable[[Any, dict[str, Any]], Any] | None = None  #: from the class and the parts

    def encode(self, value: Any) -> dict[str, Any]:
        """Return the parts of a value.

        Parameters
        ----------
        value : object
            A value of the class.

        Returns
        -------
        dict
            Its parts by name.

        Examples
        --------
        >>> from dataclasses import dataclass
        >>> from structlearn.extend import Codec
        >>> @dataclass
        ... class Point:
        ...     x: float
        ...     y: float
        >>> Codec("package.module:Point", renamed={"x": "first"}).encode(Point(1.0, 2.0))
        {'first': 1.0, 'y': 2.0}
        """
        if self.parts is not None:
            return self.parts(value)
        if hasattr(value, "state"):
            return dict(value.state())
        parts = {name: getattr(value, field) for name, field in self._fields(value).items()}
        usual = defaults_of_later(value)
        return {n: part for n, part in parts.items() if n not in usual or part != usual[n]}

    def decode(self, parts: dict[str, Any]) -> Any:
        """Return the value that has these parts.

        Parameters
        ----------
        parts
            Parts by name, as from `encode`.

        Returns
        -------
        object
            The value.

        Examples
        --------
        >>> from structlearn.extend import Codec
        >>> Codec("types:SimpleNamespace", build=lambda of, parts: of(**parts)).decode({"x": 1.0})
        namespace(x=1.0)
        """
        module, _, name = self.path.partition(":")
        of = getattr(importlib.import_module(module), name)
        if self.build is not None:
            return self.build(of, parts)
        if hasattr(of, "from_state"):
            return of.from_state(parts)
        fields = self._fields(of)
        unknown = sorted(set(parts).difference(fields))
        if unknown:
            raise FormatError(f"there is no place for {unknown[0]!r}")
        return of(**{fields[name]: part for name, part in parts.items()})

    def _fields(self, of: Any) -> dict[str, str]:
        """Return the fields of a class by their names in files."""
        names = [field.name for field in dataclasses.fields(of) if field.init]
        return {self.renamed.get(name, name): name for name in names if name not in self.left_out}


class CodecTable:
    """The kinds of values that a tree may have, apart from numbers, texts, arrays and lists.

    `codecs` are by the names of their kinds in files; `more` returns further ones, and is asked
    when a kind or a class is not among the first.
    """

    def __init__(
        self, codecs: Mapping[str, Codec], more: Callable[[], Mapping[str, Codec]] = dict
    ) -> None:
        self.codecs = dict(codecs)
        self._more = more

    def encode(self, value: Any, place: str, arrays: Arrays) -> Any:
        """Return what JSON can say of a value; its arrays go to `arrays`, named by their place."""
        if isinstance(value, np.generic):
            value = value.item()
        if type(value) in _PLAIN:
            return value
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            arrays[place] = value
            return {"kind": "array", "at": place}
        if isinstance(value, np.ndarray) and value.dtype.kind in _NAMED:
            items = self._items(value.tolist(), place, arrays)
            return {"kind": _NAMED[value.dtype.kind], "items": items}
        if type(value) in (list, tuple, set, frozenset):
            items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
            return {"kind": type(value).__name__, "items": self._items(items, place, arrays)}
        if type(value) is dict and not all(type(key) is str for key in value):
            return {"kind": "entries", "items": self._items(value.items(), place, arrays)}
        kind = "mapping" if type(value) is dict else self._kind(value, place)
        parts = value if type(value) is dict else self.codecs[kind].encode(value)
        encoded = {name: self.encode(x, f"{place}.{name}", arrays) for name, x in parts.items()}
        return {"kind": kind, "parts": encoded}

    def _items(self, items: Iterable[Any], place: str, arrays: Arrays) -> list[Any]:
        return [self.encode(item, f"{place}.{i}", arrays) for i, item in enumerate(items)]

    def _kind(self, value: Any, place: str) -> str:
        for more in (dict, self._more):
            self.codecs |= more()
            for kind, codec in self.codecs.items():
                if codec.path == path_of(type(value)):
                    return kind
        raise ArgumentError(
            f"{place} is {value!r}, which cannot be saved; use strings, numbers, arrays, or "
            f"lists and dictionaries of these"
        )

    def decode(self, value: Any, arrays: Arrays) -> Any:
        """Return what `encode` was given."""
        if type(value) in _PLAIN:
            return value
        kind = value["kind"]
        if kind == "array":
            return arrays[value["at"]]
        if kind in _LISTS:
            return _LISTS[kind]([self.decode(item, arrays) for item in value["items"]])
        parts = {name: self.decode(x, arrays) for name, x in value["parts"].items()}
        if kind == "mapping":
            return parts
        if kind not in self.codecs:
            self.codecs |= self._more()
        if kind not in self.codecs:
            raise FormatError(f"{kind!r} is no kind of thing that belongs here")
        return self.codecs[kind].decode(parts)
