"""Fitted estimators in files, as numbers and plain facts: loading runs no code from the file.

A file holds arrays and one tree of records. Every record names its kind, and a kind that is not
listed here does not exist. What only concerns the run that made the model (callbacks, checkpoint,
threads, times) is left out, so that equal fits make equal files.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn.common.errors import ArgumentError, FormatError, StructlearnError
from structlearn.data import store
from structlearn.data.attributes import Attributes
from structlearn.data.files import PathLike
from structlearn.data.labels import LabelCoder
from structlearn.data.template import Template, parse_template
from structlearn.data.tokens import Vocabulary
from structlearn.design.choices import Choices
from structlearn.design.graphs import GraphReader
from structlearn.design.grids import GridReader
from structlearn.design.nodes import ArrayNodes, SparseNodes, TokenNodes
from structlearn.design.plan import Plan
from structlearn.design.sequences import ColumnReader, RowReader, SequenceReader
from structlearn.design.whole import Whole
from structlearn.estimators.base import StructuredEstimator
from structlearn.estimators.classes import ClassCoder
from structlearn.estimators.classifier import SequenceClassifier
from structlearn.estimators.graph import GraphLabeler
from structlearn.estimators.grid import GridLabeler
from structlearn.estimators.multiclass import MulticlassClassifier
from structlearn.estimators.sequence import SequenceLabeler
from structlearn.graph.batch import Bars
from structlearn.model.model import Model
from structlearn.model.term import Linear, Pairs, Table
from structlearn.solve.annealed import Annealed
from structlearn.solve.cccp import Cccp
from structlearn.solve.checkpoint import RUN_ONLY
from structlearn.solve.descent import Descent
from structlearn.solve.frank_wolfe import FrankWolfe
from structlearn.solve.history import History
from structlearn.solve.lbfgs import Lbfgs
from structlearn.solve.online import Online
from structlearn.solve.owlqn import Owlqn
from structlearn.solve.paired import Paired
from structlearn.solve.sdca import Sdca
from structlearn.solve.stochastic import Stochastic

SCHEMA = "structlearn.model/1"

_LEARNT = (
    "plan_", "weights_", "history_", "status_", "n_iter_", "converged_", "n_seen_", "value_",
    "state_", "n_features_in_", "feature_names_in_",
)  # fmt: skip
_PLAIN = (type(None), bool, int, float, str)
_NAMED = {"O": "objects", "U": "texts"}
_LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
    "entries": dict,
    "objects": lambda items: _objects(items),
    "texts": lambda items: np.array(items, np.str_),
}


def save(estimator: Any, path: PathLike) -> None:
    """Write a fitted estimator to a file, which others see as it was or whole.

    Labels may be strings, numbers, truth values and tuples of these. What concerns the run alone
    is not saved: callbacks, progress, checkpoint, threads and time limit, a random generator, and
    how far the steps of `partial_fit` have got.

    Examples
    --------
    >>> import tempfile, os
    >>> from structlearn.estimators.sequence import SequenceLabeler
    >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
    >>> labeler = SequenceLabeler().fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(labeler, os.path.join(folder, "model"))
    ...     again = load(os.path.join(folder, "model"))
    >>> again.predict(X)[0]
    array(['x', 'y'], dtype=object)
    """
    if type(estimator) not in _NAMES or _NAMES[type(estimator)] not in _ESTIMATORS:
        raise ArgumentError(_unknown(estimator))
    if not hasattr(estimator, "weights_"):
        raise ArgumentError(f"this {type(estimator).__name__} is not fitted; call fit before save")
    arrays: store.Arrays = {}
    record = _pack(estimator, "model", arrays)
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
        estimator = _unpack(meta["model"], arrays)
        _check(estimator)
    except (
        StructlearnError, KeyError, TypeError, ValueError, IndexError, AttributeError,
        OverflowError, RecursionError,
    ) as reason:  # fmt: skip
        raise FormatError(
            f"{path}: the model in the file is damaged ({_worded(reason)}); save it anew"
        ) from None
    return estimator


def _unknown(estimator: Any) -> str:
    """Say why something that is no estimator of this library cannot be saved."""
    mine, names = type(estimator), [kind.__name__ for kind in _ESTIMATORS.values()]
    base = next((kind.__name__ for kind in mine.__mro__ if kind.__name__ in names), None)
    what = f"a {mine.__name__} cannot be saved"
    if base is None:
        return f"{what}; give one of {', '.join(names)}"
    return (
        f"{what}: it is a subclass of {base}, and files hold no classes of your own; fit a "
        f"{base} itself, or pickle it"
    )


# ---- kinds -------------------------------------------------------------------------------


class _Kind(NamedTuple):
    """How things of one class become parts with names, and are built again from these."""

    of: type
    parts: Callable[[Any], dict[str, Any]]
    build: Callable[[dict[str, Any]], Any]


def _record(of: type) -> _Kind:
    """A class whose arguments are its fields."""
    names = [field.name for field in dataclasses.fields(of) if field.init]
    kept = [name for name in names if name not in RUN_ONLY]

    def parts(value: Any) -> dict[str, Any]:
        return {name: getattr(value, name) for name in kept}

    def build(given: dict[str, Any]) -> Any:
        return of(**_known(given, kept))

    return _Kind(of, parts, build)


def _estimator(of: type[StructuredEstimator]) -> _Kind:
    """An estimator: its parameters as they were given, and what it has learnt."""
    settings = _record(of)

    def parts(value: Any) -> dict[str, Any]:
        given = settings.parts(value)
        if isinstance(given["random_state"], (np.random.Generator, np.random.RandomState)):
            given["random_state"] = None
        learnt = {name: vars(value)[name] for name in _LEARNT if name in vars(value)}
        return {"parameters": given, "learnt": learnt | {"state_": None}}

    def build(given: dict[str, Any]) -> Any:
        new, learnt = settings.build(given["parameters"]), given["learnt"]
        for name in _LEARNT:
            if name in learnt:
                setattr(new, name, learnt[name])
        return new

    return _Kind(of, parts, build)


def _known(given: dict[str, Any], names: list[str]) -> dict[str, Any]:
    unknown = sorted(set(given).difference(names))
    if unknown:
        raise FormatError(f"there is no place for {unknown[0]!r}")
    return given


def _objects(items: list[Any]) -> NDArray[Any]:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def _timeless(history: History) -> dict[str, Any]:
    table = history.table
    table[:, 1] = 0.0  # seconds differ between runs that are otherwise equal
    return {"table": table}


def _coder(given: dict[str, Any]) -> LabelCoder:
    coder = LabelCoder(given["names"])
    if coder.names.tolist() != given["names"]:
        raise FormatError("the labels are not in order")
    return coder


def _vocabulary(given: dict[str, Any]) -> Vocabulary:
    _check_offsets(given["offsets"], len(given["text"]), "the attributes")
    return Vocabulary.from_state(given)


def _pairs(given: dict[str, Any]) -> Pairs:
    pairs = Pairs(**given)
    _check_offsets(pairs.offsets, len(pairs.states), "the pairs of feature and label")
    _check_range(pairs.states, 0, pairs.size, "a pair's label")
    return pairs


def _ties(table: Table) -> dict[str, Any]:
    ties = None if table.ties is None else np.array(table.ties, np.int64)
    return {"size": table.size, "ties": ties}


def _table(given: dict[str, Any]) -> Table:
    size, ties = given["size"], given["ties"]
    if ties is None:
        return Table(size)
    if ties.shape != (size,):
        raise FormatError(f"a table of {size} entries has {len(ties)} ties")
    _check_range(ties, -1, size, "a tie")
    return Table(size, tuple(ties.tolist()))


_ESTIMATORS: dict[str, type[StructuredEstimator]] = {
    "graph-labeler": GraphLabeler,
    "grid-labeler": GridLabeler,
    "multiclass-classifier": MulticlassClassifier,
    "sequence-classifier": SequenceClassifier,
    "sequence-labeler": SequenceLabeler,
}
_RECORDS: dict[str, type] = {
    "plan": Plan,
    "choices": Choices,
    "whole": Whole,
    "bars": Bars,
    "model": Model,
    "linear": Linear,
    "classes": ClassCoder,
    "row-reader": RowReader,
    "graph-reader": GraphReader,
    "grid-reader": GridReader,
    "sequence-reader": SequenceReader,
    "column-reader": ColumnReader,
    "array-nodes": ArrayNodes,
    "sparse-nodes": SparseNodes,
    "token-nodes": TokenNodes,
    "lbfgs": Lbfgs,
    "online": Online,
    "owlqn": Owlqn,
    "descent": Descent,
    "sdca": Sdca,
    "annealed": Annealed,
    "stochastic": Stochastic,
    "frank-wolfe": FrankWolfe,
    "cccp": Cccp,
    "paired": Paired,
}
_KINDS: dict[str, _Kind] = {
    "mapping": _Kind(dict, dict, dict),
    **{name: _estimator(of) for name, of in _ESTIMATORS.items()},
    **{name: _record(of) for name, of in _RECORDS.items()},
    "pairs": _record(Pairs)._replace(build=_pairs),
    "table": _Kind(Table, _ties, _table),
    "labels": _Kind(LabelCoder, lambda coder: {"names": coder.names.tolist()}, _coder),
    "vocabulary": _Kind(Vocabulary, Vocabulary.state, _vocabulary),
    "attributes": _Kind(Attributes, Attributes.state, Attributes.from_state),
    "template": _Kind(Template, lambda t: {"text": t.text}, lambda given: parse_template(**given)),
    "history": _Kind(History, _timeless, lambda given: History(**given)),
}
_NAMES = {kind.of: name for name, kind in _KINDS.items()}


# ---- there and back ----------------------------------------------------------------------


def _pack(value: Any, place: str, arrays: store.Arrays) -> Any:
    """Return what JSON can say of a value; its arrays go to `arrays`, named by their place."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        arrays[place] = value
        return {"kind": "array", "at": place}
    if isinstance(value, np.ndarray) and value.dtype.kind in _NAMED:
        return {"kind": _NAMED[value.dtype.kind], "items": _packed(value.tolist(), place, arrays)}
    if type(value) in (list, tuple, set, frozenset):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return {"kind": type(value).__name__, "items": _packed(items, place, arrays)}
    if isinstance(value, dict) and not all(type(key) is str for key in value):
        return {"kind": "entries", "items": _packed(value.items(), place, arrays)}
    if type(value) not in _NAMES:
        raise ArgumentError(
            f"{place} is {value!r}, which cannot be saved; use strings, numbers, arrays, or lists "
            f"and dictionaries of these"
        )
    name = _NAMES[type(value)]
    parts = _KINDS[name].parts(value)
    packed = {part: _pack(inner, f"{place}.{part}", arrays) for part, inner in parts.items()}
    return {"kind": name, "parts": packed}


