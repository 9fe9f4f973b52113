"""Label names to whole numbers and back, over sequences; which labels may follow each other."""

from __future__ import annotations

import sys
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Ints, as_array, cut, locate, offsets_of
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.names import SCHEMES

HIDDEN = -1  # number of a label that is not known


class LabelCoder:
    """Number the labels of sequences from 0, in sorted order.

    Labels are anything hashable, but of the numbers only whole ones from 0 on, which may be floats:
    None, -1, pandas' NA, and what a masked array hides, is a label that is not known, whose number
    is -1. If all labels are whole numbers, their `names` are an array of integers, else of objects.
    `minus` says whether -1 was among the labels that were learnt from.

    Examples
    --------
    >>> coder = LabelCoder().fit([["O", "B"], ["B", None]])
    >>> coder.transform([["O", "B"], ["B", None]])
    array([ 1,  0,  0, -1])
    """

    names: NDArray[Any]
    minus: bool = False

    def __init__(self, names: Iterable[Hashable] = ()) -> None:
        self._set(names)

    def fit(self, sequences: Sequence[Iterable[Hashable]]) -> LabelCoder:
        """Learn the labels of sequences."""
        flat = _flat(sequences)
        found = set(np.unique(flat).tolist() if isinstance(flat, np.ndarray) else _hashable(flat))
        names = found - {HIDDEN, *_missing()}
        for name in filter(_barred, names):
            first = next(i for i, label in enumerate(flat) if label is name or label == name)
            raise ArgumentError(
                f"{_place(sequences, first)} has the label {name!r}; a number as a label must be "
                f"whole, and not below 0: give None or -1 where a label is not known"
            )
        self._set(names)
        self.minus = HIDDEN in found
        return self

    def transform(self, sequences: Sequence[Iterable[Hashable]]) -> Ints:
        """Return the number of every label, all sequences one after another."""
        flat = _flat(sequences)
        numbered = self._numbered(flat)
        unknown = np.flatnonzero(numbered < HIDDEN)
        if len(unknown):
            label = (flat.tolist() if isinstance(flat, np.ndarray) else flat)[unknown[0]]
            raise ArgumentError(
                f"label {label!r} of {_place(sequences, unknown[0])} was not seen in training, nor "
                f"is it among `classes`; the known labels are {_some(self.names)}"
            )
        return numbered

    def _set(self, names: Iterable[Hashable]) -> None:
        listed = _sorted(names)
        whole = all(isinstance(n, int | np.integer) and type(n) is not bool for n in listed)
        self.names = np.empty(len(listed), np.int64 if whole and listed else object)
        self.names[:] = listed
        self._index = {name: number for number, name in enumerate(listed)}

    def _numbered(self, flat: NDArray[Any] | list[Any]) -> Ints:
        """Return numbers; -1 for hidden labels and -2 for those not known."""
        if not isinstance(flat, np.ndarray):
            index: dict[Any, int] = {**dict.fromkeys(_missing(), HIDDEN), HIDDEN: HIDDEN}
            index |= self._index
            get = index.get
            return np.fromiter((get(label, -2) for label in _hashable(flat)), np.int64, len(flat))
        if self.names.dtype == object or not len(self.names):
            return np.where(flat == HIDDEN, HIDDEN, -2)
        places = np.searchsorted(self.names, flat).clip(max=len(self.names) - 1)
        return np.where(flat == HIDDEN, HIDDEN, np.where(self.names[places] == flat, places, -2))


@dataclass(frozen=True, eq=False)
class Forbidden:
    """What must not happen in a sequence of labels."""

    first: Bools  #: (labels,) which labels no sequence may begin with
    last: Bools  #: (labels,) which labels no sequence may end with
    pairs: Bools  #: (labels, labels) where the second label must not follow the first


def forbidden_transitions(
    names: Sequence[Hashable], rule: str | Collection[tuple[Hashable, Hashable]]
) -> Forbidden:
    """Return which transitions between labels such as ``B-NP``, or bare ``B``, a rule forbids.

    - ``"BIO"`` (IOB2): a chunk begins with B; I follows B or I of the same type.
    - ``"BIOES"``: a chunk is S, or B, any number of I, and E, all of one type.
    - ``"IOB1"``: a chunk begins with I; B only follows a chunk of the same type.
    - pairs of labels ``(a, b)`` where ``b`` must not follow ``a``; pairs that name others than
      `names` rule out nothing.

    Examples
    --------
    >>> forbidden_transitions(["B", "I", "O"], "BIO").pairs.astype(int)
    array([[0, 0, 0],
           [0, 0, 0],
           [0, 1, 0]])
    """
    if not isinstance(rule, Collection):  # what can be read only once would bar nothing later
        raise ArgumentError(
            f"forbidden={rule!r} must be one of {', '.join(map(repr, SCHEMES))}, or a list of "
            f"pairs of labels (a, b), where b must not follow a"
        )
    if not isinstance(rule, str):
        return _forbidden_pairs(names, rule)
    checks.one_of("forbidden transitions", rule, SCHEMES)
    tags = [_scheme_tag(name, rule) for name in names]
    outside = ("O", "")
    pairs = np.array([[not _may_follow(a, b, rule) for b in tags] for a in tags], np.bool_)
    first = np.array([not _may_follow(outside, tag, rule) for tag in tags], np.bool_)
    last = np.array([not _may_follow(tag, outside, rule) for tag in tags], np.bool_)
    return Forbidden(first, last, pairs.reshape(len(tags), len(tags)))


