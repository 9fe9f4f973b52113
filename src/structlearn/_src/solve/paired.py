"""Paired learning: inference and weights take turns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.learn.base import Ability, Objective
from structlearn._src.learn.world import Budget
from structlearn._src.solve.base import Report, Solver, State, inner_refusal


@dataclass(frozen=True)
class Paired(Solver):
    """Paired-dual learning: a few sweeps of inference from where it stood, then a step.

    Both worlds go on from one evaluation to the next, so that inference and weights
    converge together. Values on the way are rough, and do not decide which weights count: those of
    the last step do, or their average.

    Parameters
    ----------
    inner
        Solver for the steps; one without line search, as the value of fixed weights changes.
    sweeps
        Number of message sweeps, or steps of ADMM, per evaluation.
    warm_up
        Number of evaluations before the first step.

    References
    ----------
    S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs",
    2015.
    """

    inner: Solver
    sweeps: int = 1
    warm_up: int = 0
    name: ClassVar[str] = "paired"
    needs: ClassVar[frozenset[Ability]] = frozenset({Ability.RESUME})

    def __post_init__(self) -> None:
        checks.integer("sweeps", self.sweeps, low=1)
        checks.integer("warm_up", self.warm_up)

    @property
    def patience(self) -> int:
        """Iterations without gain that show that it has arrived."""
        return self.inner.patience

    def refuses(self, objective: Objective) -> str:
        """Refuse what the inner solver refuses."""
        return inner_refusal(self.inner, objective)

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Warm the worlds up and start the inner solver on them."""
        view = objective.with_budget(Budget(self.sweeps))
        memory = view.begin()
        for _ in range(self.warm_up):
            view.value(weights, memory)
        return self.inner.start(view.warmed(memory), weights, rng)

    def step(self, objective: Objective, state: State) -> Report:
        """Take one step of the inner solver, inference going on from where it stood."""
        report = self.inner.step(objective.with_budget(Budget(self.sweeps)), state)
        return report._replace(exact=False)
