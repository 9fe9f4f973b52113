"""What a model has learnt, in lines of text."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from itertools import product
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.names import RUN_ONLY
from structlearn._src.estimators.structured.base import ModelPlan, feature_name, meaning
from structlearn._src.estimators.structured.read_sequences import ColumnReader
from structlearn._src.model.term import TableTerm, Term

WIDEST = 12  # labels up to which transitions are shown as a table
_TOLD = {  # of models with hidden states or components, where they have it
    "labels": "classes_",
    "symbols": "symbols_",
    "features": "n_features_in_",
    "states": "n_states_",
    "components": "n_components_",
    "iterations": "n_iter_",
}

#: Names features by their numbers.
Names = Callable[[Ints], list[str]]


def of_hidden(estimator: Any, label: str | None, everything: bool = False) -> list[str]:
    """Return what there is of a model with hidden states, or components, and no other weights."""
    if label is not None:
        raise ArgumentError(
            f"--label {label} chooses among the weights of features, which a "
            f"{type(estimator).__name__} does not have; leave it out"
        )
    rows = [_model(estimator, everything)]
    for title, name in _TOLD.items():
        found = getattr(estimator, name, None)
        if found is not None:
            several = name in ("classes_", "symbols_")
            told = f"{len(found)}: {' '.join(map(str, found.tolist()))}" if several else found
            rows.append(f"{title}: {told}")
    if hasattr(estimator, "draws_"):
        n = len(estimator.chains_)
        rows.append(f"sampling: {len(estimator.draws_)} draws of {n} chains; {estimator.status_}")
    return rows


def _model(estimator: Any, everything: bool) -> str:
    untold = RUN_ONLY | {"template", "warm_start"}  # they say nothing about the model, or too much
    chosen = {k: repr(v) for k, v in estimator.get_params(deep=False).items() if k not in untold}
    default = signature(type(estimator)).parameters
    told = [
        key for key in sorted(chosen) if everything or chosen[key] != repr(default[key].default)
    ]
    used = [f"{key}={chosen[key]}" for key in told]
    return f"model: {type(estimator).__name__}({', '.join(used)})"


def summary(estimator: Any, names: Sequence[str], everything: bool = False) -> list[str]:
    """Return what there is of a model in a few lines; `everything` counts all parameters."""
    weights, value = estimator.weights_, estimator.value_
    known = [] if math.isnan(value) else [f"objective {value:.6g}"]
    fit = [f"{estimator.n_iter_} iterations", *known, estimator.status_]
    return [
        _model(estimator, everything),
        f"labels: {len(names)}: {' '.join(names)}",
        f"features: {meaning(estimator.plan_.model.groups[0][0], np.arange(0))[2]}",
        f"weights: {len(weights)}, of which {(weights != 0).sum()} are not 0",
        f"training: {'; '.join(fit)}",
    ]


# ---- parts of a model --------------------------------------------------------------------


def parts(
    plan: ModelPlan, weights: Floats, names: list[str], top: int, label: str | None
) -> Iterator[list[str]]:
    """Cut the weights by what they are about, and yield the lines of each part."""
    design = plan.design
    hidden = [f"hidden {i}" for i in range(design.hidden_states)]
    linked = hidden if design.hidden == "layer" else names
    n_edges = len(plan.model.groups) - (1 if design.hidden is None else 3)
    kinds = [
        ("features", names, []),
        *[("transitions", linked, linked)] * n_edges,
        ("features of hidden states", hidden, []),
        ("labels and hidden states", names, hidden),
    ]
    groups = zip(kinds, plan.model.groups, plan.model.blocks, strict=False)
    for (title, rows, columns), terms, blocks in groups:
        for term, block in zip(terms, blocks, strict=True):
            if isinstance(term, TableTerm):
                table = term.push(weights[block], None).reshape(len(rows), len(columns))
                yield [f"{title}:", *_table(table, rows, columns, top, label)]
            else:
                told = f"features of {title}" if columns else title
                about = list(product(rows, columns) if columns else product(rows))
                known = _names(plan, "bigram" if columns else "unigram")
                yield [f"{told}:", *_features(term, weights[block], about, known, top, label)]


def _features(
    term: Term,
    weights: Floats,
    about: Sequence[tuple[str, ...]],
    known: Names,
    top: int,
    label: str | None,
) -> Iterator[str]:
    """Yield the strongest weights of features for the entries of a table, one a line."""
    columns, entries, _ = meaning(term, np.arange(len(weights)))
    kept = np.flatnonzero(_concerned(about, label)[entries])
    for positive in (True, False):
        chosen = _strongest(weights, kept, top, positive)
        words = [" -> ".join(about[entry]) for entry in entries[chosen]]
        width = max(map(len, words), default=0)
        for i, word, name in zip(chosen, words, known(columns[chosen]), strict=True):
            yield f"{weights[i]:10.4f}  {word:<{width}}  {name}"


def _table(
    table: Floats, rows: list[str], columns: list[str], top: int, label: str | None
) -> Iterator[str]:
    """Yield a table of pairs, or its strongest weights where it would be too wide."""
    if len(columns) > WIDEST:
        flat = table.ravel()
        about = list(product(rows, columns))
        kept = np.flatnonzero(_concerned(about, label))
        for positive in (True, False):
            for i in _strongest(flat, kept, top, positive):
                yield f"{flat[i]:10.4f}  {' -> '.join(about[i])}"
        return
    left = max(map(len, rows))
    widths = [max(len(name), 9) for name in columns]
    head = [f"{name:>{width}}" for name, width in zip(columns, widths, strict=True)]
    yield " ".join([" " * left, *head])
    for name, row in zip(rows, table, strict=True):
        if label is None or label == name or label in columns:
            cells = [f"{x:>{width}.4f}" for x, width in zip(row, widths, strict=True)]
            yield " ".join([f"{name:<{left}}", *cells])


def _concerned(about: Sequence[tuple[str, ...]], label: str | None) -> Bools:
    return np.array([label is None or label in pair for pair in about])


def _strongest(weights: Floats, kept: Ints, top: int, positive: bool) -> Ints:
    """Return which of the weights in `kept` are largest, or most negative, strongest first."""
    signed = weights[kept] if positive else -weights[kept]
    kept, signed = kept[signed > 0], signed[signed > 0]
    return kept[np.lexsort((kept, -signed))[:top]]


def _names(plan: ModelPlan, space: str) -> Names:
    """Return what names features, by number."""
    reader = plan.reader
    if isinstance(reader, ColumnReader):  # without making the names of all of them
        attributes = reader.attributes
        return attributes.unigram.names if space == "unigram" else attributes.bigram.names
    known = reader.names() if space == "unigram" else []
    if not known:
        return lambda which: [f"feature {i}" for i in which]
    return lambda which: [feature_name(known, int(i), not plan.design.tied) for i in which]
