"""Quasi-Newton steps with limited memory, for smooth penalties and for those with an L1 part."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.vectors import dot
from structlearn._src.kernels.quasi_newton import (
    Ends,
    Pairs,
    find_direction_in_threads,
    remember_in_threads,
)
from structlearn._src.kernels.team import make_board
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.objective import Objective
from structlearn._src.solve.base import Report, Solver, State
from structlearn._src.solve.search import Point, backtrack, final_report, measure, norm, wolfe

_RANGES = 4  # of pairs for each thread: about a millisecond, which waking it must be worth
_PRODUCTS = 3  # of a step and a change, with each other and themselves
_LINE = 16  # numbers of two lines
_PHASES = 3  # in which threads find a direction
FLAT = 1e-12  # curvature along a step, relative to the steepest possible, that counts as none


@dataclass(frozen=True)
class Lbfgs(Solver):
    r"""L-BFGS: steps along :math:`-H \nabla F`, with :math:`H` from the last few steps.

    An objective that provides a positive estimate of the curvature of every weight (`diagonal`) is
    preconditioned by it.

    Parameters
    ----------
    memory
        Number of steps that are stored; each takes two arrays of the size of the weights.
    refresh
        Number of iterations after which the diagonal is estimated again.

    References
    ----------
    D. Liu and J. Nocedal, "On the limited memory BFGS method for large scale optimization", 1989.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import Lbfgs
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(solver=Lbfgs(memory=5))
    >>> labeler.fit(X, Y).converged_
    True
    """

    memory: int = 10
    refresh: int = 20
    name: ClassVar[str] = "lbfgs"
    proves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.integer("memory", self.memory, low=1)
        checks.integer("refresh", self.refresh, low=1)

    def refuses(self, objective: Objective) -> str:
        """Refuse penalties with kinks."""
        if objective.penalty.smooth:
            return ""
        return (
            "L-BFGS needs a smooth penalty without bounds on weights: use solver='owlqn' for an L1 "
            "part, or for weights at or above 0"
        )

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Value the weights and forget all curvature."""
        first = Point(weights, *objective.value_gradient(weights))
        return {**first._asdict(), "iteration": 0, **no_pairs(self.memory, len(weights))}

    def step(self, objective: Objective, state: State) -> Report:
        """Search along the quasi-Newton direction; along the gradient itself if that fails."""
        self._precondition(objective, state)
        start = Point(*(state[name] for name in Point._fields))
        found, gain = self._advance(objective, state, start)
        if found is None and state["pairs"]:
            state["pairs"] = 0
            found, _ = self._advance(objective, state, start)
        if found is None:
            gradient = self._norm(self._downhill(objective, start))
            error = objective.hints.error * abs(start.value)
            return final_report(start, gradient, arrived=gradient == 0.0 or gain <= error)
        if "steepest" not in state or state["iteration"] % self.refresh == 0:
            self._measure(objective, state, self._downhill(objective, start))  # in the new scale
        self._remember(objective, state, start, found)
        state |= found._asdict()
        state["iteration"] += 1
        length, moving = self._measure(objective, state, self._downhill(objective, found))
        return Report(found.value, gradient=length, moving=moving)

    def _precondition(self, objective: Objective, state: State) -> None:
        if state["iteration"] % self.refresh == 0:
            diagonal = objective.diagonal(state["weights"])
            if diagonal is not None:
                state["inverse"] = 1.0 / diagonal

    def _advance(
        self, objective: Objective, state: State, start: Point
    ) -> tuple[Point | None, float]:
        """Return the next point; if none is found, also what the direction promised."""
        downhill = self._downhill(objective, start)
        inverse = state.get("inverse")
        direction = self._direction(objective, state, downhill)
        # Without any curvature the first trial moves the weights by 1, or by their size.
        known = state["pairs"] or inverse is not None
        size = objective.hints.step or 1.0
        least = np.finfo(float).tiny * max(size, 1.0)  # of a slope that a step can be divided by
        first = 1.0 if known else size / max(self._norm(downhill), least)
        found = self._search(objective, start, downhill, direction, first)
        if found is not None:
            return found, 0.0
        return found, -first * dot(downhill, direction, objective.n_jobs)

    def _downhill(self, objective: Objective, point: Point) -> Floats:
        """Return the gradient to descend on."""
        return point.gradient

    def _search(
        self, objective: Objective, start: Point, downhill: Floats, direction: Floats, first: float
    ) -> Point | None:
        """Return a lower point along `direction`."""
        return wolfe(objective, start, direction, first)

    # ---- what vectors elsewhere do in their own way ----------------------------------------

    def _direction(self, objective: Objective, state: State, downhill: Floats) -> Floats:
        return newton_direction(state, downhill, state.get("inverse"), objective.n_jobs)

    def _remember(self, objective: Objective, state: State, start: Point, found: Point) -> None:
        add_pair(state, start, found, objective.n_jobs)

    def _measure(self, objective: Objective, state: State, gradient: Floats) -> tuple[float, bool]:
        return measure(state, gradient, objective.n_jobs)

    def _norm(self, vector: Floats) -> float:
        return norm(vector)


