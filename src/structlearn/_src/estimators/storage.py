"""Fitted estimators in files, as numbers and plain facts: loading runs no code from the file.

A file holds arrays and one tree of records. Every record names its kind, and a kind that is not
listed by the family of the estimator does not exist. What only concerns the run that made the
model (callbacks, checkpoint, threads, times) is left out, so that equal fits make equal files.
"""

from __future__ import annotations

import importlib
from typing import Any

from structlearn._src.common.errors import ArgumentError, FormatError, StructlearnError
from structlearn._src.common.paths import PathLike
from structlearn._src.estimators.codec import Kinds
from structlearn._src.files import store

SCHEMA = "structlearn.model/1"

#: Estimators by their names in files, and where the kinds of their families are listed: modules
#: that are loaded when they are needed.
_STRUCTURED = "structlearn._src.estimators.structured.storage"
_CHAINS = "structlearn._src.estimators.bayesian.chain_storage"
_MIXTURES = "structlearn._src.estimators.bayesian.mixture_storage"
_HOMES = {
    "graph-labeler": ("GraphLabeler", _STRUCTURED),
    "grid-labeler": ("GridLabeler", _STRUCTURED),
    "multiclass-classifier": ("MulticlassClassifier", _STRUCTURED),
    "sequence-classifier": ("SequenceClassifier", _STRUCTURED),
    "sequence-labeler": ("SequenceLabeler", _STRUCTURED),
    "infinite-hmm": ("InfiniteHMM", _CHAINS),
    "max-margin-hmm": ("MaxMarginHMM", _CHAINS),
    "infinite-svm": ("InfiniteSVM", _MIXTURES),
    "infinite-logit": ("InfiniteLogit", "papers.comparators.infinite_logit_kinds"),
    "truncated-svm": ("TruncatedSVM", "papers.comparators.mean_field_kinds"),
    "switching-svm": ("SwitchingSVM", "papers.comparators.mean_field_kinds"),
}
#: What a file that is not as it should be makes Python raise.
_WRONG = (
    StructlearnError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError,
    RecursionError, MemoryError,
)  # fmt: skip


def save(estimator: Any, path: PathLike) -> None:
    """Write a fitted estimator to a file, which others see as it was or whole.

    Labels may be strings, numbers, truth values and tuples of these. What concerns the run alone
    is not saved: callbacks, progress, checkpoint, threads and time limit, a random generator that
    was given, and how far the steps of `partial_fit` have got. Estimators that sample are saved
    with all draws, and with all that their chains need to go on.

    Examples
    --------
    >>> import tempfile, os
    >>> from structlearn._src.estimators.structured.sequence import SequenceLabeler
    >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
    >>> labeler = SequenceLabeler().fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(labeler, os.path.join(folder, "model"))
    ...     again = load(os.path.join(folder, "model"))
    >>> again.predict(X)[0]
    array(['x', 'y'], dtype=object)
    """
    kinds, mine = _kinds_of(estimator), type(estimator).__name__
    if not hasattr(estimator, kinds.family.sign):
        raise ArgumentError(f"this {mine} is not fitted; call fit before save")
    root = kinds.by_name[kinds.names[type(estimator)]]
    try:
        root.build(root.parts(estimator))
    except _WRONG as reason:
        raise ArgumentError(
            f"this {mine} could not be loaded again ({_worded(reason)}); fit it anew"
        ) from None
    arrays: store.Arrays = {}
    record = kinds.pack(estimator, "model", arrays)
    store.write(path, arrays, {"model": record}, SCHEMA)


def load(path: PathLike) -> Any:
    """Return the estimator that `save` has put into a file.

    Raises
    ------
    FormatError
        The file is cut short, damaged, foreign, or from a newer version.
    """
    arrays, meta = store.read(path, SCHEMA)
    try:
        record = meta["model"]
        if record["kind"] not in _HOMES:
            raise FormatError("there is no estimator in it that this structlearn knows")
        _, home = _HOMES[record["kind"]]
        return _kinds(home).unpack(record, arrays)
    except _WRONG as reason:
        raise FormatError(
            f"{path}: the model in the file is damaged ({_worded(reason)}); save it anew"
        ) from None


def _kinds(home: str) -> Kinds:
    kinds: Kinds = importlib.import_module(home).KINDS
    return kinds


def _kinds_of(estimator: Any) -> Kinds:
    """Return the kinds of an estimator's family, or say why it cannot be saved."""
    mine, homes = type(estimator), dict(_HOMES.values())
    kinds = _kinds(homes[mine.__name__]) if mine.__name__ in homes else None
    if kinds is not None and mine in kinds.names:
        return kinds
    base = next((kind.__name__ for kind in mine.__mro__[1:] if kind.__name__ in homes), None)
    what = f"a {mine.__name__} cannot be saved"
    if base is None:
        raise ArgumentError(f"{what}; give one of {', '.join(homes)}")
    raise ArgumentError(
        f"{what}: it is a subclass of {base}, and files hold no classes of your own; fit a "
        f"{base} itself, or pickle it"
    )


def _worded(reason: Exception) -> str:
    missing = isinstance(reason, KeyError)
    return f"{reason} is missing" if missing else str(reason) or type(reason).__name__
