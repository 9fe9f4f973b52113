"""What facts from a file must be like, for compiled code that trusts them."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import FormatError


def floats(
    what: str,
    given: Any,
    shape: tuple[int, ...],
    *,
    above: float = -np.inf,
    least: float = -np.inf,
) -> Floats:
    """Return finite numbers of one shape, all of them above a bound, and not below another."""
    if not isinstance(given, np.ndarray) or given.dtype != np.float64 or given.shape != shape:
        raise FormatError(f"{what} must be an array {shape} of numbers")
    if not np.isfinite(given).all():
        raise FormatError(f"some of {what} are not finite")
    if not (given > above).all():
        raise FormatError(f"some of {what} are not above {above:g}")
    if not (given >= least).all():
        raise FormatError(f"some of {what} are below {least:g}")
    return given


def offsets(what: str, given: Any, end: int) -> None:
    """Refuse offsets that do not go from 0 to `end`, or go back."""
    whole = given.ndim == 1 and given.dtype == np.int64 and len(given) > 0
    if not whole or given[0] != 0 or given[-1] != end or (np.diff(given) < 0).any():
        raise FormatError(f"the offsets of {what} do not fit")


def within(what: str, given: Any, low: int, high: int) -> None:
    """Refuse whole numbers that are not from `low` to ``high - 1``."""
    if len(given) and not (given.min() >= low and given.max() < high):
        raise FormatError(f"{what} is outside {low} to {high - 1}")
