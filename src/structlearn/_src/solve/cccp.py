"""The concave-convex procedure, for objectives with hidden variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.watch import Ending
from structlearn._src.learn.base import Ability, Objective
from structlearn._src.solve.base import Report, Solver, State, draw_seed, inner_refusal, stream
from structlearn._src.solve.loop import run

_ROUNDING = 1e-12  # relative differences of values below this say nothing


@dataclass(frozen=True)
class Cccp(Solver):
    r"""CCCP: replace the concave part by its tangent, minimise what is then convex, repeat.

    .. math:: w_{t+1} = \operatorname{argmin}_w f^+(w) - f^-(w_t)
              - \langle \nabla f^-(w_t), w - w_t \rangle

    The bound touches the objective at :math:`w_t`, so that whatever lowers it lowers the
    objective. One iteration is one bound with all its inner steps, which begin at :math:`w_t`; a
    time limit is looked at in between.

    Parameters
    ----------
    inner
        Solver for the convex problems.
    inner_iter
        Limit on its iterations for each of them.
    inner_tol
        Its relative tolerance; 0 takes all steps, which subgradients need, as they do not go
        down all the time. CCCP is done when a bound brings no more than that.

    References
    ----------
    A. Yuille and A. Rangarajan, "The concave-convex procedure", 2003.
    W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014,
    algorithm 2.
    """

    inner: Solver
    inner_iter: int = 50
    inner_tol: float = 1e-4
    name: ClassVar[str] = "cccp"
    needs: ClassVar[frozenset[Ability]] = frozenset({Ability.LINEARISE})

    def __post_init__(self) -> None:
        checks.integer("inner_iter", self.inner_iter, low=1)
        checks.number("inner_tol", self.inner_tol, low=0.0)

    def refuses(self, objective: Objective) -> str:
        """Refuse what the inner solver refuses."""
        return inner_refusal(self.inner, objective)

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Value the weights."""
        memory = objective.begin()
        state = {"weights": weights, "value": objective.value(weights, memory), "memory": memory}
        return state | {"iteration": 0, "seed": draw_seed(rng)}

    def step(self, objective: Objective, state: State) -> Report:
        """Minimise one bound."""
        state["iteration"] += 1
        bound = objective.linearise(state["weights"], state["memory"])
        fit = run(
            self.inner,
            bound,
            state["weights"],
            max_iter=self.inner_iter,
            tol=self.inner_tol or None,
            patience=self.patience,  # little: the next bound mends what this one leaves
            rng=stream(state, state["iteration"]),
        )
        if fit.ended == Ending.INTERRUPTED:
            raise KeyboardInterrupt  # half a minimisation is dropped, as half a step would be
        before = state["value"]
        if fit.memory is not None:
            state["memory"] = fit.memory
        value = objective.value(fit.weights, state["memory"])
        state |= {"weights": fit.weights, "value": value}
        done = abs(before - value) <= _ROUNDING * abs(value)
        words = "converged: the bound has its optimum where it touches the objective"
        return Report(value, done=done, words=words if done else "")
