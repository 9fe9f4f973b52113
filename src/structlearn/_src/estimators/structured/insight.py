"""What a fitted model has learnt, in the words of its user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.estimators.structured.plan import ModelPlan
from structlearn._src.model.term import LinearTerm, PairsTerm, Term

Ranked = list[tuple[str, object, float]]


def top_features(plan: ModelPlan, weights: Floats, n: int, labels: Sequence[object]) -> Ranked:
    """Return the features of nodes with the largest weights, each with its label and weight.

    Where positions have weights of their own, their number follows the name of the feature.
    """
    term = plan.model.groups[0][0]
    own = weights[plan.model.blocks[0][0]]
    top = np.argsort(-np.abs(own), kind="stable")[:n]
    columns, states, width = _meaning(term, top)
    names = plan.reader.names()
    repeated = width > len(names)
    return [
        (_name(names, int(column), repeated), labels[state], float(own[place]))
        for place, column, state in zip(top, columns, states, strict=True)
    ]


def _meaning(term: Term, places: Ints) -> tuple[Any, Any, int]:
    """Return column and state of some of a term's weights, and the number of columns."""
    if isinstance(term, PairsTerm):
        columns = np.searchsorted(term.offsets, places, side="right") - 1
        return columns, term.states[places], len(term.offsets) - 1
    assert isinstance(term, LinearTerm)
    return places // term.size, places % term.size, term.n_features


def _name(names: list[str], column: int, repeated: bool) -> str:
    position, number = divmod(column, len(names))
    return f"{names[number]} at {position}" if repeated else names[number]
