"""Exact inference by elimination: junction trees, at any pair of temperatures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import ClassVar

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices, offsets_of
from structlearn._src.common.errors import TooWideError, too_wide
from structlearn._src.common.threads import Scratch
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference import k_best
from structlearn._src.inference.base import (
    BuiltInInferer,
    Memory,
    Options,
    Problem,
    Result,
    Solution,
    TooWide,
    read_exactly,
)
from structlearn._src.inference.names import ASKED, ASSIGNMENTS, Query
from structlearn._src.inference.order import (
    TOO_MANY_TO_ORDER,
    Elimination,
    find_order,
    hopeless,
    plain_totals,
)
from structlearn._src.kernels.graph import covary, eliminate, many
from structlearn._src.kernels.graph.eliminate import EliminationPlan
from structlearn._src.kernels.graph.many import Exchange
from structlearn._src.kernels.team import make_board

_MESSAGES_PER_TABLE = 16  # total message entries allowed, in units of the largest table allowed
_SECONDS_PER_ENTRY = 3e-8  # of a table, there and back, on an ordinary core
_WORTH = 200  # entries of exact inference per entry of the tables: what sweeps cost, roughly
_FEW = 100  # variables of a graph up to which mostly a single order is tried
_ORDER_IN_FULL = 1_000  # variables up to which a refusal costs little to be exact about


class JunctionTree(BuiltInInferer):
    """Eliminate one variable after the other, hidden ones first where temperatures differ.

    Equivalent to message passing on a junction tree built from the elimination order. Gives
    every query exactly, in time and memory exponential in the induced width only.
    """

    name = "junction_tree"
    k_best = True

    def objection(self, problem: Problem, query: Query, options: Options) -> str:
        """Refuse graphs whose tables would be too large, naming width and bytes."""
        if options.k > 1 and (reason := k_best.refusal(problem, query, options)):
            return reason
        order = order_for(problem, options.max_table, options.n_jobs)
        if _fits(order, options.max_table):
            return _too_slow(order.total, options.watch.left)
        if not order.complete and problem.wiring.n_variables <= _ORDER_IN_FULL:
            order = order_for(problem, None, options.n_jobs)
        size = 8 * (order.messages if np.isfinite(order.messages) else order.largest)
        return TooWide(
            too_wide(order.width, order.largest, size, options.max_table, not order.complete)
        )

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Answer exactly."""
        reason = self.refuses(problem, query, options)
        if reason:
            raise TooWideError(reason)
        tree = EliminationTree.of(problem, options)
        store = tree.stores.take()
        value = tree.forward(problem.potentials, store)
        found = read_exactly(
            problem, query, options, lambda: tree.backward(store), partial(tree.decode, store)
        )
        if options.k > 1 and query in ASSIGNMENTS:
            found["best"] = tree.rank(store, value, options.k)
        status = f"exact, largest table {tree.order.largest:.3g} entries"
        return Result.exactly(value, status, **found)


