"""Paired learning: inference and weights take turns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.learn.base import Objective
from structlearn._src.solve.base import Report, Solver, State, messages_of, recall


@dataclass(frozen=True)
class Paired:
    """Paired-dual learning: a few sweeps of inference from where it stood, then a step.

    Both worlds keep their messages from one evaluation to the next, so that inference and weights
    converge together. Values on the way are rough, and do not decide which weights count: those of
    the last step do, or their average.

    The objective must have a method ``paired(sweeps)``, which returns the same objective with such
    worlds. If what it returns is `Remembering`, the messages are part of the state, and a restart
    goes on bit for bit.

    Parameters
    ----------
    inner
        Solver for the steps; one without line search, as the value of fixed weights changes.
    sweeps
        Number of message sweeps per evaluation.
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
    _views: dict[int, tuple[Objective, Any]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        checks.integer("sweeps", self.sweeps, low=1)
        checks.integer("warm_up", self.warm_up)

    def refuses(self, objective: Objective) -> str:
        """Refuse objectives without messages, or what the inner solver refuses."""
        if not hasattr(objective, "paired"):
            return "paired learning needs worlds that keep messages: use another driver"
        return self.inner.refuses(objective)

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Make the worlds and start the inner solver on them."""
        self._views.clear()
        view = self.view(objective)
        for _ in range(self.warm_up):
            view.value(weights)
        return self.inner.start(view, weights, rng) | messages_of(view)

    def step(self, objective: Objective, state: State) -> Report:
        """Take one step of the inner solver, messages going on from where they stood."""
        view = self.view(objective)
        recall(view, state)
        report = self.inner.step(view, state)
        state |= messages_of(view)
        return report._replace(exact=False)

    def view(self, objective: Objective) -> Any:
        """Return the objective with its lasting worlds, made once; only messages change in it."""
        known = self._views.get(id(objective))
        if known is None or known[0] is not objective:
            known = objective, objective.paired(self.sweeps)  # type: ignore[attr-defined]
            self._views[id(objective)] = known
        return known[1]