@dataclass(frozen=True)
class Owlqn(Lbfgs):
    r"""OWL-QN: L-BFGS that keeps within one orthant per step, where an L1 penalty is linear.

    The gradient is replaced by the subgradient of least norm: with the gradient :math:`g` of the
    smooth part and the factors :math:`\lambda` of the absolute values,

    .. math:: \tilde g_i = \begin{cases} g_i + \lambda_i \operatorname{sign} w_i & w_i \ne 0 \\
              \operatorname{sign}(g_i) \max(|g_i| - \lambda_i, 0) & w_i = 0 \end{cases}

    The direction is restricted to the signs of :math:`-\tilde g`, and weights that would change
    their sign become 0. With a smooth penalty it is L-BFGS with a simpler line search. Weights that
    must not fall below 0 have one orthant for all steps.

    Parameters
    ----------
    memory, refresh
        As in `Lbfgs`.

    References
    ----------
    G. Andrew and J. Gao, "Scalable training of L1-regularized log-linear models", 2007.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import Owlqn
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(solver=Owlqn(), l1_ratio=0.5, C=5.0)
    >>> labeler.fit(X, Y).converged_
    True
    """

    name: ClassVar[str] = "owlqn"

    def refuses(self, objective: Objective) -> str:
        """Refuse nothing."""
        return ""

    def _downhill(self, objective: Objective, point: Point) -> Floats:
        factor = objective.penalty.lasso
        if isinstance(objective.penalty, NonNegative):
            rising = point.gradient + factor
            return np.where(point.weights == 0.0, np.minimum(rising, 0.0), rising)
        at_zero = np.clip(-point.gradient, -factor, factor)
        away = factor * np.sign(point.weights)
        return point.gradient + np.where(point.weights == 0.0, at_zero, away)

    def _search(
        self, objective: Objective, start: Point, downhill: Floats, direction: Floats, first: float
    ) -> Point | None:
        aligned = np.where(direction * downhill < 0.0, direction, 0.0)
        orthant = np.where(start.weights != 0.0, np.sign(start.weights), -np.sign(downhill))
        if isinstance(objective.penalty, NonNegative):
            orthant = np.ones(len(downhill))

        def move(length: float) -> Floats:
            moved = start.weights + length * aligned
            return np.where(moved * orthant > 0.0, moved, 0.0)

        return backtrack(objective, start, downhill, move, first)


# ---- what the last steps tell about the curvature --------------------------------------------


def no_pairs(memory: int, n_weights: int) -> State:
    r"""Return a memory of pairs: steps :math:`s`, changes of gradient :math:`y`.

    The dot products :math:`\langle s_i, y_j \rangle` of steps with no older changes are kept, so
    that a direction needs only four products of a matrix with a vector.
    """
    return {
        "steps": np.zeros((memory, n_weights)),
        "changes": np.zeros((memory, n_weights)),
        "dots": np.zeros((memory, memory)),
        "pairs": 0,
    }


