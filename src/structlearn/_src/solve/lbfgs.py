"""Quasi-Newton steps with limited memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.learn.base import Objective
from structlearn._src.solve import curvature
from structlearn._src.solve.base import Report, Solver, State
from structlearn._src.solve.search import Point, norm, wolfe

_GOOD = 1e-9  # first-order gain, relative to the value, below which no step can be told from none


@dataclass(frozen=True)
class Lbfgs(Solver):
    r"""L-BFGS: steps along :math:`-H \nabla F`, with :math:`H` from the last few steps.

    An objective that knows a positive estimate of the curvature of every weight (`diagonal`) is
    preconditioned by it.

    Parameters
    ----------
    memory
        How many steps are remembered; each takes two arrays of the size of the weights.
    refresh
        Number of iterations after which the diagonal is estimated anew.

    References
    ----------
    D. Liu and J. Nocedal, "On the limited memory BFGS method for large scale optimization", 1989.
    """

    memory: int = 10
    refresh: int = 20
    name: ClassVar[str] = "lbfgs"

    def __post_init__(self) -> None:
        checks.integer("memory", self.memory, low=1)
        checks.integer("refresh", self.refresh, low=1)

    def refuses(self, objective: Objective) -> str:
        """Refuse penalties with kinks."""
        if objective.penalty.smooth:
            return ""
        return (
            "L-BFGS needs a smooth penalty without bounds on weights: use solver='owlqn' for an L1 "
            "part, and 'adagrad' for weights at or above 0"
        )

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Value the weights and forget all curvature."""
        first = Point(weights, *objective.value_gradient(weights))
        return {**first._asdict(), "iteration": 0, **curvature.empty(self.memory, len(weights))}

    def step(self, objective: Objective, state: State) -> Report:
        """Search along the quasi-Newton direction; along the gradient itself if that fails."""
        self._precondition(objective, state)
        start = Point(*(state[name] for name in Point._fields))
        found, gain = self._advance(objective, state, start)
        if found is None and state["pairs"]:
            state["pairs"] = 0
            found, _ = self._advance(objective, state, start)
        if found is None:
            return _end(start, norm(self._downhill(state, start)), gain)
        curvature.push(state, found.weights - start.weights, found.gradient - start.gradient)
        state |= found._asdict()
        state["iteration"] += 1
        return Report(found.value, gradient=norm(self._downhill(state, found)))

    def _precondition(self, objective: Objective, state: State) -> None:
        if state["iteration"] % self.refresh == 0:
            diagonal = objective.diagonal(state["weights"])
            if diagonal is not None:
                state["inverse"] = 1.0 / diagonal

    def _advance(
        self, objective: Objective, state: State, start: Point
    ) -> tuple[Point | None, float]:
        """Return the next point, and what the direction promised to first order."""
        downhill = self._downhill(state, start)
        inverse = state.get("inverse")
        direction = curvature.direction(state, downhill, inverse)
        # Without any curvature the first trial moves the weights by 1.
        known = state["pairs"] or inverse is not None
        first = 1.0 if known else 1.0 / max(norm(downhill), np.finfo(float).tiny)
        found = self._search(objective, start, downhill, direction, first)
        return found, -first * float(downhill @ direction)

    def _downhill(self, state: State, point: Point) -> Floats:
        """Return the gradient to descend on."""
        return point.gradient

    def _search(
        self, objective: Objective, start: Point, downhill: Floats, direction: Floats, first: float
    ) -> Point | None:
        """Return a lower point along `direction`."""
        return wolfe(objective, start, direction, first)


def _end(start: Point, gradient: float, gain: float) -> Report:
    """Tell that nothing lower is left, and whether that is because nothing was to be gained."""
    arrived = gradient == 0.0 or gain <= _GOOD * abs(start.value)
    words = (
        "converged: no step lowers the objective beyond rounding"
        if arrived
        else "stuck: no step along the gradient lowers the objective; it may have a kink here"
    )
    return Report(start.value, gradient=gradient, done=True, words=words, stuck=not arrived)
