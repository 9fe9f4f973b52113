"""Every exception and warning of the library.

A message says what was given, what is needed and what to do. All errors derive from
`StructlearnError`; those about arguments are also `ValueError`.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable

_LONGEST_LINE = 200  # letters of a line that a message shows


class StructlearnError(Exception):
    """Base class of all exceptions that the library raises."""


class ArgumentError(StructlearnError, ValueError):
    """An option has a value outside its range."""


class GraphError(StructlearnError, ValueError):
    """Variables or factors do not fit together."""


class PotentialError(StructlearnError, ValueError):
    """A potential is NaN or plus infinity, or a table has the wrong shape."""


class EvidenceError(StructlearnError, ValueError):
    """Evidence names an unknown variable or a state that does not exist."""


class ImpossibleEvidenceError(EvidenceError):
    """No assignment agrees with the evidence and the hard constraints."""


class InfeasibleError(StructlearnError, ValueError):
    """Hard constraints contradict each other; `forms` lists a set that proves it."""

    def __init__(self, message: str, forms: list[int]) -> None:
        super().__init__(message)
        self.forms = forms


class QueryError(StructlearnError, ValueError):
    """The query does not fit this graph or this method."""


class TooWideError(StructlearnError, MemoryError):
    """Exact inference would need tables larger than allowed."""


class FormatError(StructlearnError, ValueError):
    """A file does not follow its format."""


class RuleError(StructlearnError, ValueError):
    """A rule does not follow the language, or does not fit the predicates.

    Attributes
    ----------
    line, column : int
        Position in `text`, both from 1.
    reason : str
        The sentence alone, without the position and the line with the caret.
    """

    def __init__(self, reason: str, text: str = "", line: int = 1, column: int = 1) -> None:
        super().__init__(f"{reason}{_point_at(text, line, column)}")
        self.reason, self.text, self.line, self.column = reason, text, line, column


class AtomError(StructlearnError, ValueError):
    """Atoms are given incorrectly: wrong columns or values, twice, or not at all."""


class PlaceError(StructlearnError, RuntimeError):
    """The place where work should run cannot be reached, cannot work, or has lost its workers."""


class DataNotFoundError(StructlearnError, FileNotFoundError):
    """A data set is neither on this machine nor downloadable."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; the fit continues without it."""


class CacheWarning(UserWarning):
    """Compiled code cannot be stored on disk, so every process compiles again."""


class MixingWarning(UserWarning):
    """The chains of a sampler disagree, so their draws say little about the posterior."""


class BurnInWarning(UserWarning):
    """Sampling ended during burn-in, so predictions do not use draws from the posterior."""


class UncertifiedWarning(UserWarning):
    """Inference in a hinge-loss field ended before its gap was within the tolerance."""


class InferenceWarning(UserWarning):
    """Approximate inference is unreliable: messages do not converge, or bounds are far apart."""


class VanishedWeightsWarning(UserWarning):
    """Learning made all weights 0 or nearly so; predictions are those of a model without rules."""


class GreedyCoefficientWarning(UserWarning):
    """PSL would parse the coefficients of a rule differently from their written meaning."""


class IgnoredOptionWarning(UserWarning):
    """An option of an estimator or of a PSL program has no effect here."""


class RepeatedRuleWarning(UserWarning):
    """Two rules are identical up to their weights, which add up; PSL keeps only the first."""


class BrokenRuleWarning(UserWarning):
    """Observed atoms alone violate a hard rule, which no values of the targets can repair."""


class SilentRuleWarning(UserWarning):
    """A rule has no groundings, so it has no effect."""


class UnreachedAtomWarning(UserWarning):
    """A target occurs in no grounding, so its value carries no information."""


class FeatureNameWarning(UserWarning):
    """Features had names in training and have none now, or vice versa."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn about the line that called the library, however deep inside the reason was found."""
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("structlearn."):
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _point_at(text: str, line: int, column: int) -> str:
    """Show one line of a text with a caret under one of its columns."""
    lines = text.split("\n") if text else []
    if not 0 < line <= len(lines):
        return ""
    shown = lines[line - 1].rstrip()
    place = f" (line {line}, column {column})"
    if len(shown) > _LONGEST_LINE:  # a part of it, with the place in the middle
        start = max(column - _LONGEST_LINE // 2, 0)
        shown = shown[start : start + _LONGEST_LINE]
        column -= start
    blank = "".join("\t" if letter == "\t" else " " for letter in shown[: column - 1])
    return f"{place}\n  {shown}\n  {blank}^"


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """Word a suggestion for a name that is not known; empty where none is close."""
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(given.lower(), by_lower, n=1)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def choose_one_of(argument: str, given: object, allowed: tuple[str, ...]) -> str:
    """Word a message for an option outside a closed list."""
    return f"{argument}={given!r} is not known; choose one of {', '.join(map(repr, allowed))}"


def too_wide(width: int, entries: float, size: float, limit: int, stopped: bool = False) -> str:
    """Word the refusal of exact inference, naming width and bytes.

    `stopped` says that the search for an order ended at the first table over the limit.
    """
    more = " or more" if stopped else ""
    return (
        f"exact inference needs a table over {width + 1} variables{more} "
        f"(induced width {width}{more}): {entries:.3g} entries in the largest, {_bytes(size)} in "
        f"all, but max_table allows {limit:.3g} entries; raise max_table if you have the "
        f"memory, or use an approximate method such as method='bp'"
    )


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} PiB"
