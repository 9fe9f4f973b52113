"""Minimise a loss with kinks through smooth ones, at temperatures that fall."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.watch import Ending
from structlearn._src.learn.base import Ability, Objective
from structlearn._src.solve.base import Report, Solver, State, draw_seed, inner_refusal, stream
from structlearn._src.solve.lbfgs import Lbfgs
from structlearn._src.solve.loop import run


@dataclass(frozen=True)
class Annealed(Solver):
    r"""Smooth the maxima of the loss, minimise, cool, repeat.

    A soft maximum over :math:`N` labellings at temperature :math:`\epsilon` lies above the maximum
    by at most :math:`\epsilon \log N`, so that the minima of the smooth objectives approach that of
    the objective itself. A solver that remembers gradients gets there in far fewer evaluations than
    subgradient steps, and does not mistake a kink, such as weights of 0, for a minimum.

    One iteration is one temperature. It is done when cooling no longer helps.

    Parameters
    ----------
    inner
        Solver for the smooth objectives.
    first, last
        First temperature, and the one down to which it cools whatever that brings.
    factor
        What it is multiplied by after every iteration.
    inner_iter
        Limit on the iterations of the inner solver for each.
    inner_tol
        Its relative tolerance. Annealing is done when two temperatures in a row bring less.

    References
    ----------
    Y. Nesterov, "Smooth minimization of non-smooth functions", 2005.
    """

    inner: Solver = field(default_factory=Lbfgs)
    first: float = 1.0
    last: float = 1e-3
    factor: float = 0.3
    inner_iter: int = 200
    inner_tol: float = 1e-5
    name: ClassVar[str] = "annealed"
    needs: ClassVar[frozenset[Ability]] = frozenset({Ability.SOFTEN})

    def __post_init__(self) -> None:
        checks.number("first", self.first, low=0.0, open_low=True)
        checks.number("last", self.last, low=0.0, open_low=True)
        checks.number("factor", self.factor, low=0.0, high=1.0, open_low=True, open_high=True)
        checks.integer("inner_iter", self.inner_iter, low=1)
        checks.number("inner_tol", self.inner_tol, low=0.0)

    def refuses(self, objective: Objective) -> str:
        """Refuse what the inner solver refuses."""
        return inner_refusal(self.inner, objective)

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Value the weights."""
        value = objective.value(weights)
        return {
            "weights": weights, "value": value, "best": value, "iteration": 0, "stalls": 0,
            "seed": draw_seed(rng),
        }  # fmt: skip

    def step(self, objective: Objective, state: State) -> Report:
        """Minimise at one temperature."""
        eps = self.first * self.factor ** state["iteration"]
        state["iteration"] += 1
        fit = run(
            self.inner,
            objective.softened(eps),
            state["weights"],
            max_iter=self.inner_iter,
            tol=self.inner_tol,
            patience=self.patience,  # little: the next temperature mends what this one leaves
            rng=stream(state, state["iteration"]),
        )
        if fit.ended == Ending.INTERRUPTED:
            raise KeyboardInterrupt  # half a minimisation is dropped, as half a step would be
        value = objective.value(fit.weights)
        gain = state["best"] - value
        state["weights"] = fit.weights
        state["value"] = value
        state["best"] = min(state["best"], value)
        state["stalls"] = 0 if gain > self.inner_tol * abs(value) else state["stalls"] + 1
        done = bool(state["stalls"] >= 2 and eps <= self.last)
        words = f"converged: cooling to {eps:.2g} gained less than {self.inner_tol:g}"
        return Report(value, done=done, words=words if done else "")
