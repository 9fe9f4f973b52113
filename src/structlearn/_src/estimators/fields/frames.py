"""Columns as a frame of the user's liking."""

from __future__ import annotations

import importlib
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.errors import ArgumentError

FRAMES = ("pandas", "polars", "dict")

Columns = dict[str, NDArray[Any]]


def make_frame(columns: Columns, kind: str | None = None) -> Any:
    """Return columns as a frame of pandas or polars, or as they are.

    Parameters
    ----------
    columns
        Arrays by name, in order.
    kind
        One of `FRAMES`; None takes the first that is installed.
    """
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
