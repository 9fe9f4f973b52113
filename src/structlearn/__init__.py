"""Structured prediction when part of the answer is hidden.

Public names load on first use, so that ``import structlearn`` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from structlearn._version import __version__

if TYPE_CHECKING:
    from structlearn.graph.build import FactorGraph
    from structlearn.graph.shapes import chain, grid, hidden_chain, hidden_grid, pairwise, tree
    from structlearn.graph.uai import read_uai, write_uai
    from structlearn.inference.base import Answer
    from structlearn.inference.front import infer, infer_many

_HOME = {
    "Answer": "structlearn.inference.base",
    "FactorGraph": "structlearn.graph.build",
    "chain": "structlearn.graph.shapes",
    "grid": "structlearn.graph.shapes",
    "hidden_chain": "structlearn.graph.shapes",
    "hidden_grid": "structlearn.graph.shapes",
    "infer": "structlearn.inference.front",
    "infer_many": "structlearn.inference.front",
    "pairwise": "structlearn.graph.shapes",
    "read_uai": "structlearn.graph.uai",
    "tree": "structlearn.graph.shapes",
    "write_uai": "structlearn.graph.uai",
}

__all__ = [
    "Answer",
    "FactorGraph",
    "__version__",
    "chain",
    "grid",
    "hidden_chain",
    "hidden_grid",
    "infer",
    "infer_many",
    "pairwise",
    "read_uai",
    "tree",
    "write_uai",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'structlearn' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
