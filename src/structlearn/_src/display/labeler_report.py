"""The report on taggers, segmenters and classifiers."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.arrays import Ints, offsets_of
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.names import RUN_ONLY
from structlearn._src.display import page as blocks
from structlearn._src.display import svg
from structlearn._src.display.page import Html, Page, Percent
from structlearn._src.display.pictures import numbers_of
from structlearn._src.estimators.base import check_is_fitted
from structlearn._src.metrics.chunks import chunk_scores, has_chunks
from structlearn._src.text.columns import Columns
from structlearn._src.text.labels import number_labels

_FEATURES = 200  # largest weights that are listed: more are hardly read
_ERRORS = 300  # errors that are listed
_AROUND = 4  # tokens shown on both sides of an error
_EXAMPLES = 20  # whose probabilities are drawn
_LONGEST = 60  # positions of an example that fit on a page
_LABELS = 60  # rows and columns of a picture: names of more could not be read


def write_labeler(page: Page, estimator: Any, X: Any, y: Any) -> None:
    """Fill a page about a fitted estimator with weights."""
    check_is_fitted(estimator, "weights_")
    page.add("Model", blocks.facts(_facts(estimator)))
    page.add("Learning curve", *map(blocks.figure, learning_curves(estimator.history_)))
    if (X is None) != (y is None):
        raise ArgumentError(
            f"only {'y' if X is None else 'X'} was given; give examples X with their labels y, or "
            f"neither"
        )
    if X is not None:
        _write_scores(page, estimator, _Compared.of(estimator, X, y))
    page.add("Transitions", *_transitions(estimator), note="Weights of pairs of labels in a row.")
    rows = [(str(name), str(label), weight) for name, label, weight in _features(estimator)]
    table = blocks.table(("feature", "label", "weight"), rows, search=True)
    page.add("Features", table, note=f"The {len(rows)} features with the largest weights.")


def changed_parameters(estimator: Any) -> str:
    """Return the parameters that differ from their defaults and say something about the model."""
    default = signature(type(estimator)).parameters
    given = estimator.get_params(deep=False).items()
    untold = RUN_ONLY | {"template", "warm_start"}
    told = [
        f"{name}={value!r}"
        for name, value in sorted(given)
        if name not in untold and repr(value) != repr(default[name].default)
    ]
    return ", ".join(told) or "all at their defaults"


def learning_curves(history: Any) -> list[str]:
    """Draw the objective, and the gap or else the gradient norm on a log scale."""
    steps = history.iteration
    found = [svg.curves({"objective": (steps, history.value)}, "iteration", "objective")]
    for name, values in (("duality gap", history.gap), ("gradient norm", history.gradient)):
        found.append(svg.curves({name: (steps, values)}, "iteration", name, log=True))
    return found


def _facts(estimator: Any) -> dict[str, Any]:
    weights = estimator.weights_
    return {
        "parameters": changed_parameters(estimator),
        "labels": f"{len(estimator.classes_)}: {' '.join(map(str, estimator.classes_))}",
        "weights": f"{len(weights):,}, of which {int((weights != 0).sum()):,} are not 0",
        "training": estimator.status_,
        "iterations": int(estimator.n_iter_),
        "objective": float(estimator.value_),
    }


def _transitions(estimator: Any) -> list[str]:
    try:
        tables = np.atleast_3d(estimator.transitions_.T).T  # (kinds, states, states)
    except AttributeError:  # no edges, or only edges with features
        return []
    n = tables.shape[-1]
    classes = list(map(str, estimator.classes_))
    names = classes if len(classes) == n else [f"hidden {k}" for k in range(n)]
    looks: dict[str, Any] = {"signed": True, "across": "next", "down": "label"}
    return [_heat(table, names, svg.number, **looks) for table in tables if table.shape == (n, n)]


def _heat(table: NDArray[Any], names: list[str], form: Callable[[float], str], **looks: Any) -> str:
    """Draw a square table, or the labels with the largest entries where there are many."""
    sizes = np.abs(table).sum(0) + np.abs(table).sum(1)
    kept = np.sort(np.argsort(-sizes, kind="stable")[:_LABELS])
    shown = [names[k] for k in kept]
    told = blocks.text(f"The {len(shown)} of {len(names)} labels with the largest entries:")
    picture = blocks.figure(svg.heat(table[np.ix_(kept, kept)], shown, shown, form, **looks))
    return picture if len(shown) == len(names) else told + picture


def _features(estimator: Any) -> list[tuple[Any, Any, float]]:
    try:
        return list(estimator.top_features(_FEATURES))
    except (AttributeError, AssertionError):
        return []


# ---- compared with the truth ---------------------------------------------------------------


class _Compared(NamedTuple):
    """True and predicted labels of all positions, as numbers of `names`."""

    true: Ints
    predicted: Ints
    offsets: Ints
    names: list[str]
    words: list[str]  #: what stands at each position
    beliefs: NDArray[Any] | None  #: (positions, classes)

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any) -> _Compared:
        """Predict, and put all examples one after another."""
        guessed = [np.ravel(part) for part in estimator.predict(X)]
        gold = [np.ravel(np.asarray(part, object)) for part in y]
        _check_sizes(guessed, gold)
        classes = list(estimator.classes_)
        true, unseen = _numbered(np.concatenate(gold), classes)
        offsets = offsets_of([len(part) for part in guessed])
        beliefs = None
        if hasattr(estimator, "predict_marginals"):
            found = estimator.predict_marginals(X)
            beliefs = np.concatenate([part.reshape(-1, len(classes)) for part in found])
        predicted = numbers_of(np.concatenate(guessed), classes)
        words = _words(X, offsets)
        names = list(map(str, classes + unseen))
        return cls(true, predicted, offsets, names, words, beliefs)

    @property
    def wrong(self) -> Ints:
        """Positions with a known label that was not predicted."""
        return np.flatnonzero((self.true >= 0) & (self.true != self.predicted))

    def example(self, position: int) -> int:
        """Return the example that a position is in."""
        return int(np.searchsorted(self.offsets, position, "right")) - 1


def _check_sizes(guessed: list[Any], gold: list[Any]) -> None:
    if len(guessed) != len(gold):
        raise ArgumentError(
            f"X has {len(guessed)} examples, but y has {len(gold)}; give the labels of each example"
        )
    for i, (found, given) in enumerate(zip(guessed, gold, strict=True)):
        if len(found) != len(given):
            raise ArgumentError(
                f"example {i} has {len(given)} labels in y, but {len(found)} nodes in X; give one "
                f"label for each node"
            )


def _numbered(labels: NDArray[Any], classes: list[Any]) -> tuple[Ints, list[Any]]:
    """Number labels, -1 if hidden; those that training did not have follow the classes.

    They count as wrong, as in `score`.
    """
    numbers = number_labels([labels], np.asarray(classes))
    strange = numbers < -1
    unseen = list(dict.fromkeys(labels[strange].tolist()))
    places = {label: len(classes) + k for k, label in enumerate(unseen)}
    numbers[strange] = [places[label] for label in labels[strange].tolist()]
    return numbers, unseen


def _words(X: Any, offsets: Ints) -> list[str]:
    if isinstance(X, Columns):
        return X.text(0)
    steps = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
    return list(map(str, steps))


def _write_scores(page: Page, estimator: Any, found: _Compared) -> None:
    known = found.true >= 0
    right = int((found.true == found.predicted)[known].sum())
    share = right / max(int(known.sum()), 1)
    summary: dict[str, Any] = {"accuracy": f"{share:.2%} of {int(known.sum()):,} labels"}
    kinds = ""
    if has_chunks(found.names):
        scores = chunk_scores(found.true, found.predicted, found.offsets, found.names)
        summary |= {
            "F1": f"{scores.f1:.2%} of {int(scores.n_true.sum()):,} chunks",
            "precision, recall": f"{scores.precision:.2%}, {scores.recall:.2%}",
        }
        each = [scores.only(kind).f1 for kind in scores.kinds]
        kinds = svg.bars([kind or "chunk" for kind in scores.kinds], each, lambda x: f"{x:.1%}")
    page.add("Scores", blocks.facts(summary), blocks.figure(kinds))
    page.add("Confusion", *_confusion(found), note="Rows are true labels, columns predicted ones.")
    page.add("Errors", _errors(found))
    if found.beliefs is not None:
        page.add("Probabilities", _probabilities(found), note="Examples with errors come first.")


def _confusion(found: _Compared) -> list[str]:
    n = len(found.names)
    known = found.true >= 0
    counts = np.bincount(found.true[known] * n + found.predicted[known], minlength=n * n)
    table = counts.reshape(n, n).astype(float)
    shares = table / np.maximum(table.sum(1, keepdims=True), 1.0)
    looks: dict[str, Any] = {"across": "predicted", "down": "true"}
    picture = _heat(shares, found.names, lambda x: f"{x:.1%}", **looks)
    rows = [
        (found.names[i], found.names[j], int(table[i, j]), Percent(shares[i, j]))
        for i, j in np.argwhere((table > 0) & ~np.eye(n, dtype=bool))
    ]
    rows.sort(key=lambda row: -row[2])
    columns = ("true", "predicted", "times", "share of the true label")
    return [picture, blocks.table(columns, rows)]


def _errors(found: _Compared) -> str:
    rows = []
    for position in found.wrong[:_ERRORS].tolist():
        example = found.example(position)
        first, last = found.offsets[example : example + 2].tolist()
        before = " ".join(found.words[max(first, position - _AROUND) : position])
        after = " ".join(found.words[position + 1 : min(last, position + 1 + _AROUND)])
        word = f'<b class="wrong">{escape(found.words[position])}</b>'
        context = Html(f"{escape(before)} {word} {escape(after)}")
        true = found.names[found.true[position]]
        rows.append((example, context, true, found.names[found.predicted[position]]))
    if not rows:
        return blocks.text("There are none.")
    told = blocks.text(f"{len(rows):,} of {len(found.wrong):,} errors.")
    return told + blocks.table(("example", "context", "true", "predicted"), rows, search=True)


def _probabilities(found: _Compared) -> str:
    assert found.beliefs is not None
    faulty = list(dict.fromkeys(map(found.example, found.wrong.tolist())))
    others = [i for i in range(len(found.offsets) - 1) if i not in set(faulty)]
    steps = {}
    for example in (faulty + others)[:_EXAMPLES]:
        first, last = found.offsets[example : example + 2].tolist()
        here = slice(first, min(last, first + _LONGEST))
        picture = svg.stacked(found.beliefs[here], found.names, found.words[here])
        errors = sum(1 for p in found.wrong.tolist() if first <= p < last)
        name = f"example {example}: {errors} {'error' if errors == 1 else 'errors'}"
        steps[name] = blocks.figure(picture)
    return svg.legend(found.names) + blocks.stepper(steps, "Show")
