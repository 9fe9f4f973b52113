"""Reading sequences of observations: points with missing ones, symbols, and labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structlearn.common import checks
from structlearn.common.checks import Bools, Floats, Ints
from structlearn.common.errors import ArgumentError
from structlearn.data.labels import LabelCoder
from structlearn.data.ragged import locate, offsets_of


class Points(NamedTuple):
    """Points of all sequences, one after another."""

    values: Floats  #: (positions, features), zeros where missing
    seen: Bools  #: (positions,)
    offsets: Ints


def listed(X: Any, lengths: Any) -> list[Any]:
    """Return sequences as a list: X may be one, or one array that `lengths` cut in several."""
    if not isinstance(X, list | tuple) and not isinstance(X, np.ndarray):
        raise ArgumentError(
            f"X is {type(X).__name__}; give a list of sequences, or one array with `lengths`"
        )
    if isinstance(X, np.ndarray) and X.dtype != object:
        return _cut(X, lengths)
    if lengths is not None:
        raise ArgumentError("lengths are for X as one array; a list of sequences needs none")
    if len(X) == 0:
        raise ArgumentError("X has no sequences; give at least one")
    return list(X)


def read_points(X: Any, lengths: Any = None, width: int | None = None) -> Points:
    """Read sequences of points (steps, features), whose missing points are rows of NaN.

    `width` is the number of features that there must be, if that is known.
    """
    rows = [_points(x, i) for i, x in enumerate(listed(X, lengths))]
    first = rows[0].shape[1] if width is None else width
    for i, x in enumerate(rows):
        if x.shape[1] != first:
            told = "the first sequence" if width is None else "training"
            raise ArgumentError(
                f"sequence {i} has {x.shape[1]} features and {told} had {first}; all sequences "
                f"need the same features"
            )
    offsets, values = offsets_of(len(x) for x in rows), np.concatenate(rows)
    missing = np.isnan(values)
    seen: Bools = np.logical_not(missing.all(axis=1))
    _check_whole(values, missing, seen, offsets)
    return Points(np.where(seen[:, None], values, 0.0), seen, offsets)


def read_symbols(X: Any, lengths: Any, coder: LabelCoder | None) -> tuple[Ints, Ints, LabelCoder]:
    """Read sequences of symbols, None or -1 where missing: numbers, offsets, and their coder."""
    rows = listed(X, lengths)
    for i, x in enumerate(rows):
        if np.ndim(x) != 1 or len(x) == 0:
            raise ArgumentError(
                f"sequence {i} has the shape {np.shape(x)}; symbols come in sequences of one "
                f"dimension, at least one in each"
            )
    coder = LabelCoder().fit(rows) if coder is None else coder
    return coder.transform(rows), offsets_of(map(len, rows)), coder


def read_labels(Y: Any, offsets: Ints, coder: LabelCoder | None) -> tuple[Ints, LabelCoder, bool]:
    """Read a label for every step, or one for every sequence; -1 or None where not known.

    Returns numbers for every step, their coder, and whether there was one for every sequence.
    """
    n = len(offsets) - 1
    rows = list(Y) if isinstance(Y, list | tuple | np.ndarray) else None
    if rows is None:
        raise ArgumentError(f"Y is {type(Y).__name__}; give a list with the labels of sequences")
    single = all(np.ndim(y) == 0 for y in rows)
    if n == 1 and single and len(rows) == offsets[1]:  # one sequence, not in a list
        rows, single = [rows], False
    if len(rows) != n:
        raise ArgumentError(
            f"X has {n} sequences and Y has labels for {len(rows)}; every sequence needs its own"
        )
    lengths = np.diff(offsets)
    for i, y in enumerate(() if single else rows):
        if np.ndim(y) != 1 or len(y) != lengths[i]:
            raise ArgumentError(
                f"sequence {i} has {lengths[i]} steps and labels of shape {np.shape(y)}; every "
                f"step needs one label, -1 if it is not known"
            )
    given = [[y] for y in rows] if single else rows
    coder = LabelCoder().fit(given) if coder is None else coder
    numbers = coder.transform(given)
    return (np.repeat(numbers, lengths) if single else numbers), coder, single


def check_labels(coder: LabelCoder) -> None:
    """Refuse labels that nothing can be learnt from."""
    if len(coder.names) == 0:
        raise ArgumentError("every label is missing; InfiniteHMM learns without labels")
    if len(coder.names) == 1:
        raise ArgumentError(
            f"all labels are {coder.names.tolist()[0]!r}; a classifier needs at least two classes"
        )


def _points(x: Any, i: int) -> Floats:
    try:
        points = np.asarray(x, float)
    except (TypeError, ValueError):
        raise ArgumentError(f"sequence {i} is not an array of numbers (steps, features)") from None
    if points.ndim != 2 or 0 in points.shape:
        raise ArgumentError(
            f"sequence {i} has the shape {points.shape}; (steps, features) is needed, with at "
            f"least one of each"
        )
    return points


def _check_whole(values: Floats, missing: Bools, seen: Bools, offsets: Ints) -> None:
    """Refuse infinite values, rows that miss some features only, and nothing but missing rows."""
    for bad, what in (
        (np.isinf(values).any(1), "is infinite; features must be finite, or NaN in all"),
        (missing.any(1) & seen, "misses some features; fill them in, or make them NaN in all"),
    ):
        if bad.any():
            sequence, step = locate(offsets, int(bad.argmax()))
            raise ArgumentError(f"step {step} of sequence {sequence} {what} where it is missing")
    if not seen.any():
        raise ArgumentError("every step is missing; give at least one row without NaN")


def _cut(X: Any, lengths: Any) -> list[Any]:
    if lengths is None:
        return [X]
    sizes = checks.indices("lengths", lengths)
    if len(sizes) == 0 or sizes.min() < 1 or sizes.sum() != len(X):
        raise ArgumentError(
            f"lengths sum to {sizes.sum()} and X has {len(X)} steps; they must agree, and be at "
            f"least 1 each"
        )
    return np.split(X, np.cumsum(sizes)[:-1])