def add_pair(state: State, start: Point, found: Point, n_jobs: int | None) -> None:
    """Put a step in the place of the oldest one, unless it shows no positive curvature."""
    memory = len(state["steps"])
    k = state["pairs"] % memory
    n = min(state["pairs"] + 1, memory)
    if team := _Team.of(state, n_jobs):
        ends = Ends(start.weights, start.gradient, found.weights, found.gradient)
        given = state["pairs"], team.pairs, Ends(*map(_plain, ends)), FLAT, team.sums
        stored = bool(team.run(remember_in_threads, *given))
        dots = team.sums[1].sum(axis=0)[:n]
    else:
        step = found.weights - start.weights
        change = found.gradient - start.gradient
        steepest = math.sqrt(step @ step) * math.sqrt(change @ change)
        stored = bool(step @ change > FLAT * steepest)
        if stored:
            state["steps"][k] = step
            state["changes"][k] = change
            dots = state["steps"][:n] @ change
    if stored:
        state["pairs"] += 1
        state["dots"][:n, k] = dots


def newton_direction(
    state: State, gradient: Floats, inverse: Floats | None, n_jobs: int | None = 1
) -> Floats:
    r"""Return :math:`-H g`, where :math:`H` is the inverse Hessian that fits the pairs.

    It starts from the diagonal `inverse` up to a factor, or from the identity: Nocedal and Wright,
    "Numerical Optimization", 2006, algorithm 7.4.
    """
    pairs = state["pairs"]
    n = min(pairs, len(state["steps"]))
    if not n:
        return -gradient if inverse is None else -(inverse * gradient)
    if team := _Team.of(state, n_jobs):
        out = np.empty(len(gradient))
        diagonal = np.empty(0) if inverse is None else inverse
        given = pairs, team.pairs, _plain(gradient), _plain(diagonal), team.sums
        team.run(find_direction_in_threads, *given, out)
        return out
    steps, changes, dots = state["steps"][:n], state["changes"][:n], state["dots"][:n, :n]
    back = newest_first(steps @ gradient, dots, pairs)
    newest = (pairs - 1) % n
    own = changes[newest]
    scale = dots[newest, newest] / (own @ (own if inverse is None else inverse * own))
    turned = gradient - back @ changes
    turned *= scale if inverse is None else scale * inverse
    forth = oldest_first(changes @ turned, back, dots, pairs)
    turned += forth @ steps
    return np.negative(turned, out=turned)


def newest_first(along: Floats, dots: Floats, pairs: int) -> Floats:
    """Return how much of each change is taken off the gradient: the first of the two loops.

    `along` has the products of the gradient with the steps, `dots` those of steps and changes.
    """
    n = len(along)
    back = np.zeros(n)
    for i in ((pairs - 1 - j) % n for j in range(n)):  # those still 0 are older
        back[i] = (along[i] - dots[i] @ back) / dots[i, i]
    return back


def oldest_first(along: Floats, back: Floats, dots: Floats, pairs: int) -> Floats:
    """Return how much of each step is added: the second loop, with products with the changes."""
    n = len(along)
    forth = np.zeros(n)
    for i in ((pairs + j) % n for j in range(n)):  # those still 0 are newer
        forth[i] = back[i] - (along[i] + forth @ dots[:, i]) / dots[i, i]
    return forth


# ---- long vectors ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Team:
    """Threads that go through all pairs together, and what they share."""

    threads: int
    pairs: Pairs
    board: Ints
    sums: Floats

    @classmethod
    def of(cls, state: State, n_jobs: int | None) -> _Team | None:
        """Return the threads for pairs of this size; None where NumPy alone is as quick."""
        pairs = Pairs(*(state[name] for name in Pairs._fields))
        ranges = round(pairs.steps.size / threads.GRAIN["pairs"])
        if ranges <= 1:
            return None
        count = min(threads.workers(n_jobs), 1 + ranges // _RANGES)
        size = max(len(pairs.steps), _PRODUCTS) + 1
        return cls(count, pairs, make_board(_PHASES), np.empty((2, ranges, size)))

    def run(self, kernel: Callable[..., Any], *given: Any) -> Any:
        """Call a kernel with the board first, and a workspace of each thread behind `given`."""
        n = self.sums.shape[2]
        apart = 1 + _LINE // n  # rows that keep threads on different lines of the cache
        spaces = np.empty((self.threads, 3 + apart, n))
        return threads.launch(kernel, self.threads - 1, self.board, *given, spaces)


def _plain(vector: Floats) -> Floats:
    """Return a vector as kernels are compiled for."""
    return np.require(vector, np.float64, ("C", "W"))