@dataclass(eq=False)
class EliminationTree:
    """One problem in an elimination order, for any potentials: the exact engine.

    All that changes is in the store that a caller brings, for one `forward` and what follows it.
    """

    problem: Problem
    order: Elimination
    n_jobs: int | None = None
    exact: ClassVar[bool] = True
    in_kernels: ClassVar[bool] = True

    @classmethod
    def of(cls, problem: Problem, options: Options) -> EliminationTree:
        """Find an order first."""
        order = order_for(problem, options.max_table, options.n_jobs)
        return cls(problem, order, options.n_jobs)

    def __post_init__(self) -> None:
        wiring = self.wiring = self.problem.wiring
        plan = make_plan(wiring, self.order)
        self.stores = Scratch(int(plan.message_offsets[-1]))
        self._frame = wiring.cards, self.problem.eps, plan
        self._spare: list[eliminate.BucketWorkspace] = []
        self._workspace_sizes = (
            int(np.diff(plan.axis_offsets).max(initial=1)),
            int(np.diff(plan.input_offsets).max(initial=1)),
            int(wiring.cards.max(initial=1)),
        )
        self._tasks = threads.calls_of(wiring.graph_tables, "whole graphs")
        self._workspaces = threads.Workspaces(
            partial(eliminate.make_workspace, *self._workspace_sizes)
        )

    @property
    def ranges(self) -> int:
        """How many ranges of graphs a kernel sums beliefs over, one by one."""
        return len(self._tasks[0]) - 1

    def begin(self) -> Memory:
        """Return nothing: each call stands alone."""
        return ()

    def solve(
        self, potentials: Floats, memory: Memory, sweeps: int, tol: float, beliefs: bool = True
    ) -> Solution:
        """Values of the graphs, and the marginals of all factors."""
        with self.stores.lend() as store:
            values = self.forward(potentials, store)
            found = self.backward(store)[1] if beliefs else np.empty(0)
        return Solution(values, found, (), 0)

    def answer(self, x: Exchange, memory: Memory, sweeps: int, tol: float) -> tuple[Floats, int]:
        """Solve all graphs in one call of a kernel; returns their values, and no sweeps."""
        wiring = self.wiring
        values = np.empty(wiring.n_graphs)
        marginals = np.empty(int(wiring.belief_offsets[-1]))
        helpers = threads.helpers(self.n_jobs, len(self._tasks[0]) - 1)
        with (
            self.stores.lend() as store,
            self.stores.lend() as beliefs,
            self._workspaces.lend(helpers) as workspaces,
        ):
            for tasks in self._tasks:
                threads.launch(
                    many.eliminate_in_threads, helpers, make_board(1), tasks, x,
                    wiring.graph_tables, *self._frame, wiring.belief_offsets, store, beliefs,
                    marginals, workspaces, values,
                )  # fmt: skip
        return values, 0

    @contextmanager
    def _workspace(self) -> Iterator[eliminate.BucketWorkspace]:
        """Lend a workspace, which is not made anew for every call."""
        try:
            block = self._spare.pop()
        except IndexError:
            block = eliminate.make_workspace(*self._workspace_sizes)
        try:
            yield block
        finally:
            self._spare.append(block)

    def forward(self, potentials: Floats, store: Floats) -> Floats:
        """Eliminate everything; the value of every graph. All messages go to `store`."""
        value = np.zeros(self.wiring.n_graphs)
        tables = self.wiring.graph_tables

        def work(a: int, b: int) -> None:
            with self._workspace() as block:
                eliminate.forward(*self._frame, tables, potentials, store, block, a, b, value)

        threads.over_graphs(work, tables, self.n_jobs)
        return value

    def backward(self, store: Floats) -> tuple[Floats, Floats]:
        """Marginals of all variables and of all factors, flat."""
        wiring = self.wiring
        beliefs = np.empty(len(store))
        marginals = np.empty(int(wiring.belief_offsets[-1]))
        tables = wiring.graph_tables
        frame = *self._frame, tables, store, beliefs, wiring.belief_offsets

        def work(a: int, b: int) -> None:
            with self._workspace() as block:
                eliminate.backward(*frame, block, a, b, marginals)

        threads.over_graphs(work, tables, self.n_jobs)
        return marginals, beliefs[: self.wiring.table_offsets[-1]]

    def decode(self, store: Floats, uniforms: Floats | None = None) -> Ints:
        """Best state of every variable, or with `uniforms` a draw."""
        n = self.wiring.n_variables
        labels = np.full(n, -1, np.int64)
        uniforms = np.full(n, -1.0) if uniforms is None else uniforms
        scores = np.empty(int(self.wiring.cards.max(initial=1)))
        eliminate.decode(*self._frame, store, uniforms, scores, labels)
        return labels

    def rank(self, store: Floats, values: Floats, k: int) -> list[tuple[Floats, Ints]]:
        """Values and labels of the k best assignments of all graphs, best first."""
        return k_best.rank(self.wiring, self._frame[2], store, values, k)

    def forward_along(self, store: Floats, along: Floats) -> Floats:
        """Expectation of a direction in every graph, at temperature 1.

        The first entries of `along` are the direction, in the layout of the potentials. What
        messages move by goes to the others, for `backward_along`.
        """
        values = np.zeros(self.wiring.n_graphs)
        cards, _, plan = self._frame

        def work(a: int, b: int) -> None:
            with self._workspace() as one, self._workspace() as two:
                covary.forward(cards, plan, store, along, one, two, a, b, values)

        threads.over_graphs(work, self.wiring.graph_tables, self.n_jobs)
        return values

    def backward_along(self, store: Floats, along: Floats) -> Floats:
        """Covariance of the direction with all entries of the tables."""
        slopes = np.zeros(len(store))
        both = np.zeros(len(store)), slopes
        cards, _, plan = self._frame

        def work(a: int, b: int) -> None:
            with self._workspace() as one, self._workspace() as two:
                covary.backward(cards, plan, store, along, *both, one, two, a, b)

        threads.over_graphs(work, self.wiring.graph_tables, self.n_jobs)
        return slopes[: self.wiring.table_offsets[-1]]


@lru_cache(maxsize=8)
def _cached_order(key: _OrderKey) -> Elimination:
    if key.limit is None:  # for the wording of a refusal, where one order tells enough
        return find_order(key.wiring, key.later, tries=1, n_jobs=key.n_jobs)
    return find_order(key.wiring, key.later, key.limit, n_jobs=key.n_jobs)


@dataclass(frozen=True)
class _OrderKey:
    """A wiring by identity with the constraint on its order: repeated questions plan once."""

    scopes: int
    cards: int
    constraint: bytes  # roles may be replaced while scopes stay
    limit: int | None
    wiring: Wiring = field(compare=False)  # held alive, so that identities cannot be reused
    later: Bools = field(compare=False)
    n_jobs: int | None = field(compare=False)


