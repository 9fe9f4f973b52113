"""The one loop: stopping, history, callbacks, progress, checkpoints, interrupts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.checks import generator
from structlearn._src.common.document import completed
from structlearn._src.common.errors import ArgumentError, CheckpointWarning, warn
from structlearn._src.common.history import History
from structlearn._src.common.paths import PathLike
from structlearn._src.common.threads import one_blas_thread
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.learn.objective import Ability, Objective
from structlearn._src.learn.world import Memory, count_steps, remembers
from structlearn._src.solve.base import Report, Solver, State, current_weights, refusal
from structlearn._src.solve.checkpoint import Checkpoint, Snapshot, fingerprint, load, save
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.loop_doc import RUN
from structlearn._src.solve.stopping import Outlook, gain_left, small_reason, standstill_reason

_DIVERGED = "diverged: the weights became too large; take smaller steps"
_STALLED = "stalled: the objective no longer changes"
_STOPPED = "stopped by a callback"
_ENDS = {_DIVERGED: Ending.DIVERGED, _STOPPED: Ending.STOPPED}
_PROBES = 15  # quasi-Newton steps that put a standstill to the test
_SOFT = (1.0, 0.1, 0.01)  # temperatures at which they see over kinks
_DOUBT = 10.0  # times `tol`: what they must gain to show that it was none


class Event(NamedTuple):
    """What a callback receives after every iteration.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> def stop_early(event):
    ...     return event.iteration == 2
    >>> labeler = SequenceLabeler(callbacks=[stop_early])
    >>> labeler.fit([[["the"], ["cat"]]], [["D", "N"]]).n_iter_
    2
    """

    iteration: int  #: number of the iteration, from 1
    value: float  #: as in `History`, like the next two; NaN if unknown
    gap: float  #: bound on the distance to the optimum
    gradient: float  #: norm of the gradient
    weights: Floats  #: read-only and only of this moment: copy them to keep them
    history: History  #: all iterations so far
    inference_steps: int  #: message sweeps, or steps of ADMM, so far in all worlds
    #: Returns the estimator with these weights, to predict with; None where solvers run alone.
    current: Callable[[], Any] | None = None

    @property
    def slope(self) -> float:
        """The earlier name of `gradient`."""
        return self.gradient


#: Called after every iteration; True ends the run.
Callback = Callable[[Event], bool | None]


class Fit(NamedTuple):
    """Result of a run."""

    weights: Floats
    value: float  #: the objective at `weights`; NaN if an interrupt left no time to find it
    history: History
    status: str  #: how it went, in one sentence
    n_iter: int
    converged: bool
    ended: Ending  #: how it went, as a fact
    memory: Memory = None  #: where inference stands


@completed(RUN)
def run(
    solver: Solver,
    objective: Objective,
    weights: Floats,
    *,
    max_iter: int = 100,
    tol: float | None = 1e-5,
    patience: int | None = None,
    rng: np.random.Generator | None = None,
    callbacks: Iterable[Callback] = (),
    watch: Watch | None = None,
    checkpoint: Checkpoint | PathLike | None = None,
    tested: bool = True,
    gradient_tol: float | None = None,
) -> Fit:
    r"""Repeat the steps of a solver until they no longer improve the objective.

    A run has converged when the solver says so, or when one of these falls below `tol` times the
    value :math:`F`, of which a step may report any: the duality gap; the gradient norm
    :math:`\|\nabla F\| \max(1, \|w\|)`; unless the gap is known, the projected improvement over as
    many iterations again, at the rate of the last `patience` ones. In the last case values have
    stopped changing, which is accepted if the gradient norm has fallen far too, or if quasi-Newton
    steps from there gain next to nothing; otherwise the run has stalled.

    The result is the best of all weights if the solver knows their values, otherwise those of the
    last step. Ctrl-C ends the run and keeps that result.
    """
    if why := refusal(solver, objective):
        raise ArgumentError(f"solver={solver.name!r}: {why}")
    max_iter = checks.integer("max_iter", max_iter, low=1)
    patience = solver.patience if patience is None else checks.integer("patience", patience, low=1)
    if tol is not None:
        tol = checks.number("tol", tol, low=0.0)
    if gradient_tol is not None:
        gradient_tol = checks.number("gradient_tol", gradient_tol, low=0.0)
    if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    start = _checked(weights, objective.n_weights)
    loop = _Loop(
        solver, objective, start, generator(rng), tol, patience, tuple(callbacks), checkpoint,
        tested, gradient_tol,
    )  # fmt: skip
    with one_blas_thread():
        return loop.run(max_iter, watch or Watch())


def _checked(weights: Floats, n_weights: int) -> Floats:
    given = np.array(weights, np.float64)
    if given.shape != (n_weights,):
        raise ArgumentError(
            f"weights of shape {given.shape} were given to start from, but the objective has "
            f"{n_weights} weights"
        )
    if not np.isfinite(given).all():
        raise ArgumentError("the weights to start from must be finite; some are NaN or infinite")
    return given


@dataclass
class _Loop:
    """One run under way."""

    solver: Solver
    objective: Objective
    best: Floats  # weights of the answer
    rng: np.random.Generator
    tol: float | None
    patience: int
    callbacks: tuple[Callback, ...]
    checkpoint: Checkpoint | None
    tested: bool
    gradient_tol: float | None
    value: float = math.inf  # what `best` is worth
    state: State | None = None
    report: Report = field(default_factory=Report)
    history: History = field(default_factory=History)
    iteration: int = 0
    norm: float = 0.0  # of the newest weights
    begun: float = field(default_factory=time.monotonic)
    saved: float = field(default_factory=time.monotonic)
    whole: bool = True  # whether the last step was finished
    stop: str = ""  # why a run ends that has not converged
    outlook: Outlook = field(default_factory=Outlook)

    def run(self, max_iter: int, watch: Watch) -> Fit:
        """Go on from the checkpoint or begin, and step until something ends it."""
        self.restore()
        ended = Ending.DONE
        if not self.stop_reason():
            left = max(max_iter - self.iteration, 0)
            self.outlook.tol = self.tol
            ended = watch.repeat(self.step, left, self.progress_text, self.outlook.share)
        if ended != Ending.INTERRUPTED and self.whole:
            self.save()
        return self.fit(ended, max_iter)

    def step(self) -> bool:
        """Take one step and tell everybody; True if there is no reason for another."""
        state = self.begin() if self.state is None else self.state
        self.whole = False
        self.record(self.solver.step(self.objective, state), self.iteration + 1)
        self.call(state)
        if self.checkpoint and self.checkpoint.due(self.iteration, time.monotonic() - self.saved):
            self.save()
        self.whole = True
        return self.stop_reason() != ""

    def begin(self) -> State:
        """Start the solver."""
        self.state = self.solver.start(self.objective, self.best.copy(), self.rng)
        if "value" in self.state:
            self.record(Report(value=float(self.state["value"])), 0)
        return self.state

    def record(self, report: Report, iteration: int) -> None:
        """Note what a step has told, and keep its weights if they are better."""
        assert self.state is not None
        weights = current_weights(self.state)
        self.norm = float(np.linalg.norm(weights))
        if not math.isfinite(self.norm):
            self.stop = _DIVERGED
        elif not report.exact or math.isnan(report.value):
            self.best = weights.copy()
            self.value = math.inf
        elif report.value <= self.value and report.value < math.inf:
            self.best = weights.copy()
            self.value = report.value
        self.report = report
        self.iteration = iteration
        memory = self.state.get("memory")
        steps = count_steps(memory) if remembers(memory) else math.nan
        seconds = time.monotonic() - self.begun
        self.history.add(iteration, seconds, report.value, report.gap, report.gradient, steps)
        gain = gain_left(report, self.history, self.patience, self.again)
        self.outlook.hear(report, self.norm, gain)

    def call(self, state: State) -> None:
        """Tell the callbacks."""
        if not self.callbacks:
            return
        weights = current_weights(state).view()
        weights.flags.writeable = False
        report = self.report
        event = Event(
            self.iteration, report.value, report.gap, report.gradient, weights, self.history,
            count_steps(state.get("memory")),
        )  # fmt: skip
        for callback in self.callbacks:
            answered = callback(event)
            if isinstance(answered, bool | np.bool_) and answered:
                self.stop = self.stop or _STOPPED

    def stop_reason(self) -> str:
        """Say why the run is over; empty if it is not."""
        if self.stop or self.report.done:
            return self.stop or self.report.words or "the solver is done"
        if self.flat:
            return f"converged: the norm of the gradient is below {self.gradient_tol:g}"
        if self.tol is None or self.iteration == 0:
            return ""
        return small_reason(self.report, self.norm, self.tol) or self.standstill()

    @property
    def flat(self) -> bool:
        """Whether the gradient is as small as was asked for."""
        return self.gradient_tol is not None and self.report.gradient <= self.gradient_tol

    def standstill(self) -> str:
        """Say that values stand still; empty if they do not."""
        assert self.tol is not None
        return standstill_reason(self.report, self.history, self.tol, self.patience, self.again)

    @property
    def again(self) -> float:
        """As many iterations again, in units of the patience."""
        if self.solver.linear_rate:
            return 1.0  # what is left shrinks by a factor, and so does what each step gains
        return len(self.history) / self.patience

    def probe(self) -> str:
        """Take a few quasi-Newton steps from the answer; say why a standstill was no end.

        Losses with kinks are smoothed first, since a kink stops such steps. Losses that are least
        at 0 are not minimised at all: what is left of them counts.
        """
        objective = self.objective
        self.value = least = self.best_value()
        little = _DOUBT * (self.tol or 0.0) * abs(self.value)
        if objective.zero_is_optimal:
            left = self.value - objective.penalty.value(self.best)
            return f"{_STALLED} with losses of {left:.3g} left" if left > little else ""
        solver = Lbfgs() if objective.penalty.smooth else Owlqn()
        if objective.approximate or refusal(solver, objective):
            return ""  # nothing here can tell
        kinks = not objective.smooth and Ability.SOFTEN in objective.abilities
        best = self.best
        for target in map(objective.softened, _SOFT) if kinks else (objective,):
            state = solver.start(target, best, self.rng)
            moving = True  # until the gradient has fallen once: nearly smooth kinks throw it about
            for _ in range(_PROBES):
                report = solver.step(target, state)
                moving = moving and report.moving
                if report.done:
                    break
            value = objective.value(state["weights"])
            if value < least:
                best, least = state["weights"], value
        gain = self.value - least
        if gain > little:
            self.best, self.value = best, least
            return f"{_STALLED}, yet other steps gained {gain:.3g} more"
        lost = (report.stuck or moving) and (kinks or objective.smooth)
        return f"{_STALLED} where no search can tell how far away the optimum is" if lost else ""

    def progress_text(self) -> str:
        """Say how far the run is."""
        return f"iteration {self.iteration}{self.outlook.words()}"

    def save(self) -> None:
        """Write the checkpoint, if there is one."""
        if self.checkpoint is None or self.state is None:
            return
        snapshot = Snapshot(
            self.state, self.best, self.value, self.report, self.history, self.iteration
        )
        try:
            save(self.checkpoint, self.facts, snapshot, self.rng)
        except OSError as reason:  # a full disk must not cost the work of hours
            path = self.checkpoint.path
            warn(
                f"{path}: no checkpoint was written ({reason}); fitting continues",
                CheckpointWarning,
            )
        self.saved = time.monotonic()

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What a restart must share; worked out once, as the data may be large."""
        assert self.checkpoint is not None
        return fingerprint(self.checkpoint, self.solver, self.objective)

    def restore(self) -> None:
        """Take over what the checkpoint holds, if it exists."""
        if self.checkpoint is None:
            return
        found = load(self.checkpoint, self.facts, self.objective, self.rng)
        if found:
            self.state, self.best, self.value, self.report, self.history, self.iteration = found
            self.norm = float(np.linalg.norm(current_weights(self.state)))
            self.begun -= float(self.history.seconds[-1])

    def best_value(self) -> float:
        """Value the answer, inference going on from where it stands."""
        memory = None if self.state is None else self.state.get("memory")
        return self.objective.value(self.best, memory)

    def fit(self, ended: Ending, max_iter: int) -> Fit:
        """Pack up."""
        why = self.stop_reason()
        if ended == Ending.DONE:
            ended = _ENDS.get(self.stop, Ending.STUCK if self.report.stuck else Ending.DONE)
            if ended == Ending.DONE and self.tested and not self.proved():
                doubt = self.probe()
                if doubt:
                    ended = Ending.STALLED
                    why = doubt
        value = self.value
        if not math.isfinite(value):
            value = math.nan if ended == Ending.INTERRUPTED else self.best_value()
        if ended.early:
            status = f"{ended.sentence} after {self.iteration} iterations; keeping the best so far"
        else:
            status = why or f"stopped at max_iter={max_iter} before reaching tol={self.tol}"
        converged = ended == Ending.DONE
        memory = None if self.state is None else self.state.get("memory")
        return Fit(self.best, value, self.history, status, self.iteration, converged, ended, memory)

    def proved(self) -> bool:
        """Tell whether the end needs no test: the solver knows, or a small number tells."""
        sharp = self.objective.smooth or not math.isnan(self.report.gap)
        if self.tol is None or self.flat or (self.solver.proves and sharp):
            return True
        return small_reason(self.report, self.norm, self.tol) != ""
