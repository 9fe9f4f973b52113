"""Quasi-Newton steps whose vectors stay on a card."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from structlearn._src.common.arrays import Floats
from structlearn._src.cuda.chain_objective import CardObjective
from structlearn._src.learn.objective import Objective
from structlearn._src.solve.base import Report, State
from structlearn._src.solve.lbfgs import FLAT, Lbfgs, newest_first, oldest_first
from structlearn._src.solve.search import FALLEN, Point


def suits(solver: object, objective: object) -> bool:
    """Tell whether the steps of a solver can be taken on a card."""
    return (
        type(solver) is Lbfgs and isinstance(objective, CardObjective) and objective.tangent is None
    )


@dataclass(frozen=True)
class CardLbfgs(Lbfgs):
    """L-BFGS on tensors in double precision; the weights come to the host after every step.

    The state of the host has no more than the loop asks for, so that it cannot be saved.
    """

    @classmethod
    def of(cls, solver: Lbfgs) -> CardLbfgs:
        """Return the same solver on a card."""
        return cls(**{field.name: getattr(solver, field.name) for field in fields(solver)})

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Take the weights to the card and value them."""
        assert isinstance(objective, CardObjective)
        there = torch.from_numpy(np.asarray(weights)).to(objective.device)
        first = Point(there, *objective.value_gradient(there))  # type: ignore[arg-type]
        inner: State = {
            **first._asdict(), "iteration": 0, "pairs": 0,
            "steps": there.new_empty(self.memory, len(there)),
            "changes": there.new_empty(self.memory, len(there)),
            "dots": np.zeros((self.memory, self.memory)),
        }  # fmt: skip
        return {"weights": weights, "value": first.value, "memory": first.memory, "_card": inner}

    def step(self, objective: Objective, state: State) -> Report:
        """Take a step on the card."""
        inner = state["_card"]
        report = super().step(objective, inner)
        state["weights"] = inner["weights"].cpu().numpy()
        state["memory"] = inner["memory"]
        return report

    def _precondition(self, objective: Objective, state: State) -> None:
        super()._precondition(objective, state)
        if isinstance(state.get("inverse"), np.ndarray):
            state["inverse"] = _up(state["inverse"], state["weights"])

    def _direction(self, objective: Objective, state: State, downhill: Any) -> Any:
        pairs = state["pairs"]
        n = min(pairs, self.memory)
        if not n:
            return -self._first(state) * downhill
        steps, changes, dots = state["steps"][:n], state["changes"][:n], state["dots"][:n, :n]
        back = newest_first(_down(steps @ downhill), dots, pairs)
        newest = (pairs - 1) % self.memory
        first = self._first(state)
        scale = dots[newest, newest] / float(changes[newest] @ (first * changes[newest]))
        turned = (downhill - _up(back, steps) @ changes) * (scale * first)
        forth = oldest_first(_down(changes @ turned), back, dots, pairs)
        return -(turned + _up(forth, steps) @ steps)

    @staticmethod
    def _first(state: State) -> Any:
        """Return the first inverse Hessian up to a factor: a diagonal, or 1."""
        return state.get("inverse", 1.0)

    def _remember(self, objective: Objective, state: State, start: Point, found: Point) -> None:
        step: Any = found.weights - start.weights
        change: Any = found.gradient - start.gradient
        products = torch.stack([step @ change, step @ step, change @ change])
        bend, *squares = products.tolist()
        if not bend > FLAT * math.sqrt(squares[0]) * math.sqrt(squares[1]):
            return
        k = state["pairs"] % self.memory
        state["pairs"] += 1
        n = min(state["pairs"], self.memory)
        state["steps"][k] = step
        state["changes"][k] = change
        state["dots"][:n, k] = _down(state["steps"][:n] @ change)

    def _measure(self, objective: Objective, state: State, gradient: Any) -> tuple[float, bool]:
        products = torch.stack([gradient @ gradient, gradient @ (self._first(state) * gradient)])
        square, steepness = products.tolist()
        state["steepest"] = max(state.get("steepest", 0.0), steepness)
        return math.sqrt(square), steepness > FALLEN * state["steepest"]

    def _norm(self, vector: Any) -> float:
        return math.sqrt(float(vector @ vector))


def _down(numbers: Tensor) -> Floats:
    """Return a few numbers on the host."""
    found: Floats = numbers.cpu().numpy()
    return found


def _up(numbers: Floats, like: Tensor) -> Tensor:
    """Return a few numbers on the card."""
    return torch.from_numpy(numbers).to(like)