def order_for(problem: Problem, limit: int | None, n_jobs: int | None = 1) -> Elimination:
    """Elimination order of a problem, remembered while its wiring is in use."""
    wiring = problem.wiring
    later = _later(problem)
    identity = id(wiring.scopes), id(wiring.cards), later.tobytes()
    return _cached_order(_OrderKey(*identity, limit, wiring, later, n_jobs))


def _later(problem: Problem) -> Bools:
    """Variables to eliminate after all others: at two temperatures the outputs."""
    return ~problem.hidden & (not problem.uniform)


def affordable(problem: Problem, options: Options, times: float = ASKED) -> bool:
    """Whether there is memory and time for exact inference.

    It may cost at most `times` what message passing would.
    """
    if hopeless(problem.wiring, _later(problem), options.max_table):
        return False
    order = order_for(problem, options.max_table, options.n_jobs)
    return (
        _fits(order, options.max_table)
        and order.total <= times * _WORTH * max(len(problem.potentials), 1)
        and not _too_slow(order.total, options.watch.left)
    )


def exact_batches(problem: Problem, options: Options, times: float) -> list[Ints]:
    """Graphs that exact inference is affordable for, in batches that memory holds.

    Whether a graph is among them does not depend on those beside it.
    """
    wiring = problem.wiring
    later = _later(problem)
    most = options.max_table
    worth = times * _WORTH * np.maximum(np.diff(wiring.graph_tables), 1)
    largest = np.diff(wiring.graph_variables).max(initial=0)
    # Of small graphs that is the order that is used in the end, of others a quick look.
    order = order_for(problem, most) if largest <= _FEW else None
    if order is None and largest <= TOO_MANY_TO_ORDER:
        order = find_order(wiring, later, most, tries=1)
    totals = plain_totals(wiring, later, most, order)
    which = np.flatnonzero(totals <= worth)
    batch = np.cumsum(totals[which]) // options.max_table
    return np.split(which, np.flatnonzero(np.diff(batch)) + 1) if len(which) else []


def _too_slow(entries: float, seconds: float) -> str:
    if entries * _SECONDS_PER_ENTRY <= seconds:
        return ""
    return TooWide(
        f"exact inference would take about {entries * _SECONDS_PER_ENTRY:.0f} s, more than the "
        f"time limit leaves; raise time_limit"
    )


def _fits(order: Elimination, max_table: int) -> bool:
    return (
        order.complete
        and order.largest <= max_table * (1 + 1e-9)
        and order.messages <= _MESSAGES_PER_TABLE * max_table
    )


def make_plan(wiring: Wiring, order: Elimination) -> EliminationPlan:
    """Lay out buckets graph by graph: axes, messages, and which bucket takes which table."""
    n = wiring.n_variables
    by_graph = np.argsort(wiring.variable_graphs[order.variables], kind="stable")
    variables = order.variables[by_graph]
    sizes = np.diff(order.separator_offsets)[by_graph]
    separators = order.separators[block_indices(order.separator_offsets, by_graph)]
    rank = np.empty(n, np.int64)
    rank[variables] = np.arange(n)
    buckets = np.repeat(np.arange(n), sizes)
    # Axes lie latest first, so that the variable of a bucket, eliminated before the rest, is last.
    members = np.concatenate([separators, variables])
    keys = np.concatenate([buckets, np.arange(n)]) * n + (n - 1 - rank[members])
    keys.sort()
    axis_ranks = n - 1 - keys % max(n, 1)
    axis_offsets = offsets_of(sizes + 1)
    parents = np.full(n, -1, np.int64)
    inner = sizes > 0
    parents[inner] = axis_ranks[axis_offsets[1:][inner] - 2]
    logs = np.bincount(buckets, np.log(wiring.cards[separators]), n)
    messages = offsets_of(np.rint(np.exp(logs)).astype(np.int64)) + wiring.table_offsets[-1]
    owners = (
        np.minimum.reduceat(rank[wiring.scopes], wiring.scope_offsets[:-1])
        if wiring.n_factors
        else np.empty(0, np.int64)
    )
    taken = np.bincount(np.concatenate([owners, parents[inner]]), minlength=n)
    input_offsets = offsets_of(taken)
    stride_offsets = offsets_of(np.repeat(np.diff(axis_offsets), taken))
    plan = EliminationPlan(
        variables, axis_offsets, variables[axis_ranks], messages, parents, input_offsets,
        np.empty(int(input_offsets[-1]), np.int64), stride_offsets,
        np.empty(int(stride_offsets[-1]), np.int64), wiring.graph_variables,
    )  # fmt: skip
    eliminate.assign_inputs(wiring, input_offsets[:-1].copy(), plan, owners)
    return plan
