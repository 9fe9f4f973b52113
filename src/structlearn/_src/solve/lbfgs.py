"""Quasi-Newton steps with limited memory, for smooth penalties and for those with an L1 part."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.vectors import dot, multiply, over, summed
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.objective import Objective
from structlearn._src.solve.base import Report, Solver, State
from structlearn._src.solve.search import Point, backtrack, final_report, norm, still_moving, wolfe

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
        self._moving(objective, state, self._downhill(objective, start))
        self._remember(objective, state, start, found)
        state |= found._asdict()
        state["iteration"] += 1
        downhill = self._downhill(objective, found)
        moving = self._moving(objective, state, downhill)
        length = math.sqrt(dot(downhill, downhill, objective.n_jobs))
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

    def _moving(self, objective: Objective, state: State, gradient: Floats) -> bool:
        return still_moving(state, gradient, objective.n_jobs)

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
    steps, changes = state["steps"], state["changes"]
    size = len(start.weights)

    def products(part: slice) -> Floats:
        step = found.weights[part] - start.weights[part]
        change = found.gradient[part] - start.gradient[part]
        return np.array([step @ change, step @ step, change @ change])

    bend, *squares = summed(products, size, n_jobs)
    if not bend > FLAT * math.sqrt(squares[0]) * math.sqrt(squares[1]):
        return
    k = state["pairs"] % len(steps)
    state["pairs"] += 1
    n = _used(state)

    def store(part: slice) -> Floats:
        np.subtract(found.weights[part], start.weights[part], out=steps[k, part])
        np.subtract(found.gradient[part], start.gradient[part], out=changes[k, part])
        return steps[:n, part] @ changes[k, part]

    state["dots"][:n, k] = summed(store, size, n_jobs)


def newton_direction(
    state: State, gradient: Floats, inverse: Floats | None, n_jobs: int | None = 1
) -> Floats:
    r"""Return :math:`-H g`, where :math:`H` is the inverse Hessian that fits the pairs.

    It starts from the diagonal `inverse` up to a factor, or from the identity: Nocedal and Wright,
    "Numerical Optimization", 2006, algorithm 7.4.
    """
    n = _used(state)
    steps, changes, dots = state["steps"][:n], state["changes"][:n], state["dots"][:n, :n]
    back = newest_first(multiply(steps, gradient, n_jobs), dots, state["pairs"])
    scale = _scale(state, inverse, n_jobs)
    turned = np.empty_like(gradient)

    def turn(part: slice) -> Floats:
        """Apply what `back` leaves and the first inverse Hessian."""
        own = np.subtract(gradient[part], back @ changes[:, part], out=turned[part])
        own *= scale if inverse is None else scale * inverse[part]
        return changes[:, part] @ own

    along = summed(turn, len(gradient), n_jobs)
    forth = oldest_first(along, back, dots, state["pairs"])

    def finish(part: slice) -> None:
        turned[part] += forth @ steps[:, part]
        np.negative(turned[part], out=turned[part])

    over(finish, len(gradient), n_jobs)
    return turned


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


def _scale(state: State, inverse: Floats | None, n_jobs: int | None) -> float:
    """Return the scale of the first inverse Hessian, that of the newest pair."""
    if not state["pairs"]:
        return 1.0
    k = (state["pairs"] - 1) % len(state["steps"])
    change = state["changes"][k]

    def square(part: slice) -> Floats:
        own = change[part]
        return np.asarray(own @ (own if inverse is None else inverse[part] * own))

    return float(state["dots"][k, k] / summed(square, len(change), n_jobs))


def _used(state: State) -> int:
    return min(state["pairs"], len(state["steps"]))
