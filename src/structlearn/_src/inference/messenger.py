"""Message passing on a problem, planned once and run as often as wanted: what its methods share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Floats, Ints, block_indices
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.threads import Scratch
from structlearn._src.common.watch import Approach, Ending, Pace, Watch, brief
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import SCHEDULES, Problem, point_mass
from structlearn._src.kernels.graph import message, readout, tournament
from structlearn._src.kernels.graph.message import (
    MessageState,
    MessageWorkspace,
    Net,
    VisitingOrder,
)

_WIDEST = 150.0  # nats between the entries of a table up to which linear messages are safe
_NEAR = _WIDEST / 2  # nats from 0 up to which tables need not even be scaled
_BATCH = 2_000_000  # messages per call of the kernel, so that interrupts are seen


class MessagePlan:
    """Made once for a wiring and its temperatures, and shared by all runs.

    Messages are tree-reweighted by `appearance`, the edge appearance probability of every factor.
    """

    def __init__(self, problem: Problem, appearance: Floats | None = None) -> None:
        wiring = problem.wiring
        self.net, self.borders = _pack(wiring)
        self.weights, self.ratios = _temperatures(problem, appearance)
        self.order = _visiting_order(wiring)
        moving = np.where(wiring.arities > 1, wiring.arities, 0)
        #: Number of slots of every graph whose messages can change.
        self.moving = np.bincount(wiring.factor_graphs, moving, wiring.n_graphs)
        singles = np.flatnonzero(wiring.arities == 1)
        #: Messages of factors over one variable, and the potentials that they are.
        self.single_messages = block_indices(wiring.message_offsets, wiring.scope_offsets[singles])
        self.single_potentials = block_indices(wiring.table_offsets, singles)
        self.workspace_shapes = _workspace_shapes(wiring)
        #: Whether nothing is maximised, so that messages may be kept as exponentials.
        self.warm = bool((self.weights > 0).all() and (problem.eps > 0).all())
        self.exponentials = Scratch(int(wiring.table_offsets[-1]))


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
        self.plan = plan or MessagePlan(problem, appearance)
        self.messages = self._initial(start)
        self._load_singles()
        wiring = problem.wiring
        self._beliefs = np.empty(int(wiring.belief_offsets[-1]))
        self._exponentials: Floats | None = None
        self._tables: Floats | None = None
        self.linear = False  # whether the last run kept exponentials of messages, which is quicker
        self.residual = np.full(wiring.n_graphs, np.inf)
        self.iterations = np.zeros(wiring.n_graphs, np.int64)
        self.done = np.zeros(wiring.n_graphs, np.bool_)  # which graphs met the tolerance

    def _initial(self, start: Floats | None) -> Floats:
        size = int(self.problem.wiring.message_offsets[-1])
        if start is None:
            return np.zeros(size)
        if np.shape(start) != (size,):
            raise ArgumentError(
                f"start has shape {np.shape(start)}, but this graph has {size} message entries; "
                f"use the messages of an answer about the same graph with the same evidence"
            )
        return np.array(start, np.float64)

    def _load_singles(self) -> None:
        self.messages[self.plan.single_messages] = self.potentials[self.plan.single_potentials]

    def close(self) -> None:
        """End all runs, so that others may use the memory; messages can still be read."""
        if self._exponentials is not None:
            self.plan.exponentials.give(self._exponentials)
            self._exponentials = self._tables = None

    # ---- running -------------------------------------------------------------------------

    def run(self, sweeps: int, tol: float, watch: Watch | None = None) -> Ending:
        """Sweep until every graph's messages move by at most `tol`; says why it ended."""
        if self._tables is None:
            self._tables = self._prepared()
        tables = self._tables
        self.linear = tables is not self.potentials
        if self.linear:
            self._to_linear()
        moving = self.plan.moving
        still = moving == 0
        self.done |= still
        self.residual[still] = 0.0
        left = sweeps
        watch = watch or Watch()
        pace = Pace(watch)
        chunk = max(1, _BATCH // max(int(moving.sum()), 1))
        approach = Approach()
        stops = f" (stops at {brief(tol)})" if tol else ""
        hurried = watch.left < np.inf  # a call may then make a single sweep

        def take(count: int) -> int:
            nonlocal left
            left -= count
            self._propagate(self._state(tables), count, tol)
            return count

        def step() -> bool:
            pace.some(take, min(chunk, left))
            return bool(self.done.all()) or (hurried and left == 0)

        ended = watch.repeat(
            step, sweeps if hurried else -(-sweeps // chunk),
            lambda: f"sweep {sweeps - left}, largest change {brief(self.residual.max())}{stops}",
            lambda: approach.share(self.residual.max() / tol) if tol else math.nan,
        )  # fmt: skip
        if self.linear:
            self._to_log()
        return Ending.LIMIT if ended == Ending.DONE and not self.done.all() else ended

    def _propagate(self, state: MessageState, sweeps: int, tol: float) -> None:
        plan = self.plan
        progress = self.residual, self.iterations, self.done

        def sweep(first: int, last: int) -> None:
            flooding = self.schedule == "flooding"
            message.propagate(
                plan.borders, plan.net, plan.order, state, self._workspace(), flooding,
                tol, sweeps, first, last, *progress,
            )  # fmt: skip

        def chase(first: int, last: int) -> None:
            message.chase(
                plan.borders, plan.net, state, self._workspace(), *self._queue(first, last),
                tol, sweeps, first, last, *progress,
            )  # fmt: skip

        work = chase if self.schedule == "residual" else sweep
        threads.over_graphs(work, self.problem.wiring.graph_tables, self.n_jobs)

    def _workspace(self) -> MessageWorkspace:
        return MessageWorkspace(*threads.worker_arrays(*self.plan.workspace_shapes))

    def _queue(self, first: int, last: int) -> tuple[Floats, Ints]:
        """Room for the slots of the largest graph."""
        slots = int(np.diff(self.plan.borders[first : last + 1, 1]).max())
        return tournament.new_tree(slots), np.empty(slots + 1, np.int64)

    def _state(self, tables: Floats | None = None) -> MessageState:
        """What kernels read and write; without `tables`, the messages as they are between runs."""
        linear = tables is not None and self.linear
        tables = self.potentials if tables is None else tables
        fresh = self.messages.copy() if self.schedule != "sequential" else np.empty(0)
        return MessageState(
            tables, self.plan.weights, self.plan.ratios, self.messages, fresh, self._beliefs,
            linear, float(self.damping),
        )  # fmt: skip

    def _prepared(self) -> Floats:
        """Linear tables where that is safe, else the log potentials themselves."""
        theta = self.potentials
        weights = self.plan.weights
        if not len(theta) or not self.plan.warm:
            return theta
        # Messages are raised to the ratio of the temperatures of factor and variable.
        power = float(self.plan.ratios.max(initial=1.0))
        near = _NEAR * weights.min() / power
        if self._exponentials is None:
            self._exponentials = self.plan.exponentials.take()
        out = self._exponentials
        unsafe = []

        def work(first: int, last: int) -> None:
            block = self.problem.wiring.table_offsets[first : last + 1]
            part, scaled = theta[block[0] : block[-1]], out[block[0] : block[-1]]
            sizes = np.diff(block)
            np.divide(part, _repeat(weights[first:last], sizes), out=scaled)
            far = max(part.max(), -part.min()) > near
            if far and power * _lower(scaled, block[:-1] - block[0], sizes) > _WIDEST:
                unsafe.append(first)
                return
            np.exp(scaled, out=scaled)

        threads.over_items(work, self.problem.wiring.table_offsets, "arrays", self.n_jobs)
        return theta if unsafe else out

    def _to_linear(self) -> None:
        starts = self.problem.wiring.message_offsets

        def work(first: int, last: int) -> None:
            message.level(self.plan.net, self.plan.weights, self.messages, first, last)
            part = self.messages[starts[first] : starts[last]]
            np.exp(part, out=part)

        threads.over_items(work, starts, "arrays", self.n_jobs)

    def _to_log(self) -> None:
        wiring = self.problem.wiring

        def work(first: int, last: int) -> None:
            block = wiring.message_offsets[first : last + 1]
            part = self.messages[block[0] : block[-1]]
            with np.errstate(divide="ignore"):
                np.log(part, out=part)
            weights = self.plan.weights[wiring.slot_factors[first:last]]
            part *= _repeat(weights, np.diff(block))

        threads.over_items(work, wiring.message_offsets, "arrays", self.n_jobs)
        # Messages of single-variable factors are their potentials, to the last digit.
        self._load_singles()

    # ---- reading off ---------------------------------------------------------------------

    def beliefs(self) -> tuple[Floats, Floats]:
        """Beliefs of the variables and, per graph, their part of the Bethe value."""
        wiring = self.problem.wiring
        plan = self.plan
        state = self._state()
        out = np.empty(int(wiring.belief_offsets[-1]))
        value = np.zeros(wiring.n_graphs)
        eps = self.problem.eps

        def work(first: int, last: int) -> None:
            readout.read_beliefs(plan.borders, plan.net, state, eps, first, last, out, value)

        threads.over_graphs(work, wiring.graph_tables, self.n_jobs)
        return out, value

    def value(self, factor_beliefs: bool = False) -> tuple[Floats, Floats, Floats]:
        """Bethe value per graph, beliefs, and on request factor beliefs, else an empty array."""
        wiring = self.problem.wiring
        plan = self.plan
        state = self._state()
        beliefs, value = self.beliefs()
        out = np.empty(int(wiring.table_offsets[-1]) if factor_beliefs else 0)

        def work(first: int, last: int) -> None:
            readout.read_factors(
                plan.borders, plan.net, state, beliefs, self._workspace(), first, last,
                factor_beliefs, out, value,
            )  # fmt: skip

        threads.over_graphs(work, wiring.graph_tables, self.n_jobs)
        return value, beliefs, out

    def decode(self, uniforms: Floats | None = None) -> Ints:
        """Assign one variable after the other given those before; a draw if `uniforms` come."""
        wiring = self.problem.wiring
        plan = self.plan
        labels = np.full(wiring.n_variables, -1, np.int64)
        if uniforms is None:
            uniforms = np.full(wiring.n_variables, -1.0)
        scores = np.empty(int(wiring.cards.max(initial=1)))
        readout.decode(
            plan.net, self._state(), self.problem.eps, plan.order.variables, uniforms,
            self._workspace(), scores, labels,
        )  # fmt: skip
        return labels

    def best(self) -> tuple[Ints, Floats, Floats, Floats]:
        """Decoded labels, their score per graph, and the point mass on them as beliefs."""
        wiring = self.problem.wiring
        labels = self.decode()
        return labels, wiring.score(self.potentials, labels), *point_mass(wiring, labels)


def _repeat(values: Floats, sizes: Ints) -> Floats:
    """Repeat the value of every block for its entries; once is enough if all are the same."""
    return values[:1] if (values == values[0]).all() else np.repeat(values, sizes)


def _lower(scaled: Floats, starts: Ints, sizes: Ints) -> float:
    """Shift every table so that its largest entry is 0; returns how far down the others reach."""
    top = np.maximum.reduceat(scaled, starts)
    if not np.isfinite(top).all():
        return np.inf
    scaled -= np.repeat(top, sizes)
    # Hard constraints are exact zeros; what counts is the span of the finite entries.
    return -float(scaled.min(where=np.isfinite(scaled), initial=0.0))


# ---- plans -------------------------------------------------------------------------------


def _temperatures(problem: Problem, appearance: Floats | None) -> tuple[Floats, Floats]:
    """Weight of every factor and ratio of every slot.

    A factor that touches a hidden variable works at the hidden temperature: information between
    an output and a hidden variable counts in the entropy of the hidden ones given the outputs.
    Tree-reweighted factors work at the lowest temperature of their variables: with that, whichever
    of them hangs on the other in a forest, its entropy counts in a concave way, so that there is
    one best answer still.
    """
    wiring = problem.wiring
    ratios = np.ones(len(wiring.scopes))
    weights = np.full(wiring.n_factors, problem.eps_hidden)
    if problem.uniform:
        weights[:] = problem.temperature
    else:
        touched = np.zeros(wiring.n_factors, np.bool_)
        touched[wiring.slot_factors[problem.hidden[wiring.scopes]]] = True
        weights[~touched] = problem.eps_output
        if appearance is not None:
            weights[:] = np.inf
            np.minimum.at(weights, wiring.slot_factors, problem.eps[wiring.scopes])
        slot_weight, slot_eps = weights[wiring.slot_factors], problem.eps[wiring.scopes]
        differ = slot_weight != slot_eps
        with np.errstate(divide="ignore"):
            ratios[differ] = slot_weight[differ] / slot_eps[differ]
    if appearance is not None:
        share = np.where(wiring.arities > 1, appearance, 1.0)
        weights = weights * share
        ratios = ratios * share[wiring.slot_factors]
    return weights, ratios


def _visiting_order(wiring: Wiring) -> VisitingOrder:
    """Forests breadth-first, so that one sweep is exact; other graphs in index order."""
    variables: Any = np.arange(wiring.n_variables)
    forest = wiring.forests()
    if forest.any():
        variables = np.where(forest[wiring.variable_graphs], wiring.breadth_first(), variables)
    rank = np.empty_like(variables)
    rank[variables] = np.arange(wiring.n_variables)
    ranks, starts = rank[wiring.scopes], wiring.scope_offsets[:-1]
    span = np.empty((wiring.n_factors, 2), np.int64)
    if len(span):
        span[:] = np.stack([f.reduceat(ranks, starts) for f in (np.minimum, np.maximum)], axis=1)
    return VisitingOrder(variables, rank, span)


def _pack(wiring: Wiring) -> tuple[Net, Ints]:
    """Pack a wiring for the message kernels; also where each graph's parts begin."""
    net = Net(
        np.stack([wiring.scopes, wiring.slot_factors, wiring.message_offsets[:-1]], axis=1),
        np.stack([wiring.slot_offsets, wiring.belief_offsets], axis=1),
        np.stack([wiring.scope_offsets, wiring.table_offsets], axis=1),
        wiring.slots,
    )
    slots = wiring.scope_offsets[wiring.graph_factors]
    return net, np.stack([wiring.graph_variables, slots, wiring.graph_factors], axis=1)


def _workspace_shapes(wiring: Wiring) -> tuple[tuple[int, ...], ...]:
    """Shapes of the arrays of a `MessageWorkspace`."""
    arity = int(wiring.arities.max(initial=1))
    states = int(wiring.cards.max(initial=1))
    size = max(states, int(np.diff(wiring.table_offsets).max(initial=1)))
    return (arity, states), (size,), (size,)
