"""Fitted estimators in files, as numbers and plain facts: loading runs no code from the file.

A file holds arrays and one tree of records. Every record names its kind, and a kind that is not
listed by the family of the estimator does not exist. What only concerns the run that made the
model (callbacks, checkpoint, threads, times) is left out, so that equal fits make equal files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np

from structlearn._src.common.errors import ArgumentError, FormatError, StructlearnError
from structlearn._src.common.names import RUN_ONLY
from structlearn._src.common.paths import PathLike
from structlearn._src.files import store
from structlearn._src.files.codec import Codec, CodecTable, path_of

SCHEMA = "structlearn.model/1"

#: Modules that list families, in the order in which they are asked.
_MODULES = (
    "structlearn._src.estimators.structured.storage",
    "structlearn._src.estimators.bayesian.storage",
    "structlearn._src.estimators.fields.storage",
)
#: Entry points by which other packages do the same: the name of a kind, and the module.
_GROUP = "structlearn.models"
#: What a file that is not as it should be makes Python raise.
_WRONG = (
    StructlearnError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError,
    RecursionError, MemoryError,
)  # fmt: skip


def _label_coder(of: Any, parts: dict[str, Any]) -> Any:
    coder = of(parts["names"])
    if coder.names.tolist() != parts["names"]:
        raise FormatError("the labels are not in order")
    return coder


_LABELS = Codec(
    "structlearn._src.text.labels:LabelCoder",
    parts=lambda coder: {"names": coder.names.tolist()},
    build=_label_coder,
)


@dataclass(frozen=True)
class Family:
    """Estimators that learn the same attributes, and how these are stored in files.

    Parameters
    ----------
    estimators
        Paths of the classes, as in ``"package.module:Class"``, by their names in files.
    fitted_attribute
        An attribute that a fitted estimator has.
    learnt
        Attributes that are stored as they are, where there are any.
    restore
        Called with an estimator and what was stored; checks it, and sets what `learnt` lacks.
    extra_state
        Returns what is stored beside `learnt`, by name.
    records
        Codecs of the objects that attributes contain, by their names in files.
    more
        Returns further codecs, when they are needed.
    renamed
        Names of attributes in files, where they differ.
    absent
        Values of parameters that files lack.

    Examples
    --------
    >>> from structlearn import MulticlassClassifier
    >>> from structlearn.extend import Family
    >>> place = f"{MulticlassClassifier.__module__}:MulticlassClassifier"
    >>> learnt = ("weights_",)
    >>> family = Family({"rows": place}, "weights_", learnt, restore=lambda fitted, found: None)
    >>> list(family.estimators)
    ['rows']
    """

    estimators: Mapping[str, str]  #: paths of the classes by their names in files
    fitted_attribute: str  #: one that a fitted estimator has
    learnt: tuple[str, ...]  #: attributes that are kept as they are, where there are any
    restore: Callable[[Any, dict[str, Any]], None]  #: check all, and set what `learnt` lacks
    extra_state: Callable[[Any], dict[str, Any]] = lambda _: {}  #: kept beside `learnt`
    records: Mapping[str, Codec] = field(default_factory=dict)  #: of what attributes hold
    more: Callable[[], Mapping[str, Codec]] = dict  #: further ones, asked when they are needed
    renamed: Mapping[str, str] = field(default_factory=dict)  #: attributes' names in files
    absent: Mapping[str, Any] = field(default_factory=dict)  #: parameters where files lack them

    def table(self) -> CodecTable:
        """Return the codecs of one file.

        Returns
        -------
        CodecTable
            The codecs of the family, and of labels.

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> from structlearn.extend import Family
        >>> place = f"{MulticlassClassifier.__module__}:MulticlassClassifier"
        >>> learnt = ("weights_",)
        >>> family = Family({"rows": place}, "weights_", learnt, restore=lambda fitted, found: None)
        >>> sorted(family.table().codecs)
        ['labels']
        """
        return CodecTable({"labels": _LABELS, **self.records}, self.more)

    def parts(self, kind: str, estimator: Any) -> dict[str, Any]:
        """Return the parameters of an estimator, and what it has learnt.

        Parameters
        ----------
        kind
            Name of its class in files.
        estimator : object
            The fitted estimator.

        Returns
        -------
        dict
            Two dictionaries, "parameters" and "learnt".

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> from structlearn.extend import Family
        >>> place = f"{MulticlassClassifier.__module__}:MulticlassClassifier"
        >>> learnt = ("weights_",)
        >>> family = Family({"rows": place}, "weights_", learnt, restore=lambda fitted, found: None)
        >>> fitted = MulticlassClassifier().fit([[0.0], [1.0]], ["a", "b"])
        >>> family.parts("rows", fitted)["learnt"]["weights_"].shape
        (4,)
        """
        given = self._settings(kind).encode(estimator)
        if isinstance(given["random_state"], (np.random.Generator, np.random.RandomState)):
            given["random_state"] = None
        found = vars(estimator)
        learnt = {
            self.renamed.get(name, name): found[name] for name in self.learnt if name in found
        }
        if "settings_" in learnt:
            learnt["settings_"] = self._present(learnt["settings_"])
        return {"parameters": self._present(given), "learnt": learnt | self.extra_state(estimator)}

    def build(self, kind: str, parts: dict[str, Any]) -> Any:
        """Return an estimator from its parts.

        Parameters
        ----------
        kind
            Name of its class in files.
        parts
            Parameters and learnt attributes, as from `parts`.

        Returns
        -------
        object
            The fitted estimator.

        Examples
        --------
        >>> from structlearn import MulticlassClassifier
        >>> from structlearn.extend import Family
        >>> place = f"{MulticlassClassifier.__module__}:MulticlassClassifier"
        >>> learnt = ("weights_",)
        >>> family = Family({"rows": place}, "weights_", learnt, restore=lambda fitted, found: None)
        >>> fitted = MulticlassClassifier(C=3.0).fit([[0.0], [1.0]], ["a", "b"])
        >>> family.build("rows", family.parts("rows", fitted)).C
        3.0
        """
        learnt = parts["learnt"]
        estimator = self._settings(kind).decode({**self.absent, **parts["parameters"]})
        for attribute in self.learnt:
            name = self.renamed.get(attribute, attribute)
            if name in learnt:
                setattr(estimator, attribute, learnt[name])
        if self.absent and "settings_" in vars(estimator):
            kept = estimator.settings_
            lacking = {name: x for name, x in self.absent.items() if name not in kept}
            estimator.settings_ = kept | lacking  # in this order, so that files are the same again
        self.restore(estimator, learnt)
        return estimator

    def _present(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters that files have: those that are not as where they are absent."""
        return {
            name: value
            for name, value in settings.items()
            if name not in self.absent or value != self.absent[name]
        }

    def _settings(self, kind: str) -> Codec:
        return Codec(self.estimators[kind], left_out=RUN_ONLY)


