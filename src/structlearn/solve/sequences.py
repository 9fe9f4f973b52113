"""Sequences without hidden labels as the plain arrays that compiled solvers read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from structlearn.common.checks import Bools, Floats, Ints
from structlearn.data.rows import Rows, from_dense
from structlearn.graph.batch import Sequences
from structlearn.kernels.sequence import Data
from structlearn.model.features import Features, Sparse
from structlearn.model.term import Linear, Pairs, Table
from structlearn.objective.base import Objective
from structlearn.objective.objective import StructuredObjective
from structlearn.objective.sequence_world import SequenceWorld


class Share(NamedTuple):
    """One part of the loss: how much it counts, its temperature, and what it adds to scores."""

    share: float
    eps: float
    added: Floats  #: (positions, states); empty if nothing


@dataclass(frozen=True, eq=False)
class Flat:
    """Everything a compiled solver reads.

    Parameters
    ----------
    by
        (sequences,) C times the weight of every sequence.
    ties
        (states * states,) Which weight of the whole model a transition has, -1 if none.
    barred
        (states, states) Which transitions are forbidden.
    """

    data: Data
    states: int
    parts: tuple[Share, ...]
    by: Floats
    ties: Ints
    barred: Bools
    n_node_weights: int

    @property
    def longest(self) -> int:
        """Length of the longest sequence."""
        return int(np.diff(self.data.offsets).max(initial=0))

    def table(self, weights: Floats) -> Floats:
        """Return the weights of all transitions (states, states), 0 where there is none."""
        table = np.where(self.ties < 0, 0.0, weights[self.ties])
        return table.reshape(self.states, self.states)

    def edges(self, weights: Floats) -> Floats:
        """Return the table of transitions, -inf where one is forbidden."""
        return np.where(self.barred, -np.inf, self.table(weights))

    def set_table(self, weights: Floats, table: Floats) -> None:
        """Write a table of transitions to the weights; those of forbidden ones stay."""
        which = self.data.learnt & ~self.barred
        weights[self.ties[which.ravel()]] = table[which]


_KNOWN: WeakKeyDictionary[StructuredObjective, Flat] = WeakKeyDictionary()


def refuses(objective: Objective) -> str:
    """Say why an objective has not the form that compiled solvers need; empty if it has."""
    if not isinstance(objective, StructuredObjective):
        return "it needs an objective over sequences"
    if not isinstance(objective.examples.structure, Sequences):
        return "it needs sequences: other graphs are not supported"
    if objective.examples.hidden:
        return "it needs all labels: some are hidden"
    nodes, *edges = objective.model.groups
    if len(nodes) != 1 or not isinstance(nodes[0], Linear | Pairs):
        return "it needs positions with one kind of features"
    if len(edges) > 1 or any(len(terms) != 1 for terms in edges):
        return "it needs transitions without features"
    return _refuses_table(edges[0][0]) if edges else ""


def _refuses_table(term: object) -> str:
    if not isinstance(term, Table):
        return "it needs the same transitions at all positions"
    used = [tie for tie in term.ties or () if tie >= 0]
    if len(used) != len(set(used)):
        return "it needs a weight of its own for every transition"
    return ""


def flatten(objective: Objective) -> Flat:
    """Return the arrays of an objective that nobody refuses; made once per objective."""
    assert isinstance(objective, StructuredObjective)
    if objective not in _KNOWN:
        _KNOWN[objective] = _flatten(objective)
    return _KNOWN[objective]


def _flatten(objective: StructuredObjective) -> Flat:
    examples, model = objective.examples, objective.model
    structure, term = examples.structure, model.groups[0][0]
    assert isinstance(structure, Sequences)
    rows = _rows(examples.inputs[0][0])
    pairs = np.empty(0, np.int64), np.empty(0, np.int32)
    if isinstance(term, Pairs):
        pairs = np.asarray(term.offsets), np.asarray(term.states)
    states = structure.states
    ties = _ties(objective)
    arrays = (
        structure.offsets,
        examples.labels,
        *rows[:3],
        *pairs,
        (ties >= 0).reshape(states, states),
    )
    bars = structure.bars
    return Flat(
        Data(*map(_read_only, arrays)),
        states,
        tuple(_part(world.share, world.free) for world in objective.worlds),
        objective.C * examples.weights,
        ties,
        np.zeros((states, states), np.bool_) if bars is None else bars.steps,
        term.n_weights,
    )


def _ties(objective: StructuredObjective) -> Ints:
    """Which weight every transition has, -1 if none."""
    groups, blocks = objective.model.groups, objective.model.blocks
    structure = objective.examples.structure
    assert isinstance(structure, Sequences)
    if len(groups) == 1:
        return np.full(structure.states**2, -1)
    table = groups[1][0]
    assert isinstance(table, Table)
    ties = np.arange(table.size) if table.ties is None else np.array(table.ties, np.int64)
    return np.where(ties < 0, -1, ties + blocks[1][0].start)


def _part(share: float, world: object) -> Share:
    assert isinstance(world, SequenceWorld)
    added = np.empty((0, world.sequences.states)) if world.added is None else world.added
    return Share(share, world.eps, _read_only(added))


def _rows(features: Features) -> Rows:
    assert features is not None
    return features.rows if isinstance(features, Sparse) else from_dense(features)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """One type for all arrays that kernels only read, so that they compile once."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
