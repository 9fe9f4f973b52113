"""The one fit of all families: choose a solver, run it, keep what it found, say how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import warn
from structlearn._src.common.place import current
from structlearn._src.common.watch import Ending, Progress, Watch
from structlearn._src.learn.objective import Objective
from structlearn._src.solve.base import Solver
from structlearn._src.solve.checkpoint import Checkpoint
from structlearn._src.solve.loop import Callback, Fit, run
from structlearn._src.solve.pick import choose

#: What to do about endings other than convergence.
_ADVICE = {
    Ending.LIMIT: "raise max_iter or tol; scale features of very different scales",
    Ending.STALLED: "scale the features, or let solver='auto' choose another solver",
    Ending.TIME: "raise time_limit to continue",
    Ending.INTERRUPTED: "fit again for a complete result",
    Ending.STUCK: "the weights are the best so far; for non-smooth losses try solver='annealed'",
    Ending.DIVERGED: "the weights are those from before the divergence",
}


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """How weights are learnt, in the words that the `fit` of every family takes.

    See `solve.pick.choose` for the first four, and `solve.loop.run`.
    """

    solver: str | Solver = "auto"
    driver: str = "subgradient"
    sweeps: int | None = None
    warm_up: int = 0
    max_iter: int = 1000
    tol: float | None = 1e-4
    gradient_tol: float | None = None
    callbacks: tuple[Callback, ...] = ()
    time_limit: float | None = None  #: seconds after which the best weights so far count
    progress: Progress | bool | None = None
    checkpoint: Any = None  #: a path or a `Checkpoint`


def minimise(
    objective: Objective,
    start: Floats,
    settings: FitSettings,
    *,
    facts: Mapping[str, Any] | None = None,
    rng: np.random.Generator | None = None,
) -> Fit:
    """Learn weights, and warn where the fit ended before it had converged.

    The `facts` are parameters of the estimator, which a restart from a checkpoint must share.
    """
    checkpoint = settings.checkpoint
    if checkpoint is not None:
        checkpoint = Checkpoint.of(checkpoint, facts or {})
    objective = current().objective(objective)
    solver = choose(settings.solver, settings.driver, objective, settings.sweeps, settings.warm_up)
    solver = current().solver(solver, objective, checkpoint is not None)
    fit = run(
        solver,
        objective,
        start,
        max_iter=settings.max_iter,
        tol=settings.tol,
        gradient_tol=settings.gradient_tol,
        rng=rng,
        callbacks=settings.callbacks,
        watch=Watch(settings.time_limit, settings.progress),
        checkpoint=checkpoint,
    )
    asked = settings.tol is None and fit.ended == Ending.LIMIT  # there was no other way to end
    if fit.ended in _ADVICE and not asked:
        from sklearn.exceptions import ConvergenceWarning  # slow to import, and seldom needed

        warn(f"{fit.status}; {_ADVICE[fit.ended]}", ConvergenceWarning)
    return fit


def keep(estimator: Any, fit: Fit) -> None:
    """Set the fitted attributes that tell how a fit went."""
    estimator.value_ = fit.value
    estimator.history_ = fit.history
    estimator.n_iter_ = fit.n_iter
    estimator.converged_ = fit.converged
    estimator.status_ = fit.status
    estimator.ended_ = fit.ended
