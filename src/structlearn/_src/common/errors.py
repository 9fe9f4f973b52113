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
    """Base class of all exceptions that the library raises.

    Examples
    --------
    >>> import structlearn
    >>> try:
    ...     structlearn.grid_edges(2, 2, neighbours=5)
    ... except structlearn.StructlearnError as error:
    ...     print(error)
    neighbours=5: a grid has 4 or 8
    """


class ArgumentError(StructlearnError, ValueError):
    """An option has a value outside its range.

    Examples
    --------
    >>> import structlearn
    >>> try:
    ...     structlearn.SequenceLabeler().fit([[["a"]]], [[None]])
    ... except structlearn.errors.ArgumentError as error:
    ...     print(error)
    Y has no known label at all; at least one is needed
    """


class GraphError(StructlearnError, ValueError):
    """Variables or factors do not fit together.

    Examples
    --------
    >>> import structlearn
    >>> try:
    ...     structlearn.FactorGraph().add_factor(["a"], [0.0, 0.0])
    ... except structlearn.errors.GraphError as error:
    ...     print(error)
    there is no variable named 'a'; the graph has 0 variables
    """


class PotentialError(StructlearnError, ValueError):
    """A potential is NaN or plus infinity, or a table has the wrong shape.

    Examples
    --------
    >>> import structlearn
    >>> graph = structlearn.FactorGraph()
    >>> try:
    ...     graph.add_factor([graph.add_variable()], [0.0, float("nan")])
    ... except structlearn.errors.PotentialError as error:
    ...     print(str(error).split("; ")[0].split(": ")[0])
    the table of factor [0] is NaN at (1,)
    """


class EvidenceError(StructlearnError, ValueError):
    """Evidence names an unknown variable or a state that does not exist.

    Examples
    --------
    >>> import structlearn
    >>> graph = structlearn.chain([[0.0, 0.0]] * 2, [[1.0, 0.0], [0.0, 1.0]])
    >>> try:
    ...     structlearn.infer(graph, evidence={0: 2})
    ... except structlearn.errors.EvidenceError as error:
    ...     print(error)
    variable 0 cannot be in state 2; its states are 0 to 1
    """


class ImpossibleEvidenceError(EvidenceError):
    """No assignment agrees with the evidence and the hard constraints.

    Examples
    --------
    >>> import structlearn
    >>> never = float("-inf")
    >>> graph = structlearn.chain([[0.0, 0.0]] * 2, [[0.0, never], [0.0, 0.0]])
    >>> try:
    ...     structlearn.infer(graph, evidence={0: 0, 1: 1})
    ... except structlearn.errors.ImpossibleEvidenceError as error:
    ...     print(str(error).split("; ")[0].split(": ")[0])
    the evidence contradicts the hard constraints
    """


class InfeasibleError(StructlearnError, ValueError):
    """Hard constraints contradict each other; `forms` lists a set that proves it.

    Examples
    --------
    >>> import structlearn
    >>> field = structlearn.HingeField([[1.0], [1.0]], [-1.0, 0.0], kinds="=")  # y = 1 and y = 0
    >>> try:
    ...     field.predict()
    ... except structlearn.errors.InfeasibleError as error:
    ...     print(error.forms)
    [0, 1]
    """

    def __init__(self, message: str, forms: list[int]) -> None:
        super().__init__(message)
        self.forms = forms


class QueryError(StructlearnError, ValueError):
    """The query does not fit this graph or this method.

    Examples
    --------
    >>> import structlearn
    >>> graph = structlearn.chain([[0.0, 0.0]] * 2, [[1.0, 0.0], [0.0, 1.0]])
    >>> try:
    ...     structlearn.infer(graph, "marginals", k=2)
    ... except structlearn.errors.QueryError as error:
    ...     print(error)
    k=2 asks for the k best assignments; that is query='map'
    """


class TooWideError(StructlearnError, MemoryError):
    """Exact inference would need tables larger than allowed.

    Examples
    --------
    >>> import structlearn
    >>> graph = structlearn.chain([[0.0, 0.0]] * 2, [[1.0, 0.0], [0.0, 1.0]])
    >>> try:
    ...     structlearn.infer(graph, method="junction_tree", max_table=2)
    ... except structlearn.errors.TooWideError as error:
    ...     print(isinstance(error, MemoryError))
    True
    """


class FormatError(StructlearnError, ValueError):
    """A file does not follow its format.

    Examples
    --------
    >>> import structlearn
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.uai"
    >>> _ = path.write_text("PAIRS 2")
    >>> try:
    ...     structlearn.read_uai(path)
    ... except structlearn.errors.FormatError as error:
    ...     print("model.uai" in str(error))
    True
    """


class RuleError(StructlearnError, ValueError):
    """A rule does not follow the language, or does not fit the predicates.

    Attributes
    ----------
    line, column : int
        Position in `text`, both from 1.
    reason : str
        The sentence alone, without the position and the line with the caret.

    Examples
    --------
    >>> import structlearn
    >>> try:
    ...     structlearn.RuleModel("1: Likes(A, B) -> ")
    ... except structlearn.errors.RuleError as error:
    ...     print(error.line, error.column)
    1 18
    """

    def __init__(self, reason: str, text: str = "", line: int = 1, column: int = 1) -> None:
        super().__init__(f"{reason}{_point_at(text, line, column)}")
        self.reason, self.text, self.line, self.column = reason, text, line, column


class AtomError(StructlearnError, ValueError):
    """Atoms are given incorrectly: wrong columns or values, twice, or not at all.

    Examples
    --------
    >>> import structlearn
    >>> model = structlearn.RuleModel("1: !Likes(A, B)")
    >>> try:
    ...     model.observe(Likes=[("ann", "tea", 2.0)])
    ... except structlearn.errors.AtomError as error:
    ...     print(str(error).split("; ")[0].split(": ")[0])
    row 1 of the rows gives Likes('ann', 'tea') the value 2.0
    """


class PlaceError(StructlearnError, RuntimeError):
    """The place where work should run cannot be reached, cannot work, or has lost its workers.

    Examples
    --------
    >>> import structlearn
    >>> with structlearn.on("cuda"):  # doctest: +SKIP
    ...     pass
    """


class DataNotFoundError(StructlearnError, FileNotFoundError):
    """A data set is neither on this machine nor downloadable.

    Examples
    --------
    >>> import structlearn
    >>> try:
    ...     structlearn.datasets.data_path("no", "such.file")
    ... except structlearn.errors.DataNotFoundError as error:
    ...     print(isinstance(error, FileNotFoundError))
    True
    """


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
        f"all, but max_table allows {limit:.3g} entries; infer approximately, with method='bp' or "
        f"inference='bp', or raise max_table where it is an option and memory suffices"
    )


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} PiB"
