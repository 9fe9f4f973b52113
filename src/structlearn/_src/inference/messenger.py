"""Message passing on a problem, planned once and run as often as wanted: what its methods share.

Threads share many graphs, and the blocks of a large one (`inference/schedule.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.place import placed
from structlearn._src.common.reuse import empty
from structlearn._src.common.watch import Approach, Ending, Pace, Watch, brief
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import SCHEDULES, Problem
from structlearn._src.inference.beliefs import point_mass
from structlearn._src.inference.message_plan import MessagePlan
from structlearn._src.inference.separate import in_place, separable, solve_graphs
from structlearn._src.kernels.graph import domain, readout, sweep, tournament
from structlearn._src.kernels.graph.message import MessageState, MessageWorkspace
from structlearn._src.kernels.launch import over
from structlearn._src.kernels.team import make_board

_BATCH = 2_000_000  # messages per call of the kernel, so that interrupts are seen
_ALONE = 30  # sweeps over one graph after the other: few need more, and no call takes long
_RANGES = 4  # per worker, of blocks that cost about the same on cores that do not


class Messenger:
    """Runs message passing on a problem, a few sweeps or many, from where it stood.

    It begins with a copy of `start`, log messages as left in `messages` by an earlier run on the
    same wiring. A `plan` is that of an earlier messenger with the same wiring, temperatures and
    `appearance`.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        appearance: Floats | None = None,
        schedule: str = "sequential",
        damping: float = 0.0,
        start: Floats | None = None,
        n_jobs: int | None = None,
        plan: MessagePlan | None = None,
    ) -> None:
        self.problem = problem
        self.potentials = problem.potentials
        self.damping = damping
        self.schedule = checks.one_of("schedule", schedule, SCHEDULES)
        self.n_jobs = n_jobs
        self.plan = plan or MessagePlan(problem, appearance, n_jobs)
        wiring = problem.wiring
        self.messages = empty(int(wiring.message_offsets[-1]))
        self._begin(start)
        self._beliefs = empty(int(wiring.belief_offsets[-1]))
        self._exponentials: Floats | None = None
        self._tables: Floats | None = None
        self.linear = False  # whether the last run kept exponentials of messages, which is quicker
        self.residual = np.full(wiring.n_graphs, np.inf)
        self.iterations = np.zeros(wiring.n_graphs, np.int64)
        self.done = np.zeros(wiring.n_graphs, np.bool_)  # which graphs met the tolerance
        self._raised = np.empty(0)
        self._ready = False  # whether beliefs are those of the messages
        self._fresh = True  # whether nothing has run yet
        #: What `value` returns, once it was read off the messages as they are.
        self.found: tuple[Floats, Floats, Floats] | None = None

    def _begin(self, start: Floats | None) -> None:
        """Begin with these messages; those of single-variable factors are their potentials."""
        wiring = self.problem.wiring
        if start is not None:
            check_messages(start, wiring)

        given = np.empty(0) if start is None else np.require(start, np.float64, ("C", "W"))
        arrays = self.plan.net, self.potentials, given, self.messages
        over(domain.begin_in_threads, self.plan.pieces, self.n_jobs, *arrays)

    def close(self) -> None:
        """End all runs, so that others may use the memory; messages can still be read."""
        if self._exponentials is not None:
            self.plan.exponentials.give(self._exponentials)
            self._exponentials = self._tables = None

    # ---- running -------------------------------------------------------------------------

    def run(self, sweeps: int, tol: float, watch: Watch | None = None) -> Ending:
        """Sweep until every graph's messages move by at most `tol`; says why it ended.

        Without a `watch`, which keeps interrupts in mind, they are raised. Where nothing must be
        told or decided between two sweeps, the first ones are those of one graph after the other.
        """
        clock = watch or Watch()
        alone = min(sweeps, _ALONE) if self._goes_graph_by_graph(clock) else 0
        self._fresh = False
        self.found = None
        ended = self._run_graphs(alone, tol, clock) if alone else Ending.LIMIT
        if ended == Ending.LIMIT and sweeps > alone:
            ended = self._run_sweeps(sweeps - alone, tol, clock)
        if watch is None and ended == Ending.INTERRUPTED:
            raise KeyboardInterrupt
        return ended

    def _goes_graph_by_graph(self, clock: Watch) -> bool:
        """Whether the first sweeps are those of one graph after the other."""
        if not self._fresh or self.schedule != "sequential" or not clock.idle:
            return False
        # Runs that cool down have two temperatures: nobody asks for their values.
        several = self.problem.uniform and self.problem.wiring.n_graphs > 1
        return several and separable(self.plan)

    def _run_graphs(self, sweeps: int, tol: float, clock: Watch) -> Ending:
        """Sweep over one graph after the other, and read values and beliefs off its messages."""
        plan = self.plan
        given = in_place(self.problem.wiring), self.potentials, (self.messages, self.messages)
        read = np.empty(len(self.done)), empty(len(self._beliefs))
        progress = self.residual, self.iterations, self.done
        self._mark_still_graphs()
        tasks = iter(plan.runs)

        def step() -> bool:
            solve_graphs(
                plan, self.problem, next(tasks), *given, (float(self.damping), tol, sweeps), read,
                progress, self.n_jobs,
            )  # fmt: skip
            return False

        ended = clock.repeat(step, len(plan.runs), lambda: "")
        if not ended.early:
            self.found = *read, np.empty(0)
            ended = Ending.DONE if self.done.all() else Ending.LIMIT
        return ended

    def _mark_still_graphs(self) -> None:
        """Say that graphs whose messages cannot change are done."""
        still = self.plan.moving == 0
        self.done |= still
        self.residual[still] = 0.0

    def _run_sweeps(self, sweeps: int, tol: float, clock: Watch) -> Ending:
        """Sweep over all graphs that are not done."""
        self.found = None  # sweeps over each graph may have gone before
        if self._tables is None:
            self._tables = self._prepared()
        tables = self._tables
        self.linear = tables is not self.potentials
        if self.linear:
            self._raised = np.empty(len(self.messages) if self.plan.raises else 0)
            self._convert(domain.TO_LINEAR, tables)
        self._ready = False
        moving = self.plan.moving
        self._mark_still_graphs()
        left = sweeps
        pace = Pace(clock)
        approach = Approach()
        stops = f" (stops at {brief(tol)})" if tol else ""

        def take(count: int) -> int:
            nonlocal left
            left -= count
            self._propagate(self._state(tables), count, tol)
            return count

        def step() -> bool:
            if left == 0 or self.done.all():
                return True
            # Fewer and fewer graphs move: all the more sweeps fit between two looks.
            pace.some(take, min(max(1, _BATCH // int(moving[~self.done].sum())), left))
            return bool(self.done.all())

        ended = clock.repeat(
            step, sweeps,
            lambda: f"sweep {sweeps - left}, largest change {brief(self.residual.max())}{stops}",
            lambda: approach.share(self.residual.max() / tol) if tol else math.nan,
        )  # fmt: skip
        if self.linear:
            self._convert(domain.TO_LOG, tables)
        return Ending.LIMIT if ended == Ending.DONE and not self.done.all() else ended

    def _propagate(self, state: MessageState, sweeps: int, tol: float) -> None:
        plan = self.plan
        progress = self.residual, self.iterations, self.done

        def chase(first: int, last: int) -> None:
            sweep.chase(
                plan.borders, plan.net, state, self._workspace(), *self._queue(first, last),
                tol, sweeps, first, last, *progress,
            )  # fmt: skip

        by_residual = self.schedule == "residual"
        if by_residual:
            threads.over_graphs(chase, self.problem.wiring.graph_tables, self.n_jobs)
        for tasks in () if by_residual else plan.tasks:
            helpers = threads.helpers(self.n_jobs, len(tasks) - 1)
            with plan.workspaces.lend(helpers) as workspaces:
                threads.launch(
                    sweep.propagate_in_threads, helpers, make_board(1), tasks, plan.borders,
                    plan.net, plan.order, state, workspaces, self.schedule == "flooding",
                    self._ready, tol, sweeps, *progress,
                )  # fmt: skip
        for g in () if by_residual else plan.shared:
            self._propagate_shared(int(g), state, sweeps, tol)
        self._ready = True

    def _propagate_shared(self, g: int, state: MessageState, sweeps: int, tol: float) -> None:
        """Sweep over one graph whose blocks, or parts, threads share."""
        flooding = self.schedule == "flooding"
        for i in range(sweeps):
            if self.done[g]:
                break
            if flooding or (i == 0 and not self._ready):
                self._refresh(g, state)
            self.residual[g] = self._flood(g, state) if flooding else self._sweep(g, state)
            self.iterations[g] += 1
            self.done[g] = self.residual[g] <= tol

    def _refresh(self, g: int, state: MessageState) -> None:
        plan = self.plan

        def work(first: int, last: int) -> None:
            sweep.refresh(plan.parts.borders, plan.net, state, first, last)

        self._share(work, plan.parts.tables, *plan.parts.graph_parts[g : g + 2])

    def _sweep(self, g: int, state: MessageState) -> float:
        """Colours from the last to the first and back; returns the largest change of a message."""
        order = self.plan.order
        rounds = self.plan.rounds[g]
        change = np.zeros(len(order.block_offsets) - 1)
        helpers = threads.helpers(self.n_jobs, int(np.diff(rounds[:, :2]).max()))
        with self.plan.workspaces.lend(helpers) as workspaces:
            threads.launch(
                sweep.sweep_in_threads, helpers, make_board(len(rounds)), rounds, self.plan.net,
                order, state, workspaces, change,
            )  # fmt: skip
        return float(change.max())

    def _flood(self, g: int, state: MessageState) -> float:
        """All messages at once, from the old ones; returns the largest change."""
        plan = self.plan
        parts = plan.parts
        change = np.zeros(len(parts.tables) - 1)

        def work(first: int, last: int) -> None:
            workspace = self._workspace()
            frame = parts.borders, plan.net, plan.order, state, workspace
            sweep.flood_parts(*frame, first, last, change)

        def accept(first: int, last: int) -> None:
            sweep.accept_parts(parts.borders, plan.net, state, first, last)

        for each in (work, accept):
            self._share(each, parts.tables, *parts.graph_parts[g : g + 2])
        return float(change.max())

    def _share(self, work: Callable[[int, int], None], weights: Ints, low: int, high: int) -> None:
        """Call ``work(first, last)`` on ranges of the blocks or parts low..high-1 of a graph."""
        ranges = threads.split(weights[low : high + 1], _RANGES * threads.workers(self.n_jobs))
        threads.run(work, [(low + first, low + last) for first, last in ranges], self.n_jobs)

    def _workspace(self) -> MessageWorkspace:
        return self.plan.make_workspace()

    def _queue(self, first: int, last: int) -> tuple[Floats, Ints]:
        """Room for the slots of the largest graph."""
        slots = int(np.diff(self.plan.borders[first : last + 1, 1]).max())
        return tournament.new_tree(slots), np.empty(slots + 1, np.int64)

    def _state(self, tables: Floats | None = None) -> MessageState:
        """What kernels read and write; without `tables`, the messages as they are between runs."""
        linear = tables is not None and self.linear
        tables = self.potentials if tables is None else tables
        waits = self.schedule != "sequential" and tables is not None
        fresh = self.messages.copy() if waits else np.empty(0)
        return MessageState(
            tables, self.plan.weights, self.plan.ratios, self.messages, self._raised, fresh,
            self._beliefs, linear, float(self.damping),
        )  # fmt: skip

    def _prepared(self) -> Floats:
        """Linear tables where that is safe, else the log potentials themselves."""
        if not len(self.potentials) or not self.plan.warm:
            return self.potentials
        if self._exponentials is None:
            self._exponentials = self.plan.exponentials.take()
        safe = self._convert(domain.TABLES, self._exponentials)
        return self._exponentials if safe else self.potentials

    def _convert(self, what: int, tables: Floats) -> bool:
        """Convert tables or messages; tells whether that is safe."""
        plan = self.plan
        safe = np.ones(1, np.bool_)
        given = plan.net, self._state(), plan.span, what, tables, safe
        over(domain.convert_in_threads, plan.pieces, self.n_jobs, *given)
        return bool(safe[0])

    # ---- reading off ---------------------------------------------------------------------

    def beliefs(self) -> tuple[Floats, Floats]:
        """Beliefs of the variables and, per graph, their part of the Bethe value."""
        beliefs, value, _ = self._read([(True, False)])
        return beliefs, value

    def value(self, factor_beliefs: bool = False) -> tuple[Floats, Floats, Floats]:
        """Bethe value per graph, beliefs, and factor beliefs, which are empty unless asked for."""
        if self.found is not None and (len(self.found[2]) or not factor_beliefs):
            return self.found
        # Factors of a graph that threads share have variables in other parts: all those come first.
        apart = len(self.plan.shared) > 0
        steps = [(True, False), (False, True)] if apart else [(True, True)]
        beliefs, value, factors = self._read(steps, factor_beliefs)
        self.found = value, beliefs, factors
        return self.found

    def _read(
        self, steps: list[tuple[bool, bool]], factor_beliefs: bool = False
    ) -> tuple[Floats, Floats, Floats]:
        """Read beliefs and values of variables, of factors, or of both in each of some steps."""
        plan = self.plan
        parts = plan.parts
        beliefs = empty(int(self.problem.wiring.belief_offsets[-1]))
        value = np.zeros(len(parts.tables) - 1)
        out = np.empty(int(parts.tables[-1]) if factor_beliefs else 0)
        state = self._state()
        helpers = threads.helpers(self.n_jobs, len(plan.readings[0]) - 1)
        with plan.workspaces.lend(helpers) as workspaces:
            given = parts.borders, plan.net, state, self.problem.eps, workspaces
            for step in steps:
                over(
                    readout.read_in_threads, plan.readings, self.n_jobs, *given, *step,
                    factor_beliefs, beliefs, out, value,
                )  # fmt: skip
        return beliefs, parts.sums(value), out

    def decode(self, uniforms: Floats | None = None) -> Ints:
        """Assign one variable after the other given those before; a draw if `uniforms` come."""
        wiring = self.problem.wiring
        plan = self.plan
        order = plan.order
        state = self._state()
        labels = np.full(wiring.n_variables, -1, np.int64)
        if uniforms is None:
            uniforms = np.full(wiring.n_variables, -1.0)
        states = int(wiring.cards.max(initial=1))

        def refresh(first: int, last: int) -> None:
            sweep.refresh(plan.parts.borders, plan.net, state, first, last)

        def work(first: int, last: int) -> None:
            readout.decode(
                plan.net, state, self.problem.eps, order, uniforms, self._workspace(),
                np.empty(states), first, last, labels,
            )  # fmt: skip

        threads.over_graphs(refresh, plan.parts.tables, self.n_jobs)
        for low, high in order.rounds:
            self._share(work, order.block_offsets, low, high)
        return labels

    def best(self) -> tuple[Ints, Floats, Floats, Floats]:
        """Decoded labels, their score per graph, and the point mass on them as beliefs."""
        wiring = self.problem.wiring
        labels = self.decode()
        return labels, wiring.score(self.potentials, labels), *point_mass(wiring, labels)


@placed
def make_messenger(problem: Problem, **options: Any) -> Messenger:
    """Return a `Messenger` with these options, at the current place."""
    return Messenger(problem, **options)


def check_messages(start: Floats, wiring: Wiring) -> None:
    """Refuse messages of another wiring: compiled code would read past their end."""
    size = int(wiring.message_offsets[-1])
    if np.shape(start) != (size,):
        raise ArgumentError(
            f"start has shape {np.shape(start)}, but this graph has {size} message entries; "
            f"use the messages of an answer about the same graph with the same evidence"
        )
