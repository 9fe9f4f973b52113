"""Docstrings with parts that are written elsewhere: once for many methods, or beside a class."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from inspect import cleandoc
from types import FunctionType
from typing import Any, TypeVar

Thing = TypeVar("Thing", bound=Any)

_SECTION = re.compile(r"^\w[\w ]*\n-{3,}$", re.MULTILINE)


def completed(sections: Mapping[str, str]) -> Callable[[Thing], Thing]:
    r"""Return a decorator that adds sections to docstrings: of methods by name, its own by "".

    Examples
    --------
    >>> @completed({"double": "Returns\n-------\nint\n    Twice the number."})
    ... class Number:
    ...     def double(self):
    ...         '''Return the double.'''
    >>> Number.double.__doc__.splitlines()[0::5]
    ['Return the double.', '    Twice the number.']
    """

    def complete(thing: Thing) -> Thing:
        for name, text in sections.items():
            part: Any = vars(thing)[name] if name else thing
            _add(getattr(part, "__func__", part), text)
        return thing

    return complete


def inherit_sections(of: type) -> None:
    """Add the sections of the methods that a class overrides to docstrings without sections.

    Examples
    --------
    >>> class Number:
    ...     def double(self):
    ...         '''Return the double.
    ...
    ...         Returns
    ...         -------
    ...         int
    ...             Twice the number.
    ...         '''
    >>> class One(Number):
    ...     def double(self):
    ...         '''Return 2.'''
    >>> inherit_sections(One)
    >>> One.double.__doc__.splitlines()[0::5]
    ['Return 2.', '    Twice the number.']
    """
    for name, method in vars(of).items():
        if isinstance(method, FunctionType) and not _SECTION.search(cleandoc(method.__doc__ or "")):
            above = cleandoc(getattr(getattr(super(of, of), name, None), "__doc__", None) or "")
            first = _SECTION.search(above)
            if first:
                _add(method, above[first.start() :])


def _add(thing: Any, text: str) -> None:
    if thing.__doc__ is not None:  # there is none where Python leaves docstrings out
        thing.__doc__ = f"{cleandoc(thing.__doc__)}\n\n{text.strip()}"
