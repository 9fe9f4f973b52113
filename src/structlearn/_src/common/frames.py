"""Frames of other packages: the names of their columns, and new ones of the user's liking."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.errors import ArgumentError

FRAMES = ("pandas", "polars", "dict")


def make_frame(columns: dict[str, NDArray[Any]], kind: str | None = None) -> Any:
    """Return columns as a frame of a kind of `FRAMES`, by default the first that is installed."""
    if kind is None:
        kind = next(name for name in FRAMES if name == "dict" or find_spec(name))
    if checks.one_of("frame", kind, FRAMES) == "dict":
        return columns
    if find_spec(kind) is None:
        raise ArgumentError(f"frame={kind!r}, but it is not installed; install it, or use 'dict'")
    make = importlib.import_module(kind).DataFrame
    return make({name: _listed(column) for name, column in columns.items()})


def _listed(column: NDArray[Any]) -> Any:
    """Texts as a list: what frames make of it are their own texts."""
    return column.tolist() if column.dtype == np.object_ else column


def column_names(data: Any, n: int) -> list[str] | None:
    """Return the names of the first `n` columns of a frame; None of what has no names."""
    if isinstance(data, Mapping):
        names: Any = list(data)
    elif hasattr(data, "collect_schema"):  # polars, whose lazy frames warn of their columns
        names = data.collect_schema().names()
    else:
        names = getattr(data, "column_names", getattr(data, "columns", None))
    if names is None or isinstance(names, str) or len(names) < n:
        return None
    found = [str(name) for name in names[:n]] if not callable(names) else []
    return found if len({*found, "value"}) == n + 1 else None
