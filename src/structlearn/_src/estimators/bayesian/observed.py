"""Reading observations: sequences of points, symbols and labels; features as models see them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats, Ints, cut, locate, offsets_of
from structlearn._src.common.errors import ArgumentError, GraphError
from structlearn._src.sample.priors import NormalWishart
from structlearn._src.text.labels import LabelCoder, check_several

_FAR = 1e100  # the squares of larger numbers, and of the inverses of these, leave floating point


class Points(NamedTuple):
    """Points of all sequences, one after another."""

    values: Floats  #: (positions, features), zeros where missing
    seen: Bools  #: (positions,)
    offsets: Ints
    cut: bool  #: whether one array was cut into the sequences
    columns: tuple[str, ...] = ()  #: names of features, where they came in frames


class Symbols(NamedTuple):
    """Symbols of all sequences, one after another."""

    values: Ints  #: (positions,) numbers from 0 on, -1 where missing
    offsets: Ints
    coder: LabelCoder

    @property
    def seen(self) -> Bools:
        """(positions,) Which are not missing."""
        return self.values >= 0


class Labels(NamedTuple):
    """Labels of all steps, one after another."""

    numbers: Ints  #: (positions,), -1 where not known
    coder: LabelCoder
    single: bool  #: whether there was one for every sequence

    @property
    def known(self) -> Bools:
        """(positions,) Which are known."""
        return self.numbers >= 0


# ---- what is seen ------------------------------------------------------------------------


def check_no_lengths(X: Any, y: Any, lengths: Any) -> None:
    """Refuse lengths in the place of labels, where hmmlearn has them: they would be ignored."""
    if y is None or lengths is not None or not hasattr(X, "shape"):
        return
    n = np.asarray(y) if np.ndim(y) == 1 else np.empty(0)
    if n.dtype.kind in "iu" and 0 < len(n) < X.shape[0] == n.sum():
        raise ArgumentError(
            f"y has {len(n)} numbers that add up to the {X.shape[0]} rows of X; lengths of "
            f"sequences are given by name: fit(X, lengths=...)"
        )


def as_sequences(X: Any, lengths: Any) -> list[Any]:
    """Return sequences as a list.

    X may be one already, or one array or frame that `lengths` cut in several, or one array of
    sequences that are all equally long.
    """
    if not isinstance(X, list | tuple):
        X = _array(X, "X", "a list of sequences, or one array with `lengths`")
    if isinstance(X, np.ndarray) and not (X.dtype == object and X.ndim == 1) and X.ndim != 3:
        return _cut(X, lengths)
    if lengths is not None:
        raise ArgumentError("lengths are for X as one array; a list of sequences needs none")
    if len(X) == 0:
        raise ArgumentError("X has no sequences; give at least one")
    return list(X)


def read_points(
    X: Any, lengths: Any = None, width: int | None = None, columns: tuple[str, ...] = ()
) -> Points:
    """Read sequences of points (steps, features), whose missing points are rows of NaN.

    `width` and `columns` are the number of features in training and their names; without the first,
    this is training.
    """
    parts = X if isinstance(X, list | tuple) else [X]
    rows = [_points(x, i) for i, x in enumerate(as_sequences(X, lengths))]
    first = rows[0].shape[1] if width is None else width
    for i, x in enumerate(rows):
        if x.shape[1] != first:
            told = "the first sequence" if width is None else "training"
            raise ArgumentError(
                f"sequence {i} has {x.shape[1]} features and {told} had {first}; all sequences "
                f"need the same features"
            )
    offsets = offsets_of(len(x) for x in rows)
    values = np.concatenate(rows)
    missing = np.isnan(values)
    seen: Bools = np.logical_not(missing.all(axis=1))
    _check_whole(values, missing, seen, offsets)
    names = checks.columns_of(parts[0]) if width is None else columns
    checks.same_columns(parts, names)
    found = np.where(seen[:, None], values, 0.0)
    points = Points(found, seen, offsets, lengths is not None, names)
    if width is None:
        check_seen(points, "a fit")
    return points


def read_symbols(X: Any, lengths: Any, coder: LabelCoder | None = None) -> Symbols:
    """Read sequences of symbols, None or -1 where missing; without a coder, this is training."""
    rows = as_sequences(X, lengths)
    for i, x in enumerate(rows):
        if np.ndim(x) != 1 or len(x) == 0:
            raise ArgumentError(
                f"sequence {i} has the shape {np.shape(x)}; symbols come in sequences of one "
                f"dimension, at least one in each"
            )
    try:
        found = LabelCoder().fit(rows)
    except ArgumentError as reason:
        raise ArgumentError(str(reason).replace("label", "symbol")) from None
    offsets = offsets_of(map(len, rows))
    if coder is None:
        symbols = Symbols(found.transform(rows), offsets, found)
        check_seen(symbols, "a fit")
        return symbols
    known = set(coder.names.tolist())
    for symbol in found.names.tolist():
        if symbol not in known:
            raise ArgumentError(
                f"the symbol {symbol!r} was not among those of training; give None or -1 in its "
                f"place, which marks it as missing, or fit again"
            )
    return Symbols(coder.transform(rows), offsets, coder)


def check_seen(observed: Points | Symbols, aim: str) -> None:
    """Refuse sequences of which nothing is seen."""
    if not observed.seen.any():
        what = "symbol" if isinstance(observed, Symbols) else "step"
        raise ArgumentError(f"every {what} is missing; {aim} needs at least one")


def unmasked(X: Any) -> Any:
    """Return what a masked array hides as NaN, and all else as it is."""
    return np.ma.filled(X.astype(np.float64), np.nan) if np.ma.isMaskedArray(X) else X


def whole_numbers(argument: str, given: Any) -> Ints:
    """Return a list of whole numbers."""
    try:
        return checks.indices(argument, given)
    except GraphError:
        raise ArgumentError(f"{argument}={given!r} must be a list of whole numbers") from None


# ---- labels ------------------------------------------------------------------------------


def read_labels(Y: Any, points: Points) -> Labels:
    """Read a label for every step, or one for every sequence; -1 or None where not known."""
    offsets = points.offsets
    lengths = np.diff(offsets)
    n = len(lengths)
    Y = Y if isinstance(Y, list | tuple) else _array(Y, "Y", "a list of labels")
    rows = list(Y)
    single = all(np.ndim(y) == 0 for y in rows)
    if single and len(rows) == offsets[-1] and (n == 1 or (points.cut and len(rows) != n)):
        rows = cut(Y, offsets)
        single = False
    if len(rows) != n:
        raise ArgumentError(
            f"X has {n} sequences and Y has labels for {len(rows)}; every sequence needs its own"
        )
    for i, y in enumerate(() if single else rows):
        if np.ndim(y) != 1 or len(y) != lengths[i]:
            raise ArgumentError(
                f"sequence {i} has {lengths[i]} steps and labels of shape {np.shape(y)}; every "
                f"step needs one label, -1 if it is not known"
            )
    given = [[y] for y in rows] if single else rows
    coder = LabelCoder().fit(given)
    numbers = coder.transform(given)
    return Labels(np.repeat(numbers, lengths) if single else numbers, coder, single)


def check_labels(labels: Labels) -> None:
    """Refuse labels that nothing can be learnt from."""
    names = labels.coder.names
    if len(names) == 0:
        raise ArgumentError(
            "every label is missing, as -1 and None are labels that are not known; InfiniteHMM "
            "learns without labels"
        )
    check_several(names, hidden=not labels.known.all())


def share_right(truth: Labels, found: Any) -> float:
    """Return the share of known labels that were found: those never seen before are wrong.

    `found` has a label for every step, or for every entry of the numbers of `truth`.
    """
    if not truth.known.any():
        raise ArgumentError("every label is missing; a score needs at least one that is known")
    own = truth.coder.names[truth.numbers[truth.known]]
    return float(np.mean(own == np.asarray(found)[truth.known]))


# ---- features with mean 0 and deviation 1, and the prior of their Gaussians ---------------


def scale_of(X: Floats) -> tuple[Floats, Floats]:
    """Return mean and deviation of every feature, a deviation of 1 for those that are constant.

    Deviations that rounding explains count as none, as in scikit-learn's StandardScaler.
    """
    _check_sizes(X)
    centre = X.mean(axis=0)
    variances = X.var(axis=0)
    error = len(X) * np.finfo(np.float64).eps
    constant = variances <= error * variances + (error * centre) ** 2
    return centre, np.where(constant | (np.ptp(X, axis=0) == 0.0), 1.0, np.sqrt(variances))


def scaled(X: Floats, centre: Floats, scale: Floats) -> Floats:
    """Return features less their means, in deviations; refuse those too large to be squared."""
    with np.errstate(over="ignore"):
        found = np.ascontiguousarray((X - centre) / scale)
    far = np.abs(found) > _FAR
    if far.any():
        row, feature = np.argwhere(far)[0]
        raise ArgumentError(
            f"feature {feature} is {X[row, feature]:.3g} somewhere, more than {_FAR:g} deviations "
            f"from its mean in training; give numbers of the same size as there"
        )
    return found


def _check_sizes(X: Floats) -> None:
    """Refuse features whose squares would be too large for floating point, or vanish."""
    largest = np.abs(X).max(axis=0)
    small = (largest < 1.0 / _FAR) & (np.ptp(X, axis=0) > 0.0)
    for feature in np.flatnonzero(small | (largest > _FAR)):
        raise ArgumentError(
            f"feature {feature} has numbers of up to {largest[feature]:.3g}, which cannot be "
            f"squared; give it in other units, where the largest is from {1 / _FAR:g} to {_FAR:g}"
        )


def with_intercept(X: Floats) -> Floats:
    """Return the features of classifiers: a last one is always 1."""
    return np.column_stack([X, np.ones(len(X))])


def degrees_and_scale(least: int, spread: float, degrees: float | None) -> tuple[float, float]:
    """Return the degrees of freedom of covariances, and the diagonal of their scale matrix.

    There must be `least` degrees or more: with fewer, variances may vanish in a draw. Above ``least
    + 1`` degrees the expected variance is `spread`; below there is none, and the scale is `spread`.
    """
    given = least + 2.0 if degrees is None else degrees
    found = checks.number("degrees", given, low=float(least), open_high=True)
    return found, spread * max(found - least - 1.0, 1.0)


def wishart(width: int, spread: float, strength: float, degrees: float | None) -> NormalWishart:
    """Return the prior of the Gaussians of scaled features."""
    freedom, scale = degrees_and_scale(width, spread, degrees)
    return NormalWishart(np.zeros(width), float(strength), freedom, scale * np.eye(width))


# ---- parts -------------------------------------------------------------------------------


def _array(given: Any, what: str, needed: str) -> Any:
    """Return what is an array, or a frame or column that can be one."""
    if not hasattr(given, "__array__") or np.ndim(given) == 0:
        raise ArgumentError(f"{what} is {type(given).__name__}; give {needed}")
    return np.asanyarray(given)


def _points(x: Any, i: int) -> Floats:
    checks.not_dates(f"the features of sequence {i}", x)
    if np.iscomplexobj(x):
        raise ArgumentError(f"sequence {i} has complex numbers; give their parts as two features")
    try:
        points = np.asarray(unmasked(x), float)
    except (TypeError, ValueError):
        raise ArgumentError(f"sequence {i} is not an array of numbers (steps, features)") from None
    if points.ndim != 2 or 0 in points.shape:
        raise ArgumentError(
            f"sequence {i} has the shape {points.shape}; (steps, features) is needed, with at "
            f"least one of each"
        )
    return points


def _check_whole(values: Floats, missing: Bools, seen: Bools, offsets: Ints) -> None:
    """Refuse infinite values, and rows that miss some features only."""
    for bad, what in (
        (np.isinf(values).any(1), "is infinite; features must be finite, or NaN in all"),
        (missing.any(1) & seen, "misses some features; fill them in, or make them NaN in all"),
    ):
        if bad.any():
            sequence, step = locate(offsets, int(bad.argmax()))
            raise ArgumentError(f"step {step} of sequence {sequence} {what} where it is missing")


def _cut(X: Any, lengths: Any) -> list[Any]:
    if lengths is None:
        return [X]
    sizes = whole_numbers("lengths", lengths)
    if len(sizes) == 0 or sizes.min() < 1 or sizes.sum() != len(X):
        raise ArgumentError(
            f"lengths sum to {sizes.sum()} and X has {len(X)} steps; they must agree, and be at "
            f"least 1 each"
        )
    return np.split(X, np.cumsum(sizes)[:-1])