def chunk_tag(name: Hashable) -> tuple[str, str]:
    """Split a label such as ``B-NP`` into its tag and its type, which a bare ``B`` lacks."""
    tag, _, kind = str(name).partition("-")
    return tag, kind


def check_several(names: NDArray[Any], hidden: bool) -> None:
    """Refuse a single class, which nothing can be learnt from; others may be hidden by -1."""
    if len(names) == 1:
        others = ", and -1 and None stand for those not known" if hidden else ""
        raise ArgumentError(
            f"all labels are {names.tolist()[0]!r}{others}; at least two classes are needed, such "
            f"as 0 and 1"
        )


# ---- labels ------------------------------------------------------------------------------


def _flat(sequences: Iterable[Any]) -> NDArray[Any] | list[Any]:
    """Return all labels: as an array if they are whole numbers, else as a list."""
    given = [_row(y, i) for i, y in enumerate(sequences)]
    if given and all(isinstance(y, np.ndarray) and y.dtype.kind in "iu" for y in given):
        return _counted(np.concatenate(given))
    flat = list(chain.from_iterable(y.tolist() if isinstance(y, np.ndarray) else y for y in given))
    if any(issubclass(kind, float | np.floating) for kind in set(map(type, flat))):
        flat = [_whole(label) for label in flat]
    types = set(map(type, flat))
    if types and all(issubclass(t, int | np.integer) and t is not bool for t in types):
        return _counted(flat)
    return flat


def _counted(labels: Any) -> Ints:
    """Return whole numbers as an array of 64 bits, which they must fit."""
    given = np.asarray(labels)
    most = np.iinfo(np.int64).max
    if given.size and (given.dtype.kind not in "iu" or given.max() > most):
        raise ArgumentError(f"some labels are beyond {most}; use names for such labels")
    return given.astype(np.int64)


def _row(labels: Any, i: int) -> Any:
    """Return the labels of one sequence, None where an array masks them."""
    if isinstance(labels, np.ndarray):
        flat = labels.ravel()
        return flat.tolist() if isinstance(labels, np.ma.MaskedArray) else flat
    if type(labels) is not list and not isinstance(labels, Iterable):
        raise ArgumentError(
            f"entry {i} of Y is {labels!r}, but must be the labels of a whole sequence; "
            f"Y is a list of such sequences"
        )
    return labels


def _whole(label: Any) -> Any:
    """Return floats without a fraction as whole numbers, and all else as it is."""
    real = isinstance(label, float | np.floating)
    return int(label) if real and np.isfinite(label) and label == int(label) else label


def _barred(label: Any) -> bool:
    """Whether a number cannot be a label: one below 0, and one that is not whole."""
    if isinstance(label, int | np.integer):
        return bool(label < 0)
    return isinstance(label, Number)


def _missing() -> list[Any]:
    """Return what stands for missing values: None, and pandas' NA and NaT if that is there."""
    pandas = sys.modules.get("pandas")
    return [None, *(getattr(pandas, name) for name in ("NA", "NaT") if pandas is not None)]


def _place(sequences: Sequence[Iterable[Any]], index: int) -> str:
    """Say where one of the labels of all sequences stands."""
    lengths = [len(_flat([sequence])) for sequence in sequences]
    sequence, place = locate(offsets_of(lengths), int(index))
    return f"token {place} in sequence {sequence}"


def _hashable(labels: list[Any]) -> list[Any]:
    try:
        set(labels)
    except TypeError:
        bad = next(label for label in labels if not isinstance(label, Hashable))
        raise ArgumentError(
            f"{bad!r} cannot be a label, since it is not hashable; Y must be a list of "
            f"sequences of labels"
        ) from None
    return labels


def _sorted(names: Iterable[Any]) -> list[Any]:
    listed = list(names)
    try:
        return sorted(listed)
    except TypeError:  # labels of different types have no order of their own
        return sorted(listed, key=lambda name: (type(name).__name__, repr(name)))