def _packed(items: Iterable[Any], place: str, arrays: store.Arrays) -> list[Any]:
    return [_pack(item, f"{place}.{i}", arrays) for i, item in enumerate(items)]


def _unpack(value: Any, arrays: store.Arrays) -> Any:
    """Return what `_pack` was given."""
    if type(value) in _PLAIN:
        return value
    kind = value["kind"]
    if kind == "array":
        return arrays[value["at"]]
    if kind in _LISTS:
        return _LISTS[kind]([_unpack(item, arrays) for item in value["items"]])
    if kind not in _KINDS:
        raise FormatError(f"{kind!r} is no kind of thing that this structlearn knows")
    return _KINDS[kind].build({name: _unpack(x, arrays) for name, x in value["parts"].items()})


# ---- does it fit together? ---------------------------------------------------------------


def _check(estimator: Any) -> None:
    """Refuse what would lead compiled code, which trusts its arrays, astray."""
    if not isinstance(estimator, StructuredEstimator) or not isinstance(estimator.plan_, Plan):
        raise FormatError("there is no estimator in it")
    plan, weights = estimator.plan_, estimator.weights_
    n_weights = plan.model.n_weights
    if weights.shape != (n_weights,) or weights.dtype != np.float64:
        raise FormatError(f"{n_weights} weights are needed, not an array {weights.shape}")
    if not np.isfinite(weights).all():
        raise FormatError("some weights are not finite")
    sizes = plan.choices.sizes(plan.states, len(plan.model.groups))
    for terms, size in zip(plan.model.groups, sizes, strict=True):
        wrong = [term.size for term in terms if term.size != size]
        if wrong:
            raise FormatError(f"there are tables of {wrong[0]} entries where {size} are needed")
    bars = plan.choices.bars if isinstance(plan.choices, Choices) else None
    if bars is not None:
        _check_bars(bars, plan.states)


def _check_bars(bars: Bars, states: int) -> None:
    shapes = [array.shape for array in (bars.first, bars.last, bars.steps)]
    if shapes != [(states,), (states,), (states, states)]:
        raise FormatError("the forbidden labels are not as many as the labels")


def _check_offsets(offsets: Any, end: int, what: str) -> None:
    whole = offsets.ndim == 1 and offsets.dtype == np.int64 and len(offsets) > 0
    if not whole or offsets[0] != 0 or offsets[-1] != end or (np.diff(offsets) < 0).any():
        raise FormatError(f"the borders between {what} do not fit")


def _check_range(numbers: Any, low: int, high: int, what: str) -> None:
    if len(numbers) and not (numbers.min() >= low and numbers.max() < high):
        raise FormatError(f"{what} lies outside of {low} to {high - 1}")


def _worded(reason: Exception) -> str:
    missing = isinstance(reason, KeyError)
    return f"{reason} is missing" if missing else str(reason) or type(reason).__name__
