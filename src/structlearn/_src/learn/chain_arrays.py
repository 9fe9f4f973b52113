"""Sequences without hidden labels as the plain arrays that compiled solvers read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.vectors import copy_into, filled, put, taken
from structlearn._src.graph.batch import Sequences
from structlearn._src.kernels.chain.marginals import ChainWorkspace
from structlearn._src.kernels.chain.sequence import ChainData, ChainErrors, LossParts
from structlearn._src.learn.loss import Cost, Loss
from structlearn._src.model.model import Examples, LinearModel
from structlearn._src.model.term import PairsTerm, TableTerm, Term, rows_of
from structlearn._src.text.labels import Forbidden
from structlearn._src.text.rows import Index

_MANY = 4  # a feature has many states if it has one of so many


@dataclass(frozen=True, eq=False)
class ChainArrays:
    """Everything a compiled solver reads."""

    data: ChainData
    loss_weights: Floats  #: (sequences,) C times the weight of every sequence
    transitions: Ints  #: entry of the table of states that each of the last weights belongs to
    #: (weights,) Where kernels keep the weights of the model: those of features, then the whole
    #: table of transitions; a slice if there is no difference.
    places: Ints | slice
    n_weights: int  #: in kernels
    n_features: int

    @property
    def states(self) -> int:
        """Number of states."""
        return len(self.data.bars)

    @property
    def longest(self) -> int:
        """Length of the longest sequence."""
        return int(np.diff(self.data.offsets).max(initial=0))

    def to_kernel(self, weights: Floats, n_jobs: int | None = 1) -> Floats:
        """Return all weights as kernels want them; a view if these are the same."""
        if isinstance(self.places, slice):
            return weights[self.places]
        inner = filled(self.n_weights, 0.0, n_jobs)
        put(inner, self.places, weights, n_jobs)
        return inner

    def from_kernel(self, weights: Floats, inner: Floats, n_jobs: int | None = 1) -> None:
        """Write back what `to_kernel` gave."""
        if not isinstance(self.places, slice):
            copy_into(weights, taken(inner, self.places, n_jobs), n_jobs)

    def table(self, inner: Floats) -> Floats:
        """Return the view (states, states) of all transitions in what `to_kernel` gave."""
        return inner[-(self.states**2) :].reshape(self.states, self.states)


def make_arrays(model: LinearModel, examples: Examples, cost: Cost | None, C: float) -> ChainArrays:
    """Return the arrays of an objective that `chain_refusal` has nothing against."""
    structure = examples.structure
    assert isinstance(structure, Sequences)
    K = structure.states
    transitions = _transitions(model)
    rows = rows_of(examples.inputs[0][0], structure.n_variables)
    pairs, places, n_pairs = _pairs(model.groups[0][0], K)
    places = np.append(places, n_pairs + transitions)
    n_weights = n_pairs + K * K
    same = np.array_equal(places, np.arange(n_weights))
    arrays: tuple[NDArray[Any], ...] = (
        structure.offsets,
        examples.labels,
        *rows[:3],
        *pairs,
        np.isin(np.arange(K * K), transitions).reshape(K, K),
        *_forbidden_potentials(structure.forbidden, K),
        np.zeros((K, K)) if cost is None else cost.matrix,
    )
    data = ChainData._make([*map(_read_only, arrays), cost is not None and cost.mean])
    return ChainArrays(
        data,
        C * examples.weights,
        transitions,
        slice(None) if same else places,
        n_weights,
        rows.n_columns,
    )


def _pairs(term: Term, states: int) -> tuple[tuple[Ints, Index, Floats], Ints, int]:
    """Pairs that have a weight, with room for all states of features that have many of them.

    Also where the weights of the term lie among them, and how many they are with that room.
    """
    if not isinstance(term, PairsTerm):
        none = np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0)
        return none, np.arange(term.n_weights), term.n_weights
    counts = np.diff(term.offsets)
    wide = _MANY * counts >= states
    borders = offsets_of(np.where(wide, states, counts))
    owners = np.repeat(np.arange(len(counts)), counts)
    ranks = np.arange(len(term.states)) - term.offsets[owners]
    places = borders[owners] + np.where(wide[owners], term.states, ranks)
    kept = np.zeros(int(borders[-1]))
    kept[places] = 1.0
    inner = (np.arange(len(kept)) - np.repeat(borders[:-1], np.diff(borders))).astype(np.int32)
    inner[places] = term.states
    return (borders, inner, kept), places, len(kept)


def _transitions(model: LinearModel) -> Ints:
    """Return the entry of the table that every weight of transitions belongs to."""
    if len(model.groups) == 1:
        return np.empty(0, np.int64)
    table = model.groups[1][0]
    assert isinstance(table, TableTerm)
    ties = np.arange(table.size) if table.ties is None else np.array(table.ties, np.int64)
    return np.argsort(ties, kind="stable")[np.sum(ties < 0) :]


def _forbidden_potentials(forbidden: Forbidden | None, states: int) -> tuple[Floats, Floats]:
    """Potentials that forbid transitions, and states that must not begin or end."""
    if forbidden is None:
        return np.zeros((states, states)), np.zeros((2, states))
    never = forbidden.pairs, np.stack([forbidden.first, forbidden.last])
    inner, ends = (np.where(mask, -np.inf, 0.0) for mask in never)
    return inner, ends


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Give all arrays that kernels only read one type, so that kernels compile once."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def make_parts(loss: Loss) -> LossParts:
    """Return the parts of a loss as arrays."""
    return LossParts(
        np.array([part.share for part in loss.parts]),
        np.array([part.eps_y for part in loss.parts]),
        np.array([part.with_cost for part in loss.parts]),
    )


def make_errors(flat: ChainArrays) -> ChainErrors:
    """Return room for the errors of one sequence."""
    longest, K = flat.longest, flat.states
    scores, nodes = np.empty((2, longest, K))
    edges, steps = np.zeros((2, K, K))
    return ChainErrors(scores, edges, nodes, steps, np.empty(longest, np.int64))


def make_workspace(flat: ChainArrays) -> ChainWorkspace:
    """Return room for inference on one sequence."""
    longest, K = flat.longest, flat.states
    nodes, soft, alpha = np.empty((3, longest, K))
    tables = np.empty((2, K, K))
    bits = np.empty(max(longest * K, K * K))
    return ChainWorkspace(
        nodes=nodes,
        edges=np.zeros((1, K, K)),
        soft=soft,
        pairs=np.empty((1, K, K)),
        alpha=alpha,
        later=np.empty((longest + 1, K)),
        tables=tables,
        tops=np.empty(longest),
        table_tops=np.empty(1),
        scales=np.empty(longest),
        flat_soft=soft.reshape(-1),
        flat_table=tables[0].reshape(-1),
        bits=bits,
        integers=bits.view(np.int64),
    )
