"""What a solver is: a start and a step over a plain state, so that a loop can own the rest."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.common.document import inherit_sections
from structlearn._src.files.codec import defaults_of_later
from structlearn._src.learn.objective import Ability, Objective

#: Everything a solver knows between two steps, as arrays, numbers and strings. The entry
#: ``weights`` is always there; ``average`` (the answer, where a solver averages), ``value`` (the
#: objective at the start) and ``memory`` (where inference stands) are read by the loop too. What
#: begins with an underscore can be made anew from the objective, and is not saved.
State = dict[str, Any]


class Report(NamedTuple):
    """What a step reports; NaN where it does not know.

    Parameters
    ----------
    value
        The objective at the result, which is the average if there is one; unless `exact`, what is
        known without extra work: the objective at the newest weights, or the losses met on the way.
    gap
        Bound on how far the value is above the optimum.
    gradient
        Norm of the gradient, or of what replaces it.
    done, words
        Whether no further step would help, and why.
    exact
        Whether `value` may decide which weights are better.
    stuck
        Whether it is done without having converged.
    moving
        Whether it has not converged, even if the values do not change.
    excess
        If `moving`, the distance from the optimum as a multiple of the tolerance.

    Examples
    --------
    >>> from structlearn.solvers import Report
    >>> Report(value=2.5, gradient=0.1).done
    False
    """

    #: The objective at the answer, which is the average if there is one; unless `exact`, what is
    #: known without extra work: the objective at the newest weights, or the losses met on the way.
    value: float = math.nan
    gap: float = math.nan  #: a bound on how far the value lies above the optimum
    gradient: float = math.nan  #: norm of the gradient, or of what takes its place
    done: bool = False  #: no further step would help
    words: str = ""  #: why it is done
    exact: bool = True  #: whether `value` may decide which weights are better
    stuck: bool = False  #: done without having arrived
    moving: bool = False  #: not there yet, even if values stand still
    excess: float = math.nan  #: where it is `moving`, how many times too far from the optimum


class Solver(ABC):
    """Base class of solvers. Everything that changes is in the state, nothing in the solver.

    Examples
    --------
    Gradient descent with a fixed step length:

    >>> import numpy as np
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import Report, Solver
    >>> class Fixed(Solver):
    ...     name = "fixed"
    ...
    ...     def start(self, objective, weights, rng):
    ...         return {"weights": weights.copy()}
    ...
    ...     def step(self, objective, state):
    ...         found = objective.value_gradient(state["weights"])
    ...         state["weights"] -= 0.5 * found.gradient
    ...         return Report(objective.value(state["weights"]))
    >>> labeler = SequenceLabeler(solver=Fixed(), tol=1e-3)
    >>> labeler.fit([[["the"], ["cat"]]], [["D", "N"]]).converged_
    True
    """

    #: What users call it.
    name: ClassVar[str] = ""
    #: What it asks of an objective beyond values and gradients.
    needs: ClassVar[frozenset[Ability]] = frozenset()
    #: Whether its reports tell a standstill from an end: by a gap, or by `Report.moving`. The
    #: answers of others are put to the test.
    proves: ClassVar[bool] = False
    #: Whether the distance to the optimum shrinks by a factor in every step.
    linear_rate: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        """Let the methods of solvers say what they take and return, as below."""
        super().__init_subclass__(**options)
        inherit_sections(cls)

    @property
    def patience(self) -> int:
        """Iterations without gain after which the solver has converged."""
        return 5

    def refuses(self, objective: Objective) -> str:
        """Say why this objective cannot be minimised; empty if it can. Must be cheap.

        Parameters
        ----------
        objective
            Objective to minimise.

        Returns
        -------
        str
            A sentence, or an empty string.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> from structlearn.solvers import Lbfgs
        >>> lasso = SequenceLabeler(l1_ratio=1.0).objective([[["the"], ["cat"]]], [["D", "N"]])
        >>> Lbfgs().refuses(lasso)[:41]
        'L-BFGS needs a smooth penalty without bou'
        """
        return ""

    @abstractmethod
    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Return the state before the first step; `weights` are not modified.

        Parameters
        ----------
        objective
            Objective to minimise.
        weights
            (weights,) Initial weights.
        rng
            Random generator, from which a seed is drawn where steps are random.

        Returns
        -------
        dict
            The state: arrays, numbers and strings by name, the weights under "weights".

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn import SequenceLabeler
        >>> from structlearn.solvers import Lbfgs
        >>> objective = SequenceLabeler().objective([[["the"], ["cat"]]], [["D", "N"]])
        >>> weights, rng = np.zeros(objective.n_weights), np.random.default_rng(0)
        >>> state = Lbfgs().start(objective, weights, rng)
        >>> round(state["value"], 4)
        1.3863
        """

    @abstractmethod
    def step(self, objective: Objective, state: State) -> Report:
        """Advance `state` by one step, in place.

        Parameters
        ----------
        objective
            Objective to minimise.
        state
            State, from `start` and earlier steps.

        Returns
        -------
        Report
            Value, gap and gradient norm, as far as they are known, and whether to go on.

        Examples
        --------
        >>> import numpy as np
        >>> from structlearn import SequenceLabeler
        >>> from structlearn.solvers import Lbfgs
        >>> objective = SequenceLabeler().objective([[["the"], ["cat"]]], [["D", "N"]])
        >>> solver, rng = Lbfgs(), np.random.default_rng(0)
        >>> state = solver.start(objective, np.zeros(objective.n_weights), rng)
        >>> solver.step(objective, state).value < 1.38  # log(4) at the start
        True
        """


def refusal(solver: Solver, objective: Objective) -> str:
    """Say why a solver cannot minimise an objective; empty if it can."""
    for ability in sorted(solver.needs - objective.abilities, key=lambda ability: ability.name):
        return f"it needs an objective with {ability.value}; choose another solver or driver"
    return solver.refuses(objective)


def current_weights(state: State) -> Floats:
    """Return the weights that a state represents: the average if the solver keeps one."""
    weights: Floats = state["average" if "average" in state else "weights"]
    return weights


def parameters(solver: object) -> dict[str, Any]:
    """Return the name and the settings of a solver, those of solvers inside it included.

    Settings that the first checkpoints lack are there where they differ from their defaults.
    """
    usual = defaults_of_later(solver) if is_dataclass(solver) else {}
    names = [field.name for field in fields(solver)] if is_dataclass(solver) else vars(solver)
    found = {name: getattr(solver, name) for name in names if not name.startswith("_")}
    found = {name: x for name, x in found.items() if name not in usual or x != usual[name]}
    inside = {key: parameters(value) for key, value in found.items() if isinstance(value, Solver)}
    return {"name": getattr(solver, "name", ""), **found, **inside}


def draw_seed(rng: np.random.Generator) -> int:
    """Draw the seed for all of a solver's later streams, to be kept in its state."""
    return int(rng.integers(2**63))


def stream(state: State, number: int) -> np.random.Generator:
    """Return stream `number` of the seed in `state`: the same one however often a run restarts."""
    return np.random.default_rng([state["seed"], number])
