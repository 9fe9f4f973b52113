"""Steepest descent with line search."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.learn.objective import Objective
from structlearn._src.solve.base import Report, Solver, State
from structlearn._src.solve.search import Point, evaluate, exact, final_report, measure, norm

_DECREASE = 0.1  # share of the first-order gain that a step must keep
_TRIALS = 60  # halvings after which a length is below rounding
_SEARCHES = ("armijo", "exact")
_STEEP = 1e-2  # gradient, against the value, that is no minimum of anything smooth


@dataclass(frozen=True)
class Descent(Solver):
    r"""Steepest descent with line search.

    .. math:: d = \nabla F(w), \qquad \eta = \operatorname{argmin}_\eta F(w - \eta d), \qquad
              w := w - \eta d

    The line search starts from the last step length. While that is too long to lower the value
    sufficiently (Armijo's rule) it contracts; otherwise it expands as long as the value falls. If
    the penalty has an L1 part, `Penalty.prox` is applied to every trial, and the rule becomes
    :math:`F(w') \le F(w) - \frac{c}{\eta} \|w' - w\|^2`, which is equivalent without one.
    With ``search="exact"`` the step goes to the minimum along the line, up to rounding: where the
    directional derivative is 0 or, at a non-differentiable point, changes its sign.

    Parameters
    ----------
    factor
        Factor by which step lengths contract and expand.
    search
        "armijo" accepts a sufficient decrease; "exact" finds the minimum along the line, which
        takes more evaluations per step and requires a penalty without an L1 part.

    References
    ----------
    B. Andres, "Machine Learning I: conditional graphical models", lecture notes, TU Dresden, 2025.
    L. Armijo, "Minimization of functions having Lipschitz continuous first partial derivatives",
    1966.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import Descent
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(solver=Descent(search="exact"), tol=1e-3)
    >>> labeler.fit(X, Y).converged_
    True
    """

    factor: float = 2.0
    search: str = field(default="armijo", metadata={"later": True})
    name: ClassVar[str] = "descent"
    proves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.number("factor", self.factor, low=1.0, open_low=True)
        checks.one_of("search", self.search, _SEARCHES)

    def refuses(self, objective: Objective) -> str:
        """Refuse an exact search where the line has bends of the penalty in it."""
        if self.search == "exact" and not objective.penalty.smooth:
            return "an exact search needs squares alone as penalty: use l1_ratio=0"
        return ""

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Value the weights; the first trial moves them by 1."""
        first = Point(weights, *objective.value_gradient(weights))
        length = 1.0 / max(norm(first.gradient), np.finfo(float).tiny)
        state = {**first._asdict(), "length": length}
        diagonal = objective.diagonal(weights)
        if diagonal is not None:
            state["inverse"] = 1.0 / diagonal
        measure(state, first.gradient)
        return state

    def step(self, objective: Objective, state: State) -> Report:
        """Search from the last length, down or up."""
        start = Point(*(state[name] for name in Point._fields))
        if self.search == "exact":
            return self._minimum(objective, start, state)
        found, length = self._contract(objective, start, state["length"])
        if found is None:
            return _end(start)
        if length == state["length"]:
            found, length = self._expand(objective, start, found, length)
        state |= found._asdict()
        state["length"] = length
        way = (start.weights - found.weights) / length
        steepness, moving = measure(state, way)
        return Report(found.value, gradient=steepness, moving=moving)

    def _minimum(self, objective: Objective, start: Point, state: State) -> Report:
        """Go to the minimum along the line; tell the gradient where the line began."""
        found, length = exact(objective, start, -start.gradient, state["length"])
        if found is None:
            return _end(start)
        state |= found._asdict()
        state["length"] = length
        steepness, moving = measure(state, start.gradient)
        return Report(found.value, gradient=steepness, moving=moving)

    def _contract(
        self, objective: Objective, start: Point, length: float
    ) -> tuple[Point | None, float]:
        for _ in range(_TRIALS):
            point = _move(objective, start, length)
            enough = _DECREASE / length * norm(point.weights - start.weights) ** 2
            if point.value < start.value and point.value <= start.value - enough:
                return point, length
            length /= self.factor
        return None, length

    def _expand(
        self, objective: Objective, start: Point, point: Point, length: float
    ) -> tuple[Point, float]:
        for _ in range(_TRIALS):
            farther = _move(objective, start, length * self.factor)
            if not farther.value < point.value:
                break
            point, length = farther, length * self.factor
        return point, length


def _end(start: Point) -> Report:
    """Tell that nothing lower is left; where the gradient is steep, that is the fault of a kink."""
    gradient = norm(start.gradient)
    scale = max(1.0, norm(start.weights))
    return final_report(start, gradient, gradient * scale <= _STEEP * abs(start.value))


def _move(objective: Objective, start: Point, length: float) -> Point:
    """Go `length` against the gradient, and through `prox` where the penalty has kinks."""
    weights = start.weights - length * start.gradient
    if not objective.penalty.smooth:
        weights = objective.penalty.prox(weights, length)
    return evaluate(objective, weights, start)
