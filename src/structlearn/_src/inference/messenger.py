"""Messages of one problem, kept between runs: what every message-passing method shares."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Bools, Floats, Ints, offsets_of
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Problem
from structlearn._src.inference.share import over_blocks, over_graphs, scratch
from structlearn._src.kernels.graph import loopy, readout, tournament
from structlearn._src.kernels.graph.message import Desk, Net, Traffic

SCHEDULES = ("sequential", "flooding", "residual")
_WIDEST = 150.0  # nats between the entries of a table up to which linear messages are safe
_NEAR = _WIDEST / 2  # nats from 0 up to which tables need not even be scaled
_BATCH = 2_000_000  # messages per call of the kernel, so that time limits and interrupts are seen


class Messenger:
    """Runs message passing on a problem, a few sweeps or many, from where it stood.

    Parameters
    ----------
    problem : Problem
    appearance : array (factors,), optional
        Edge appearance probabilities: tree-reweighted instead of plain messages.
    schedule : {"sequential", "flooding", "residual"}
    damping : float in [0, 1)
        Share of the old message that stays in every update.
    start : array, optional
        Log messages to begin with, as left in `messages` by an earlier run on the same wiring.
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
    ) -> None:
        self.problem = problem
        self.damping = damping
        self.schedule = checks.one_of("schedule", schedule, SCHEDULES)
        self.n_jobs = n_jobs
        wiring = problem.wiring
        self.net, self.borders = pack(wiring)
        self.weights, self.ratios = temperatures(problem, appearance)
        self.order = visiting_order(wiring, self.net)
        self.messages = self._initial(start)
        self._beliefs = np.empty(int(wiring.belief_offsets[-1]))
        self._room = _room(wiring)
        self._moving = moving_slots(wiring)
        self._exponentials = np.empty(0)
        self.linear = False
        self.residual = np.full(wiring.n_graphs, np.inf)
        self.iterations = np.zeros(wiring.n_graphs, np.int64)
        self.done = np.zeros(wiring.n_graphs, np.bool_)
        self.load(problem.potentials)

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

    def load(self, potentials: Floats) -> None:
        """Take new potentials; the messages stay as they are."""
        self.potentials = potentials
        self._tables: Floats | None = None
        loopy.load_singles(self.net, potentials, self.messages)
        self.done[:] = False

    # ---- running -------------------------------------------------------------------------

    def run(self, sweeps: int, tol: float, watch: Watch | None = None) -> Ending:
        """Sweep until every graph's messages move by at most `tol`; says why it ended."""
        if self._tables is None:
            self._tables = self._prepared()
        tables, self.linear = self._tables, self._tables is not self.potentials
        if self.linear:
            self._to_linear()
        chunk = max(1, min(sweeps, _BATCH // max(int(self._moving.sum()), 1)))
        still = self._moving == 0
        self.done |= still
        self.residual[still] = 0.0
        left = [sweeps]

        def step() -> bool:
            now = min(chunk, left[0])
            left[0] -= now
            self._propagate(tables, now, tol)
            return bool(self.done.all())

        reason = (watch or Watch()).repeat(
            step, -(-sweeps // chunk), lambda: f"largest change {self.residual.max():.2g}"
        )
        if self.linear:
            self._to_log()
        return reason

    def _propagate(self, tables: Floats, sweeps: int, tol: float) -> None:
        wiring, traffic = self.problem.wiring, self._traffic(tables)

        state = self.residual, self.iterations, self.done

        def sweep(first: int, last: int) -> None:
            flooding = self.schedule == "flooding"
            loopy.propagate(
                self.borders, self.net, self.order, traffic, self._desk(), flooding,
                tol, sweeps, first, last, *state,
            )  # fmt: skip

        def chase(first: int, last: int) -> None:
            loopy.chase(
                self.borders, self.net, traffic, self._desk(), *self._queue(first, last),
                tol, sweeps, first, last, *state,
            )  # fmt: skip

        work = chase if self.schedule == "residual" else sweep
        over_graphs(work, wiring, self.n_jobs)

    def _desk(self) -> Desk:
        return Desk(*scratch(*self._room))

    def _queue(self, first: int, last: int) -> tuple[Floats, Ints]:
        """Room for the slots of the largest graph."""
        slots = int(np.diff(self.borders[first : last + 1, 1]).max())
        return tournament.plant(slots), np.empty(slots + 1, np.int64)

    def _traffic(self, tables: Floats) -> Traffic:
        fresh = self.messages.copy() if self.schedule != "sequential" else np.empty(0)
        return Traffic(
            tables, self.weights, self.ratios, self.messages, fresh, self._beliefs, self.linear,
            float(self.damping),
        )  # fmt: skip

    def _prepared(self) -> Floats:
        """Linear tables where that is safe, else the log potentials themselves."""
        theta = self.potentials
        if not len(theta) or (self.weights <= 0).any() or (self.problem.eps <= 0).any():
            return theta
        # Messages are raised to the ratio of the temperatures of factor and variable.
        power = float(self.ratios.max(initial=1.0))
        near = _NEAR * self.weights.min() / power
        if not len(self._exponentials):
            self._exponentials = np.empty_like(theta)
        out, unsafe = self._exponentials, []

        def work(first: int, last: int) -> None:
            block, weights = self.problem.wiring.table_offsets[first : last + 1], self.weights
            part, scaled = theta[block[0] : block[-1]], out[block[0] : block[-1]]
            sizes = np.diff(block)
            np.divide(part, _spread(weights[first:last], sizes), out=scaled)
            far = max(part.max(), -part.min()) > near
            if far and power * _lower(scaled, block[:-1] - block[0], sizes) > _WIDEST:
                unsafe.append(first)
                return
            np.exp(scaled, out=scaled)

        over_blocks(work, self.problem.wiring.table_offsets, self.n_jobs)
        return theta if unsafe else out

    def _to_linear(self) -> None:
        starts = self.problem.wiring.message_offsets

        def work(first: int, last: int) -> None:
            loopy.level(self.net, self.weights, self.messages, first, last)
            part = self.messages[starts[first] : starts[last]]
            np.exp(part, out=part)

        over_blocks(work, starts, self.n_jobs)

    def _to_log(self) -> None:
        wiring = self.problem.wiring

        def work(first: int, last: int) -> None:
            block = wiring.message_offsets[first : last + 1]
            part = self.messages[block[0] : block[-1]]
            with np.errstate(divide="ignore"):
                np.log(part, out=part)
            part *= _spread(self.weights[wiring.slot_factors[first:last]], np.diff(block))

        over_blocks(work, wiring.message_offsets, self.n_jobs)
        # Messages of single-variable factors are their potentials, to the last digit.
        loopy.load_singles(self.net, self.potentials, self.messages)

    # ---- reading off ---------------------------------------------------------------------

    def beliefs(self) -> tuple[Floats, Floats]:
        """Beliefs of the variables and, per graph, their part of the Bethe value."""
        wiring, traffic = self.problem.wiring, self._log_traffic()
        out, value = np.empty(int(wiring.belief_offsets[-1])), np.zeros(wiring.n_graphs)
        eps = self.problem.eps
        over_graphs(
            lambda a, b: readout.read_beliefs(
                self.borders, self.net, traffic, eps, a, b, out, value
            ),
            wiring,
            self.n_jobs,
        )
        return out, value

    def value(self, factor_beliefs: bool = False) -> tuple[Floats, Floats, Floats | None]:
        """Bethe value per graph, beliefs, and on request factor beliefs."""
        wiring, traffic = self.problem.wiring, self._log_traffic()
        beliefs, value = self.beliefs()
        out = np.empty(int(wiring.table_offsets[-1]) if factor_beliefs else 0)
        over_graphs(
            lambda a, b: readout.read_factors(
                self.borders,
                self.net,
                traffic,
                beliefs,
                self._desk(),
                a,
                b,
                factor_beliefs,
                out,
                value,
            ),
            wiring,
            self.n_jobs,
        )
        return value, beliefs, out if factor_beliefs else None

    def decode(self, uniforms: Floats | None = None, labels: Ints | None = None) -> Ints:
        """Assign one variable after the other given those before; a draw if `uniforms` come."""
        wiring, traffic = self.problem.wiring, self._log_traffic()
        labels = np.full(wiring.n_variables, -1, np.int64) if labels is None else labels.copy()
        if uniforms is None:
            uniforms = np.full(wiring.n_variables, -1.0)
        scores = np.empty(int(wiring.cards.max(initial=1)))
        readout.decode(
            self.net, traffic, self.problem.eps, self.order.variables, uniforms, self._desk(),
            scores, labels,
        )  # fmt: skip
        return labels

    def _log_traffic(self) -> Traffic:
        self.linear = False
        return self._traffic(self.potentials)

    @property
    def converged(self) -> Bools:
        """Whether each graph met the tolerance."""
        return self.done.copy()


def temperatures(problem: Problem, appearance: Floats | None) -> tuple[Floats, Floats]:
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
        weights, ratios = weights * share, ratios * share[wiring.slot_factors]
    return weights, ratios


def visiting_order(wiring: Wiring, net: Net) -> loopy.Order:
    """Forests breadth-first, so that one sweep is exact; other graphs in index order."""
    variables: Any = np.arange(wiring.n_variables)
    forest = wiring.forests()
    if forest.any():
        variables = np.where(forest[wiring.variable_graphs], wiring.breadth_first(), variables)
    order = loopy.Order(
        variables, np.empty_like(variables), np.empty((wiring.n_factors, 2), np.int64)
    )
    loopy.rank(net, order)
    return order


def pack(wiring: Wiring) -> tuple[Net, Ints]:
    """Pack a wiring for the message kernels; also where each graph's parts begin."""
    net = Net(
        np.stack([wiring.scopes, wiring.slot_factors, wiring.message_offsets[:-1]], axis=1),
        np.stack([wiring.slot_offsets, wiring.belief_offsets], axis=1),
        np.stack([wiring.scope_offsets, wiring.table_offsets], axis=1),
        wiring.slots,
    )
    slots = wiring.scope_offsets[wiring.graph_factors]
    return net, np.stack([wiring.graph_variables, slots, wiring.graph_factors], axis=1)


def moving_slots(wiring: Wiring) -> Ints:
    """Number of slots of every graph whose messages can change."""
    arities = wiring.arities
    moving = offsets_of(np.where(arities > 1, arities, 0))
    return np.diff(moving[wiring.graph_factors])


def _spread(values: Floats, sizes: Ints) -> Floats:
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


def _room(wiring: Wiring) -> tuple[tuple[int, ...], ...]:
    """Shapes of the arrays of a `Desk`."""
    arity, states = int(wiring.arities.max(initial=1)), int(wiring.cards.max(initial=1))
    size = max(states, int(np.diff(wiring.table_offsets).max(initial=1)))
    return (arity, states), (size,), (size,)
