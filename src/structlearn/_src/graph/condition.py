"""Fix some variables and get the smaller graph over the rest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints, offsets_of
from structlearn._src.graph.wiring import Wiring, compile_wiring
from structlearn._src.kernels.graph import wiring as wire


class Conditioned(NamedTuple):
    """A smaller wiring, its potentials, and the way back."""

    wiring: Wiring
    potentials: Floats
    constant: Floats  #: log potential of the factors that are wholly fixed, per graph
    variables: Ints  #: index of every kept variable in the original
    factors: Ints  #: index of every kept factor in the original


def condition(wiring: Wiring, potentials: Floats, fixed: Ints) -> Conditioned:
    """Slice every table at the states in `fixed` (-1: the variable stays free)."""
    if (fixed < 0).all():
        everything = np.arange(wiring.n_variables), np.arange(wiring.n_factors)
        return Conditioned(wiring, potentials, np.zeros(wiring.n_graphs), *everything)
    arity, size, sliced = _sliced(wiring, potentials, fixed)
    starts = offsets_of(size)
    kept = arity > 0
    factor_graph = np.repeat(np.arange(wiring.n_graphs), np.diff(wiring.graph_factors))
    constant = np.zeros(wiring.n_graphs)
    np.add.at(constant, factor_graph[~kept], sliced[starts[:-1][~kept]])
    free = fixed < 0
    renumbered = np.cumsum(free) - 1
    smaller = compile_wiring(
        wiring.cards[free],
        wiring.roles[free],
        offsets_of(arity[kept]),
        renumbered[wiring.scopes[free[wiring.scopes]]],
        _kept_offsets(free, wiring.graph_variables),
        _kept_offsets(kept, wiring.graph_factors),
    )
    return Conditioned(
        smaller, sliced[np.repeat(kept, size)], constant, np.flatnonzero(free), np.flatnonzero(kept)
    )


def places(wiring: Wiring, fixed: Ints) -> tuple[Ints, Bools]:
    """Where the entries that agree with `fixed` lie in the full potentials.

    Also tells which of them belong to factors that keep a free variable.
    """
    everything = np.arange(wiring.table_offsets[-1], dtype=np.float64)
    arity, size, sliced = _sliced(wiring, everything, fixed)
    return sliced.astype(np.int64), np.repeat(arity > 0, size)


def _sliced(wiring: Wiring, values: Floats, fixed: Ints) -> tuple[Ints, Ints, Floats]:
    """Arity and size of every factor without the fixed variables, and its values."""
    free = fixed[wiring.scopes] < 0
    arity = np.bincount(wiring.slot_factors[free], minlength=wiring.n_factors)
    states = np.where(free, wiring.cards[wiring.scopes], 1)
    size = np.multiply.reduceat(states, wiring.scope_offsets[:-1]) if len(arity) else arity
    starts = offsets_of(size)
    sliced = np.empty(starts[-1])
    room = np.empty((2, int(wiring.arities.max(initial=0))), np.int64)
    wire.slice_tables(wiring, values, fixed, *room, starts, sliced)
    return arity, size, sliced


def _kept_offsets(keep: Bools, borders: Ints) -> Ints:
    return offsets_of(keep.astype(np.int64))[borders]
