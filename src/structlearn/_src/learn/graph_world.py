"""Worlds of any graphs: exact by elimination, else by message passing from where it stood."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, block_indices
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Graphs, potentials_to_tables, tables_to_potentials
from structlearn._src.graph.wiring import HIDDEN, OUTPUT, Wiring
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.engine import Engine, clamp, forest_shares, make_engine
from structlearn._src.learn.world import (
    CONVERGED,
    Budget,
    InferenceSettings,
    Memory,
    add_tables,
    check_fits,
)
from structlearn._src.model.model import Tables

_SWEEPS = 100  # over messages, where an evaluation is to converge
_TOL = 1e-4  # largest change of a message that counts as none: weights move by far more


class GraphMemory(NamedTuple):
    """Where message passing stands."""

    messages: Memory  #: log messages, one array for each run of messages
    iterations: Ints  #: () sweeps so far


class GraphWorld:
    """Graphs whose variables labelled -1 are hidden; free, or clamped to the other labels.

    What is `added` to the potentials, in one flat array, are task costs.
    """

    def __init__(
        self,
        graphs: Graphs,
        labels: Ints,
        eps_y: float,
        eps_h: float,
        *,
        clamped: bool,
        added: Floats | None = None,
        settings: InferenceSettings,
    ) -> None:
        self.graphs = graphs
        self.added = added
        self.sweeps = settings.sweeps or _SWEEPS
        self.tol = _TOL if settings.tol is None else settings.tol
        wiring = graphs.wiring
        options = Options(n_jobs=settings.n_jobs, damping=settings.damping)
        # Both worlds weigh the factors of the whole graph alike, so that no loss is negative.
        shares = forest_shares(wiring) if settings.method == "trw" else None
        self._engine: Engine
        if clamped:
            rest = clamp(wiring, labels, eps_h, settings.method, options, shares, settings.times)
            self._engine = rest.at(labels)
        else:
            roles = np.where(labels < 0, HIDDEN, OUTPUT)
            zeros = np.zeros(int(wiring.table_offsets[-1]))
            problem = Problem(wiring._replace(roles=roles), zeros, eps_y, eps_h)
            self._engine = make_engine(problem, settings.method, options, shares, settings.times)
        self.approximate = not self._engine.exact

    def begin(self) -> GraphMemory | None:
        """Return messages that say nothing; exact worlds need none."""
        if not self.approximate:
            return None
        return GraphMemory(self._engine.begin(), np.zeros((), np.int64))

    def solve(
        self, parameters: Tables, factors: Floats, memory: GraphMemory | None,
        budget: Budget = CONVERGED, into: Tables | None = None,
    ) -> tuple[Floats, Tables, GraphMemory | None]:  # fmt: skip
        """Values of the graphs, and their expected tables times `factors`."""
        check_fits(isinstance(memory, GraphMemory) == self.approximate)
        potentials = tables_to_potentials(self.graphs, parameters)
        for extra in (self.added, self.graphs.forbidden_potentials):
            if extra is not None:
                potentials += extra
        sweeps = budget.sweeps or self.sweeps
        tol = self.tol if budget.sweeps is None else 0.0
        messages = () if memory is None else memory.messages
        found = self._engine.solve(potentials, messages, sweeps, tol)
        if memory is not None:
            for mine, new in zip(memory.messages, found.memory, strict=True):
                mine[...] = new
            memory.iterations[...] += found.sweeps
        wiring = self.graphs.wiring
        sizes = np.diff(wiring.table_offsets[wiring.graph_factors])
        beliefs = found.beliefs * np.repeat(factors, sizes)
        expected = potentials_to_tables(self.graphs, beliefs, parameters)
        return found.values, add_tables(into, expected), memory


def cost_entries(graphs: Graphs, labels: Ints, rows: Floats) -> Floats:
    """Put the cost of every state of every labelled variable into the smallest table it is in.

    A variable with fewer states than `rows` (variables, states) has columns uses the first ones.
    """
    wiring = graphs.wiring
    labelled = np.flatnonzero(labels >= 0)
    cards = wiring.cards[labelled]
    _check_costs(wiring, labelled, rows.shape[1])
    by_size = np.lexsort((np.diff(wiring.table_offsets)[wiring.slot_factors], wiring.scopes))
    slots = by_size[wiring.slot_offsets[labelled]]
    factors = wiring.slot_factors[slots]
    sizes = np.diff(wiring.table_offsets)[factors]
    entries = block_indices(wiring.table_offsets, factors)
    inside = entries - np.repeat(wiring.table_offsets[factors], sizes)
    states = inside // np.repeat(wiring.strides[slots], sizes) % np.repeat(cards, sizes)
    costs = rows[np.repeat(labelled, sizes), states]
    return np.bincount(entries, costs, int(wiring.table_offsets[-1])).astype(np.float64)


def _check_costs(wiring: Wiring, labelled: Ints, states: int) -> None:
    many = labelled[wiring.cards[labelled] > states]
    if len(many):
        raise ArgumentError(
            f"the cost is for {states} states, but the labelled variable {many[0]} has "
            f"{wiring.cards[many[0]]}; give a cost for as many"
        )
    lonely = labelled[np.diff(wiring.slot_offsets)[labelled] == 0]
    if len(lonely):
        raise ArgumentError(
            f"the labelled variable {lonely[0]} is in no factor, so that its cost cannot count; "
            f"give it a factor of its own"
        )