def _some(names: NDArray[Any], most: int = 20) -> str:
    shown = ", ".join(map(repr, names[:most].tolist()))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "none"


# ---- labels of examples ------------------------------------------------------------------


def read_labels(
    Y: Any,
    sizes: Ints,
    forms: Sequence[tuple[int, ...]] | None = None,
    hidden: Bools | None = None,
) -> Any:
    """Return the labels of every example, one for each of its nodes.

    Labels come in the given forms, or one after the other; nodes that are `hidden` never have one,
    whatever is given for them.
    """
    if not hasattr(Y, "__len__") or hasattr(Y, "tocsr") or getattr(Y, "ndim", 1) == 0:
        raise ArgumentError(f"Y is a {type(Y).__name__}; it must be a list of labels per example")
    if len(Y) != len(sizes):
        raise ArgumentError(
            f"X has {len(sizes)} examples and Y has {len(Y)}; every example needs its labels"
        )
    given = [_count(y, i) if forms is None else as_array(y).shape for i, y in enumerate(Y)]
    for i, (mine, form) in enumerate(zip(given, forms or sizes.tolist(), strict=True)):
        if mine != form:
            raise ArgumentError(
                f"example {i} has labels of shape {mine}, but {form} is needed: one label for "
                f"every node, -1 or None where it is not known"
            )
    rows = Y if forms is None else [np.asanyarray(y).ravel() for y in Y]
    if hidden is None:
        return rows
    masks = cut(hidden, offsets_of(sizes))
    return [_unless(y, mask) for y, mask in zip(rows, masks, strict=True)]


def name_labels(classes: Any, numbers: Ints) -> Any:
    """Return the labels with these numbers, -1 for -1."""
    if len(numbers) and numbers.min() < 0:
        more = np.empty(len(classes) + 1, classes.dtype)
        more[:-1] = classes
        more[-1] = HIDDEN
        return more[numbers]
    return classes[numbers]


def number_labels(Y: Any, classes: Any) -> Ints:
    """Return the number of every label among the classes, -1 if hidden, -2 if it is none."""
    coder = LabelCoder().fit(Y)
    index = {name: number for number, name in enumerate(classes.tolist())}
    table = np.array([*(index.get(name, -2) for name in coder.names.tolist()), -1])
    return table[coder.transform(Y)]


def _unless(labels: Any, hidden: Any) -> list[Any]:
    """Return the labels of one example, None at nodes that are always hidden."""
    listed = labels.tolist() if isinstance(labels, np.ndarray) else labels
    return [None if h else label for label, h in zip(listed, hidden, strict=True)]


def _count(labels: Any, i: int) -> int:
    if type(labels) is list:
        return len(labels)
    if isinstance(labels, str | bytes | Set | Mapping) or not hasattr(labels, "__len__"):
        raise ArgumentError(
            f"the labels of example {i} are {labels!r}; a list with one label for every node is "
            f"needed"
        )
    if getattr(labels, "ndim", 1) != 1:
        raise ArgumentError(
            f"the labels of example {i} have shape {labels.shape}; one label for every node is "
            f"needed, in one dimension"
        )
    return len(labels)


# ---- schemes -----------------------------------------------------------------------------


def _scheme_tag(name: Hashable, scheme: str) -> tuple[str, str]:
    tag = chunk_tag(name)
    if tag[0] not in [*scheme.rstrip("1")] or (tag[0] == "O" and tag[1]):
        raise ArgumentError(
            f"label {name!r} does not fit the scheme {scheme}, whose labels are "
            f"O and {', '.join(f'{c}-TYPE' for c in sorted(set(scheme) - set('O1')))}"
        )
    return tag


def _may_follow(a: tuple[str, str], b: tuple[str, str], scheme: str) -> bool:
    """Whether tag `b` may come right after tag `a`; outside a sequence both are O."""
    same = a[1] == b[1]
    if scheme == "IOB1":
        return b[0] != "B" or (a[0] in "BI" and same)
    inside = b[0] in "IE"  # b goes on with a chunk
    if scheme == "BIO":
        return not inside or (a[0] in "BI" and same)
    return inside == (a[0] in "BI") and (not inside or same)


def _forbidden_pairs(
    names: Sequence[Hashable], pairs: Collection[tuple[Hashable, Hashable]]
) -> Forbidden:
    index = {name: number for number, name in enumerate(names)}
    table = np.zeros((len(names), len(names)), np.bool_)
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ArgumentError(
                f"{pair!r} is not a pair of labels (a, b), where b must not follow a"
            )
        if all(isinstance(name, Hashable) and name in index for name in pair):
            table[index[pair[0]], index[pair[1]]] = True
    none = np.zeros(len(names), np.bool_)
    return Forbidden(none, none.copy(), table)
