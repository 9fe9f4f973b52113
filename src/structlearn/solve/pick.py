"""Which solver: by name, or the one that suits the objective."""

from __future__ import annotations

from collections.abc import Callable

from structlearn.common import checks
from structlearn.common.errors import ArgumentError
from structlearn.objective.base import Objective
from structlearn.solve.base import Solver
from structlearn.solve.cccp import Cccp
from structlearn.solve.descent import Descent
from structlearn.solve.frank_wolfe import FrankWolfe
from structlearn.solve.lbfgs import Lbfgs
from structlearn.solve.owlqn import Owlqn
from structlearn.solve.paired import Paired
from structlearn.solve.stochastic import Stochastic

#: Solvers by the names that estimators take.
SOLVERS: dict[str, Callable[[], Solver]] = {
    "lbfgs": Lbfgs,
    "owlqn": Owlqn,
    "descent": Descent,
    "frank-wolfe": FrankWolfe,
    "adagrad": lambda: Stochastic(rule="adagrad", average=0.5),
    "pegasos": lambda: Stochastic(rule="pegasos", average=0.5),
}
#: Solvers by the names that estimators take for examples that come a few at a time.
ONLINE: dict[str, Callable[[], Solver]] = {
    "adagrad": lambda: Stochastic(rule="adagrad", average=0.5, batch_size=4),
    "pegasos": lambda: Stochastic(rule="pegasos", average=0.5, batch_size=4),
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
    inner = _suited(objective, driver) if _auto(solver) else _named(solver)
    if driver == "cccp":
        return Cccp(inner)
    if driver == "paired":
        return Paired(inner, sweeps=5 if sweeps is None else sweeps)
    return inner


def choose_online(solver: str | Solver) -> Solver:
    """Return the solver for examples that come a few at a time."""
    chosen = ONLINE["adagrad"]() if _auto(solver) else solver
    if isinstance(chosen, str):
        checks.one_of("solver", chosen, ("auto", *SOLVERS))
        chosen = ONLINE[chosen]() if chosen in ONLINE else SOLVERS[chosen]()
    if getattr(chosen, "batch_size", None) is None:
        raise ArgumentError(
            f"solver={solver!r} cannot learn from a few examples at a time; use "
            f"{', '.join(map(repr, ('auto', *ONLINE)))}, or a solver with a batch_size"
        )
    return chosen


def _auto(solver: str | Solver) -> bool:
    return isinstance(solver, str) and solver == "auto"


def _named(solver: str | Solver) -> Solver:
    if isinstance(solver, str):
        checks.one_of("solver", solver, ("auto", *SOLVERS))
        return SOLVERS[solver]()
    if not hasattr(solver, "refuses"):
        raise ArgumentError(
            f"solver={solver!r} must be a name or a solver; the names are "
            f"{', '.join(('auto', *SOLVERS))}"
        )
    return solver


def _suited(objective: Objective, driver: str) -> Solver:
    """Return what is quickest for the objective.

    Smooth losses have gradients that are worth a memory, the hinge on sequences a dual with exact
    steps; all else takes subgradient steps of adaptive length.
    """
    smooth = bool(getattr(objective, "smooth", False)) and driver != "paired"
    if smooth:
        return Lbfgs() if objective.penalty.smooth else Owlqn()
    if driver == "subgradient" and not FrankWolfe().refuses(objective):
        return FrankWolfe()
    return SOLVERS["adagrad"]()
