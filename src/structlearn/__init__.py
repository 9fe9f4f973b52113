"""Structured prediction when part of the answer is hidden.

Public names load on first use, so that ``import structlearn`` stays cheap; `__init__.pyi` lists
them. What is not needed every day lies behind doors of its own: `structlearn.solvers`,
`structlearn.losses`, `structlearn.rules`, `structlearn.fields`, `structlearn.metrics`,
`structlearn.datasets`, `structlearn.uai`, `structlearn.errors` and, for those who add to the
library, `structlearn.extend`. Everything in `structlearn._src` is private.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as _stub:
    _IMPORTS = re.findall(r"^from (\S+) import \(?\s*(\w+) as", _stub.read(), re.MULTILINE)
_HOME = {name: module for module, name in _IMPORTS}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'structlearn' has no attribute {name!r}")
    if home == __name__:
        return import_module(f"{home}.{name}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
