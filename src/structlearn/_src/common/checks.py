"""Argument checks shared by all public functions."""

from __future__ import annotations

import math
import reprlib
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, as_array
from structlearn._src.common.errors import (
    ArgumentError,
    FeatureNameWarning,
    GraphError,
    PotentialError,
    TooWideError,
    choose_one_of,
    warn,
)

Seed = int | np.random.Generator | np.random.RandomState | None

MOST = 1e100  # larger features and weights overflow where gradients are squared

#: In size. Sums of a hundred such are known to 0.01 (float64 has 16 digits): differences of that
#: order are what probabilities are made of.
LARGEST_POTENTIAL = 1e12


def one_of(argument: str, given: str, allowed: tuple[str, ...]) -> str:
    """Return `given` if it is in the closed list `allowed`."""
    if not isinstance(given, str) or given not in allowed:
        raise ArgumentError(choose_one_of(argument, given, allowed))
    return given


def number(
    argument: str,
    given: Any,
    *,
    low: float = -np.inf,
    high: float = np.inf,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Return `given` as a float inside the range from `low` to `high`."""
    span = f"{'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"
    if isinstance(given, bool) or not isinstance(given, (int, float, np.integer, np.floating)):
        raise ArgumentError(f"{argument}={given!r} is not a number; one in {span} is needed")
    if isinstance(given, int) and abs(given) > 2**1000:
        raise ArgumentError(f"{argument} is too large a number")
    value = float(given)  # first: NumPy's short floats would take bounds for infinite
    too_low = value <= low if open_low else value < low
    too_high = value >= high if open_high else value > high
    if math.isnan(value) or too_low or too_high:
        raise ArgumentError(f"{argument}={given!r} must lie in {span}")
    return value


def integer(argument: str, given: Any, *, low: int = 0, high: int | None = None) -> int:
    """Return `given` as an int of at least `low`, and at most `high`."""
    whole = isinstance(given, (int, np.integer)) and not isinstance(given, bool)
    if not whole or given < low or (high is not None and given > high):
        most = "" if high is None else f" and at most {high}"
        raise ArgumentError(f"{argument}={given!r} must be a whole number of at least {low}{most}")
    return int(given)


def boolean(argument: str, given: Any) -> bool:
    """Return `given` as a bool, if it is one."""
    if not isinstance(given, bool | np.bool_):
        raise ArgumentError(f"{argument}={given!r} must be True or False")
    return bool(given)


def fits(asked: str, *shape: int) -> None:
    """Refuse what needs an array that memory has no room for; the array is not written to."""
    try:
        np.empty(shape)
    except (MemoryError, ValueError, OverflowError):  # the others where no array has such a shape
        raise TooWideError(
            f"{asked} need {math.prod(shape)} numbers, which memory has no room for: ask for fewer "
            f"at a time"
        ) from None


def not_masked(what: str, given: Any) -> None:
    """Refuse an array that masks some of its entries, where nothing can be missing, and dates."""
    if np.ma.is_masked(given):
        raise ArgumentError(
            f"{what} are a masked array, and no entry may be missing there; fill them in, for "
            f"example with `filled`, or leave them out"
        )
    not_dates(what, given)


def not_dates(what: str, given: Any) -> None:
    """Refuse an array of dates or times, which others would take for numbers."""
    if getattr(getattr(given, "dtype", None), "kind", "") in ("m", "M"):
        raise ArgumentError(f"{what} are dates or times; convert them to numbers first")


def columns_of(part: Any) -> tuple[str, ...]:
    """Return the names of the columns of a frame; none of what has none, or whose are no text."""
    names = tuple(getattr(part, "column_names", getattr(part, "columns", ())))  # Arrow's first
    return names if all(isinstance(name, str) for name in names) else ()


def same_columns(parts: Any, needed: tuple[str, ...]) -> None:
    """Refuse frames whose columns are not those of training, by name and order."""
    if not needed and all(isinstance(part, np.ndarray) for part in parts):
        return
    given = {i: columns_of(part) for i, part in enumerate(parts) if len(part)}
    for i, names in given.items():
        if names and needed and names != needed:
            raise ArgumentError(
                f"example {i} has the columns {list(names)}, but the first training example had "
                f"{list(needed)}; give the same columns in the same order"
            )
    if any(bool(names) != bool(needed) for names in given.values()):
        with_names, without = ("training", "X") if needed else ("X", "training")
        warn(
            f"{with_names} has feature names and {without} has none, so features are matched by "
            f"order alone; give data frames for both, or for neither",
            FeatureNameWarning,
        )


def numbers(argument: str, given: Any) -> Floats:
    """Return `given` as a new array of float64, of any shape; NaN is let through."""
    try:
        return np.array(given, np.float64)
    except (TypeError, ValueError, OverflowError):
        shown = reprlib.repr(given)
        raise ArgumentError(f"{argument}={shown} is not an array of numbers") from None


def potentials(values: Any, what: str) -> Floats:
    """Return `values` as float64; minus infinity is a hard constraint, NaN and +inf are errors."""
    if np.ma.is_masked(values):
        raise PotentialError(f"{what} masks some entries; use -inf for forbidden combinations")
    array = as_array(values)
    if array.dtype.kind not in "fiub":  # text, objects, complex numbers, ragged lists
        raise PotentialError(f"{what} is not an array of numbers")
    array = np.ascontiguousarray(array, dtype=np.float64)
    worst = array.max(initial=-np.inf)  # NaN wins every comparison in max, +inf every other
    if np.isnan(worst):
        where = tuple(int(i) for i in np.argwhere(np.isnan(array))[0])
        raise PotentialError(
            f"{what} is NaN at {where}; log potentials must be numbers, or -inf for "
            f"forbidden combinations"
        )
    if worst == np.inf:
        where = tuple(int(i) for i in np.argwhere(array == np.inf)[0])
        raise PotentialError(
            f"{what} is +inf at {where}; to force a combination, set all others to -inf"
        )
    least = array.min(where=array > -np.inf, initial=0.0)
    if max(worst, -least) > LARGEST_POTENTIAL:
        where = tuple(int(i) for i in np.argwhere(array == (least if -least > worst else worst))[0])
        raise PotentialError(
            f"{what} is {array[where]:g} at {where}; beyond {LARGEST_POTENTIAL:g} all other log "
            f"potentials are lost in rounding: subtract a constant, or forbid with -inf"
        )
    return array


def indices(argument: str, given: Any, width: int | None = None) -> Ints:
    """Return `given` as an integer array: (n,), or (n, width) rows; width 0 stands for any."""
    array = as_array(given)
    if array.size == 0:
        return np.zeros((0,) if width is None else (0, width), np.int64)
    shape = {None: "(n,)", 0: "(factors, arity)"}.get(width, f"(n, {width})")
    fits = array.ndim == 1
    if width is not None:
        fits = array.ndim == 2 and width in (0, array.shape[1])
    if array.dtype.kind not in "iu" or not fits:
        raise GraphError(f"{argument} must be an integer array of shape {shape}")
    return np.ascontiguousarray(array, dtype=np.int64)


def generator(random_state: Seed) -> np.random.Generator:
    """Return a generator for `random_state`: an int repeats, None is fresh, a Generator is used.

    A RandomState, numpy's older kind, gives the seed.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(int(random_state.randint(2**31)))
    whole = isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool)
    if random_state is None or (whole and random_state >= 0):
        return np.random.default_rng(random_state)
    raise ArgumentError(
        f"random_state={random_state!r} must be None, a whole number of at least 0, or a numpy "
        f"Generator or RandomState"
    )
