"""Inference that is repeated with other potentials: planned once, exact or by messages.

All that changes is what `solve` of an engine takes and returns: it goes on from the memory of the
last call, which it does not write to, and returns the values of all graphs, on request beliefs, and
the memory of this call. Messages stop after so many sweeps, or when they move by at most `tol`.
Several threads may use one engine at a time.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError, TooWideError
from structlearn._src.common.place import current
from structlearn._src.common.reuse import empty
from structlearn._src.common.vectors import filled, put, taken
from structlearn._src.graph.wiring import Wiring, condition, places
from structlearn._src.inference.base import Memory, Options, Problem, Solution
from structlearn._src.inference.beliefs import best_states
from structlearn._src.inference.junction import (
    EliminationTree,
    JunctionTree,
    affordable,
    order_for,
)
from structlearn._src.inference.message_plan import MessagePlan
from structlearn._src.inference.messenger import check_messages, make_messenger
from structlearn._src.inference.names import TRAINED, Query
from structlearn._src.inference.order import Elimination
from structlearn._src.inference.separate import in_place, separable, solve_graphs
from structlearn._src.inference.trw import cover
from structlearn._src.kernels.graph import many
from structlearn._src.kernels.graph.many import Exchange, Fixed


class Clamped(NamedTuple):
    """An engine for graphs with some variables fixed: tables are read at the fixed states only."""

    wiring: Wiring
    gone_graphs: Ints  #: graph of every factor all of whose variables are fixed
    engine: Engine | None  #: solves the rest, if there is any
    kept: Ints  #: entries of the potentials that agree with the states, of factors with a free one
    gone: Ints  #: of factors without, one entry each
    gone_borders: Ints  #: (graphs + 1) where those of each graph begin
    workspaces: threads.Workspaces[many.GraphWorkspace]  #: for the tables of a whole graph
    n_jobs: int | None = 1

    @property
    def exact(self) -> bool:
        """Whether no messages are passed."""
        return self.engine is None or self.engine.exact

    def at(self, labels: Ints) -> Clamped:
        """Return the same with the fixed variables in these states; -1 for all that are free."""
        kept, gone = places(self.wiring, labels, self.n_jobs)
        return self._replace(kept=kept, gone=gone)

    @property
    def in_kernels(self) -> bool:
        """Whether one call of a kernel does it all."""
        return self.engine is not None and self.engine.in_kernels

    @property
    def ranges(self) -> int:
        """How many ranges of graphs a kernel sums beliefs over, one by one."""
        return 0 if self.engine is None else self.engine.ranges

    def begin(self) -> Memory:
        """Return what the first call goes on from."""
        return () if self.engine is None else self.engine.begin()

    def answer(self, x: Exchange, memory: Memory, sweeps: int, tol: float) -> tuple[Floats, int]:
        """As that of the other engines, with the fixed variables fixed."""
        assert self.engine is not None  # it is in kernels
        with self.workspaces.lend(threads.helpers(self.n_jobs, self.ranges)) as workspaces:
            fixed = Fixed(True, self.kept, self.gone, self.gone_borders, workspaces)
            return self.engine.answer(x._replace(fixed=fixed), memory, sweeps, tol)

    def solve(
        self, potentials: Floats, memory: Memory, sweeps: int, tol: float, beliefs: bool = True
    ) -> Solution:
        """Values of all graphs, and on request beliefs: point masses where all is fixed."""
        values = np.zeros(self.wiring.n_graphs)
        out = filled(len(potentials) if beliefs else 0, 0.0, self.n_jobs)

        def work(first: int, last: int) -> None:
            part = slice(*self.gone_borders[[first, last]])
            graphs = self.gone_graphs[part] - first
            values[first:last] = np.bincount(graphs, potentials[self.gone[part]], last - first)
            if beliefs:
                out[self.gone[part]] = 1.0

        threads.over_items(work, self.gone_borders, "places", self.n_jobs)
        if self.engine is None:
            return Solution(values, out, (), 0)
        mine = taken(potentials, self.kept, self.n_jobs)
        rest = self.engine.solve(mine, memory, sweeps, tol, beliefs)
        if beliefs:
            put(out, self.kept, rest.beliefs, self.n_jobs)
        return Solution(values + rest.values, out, rest.memory, rest.sweeps)


class MessageEngine:
    """Belief propagation, plain or tree-reweighted.

    What is maximised is decoded and then fixed, so that values and beliefs belong to labels that
    exist; the rest is inferred given them.
    """

    exact = False

    def __init__(
        self, problem: Problem, method: str, options: Options, shares: Floats | None
    ) -> None:
        self.problem = problem
        self.options = options
        self.plan = MessagePlan(problem, shares, options.n_jobs)
        self._maximised = problem.eps == 0.0
        #: Whether there is nothing between sweeps that only Python can do.
        self.in_kernels = separable(self.plan) and not current().at_once
        self._tables = threads.Scratch(int(problem.wiring.table_offsets[-1]))
        self._rest: Clamped | None = None
        if self._maximised.any() and not self._maximised.all():
            fixed = np.where(self._maximised, 0, -1)
            eps = float(problem.eps.max())
            self._rest = clamp(problem.wiring, fixed, eps, method, options, shares)

    @property
    def ranges(self) -> int:
        """How many ranges of graphs a kernel sums beliefs over, one by one."""
        return len(self.plan.runs[0]) - 1

    def begin(self) -> Memory:
        """Return messages that say nothing."""
        inner = () if self._rest is None else self._rest.begin()
        return np.zeros(int(self.problem.wiring.message_offsets[-1])), *inner

    def solve(
        self, potentials: Floats, memory: Memory, sweeps: int, tol: float, beliefs: bool = True
    ) -> Solution:
        """Bethe values of the graphs, or the scores of decoded labels, and beliefs of factors."""
        problem = self.problem.at(potentials)
        if self.in_kernels:
            return self._solve(problem.potentials, memory[0], sweeps, tol, beliefs)
        messenger = make_messenger(
            problem,
            plan=self.plan,
            damping=self.options.damping or 0.0,
            start=memory[0],
            n_jobs=self.options.n_jobs,
        )
        messenger.run(sweeps, tol)
        messenger.close()
        messages = messenger.messages
        taken = int(messenger.iterations.max(initial=0))
        if not self._maximised.any():
            values, _, found = messenger.value(factor_beliefs=beliefs)
            return Solution(values, found, (messages,), taken)
        if self._rest is None:
            _, values, _, found = messenger.best()
            return Solution(values, found if beliefs else np.empty(0), (messages,), taken)
        labels = np.where(self._maximised, best_states(problem.wiring, messenger.beliefs()[0]), -1)
        rest = self._rest.at(labels).solve(potentials, memory[1:], sweeps, tol, beliefs)
        return Solution(rest.values, rest.beliefs, (messages, *rest.memory), taken + rest.sweeps)

    def _solve(
        self, potentials: Floats, start: Floats, sweeps: int, tol: float, wanted: bool
    ) -> Solution:
        """Do all that a `Messenger` does, in one call of a kernel."""
        wiring = self.problem.wiring
        check_messages(start, wiring)
        x, found = in_place(wiring), potentials
        if wanted:
            found = np.empty(len(potentials))
            x = x._replace(
                places=wiring.table_offsets, tables=potentials, factors=np.ones(wiring.n_graphs),
                beliefs=found,
            )  # fmt: skip
        messages = np.empty(len(start))
        values, taken = self._run(x, found, start, messages, sweeps, tol)
        return Solution(values, found if wanted else np.empty(0), (messages,), taken)

    def answer(self, x: Exchange, memory: Memory, sweeps: int, tol: float) -> tuple[Floats, int]:
        """Solve all graphs in one call of a kernel; the memory is brought up to date.

        Returns their values, and the most sweeps that one of them needed.
        """
        with self._tables.lend() as tables:
            return self._run(x, tables, memory[0], memory[0], sweeps, tol)

    def _run(
        self, x: Exchange, tables: Floats, start: Floats, messages: Floats, sweeps: int, tol: float
    ) -> tuple[Floats, int]:
        """Pass messages from those of `start`; `tables` is workspace, maybe that of the beliefs."""
        wiring = self.problem.wiring
        values, change = np.empty((2, wiring.n_graphs))
        iterations = np.zeros(wiring.n_graphs, np.int64)
        how = float(self.options.damping or 0.0), tol, sweeps
        read = values, empty(int(wiring.belief_offsets[-1]))
        progress = change, iterations, self.plan.moving == 0
        for tasks in self.plan.runs:
            solve_graphs(
                self.plan, self.problem, tasks, x, tables, (start, messages), how, read, progress,
                self.options.n_jobs,
            )  # fmt: skip
        return values, int(iterations.max(initial=0))


#: The exact one, that by messages, and either of them over a part of the variables.
Engine = EliminationTree | MessageEngine | Clamped


def make_engine(
    problem: Problem,
    method: str = "auto",
    options: Options | None = None,
    shares: Floats | None = None,
    times: float = TRAINED,
) -> Engine:
    """Return the engine that is asked for, or that suits the problem.

    The potentials of the problem count for nothing but their number. With "auto" the engine is
    exact where that costs at most `times` what message passing does. Tree-reweighted messages need
    the `shares` of the factors, their weights.
    """
    options = options or Options()
    order = _exact_order(problem, method, options, times)
    if order is not None:
        return EliminationTree(problem, order, options.n_jobs)
    if not problem.uniform and problem.eps_hidden == 0.0:
        raise ArgumentError(
            f"eps_y={problem.eps_output:g} with eps_h=0 cannot be trained by belief propagation, "
            f"whose messages do not tell the marginals then; raise eps_h, or set eps_y=0"
        )
    return MessageEngine(problem, method, options, shares)


def _exact_order(
    problem: Problem, method: str, options: Options, times: float
) -> Elimination | None:
    """Return the order of exact inference, or None where messages are passed."""
    if method == "exact":
        reason = JunctionTree().refuses(problem, Query.MARGINALS, options)
        if reason:
            raise TooWideError(reason)
    if method == "exact" or (method == "auto" and affordable(problem, options, times)):
        return order_for(problem, options.max_table, options.n_jobs)
    return None


def clamp(
    wiring: Wiring,
    fixed: Ints,
    eps: float,
    method: str = "auto",
    options: Options | None = None,
    shares: Floats | None = None,
    times: float = TRAINED,
) -> Clamped:
    """Return graphs with some variables fixed, and an engine for the others, at one temperature.

    `fixed` is -1 where a variable stays free; which states the others have does not matter. The
    rest is as in `make_engine`; `shares` are those of all factors.
    """
    options = options or Options()
    small = condition(wiring, np.empty(0), fixed, options.n_jobs)
    engine: Engine | None = None
    if small.wiring.n_variables:
        problem = Problem(small.wiring, np.zeros(int(small.wiring.table_offsets[-1])), eps, eps)
        # The weights of the whole graph, not those of what is left: free and clamped values are to
        # be maxima of one function, over all beliefs or over those that agree with the labels.
        kept = None if shares is None else shares[small.factors]
        engine = make_engine(problem, method, options, kept, times)
    borders = wiring.graph_factors - small.wiring.graph_factors
    gone_graphs = np.repeat(np.arange(wiring.n_graphs), np.diff(borders))
    nothing = np.empty(0, np.int64)
    largest = int(np.diff(wiring.graph_tables).max(initial=0))
    whole = threads.Workspaces(partial(many.make_graph_workspace, largest))
    held = Clamped(wiring, gone_graphs, engine, nothing, nothing, borders, whole, options.n_jobs)
    return held.at(fixed)


def forest_shares(wiring: Wiring, n_jobs: int | None = 1) -> Floats:
    """Return in how many of some forests that cover the graphs each factor is, as a share."""
    return cover(wiring, np.random.default_rng(0), n_jobs)[1]
