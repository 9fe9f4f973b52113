"""Which solver: by name, or the one that suits the objective."""

from __future__ import annotations

from collections.abc import Callable

from structlearn.common import checks
from structlearn.common.errors import ArgumentError
from structlearn.objective.base import Objective
from structlearn.solve.base import Solver
from structlearn.solve.cccp import Cccp
from structlearn.solve.descent import Descent
from structlearn.solve.lbfgs import Lbfgs
from structlearn.solve.owlqn import Owlqn
from structlearn.solve.paired import Paired
from structlearn.solve.stochastic import Stochastic

#: Solvers by the names that estimators take.
SOLVERS: dict[str, Callable[[], Solver]] = {
    "lbfgs": Lbfgs,
    "owlqn": Owlqn,
    "descent": Descent,
    "adagrad": lambda: Stochastic(rule="adagrad", average=0.5),
    "pegasos": lambda: Stochastic(rule="pegasos", average=0.5),
}
DRIVERS = ("subgradient", "cccp", "paired")


def choose(
    solver: str | Solver, driver: str, objective: Objective, sweeps: int | None = None
) -> Solver:
    """Return the solver to use, with its driver around it.

    Parameters
    ----------
    solver
        A name of `SOLVERS`, "auto", or a solver.
    driver
        "subgradient" infers to convergence before every step, "cccp" keeps the clamped world
        fixed for a whole inner minimisation, "paired" does `sweeps` sweeps between steps.
    """
    checks.one_of("driver", driver, DRIVERS)
    inner = _solver(solver, objective, driver)
    if driver == "cccp":
        return Cccp(inner)
    if driver == "paired":
        return Paired(inner, sweeps=5 if sweeps is None else sweeps)
    return inner


def _solver(solver: str | Solver, objective: Objective, driver: str) -> Solver:
    if not isinstance(solver, str):
        if not hasattr(solver, "refuses"):
            raise ArgumentError(
                f"solver={solver!r} must be a name or a solver; the names are "
                f"{', '.join(('auto', *SOLVERS))}"
            )
        return solver
    if solver == "auto":
        return _suited(objective, driver)
    checks.one_of("solver", solver, ("auto", *SOLVERS))
    return SOLVERS[solver]()


def _suited(objective: Objective, driver: str) -> Solver:
    smooth = bool(getattr(objective, "smooth", False)) and driver != "paired"
    if smooth and objective.penalty.smooth:
        return Lbfgs()
    if smooth:
        return Owlqn()
    return SOLVERS["adagrad"]()
