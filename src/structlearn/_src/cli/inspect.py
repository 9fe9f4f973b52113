"""``structlearn inspect``: what a model has learnt."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from structlearn._src.cli.arguments import add_command, add_file, add_number, whole
from structlearn._src.common.errors import ArgumentError

if TYPE_CHECKING:
    from structlearn._src.common.arrays import Floats, Ints
    from structlearn._src.estimators.structured.plan import ModelPlan

_DESCRIPTION = """\
Print what a model has learnt: how it was trained, the features with the largest positive and
negative weights, and the weights of transitions. Of models with any number of states or components,
how many there are.
"""
_WIDEST = 12  # labels up to which transitions are shown as a table
_TOLD = {  # of models with hidden states or components, where they have it
    "labels": "classes_",
    "symbols": "symbols_",
    "features": "n_features_in_",
    "states": "n_states_",
    "components": "n_components_",
    "iterations": "n_iter_",
}

Names = Callable[["Ints"], list[str]]


def add(subparsers: Any) -> None:
    """Add the command to the parser."""
    told = "top features, transitions and parameters of a model"
    parser = add_command(subparsers, "inspect", run, told, _DESCRIPTION)
    add_file(parser, "--model", "what 'structlearn train' wrote", metavar="M", required=True)
    add_number(parser, "--top", whole, 20, "how many weights to show of each sign")
    parser.add_argument("--label", metavar="L", help="show only weights that concern this label")


def run(args: argparse.Namespace) -> int:
    """Load the model and print what is in it."""
    from structlearn._src.estimators.storage import load
    from structlearn._src.model.pairwise import PairwiseDesign

    estimator = load(args.model)
    plan = getattr(estimator, "plan_", None)
    if plan is None:
        print("\n".join(_hidden(estimator, args.label)))
        return 0
    names = [str(name) for name in plan.classes.tolist()]
    if args.label is not None and args.label not in names:
        raise ArgumentError(f"--label {args.label} is not a label; they are {', '.join(names)}")
    print("\n".join(_summary(estimator, names)))
    if isinstance(plan.design, PairwiseDesign):  # a hidden chain has no weights by label alone
        for part in _parts(plan, estimator.weights_, names):
            print("\n" + "\n".join(part.lines(args.top, args.label)))
    return 0


def _hidden(estimator: Any, label: str | None) -> list[str]:
    """Return what there is of a model with hidden states, or components, and no other weights."""
    if label is not None:
        raise ArgumentError(
            f"--label {label} chooses among the weights of features, which a "
            f"{type(estimator).__name__} does not have; leave it out"
        )
    rows = [_model(estimator)]
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


def _model(estimator: Any) -> str:
    from structlearn._src.common.names import RUN_ONLY

    untold = RUN_ONLY | {"template", "warm_start"}  # they say nothing about the model, or too much
    chosen = {k: v for k, v in estimator.get_params().items() if k not in untold}
    used = [f"{key}={value!r}" for key, value in sorted(chosen.items())]
    return f"model: {type(estimator).__name__}({', '.join(used)})"


def _summary(estimator: Any, names: Sequence[str]) -> list[str]:
    weights, value = estimator.weights_, estimator.value_
    known = [] if math.isnan(value) else [f"objective {value:.6f}"]
    fit = [f"{estimator.n_iter_} iterations", *known, estimator.status_]
    return [
        _model(estimator),
        f"labels: {len(names)}: {' '.join(names)}",
        f"features: {_count(estimator.plan_.model.groups[0][0])}",
        f"weights: {len(weights)}, of which {(weights != 0).sum()} are not 0",
        f"training: {'; '.join(fit)}",
    ]


def _count(term: Any) -> int:
    return len(term.offsets) - 1 if hasattr(term, "offsets") else term.n_features


# ---- parts of a model --------------------------------------------------------------------


class _Features(NamedTuple):
    """Weights of features for the entries of a table."""

    title: str
    term: Any
    weights: Floats
    entries: list[tuple[str, ...]]  # the labels that every entry is about
    names: Names

    def lines(self, top: int, label: str | None) -> list[str]:
        """Return the strongest weights, one a line."""
        import numpy as np

        about = [label is None or label in entry for entry in self.entries]
        kept = np.flatnonzero(np.array(about)[self._entry(np.arange(len(self.weights)))])
        rows = [f"{self.title}:"]
        for positive in (True, False):
            chosen = _strongest(self.weights, kept, top, positive)
            words = [" -> ".join(self.entries[e]) for e in self._entry(chosen)]
            width = max(map(len, words), default=0)
            rows += [
                f"{self.weights[i]:10.4f}  {word:<{width}}  {name}"
                for i, word, name in zip(chosen, words, self._named(chosen), strict=True)
            ]
        return rows

    def _entry(self, which: Ints) -> Ints:
        states: Ints | None = getattr(self.term, "states", None)  # of pairs, not of all entries
        return which % self.term.size if states is None else states[which]

    def _named(self, which: Ints) -> list[str]:
        import numpy as np

        offsets: Ints | None = getattr(self.term, "offsets", None)
        if offsets is None:
            return self.names(which // self.term.size)
        return self.names(np.searchsorted(offsets, which, side="right") - 1)


class _Table(NamedTuple):
    """Weights of pairs."""

    title: str
    matrix: Floats
    rows: list[str]
    columns: list[str]

    def lines(self, top: int, label: str | None) -> list[str]:
        """Return a table, or the strongest weights where it would be too wide."""
        if len(self.columns) <= _WIDEST:
            return [f"{self.title}:", *self._grid(label)]
        return [f"{self.title}:", *self._list(top, label)]

    def _grid(self, label: str | None) -> list[str]:
        left = max(map(len, self.rows))
        widths = [max(len(name), 9) for name in self.columns]
        head = [f"{name:>{width}}" for name, width in zip(self.columns, widths, strict=True)]
        out = [" ".join([" " * left, *head])]
        for name, row in zip(self.rows, self.matrix, strict=True):
            if label is None or label == name or label in self.columns:
                cells = [f"{x:>{width}.4f}" for x, width in zip(row, widths, strict=True)]
                out.append(" ".join([f"{name:<{left}}", *cells]))
        return out

    def _list(self, top: int, label: str | None) -> list[str]:
        import numpy as np

        pairs = [(a, b) for a in self.rows for b in self.columns]
        kept = np.flatnonzero([label is None or label in pair for pair in pairs])
        flat = self.matrix.ravel()
        chosen = [i for sign in (True, False) for i in _strongest(flat, kept, top, sign)]
        return [f"{flat[i]:10.4f}  {pairs[i][0]} -> {pairs[i][1]}" for i in chosen]


def _strongest(weights: Floats, kept: Ints, top: int, positive: bool) -> Ints:
    """Return which of the weights in `kept` are largest, or most negative, strongest first."""
    import numpy as np

    signed = weights[kept] if positive else -weights[kept]
    kept, signed = kept[signed > 0], signed[signed > 0]
    if len(kept) > top:
        best = np.argpartition(signed, -top)[-top:]
        kept, signed = kept[best], signed[best]
    return kept[np.lexsort((kept, -signed))]


def _parts(plan: ModelPlan, weights: Floats, names: list[str]) -> list[_Features | _Table]:
    """Cut the weights by what they are about."""
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
    out = []
    groups = zip(kinds, plan.model.groups, plan.model.blocks, strict=False)
    for (title, rows, columns), terms, blocks in groups:
        for term, block in zip(terms, blocks, strict=True):
            out.append(_part(plan, title, term, weights[block], rows, columns))
    return out


def _part(
    plan: ModelPlan, title: str, term: Any, weights: Floats, rows: list[str], columns: list[str]
) -> _Features | _Table:
    from structlearn._src.model.term import TableTerm

    if isinstance(term, TableTerm):
        matrix = term.push(weights, None).reshape(len(rows), len(columns))
        return _Table(title, matrix, rows, columns)
    if columns:
        entries: list[tuple[str, ...]] = [(a, b) for a in rows for b in columns]
        return _Features(f"features of {title}", term, weights, entries, _names(plan, "bigram"))
    return _Features(title, term, weights, [(a,) for a in rows], _names(plan, "unigram"))


def _names(plan: ModelPlan, space: str) -> Names:
    """Return what names features, by number."""
    from structlearn._src.estimators.structured.read_sequences import ColumnReader

    reader, tied = plan.reader, plan.design.tied
    if isinstance(reader, ColumnReader):
        attributes = reader.attributes
        return attributes.unigram.names if space == "unigram" else attributes.bigram.names
    known = reader.names() if space == "unigram" else []

    def names(which: Ints) -> list[str]:
        if known and tied:
            return [known[i] for i in which]
        if known:
            return [f"{known[i % len(known)]} at {i // len(known)}" for i in which]
        return [f"feature {i}" for i in which]

    return names
