"""Worlds of discrete structures: sequences without hidden variables, and any graphs.

Sequences are solved exactly, by forward-backward or Viterbi; graphs exactly by elimination, or by
message passing from where it stood.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import (
    Graphs,
    Sequences,
    potentials_to_tables,
    tables_to_potentials,
)
from structlearn._src.graph.wiring import HIDDEN, OUTPUT, Wiring
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.chain_batch import Chains, forbid_ends, tables_to_chains
from structlearn._src.inference.engine import Engine, clamp, forest_shares, make_engine
from structlearn._src.inference.group_tables import GroupTables
from structlearn._src.learn.vectors import add_multiple, plain
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

# ---- sequences -----------------------------------------------------------------------------


class ExactWorld:
    """A world that remembers nothing."""

    approximate = False

    def begin(self) -> Memory:
        """Return the memory before any inference: none."""
        return None


class ChainWorld(ExactWorld):
    """Sequences at one temperature, some states ruled out or made dearer.

    What is `added` to the potentials (positions, states) are task costs, and -inf for states that
    clamping rules out.
    """

    def __init__(
        self, sequences: Sequences, eps: float, added: Floats | None, n_jobs: int | None = None
    ) -> None:
        self.sequences = sequences
        self.eps = eps
        self.n_jobs = n_jobs
        self.added = added if sequences.forbidden is None else forbid_ends(sequences, added)

    def chains(self, tables: Tables) -> Chains:
        """Return the chains at temperature 1."""
        return tables_to_chains(self.sequences, tables, self.added, self.eps, self.n_jobs)

    def solve(
        self, parameters: Tables, factors: Floats, memory: Memory,
        budget: Budget = CONVERGED, into: Tables | None = None,
    ) -> tuple[Floats, Tables, Memory]:  # fmt: skip
        """Values of the sequences, and their marginals times `factors`."""
        chains = self.chains(parameters)
        if self.eps == 0.0:
            values, labels = chains.best()
            if not np.isfinite(values).all():  # no path: the value says so, and any label will do
                labels = np.maximum(labels, 0)
            return values, add_counts(self.sequences, labels, factors, parameters, into), None
        pairs = "none" if len(parameters) == 1 else "sum" if chains.shared else "each"
        values, nodes, edges = chains.marginals(pairs, factors)
        if self.eps != 1.0:
            values *= self.eps
        if len(parameters[0]) < len(nodes):
            nodes = nodes.sum(axis=0, keepdims=True)
        edges = edges.reshape(len(edges), self.sequences.states**2)
        return values, add_tables(into, (nodes, edges)[: len(parameters)]), None


class LabelledChains(ExactWorld):
    """The clamped world when every label is known: nothing is left to infer."""

    def __init__(self, sequences: Sequences, labels: Ints) -> None:
        self.sequences = sequences
        self.labels = labels
        self.inner = _inner(sequences)
        self.steps = _steps(sequences, labels, self.inner)

    def solve(
        self, parameters: Tables, factors: Floats, memory: Memory,
        budget: Budget = CONVERGED, into: Tables | None = None,
    ) -> tuple[Floats, Tables, Memory]:  # fmt: skip
        """Scores of the labels, and the counts of what they use times `factors`."""
        counts = _add_counts(self.sequences, self.labels, self.steps, factors, parameters, into)
        each = _read(parameters[0], self.labels)
        if len(parameters) > 1:
            each[self.inner] += _read(parameters[1], self.steps)
        return np.add.reduceat(each, self.sequences.offsets[:-1]), counts, None


def add_counts(
    sequences: Sequences, labels: Ints, factors: Floats, like: Tables, into: Tables | None
) -> Tables:
    """Add the weighted counts of what the labels use; in the shape of the tables if new."""
    steps = _steps(sequences, labels, _inner(sequences))
    return _add_counts(sequences, labels, steps, factors, like, into)


def _add_counts(
    sequences: Sequences, labels: Ints, steps: Ints, factors: Floats, like: Tables,
    into: Tables | None,
) -> Tables:  # fmt: skip
    out = tuple(np.zeros_like(table) for table in like) if into is None else into
    lengths = np.diff(sequences.offsets)
    _add(out[0], labels, np.repeat(factors, lengths))
    if len(out) > 1:
        _add(out[1], steps, np.repeat(factors, lengths - 1))
    return out


def _read(table: Floats, entries: Ints) -> Floats:
    """One entry of every row, or many of the only row."""
    return table[0 if len(table) == 1 else np.arange(len(entries)), entries]


def _add(table: Floats, entries: Ints, amounts: Floats) -> None:
    """Adjoint of `_read`."""
    if len(table) == 1:
        table[0] += np.bincount(entries, amounts, table.shape[1])
    else:
        table[np.arange(len(entries)), entries] += amounts


def _inner(sequences: Sequences) -> Bools:
    """Which positions have one before."""
    inner = np.ones(sequences.offsets[-1], np.bool_)
    inner[sequences.offsets[:-1]] = False
    return inner


def _steps(sequences: Sequences, labels: Ints, inner: Bools) -> Ints:
    """Entry of the edge table that leads to every position that has one before."""
    return labels[:-1][inner[1:]] * sequences.states + labels[inner]


# ---- graphs --------------------------------------------------------------------------------


class GraphMemory(NamedTuple):
    """Where message passing stands."""

    messages: Memory  #: log messages, one array for each run of messages
    iterations: Ints  #: () sweeps so far


class GraphWorld:
    """Graphs whose variables labelled -1 are hidden; free, or clamped to the other labels.

    What is `added` to the potentials, in one flat array, are task costs. Tree-reweighted messages
    need the `shares` of the factors in forests, which are found here unless they are given.
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
        shares: Floats | None = None,
        settings: InferenceSettings,
    ) -> None:
        self.graphs = graphs
        self.n_jobs = settings.n_jobs
        self.sweeps = settings.sweeps or _SWEEPS
        self.tol = _TOL if settings.tol is None else settings.tol
        extra = [x for x in (added, graphs.forbidden_potentials) if x is not None]
        self._added = plain(sum(extra[1:], extra[0])) if extra else np.empty(0)
        wiring = graphs.wiring
        if not clamped:
            wiring = wiring._replace(roles=np.where(labels < 0, HIDDEN, OUTPUT))
        # Both worlds weigh the factors of the whole graph alike, so that no loss is negative.
        if settings.method == "trw" and shares is None:
            shares = forest_shares(wiring, self.n_jobs)
        options = Options(n_jobs=self.n_jobs, damping=settings.damping)
        how = settings.method, options, shares, settings.times
        if clamped:
            self._engine: Engine = clamp(wiring, labels, eps_h, *how)
        else:
            problem = Problem(wiring, np.zeros(int(wiring.table_offsets[-1])), eps_y, eps_h)
            self._engine = make_engine(problem, *how)
        self.approximate = not self._engine.exact
        self._potentials = threads.Scratch(int(wiring.table_offsets[-1]))
        self._groups: GroupTables | None = None  # of the tables that came last
        self._sizes = tuple(map(len, self._engine.begin()))

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
        sweeps = budget.sweeps or self.sweeps
        tol = self.tol if budget.sweeps is None else 0.0
        messages = () if memory is None else memory.messages
        check_fits(tuple(map(len, messages)) == self._sizes)
        given = parameters, factors, messages, sweeps, tol, into
        once = self._engine.in_kernels
        values, expected, taken = self._at_once(*given) if once else self._in_steps(*given)
        if memory is not None:
            memory.iterations[...] += taken
        return values, expected, memory

    def _at_once(
        self, parameters: Tables, factors: Floats, messages: Memory, sweeps: int, tol: float,
        into: Tables | None,
    ) -> tuple[Floats, Tables, int]:  # fmt: skip
        """Let one call of a kernel do it all; values, expected tables, and sweeps taken."""
        groups, shapes = self._groups, tuple(table.shape for table in parameters)
        if groups is None or groups.shapes != shapes:
            groups = self._groups = GroupTables(self.graphs, shapes)
        x = groups.exchange(parameters, factors, self._added, self._engine.ranges, into)
        values, taken = self._engine.answer(x, messages, sweeps, tol)
        return values, groups.expected(x, into), taken

    def _in_steps(
        self, parameters: Tables, factors: Floats, messages: Memory, sweeps: int, tol: float,
        into: Tables | None,
    ) -> tuple[Floats, Tables, int]:  # fmt: skip
        """Do the same where there is more to do between sweeps than a kernel can."""
        starts = self.graphs.wiring.graph_tables
        with self._potentials.lend() as potentials:
            tables_to_potentials(self.graphs, parameters, self.n_jobs, potentials)
            if len(self._added):
                add_multiple(potentials, 1.0, self._added, self.n_jobs)
            found = self._engine.solve(potentials, messages, sweeps, tol)
            for old, new in zip(messages, found.memory, strict=True):
                np.copyto(old, new)

            def work(first: int, last: int) -> None:
                part = slice(starts[first], starts[last])
                each = np.repeat(factors[first:last], np.diff(starts[first : last + 1]))
                np.multiply(found.beliefs[part], each, out=potentials[part])

            threads.over_graphs(work, starts, self.n_jobs)
            given = self.graphs, potentials, parameters, self.n_jobs, into
            expected = potentials_to_tables(*given)
        return found.values, expected, found.sweeps


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
            f"the labelled variable {lonely[0]} is in no factor, so its cost has no effect; "
            f"give it a factor of its own"
        )
