"""Quasi-Newton steps for penalties with an L1 part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.learn.base import Objective
from structlearn._src.solve.base import State, lasso
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.search import Point, backtrack


@dataclass(frozen=True)
class Owlqn(Lbfgs):
    r"""OWL-QN: L-BFGS that keeps within one orthant per step, where an L1 penalty is linear.

    The gradient gives way to the sub-gradient of least norm: with the gradient :math:`g` of the
    smooth part and the factors :math:`\lambda` of the absolute values,

    .. math:: \tilde g_i = \begin{cases} g_i + \lambda_i \operatorname{sign} w_i & w_i \ne 0 \\
              \operatorname{sign}(g_i) \max(|g_i| - \lambda_i, 0) & w_i = 0 \end{cases}

    The direction is cut to the signs of :math:`-\tilde g`, and weights that would change their
    sign become 0. With a smooth penalty it is L-BFGS with a simpler search.

    References
    ----------
    G. Andrew and J. Gao, "Scalable training of L1-regularized log-linear models", 2007.
    """

    name: ClassVar[str] = "owlqn"

    def refuses(self, objective: Objective) -> str:
        """Refuse penalties that keep weights from falling below 0."""
        below = -np.ones(objective.n_weights)
        if (objective.penalty.prox(below, 0.0) == below).all():
            return ""
        return "OWL-QN cannot keep weights at or above 0: use solver='adagrad'"

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Value the weights, and read the factors of the absolute values off the penalty."""
        factors = lasso(objective.penalty, objective.n_weights)
        return super().start(objective, weights, rng) | {"lasso": factors}

    def _downhill(self, state: State, point: Point) -> Floats:
        factors = state["lasso"]
        at_zero = np.clip(-point.gradient, -factors, factors)
        away = factors * np.sign(point.weights)
        return point.gradient + np.where(point.weights == 0.0, at_zero, away)

    def _search(
        self, objective: Objective, start: Point, downhill: Floats, direction: Floats, first: float
    ) -> Point | None:
        aligned = np.where(direction * downhill < 0.0, direction, 0.0)
        orthant = np.where(start.weights != 0.0, np.sign(start.weights), -np.sign(downhill))

        def move(length: float) -> Floats:
            moved = start.weights + length * aligned
            return np.where(moved * orthant > 0.0, moved, 0.0)

        return backtrack(objective, start, downhill, move, first)
