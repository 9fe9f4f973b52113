"""Checks of what experiments and generators are given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structlearn.errors import ArgumentError


def integer(argument: str, given: Any, low: int = 0) -> int:
    """Return a whole number of at least `low`."""
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < low:
        raise ArgumentError(f"{argument}={given!r} must be a whole number of at least {low}")
    return int(given)


def number(argument: str, given: Any, low: float = 0.0, high: float = np.inf) -> float:
    """Return a number from `low` to `high`."""
    if not isinstance(given, int | float | np.number) or not low <= given <= high:
        raise ArgumentError(f"{argument}={given!r} must be a number from {low:g} to {high:g}")
    return float(given)


def one_of(argument: str, given: str, allowed: Sequence[str]) -> str:
    """Return a word of a closed list."""
    if given not in allowed:
        known = ", ".join(map(repr, allowed))
        raise ArgumentError(f"{argument}={given!r} is not known; choose one of {known}")
    return given
