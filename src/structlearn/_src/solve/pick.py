"""Which solver: by name, or the one that suits the objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from structlearn._src.common import checks
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.names import DRIVERS, OLD_DRIVERS
from structlearn._src.learn.objective import Objective
from structlearn._src.solve.base import Solver, refusal
from structlearn._src.solve.descent import Descent
from structlearn._src.solve.drivers import Annealed, Cccp, Paired
from structlearn._src.solve.frank_wolfe import FrankWolfe
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.online import Online
from structlearn._src.solve.sdca import Sdca
from structlearn._src.solve.stochastic import Stepping, Stochastic

_RULES = {"sgd": "decaying", "adagrad": "adagrad", "pegasos": "pegasos"}  # of stochastic solvers
#: Solvers by the names that estimators take.
SOLVERS: dict[str, Callable[[], Solver]] = {
    "lbfgs": Lbfgs,
    "owlqn": Owlqn,
    "descent": Descent,
    "sdca": Sdca,
    "frank-wolfe": FrankWolfe,
    "annealed": Annealed,
    **{name: partial(Stochastic, rule=rule, average=0.5) for name, rule in _RULES.items()},
}
#: The same rules in compiled steps, one sequence at a time.
ONLINE: dict[str, Callable[[], Online]] = {
    name: partial(Online, rule=rule, average=0.5) for name, rule in _RULES.items()
}
_MANY = 500  # examples from which on one step for each beats one step for all
_VERY_MANY = 5000  # and from which on rough steps for each beat a precise search over all
_FEW = 4  # examples per step, where they come a few at a time


def choose(
    solver: str | Solver,
    driver: str,
    objective: Objective,
    sweeps: int | None = None,
    warm_up: int = 0,
) -> Solver:
    """Return the solver to use, with its driver around it.

    The solver is a name of `SOLVERS`, "auto", or a solver. The driver "subgradient" infers to
    convergence before every step, "cccp" ("em" is the same) keeps the clamped world fixed for a
    whole inner minimisation, "paired" spends `sweeps` sweeps of messages or steps of ADMM between
    two steps, by default as many as the objective suggests.
    """
    driver = checks.one_of("driver", OLD_DRIVERS.get(driver, driver), DRIVERS)
    check_solver(solver)
    auto = isinstance(solver, str) and solver == "auto"
    inner = _suited(objective, driver) if auto else _named(solver, objective, driver)
    if driver == "cccp":
        return Cccp(inner, inner_tol=objective.hints.inner_tol)
    if driver == "paired":
        return Paired(inner, objective.hints.sweeps if sweeps is None else sweeps, warm_up)
    return inner


def solver_classes() -> dict[str, type]:
    """Return the classes of all solvers, and of the drivers around them, by their names."""
    made = [make() for make in (*SOLVERS.values(), *ONLINE.values())]
    return {each.name: type(each) for each in made} | {of.name: of for of in (Cccp, Paired)}


def check_solver(solver: object) -> None:
    """Refuse what is neither a name nor a solver."""
    names = ("auto", *SOLVERS)
    if isinstance(solver, type):
        raise ArgumentError(
            f"solver={solver.__name__} is a class; give a solver, such as {solver.__name__}()"
        )
    if not isinstance(solver, str | Solver):
        raise ArgumentError(
            f"solver={solver!r} must be a name or a solver; the names are {', '.join(names)}"
        )
    if isinstance(solver, str):
        checks.one_of("solver", solver, names)


def choose_online(solver: str | Solver, objective: Objective) -> Solver:
    """Return the solver for examples that come a few at a time."""
    if isinstance(solver, str) and solver in ("auto", *ONLINE):
        quick = ONLINE["adagrad" if solver == "auto" else solver]()
        if not refusal(quick, objective):
            return quick
        return Stochastic(rule=quick.rule, average=quick.average, batch_size=_FEW)
    in_batches = isinstance(solver, Stochastic) and solver.batch_size is not None
    if not isinstance(solver, Online) and not in_batches:
        raise ArgumentError(
            f"solver={solver!r} cannot learn from a few examples at a time; use "
            f"{', '.join(map(repr, ('auto', *ONLINE)))}, or a solver with a batch_size"
        )
    assert not isinstance(solver, str)
    return solver


def _named(solver: str | Solver, objective: Objective, driver: str) -> Solver:
    if not isinstance(solver, str):
        return solver
    if objective.zero_is_optimal and solver not in ONLINE:
        raise ArgumentError(
            f"solver={solver!r} minimises, but the perceptron's loss is least at weights of 0, so "
            f"that only steps mean something: use 'auto', {', '.join(map(repr, ONLINE))}"
        )
    if solver in ONLINE and driver == "subgradient":
        return _stochastic(solver, objective)
    return _fitted(SOLVERS[solver](), objective)


def _stochastic(name: str, objective: Objective) -> Solver:
    """Return compiled steps on single sequences where these pay, else steps on all examples."""
    quick = ONLINE[name]()
    if objective.n_examples >= _MANY and not refusal(quick, objective):
        return _fitted(quick, objective)
    return _fitted(SOLVERS[name](), objective)


def _fitted(solver: Solver, objective: Objective) -> Solver:
    """Give steps the first length that the objective suggests, and averages only where they help.

    Where the penalty makes weights 0, an average would fill the zeros.
    """
    if not isinstance(solver, Stepping):
        return solver
    if objective.hints.step is not None:
        return replace(solver, step_size=objective.hints.first_step(solver.rule))
    return solver if objective.penalty.smooth else replace(solver, average=0.0)


def _suited(objective: Objective, driver: str) -> Solver:
    """Return what is quickest for the objective.

    Smooth losses have gradients that are worth a memory, one for each of many sequences where that
    pays; the hinge on sequences has a dual with exact steps; other losses with kinks are smoothed
    first. Where messages make values rough, or many sequences can be visited one by one, steps of
    adaptive length are best.
    """
    if objective.hints.step is not None:
        return _fitted(Stochastic(rule="root", average=0.5), objective)
    if driver == "paired":
        return SOLVERS["adagrad"]()
    if objective.zero_is_optimal:
        return _perceptron(objective)
    if objective.approximate:
        return SOLVERS["adagrad"]()
    if objective.smooth:
        if driver == "subgradient" and Sdca().suits(objective):
            return Sdca()
        return Lbfgs() if objective.penalty.smooth else Owlqn()
    if driver == "subgradient":
        if not refusal(FrankWolfe(), objective):
            return FrankWolfe()
        if objective.n_examples >= _VERY_MANY:
            return _stochastic("adagrad", objective)
    smoothed = Annealed(Lbfgs() if objective.penalty.smooth else Owlqn())
    return SOLVERS["adagrad"]() if refusal(smoothed, objective) else smoothed


def _perceptron(objective: Objective) -> Solver:
    """Return steps of length 1 for every wrong example, averaged: Collins (2002)."""
    quick = Online(rule="fixed", step_size=1.0, average=1.0)
    if not refusal(quick, objective):
        return quick
    return Stochastic(rule="fixed", step_size=1.0, average=1.0, batch_size=1)