def save(estimator: Any, path: PathLike) -> None:
    """Write a fitted estimator to a file, atomically.

    Labels may be strings, numbers, booleans and tuples of these. Settings that concern only the run
    are not saved: callbacks, progress, checkpoint, threads and time limit, a random generator that
    was given, and the step counters of `partial_fit`. Sampled estimators are saved with all draws
    and everything needed to continue their chains; rule models are saved without atoms.

    Parameters
    ----------
    estimator : object
        A fitted estimator of this library.
    path
        Path of the file.

    Examples
    --------
    >>> import tempfile, os
    >>> from structlearn import SequenceLabeler, load, save
    >>> X, Y = [[["a"], ["b"]], [["b"], ["b"]]], [["x", "y"], ["y", "y"]]
    >>> labeler = SequenceLabeler().fit(X, Y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(labeler, os.path.join(folder, "model"))
    ...     again = load(os.path.join(folder, "model"))
    >>> again.predict(X)[0]
    array(['x', 'y'], dtype=object)
    """
    kind, family = _kind_of(type(estimator))
    name = type(estimator).__name__
    if not hasattr(estimator, family.fitted_attribute):
        raise ArgumentError(f"this {name} is not fitted; call fit before save")
    parts = family.parts(kind, estimator)
    try:
        family.build(kind, parts)
    except _WRONG as reason:
        raise ArgumentError(
            f"this {name} could not be loaded again ({_worded(reason)}); fit it again"
        ) from None
    arrays: store.Arrays = {}
    tree = family.table().encode(parts, "model", arrays)
    store.write(path, arrays, {"model": tree | {"kind": kind}}, SCHEMA)


def load(path: PathLike) -> Any:
    """Load an estimator that was written by `save`.

    Parameters
    ----------
    path
        Path of the file.

    Returns
    -------
    object
        The fitted estimator, of the class that was saved.

    Raises
    ------
    FormatError
        The file is truncated, damaged, in another format, or from a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from structlearn import MulticlassClassifier, load, save
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model"
    >>> save(MulticlassClassifier().fit([[0.0], [1.0]], ["a", "b"]), path)
    >>> load(path).predict([[0.9]])
    array(['b'], dtype='<U1')
    """
    arrays, meta = store.read(path, SCHEMA)
    tree = meta["model"] if isinstance(meta.get("model"), dict) else {}
    kind = tree.get("kind")
    family = _family_of(kind, path)
    try:
        return family.build(str(kind), family.table().decode(tree | {"kind": "mapping"}, arrays))
    except _WRONG as reason:
        raise FormatError(
            f"{path}: the model in the file is damaged ({_worded(reason)}); save it again"
        ) from None


# ---- families ----------------------------------------------------------------------------


def _family_of(kind: Any, path: PathLike) -> Family:
    """Return the family of a kind of estimator, which a file names."""
    for family in _families(str(kind)):
        if kind in list(family.estimators):
            return family
    raise FormatError(
        f"{path}: the file holds an estimator of kind {kind!r}, which no installed package knows; "
        f"it may need a newer structlearn, or the package that it was made with, such as the "
        f"experiments in the folder papers of structlearn's repository"
    )


def _kind_of(of: type) -> tuple[str, Family]:
    """Return the kind and the family of a class, or say why it cannot be saved."""
    paths = []
    for family in _families():
        for kind, path in family.estimators.items():
            if path == path_of(of):
                return kind, family
            paths.append(path)
    what = f"a {of.__name__} cannot be saved"
    base = next((each.__name__ for each in of.__mro__[1:] if path_of(each) in paths), None)
    if base is None:
        names = ", ".join(path.rpartition(":")[2] for path in paths)
        raise ArgumentError(f"{what}; give one of {names}")
    raise ArgumentError(
        f"{what}: it is a subclass of {base}, and files hold no classes of your own; fit a "
        f"{base} itself, or pickle it"
    )


def _families(kind: str | None = None) -> Iterator[Family]:
    """Yield the families of this package, then those of others that know a kind, or any."""
    for module in _MODULES:
        yield from import_module(module).FAMILIES
    from importlib.metadata import entry_points  # takes a while, and is seldom needed

    points = entry_points(group=_GROUP) if kind is None else entry_points(group=_GROUP, name=kind)
    for module in dict.fromkeys(point.module for point in points):
        yield from import_module(module).FAMILIES


def _worded(reason: Exception) -> str:
    missing = isinstance(reason, KeyError)
    return f"{reason} is missing" if missing else str(reason) or type(reason).__name__
