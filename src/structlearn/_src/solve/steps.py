r"""What stochastic solvers share: how long steps are, and how their weights are averaged.

A rule is a function of the state and the gradient that returns the length :math:`\eta_t` of step
:math:`t = 1, 2, \dots`, one for all weights or one for each. :math:`\eta` is the state's ``step``
and :math:`\lambda` its ``strength``, the smallest factor of the squares in the penalty.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.solve.base import Solver, State

_TINY = 1e-12  # added to roots of sums of squares that may be 0
_FACTOR = 4.0  # between two trials of a first step: within twice the best one
_TRIALS = 12  # in each direction, which spans 14 orders of magnitude

Rule = Callable[[State, Floats], "float | Floats"]


def fixed(state: State, gradient: Floats) -> float:
    r"""Return :math:`\eta`."""
    return float(state["step"])


def decaying(state: State, gradient: Floats) -> float:
    r"""Return :math:`\eta / (1 + \eta \lambda (t - 1))`, which ends as :math:`1 / (\lambda t)`.

    References
    ----------
    L. Bottou, "Stochastic gradient descent tricks", 2012, section 5.2.
    """
    step = float(state["step"])
    return step / (1.0 + step * state["strength"] * (state["updates"] - 1))


def root(state: State, gradient: Floats) -> float:
    r"""Return :math:`\eta / \sqrt{t}`."""
    return float(state["step"]) / math.sqrt(state["updates"])


def pegasos(state: State, gradient: Floats) -> float:
    r"""Return :math:`1 / (\lambda t)`.

    References
    ----------
    S. Shalev-Shwartz et al., "Pegasos: primal estimated sub-gradient solver for SVM", 2011.
    """
    return 1.0 / (float(state["strength"]) * state["updates"])


def adagrad(state: State, gradient: Floats) -> Floats:
    r"""Return :math:`\eta / \sqrt{\sum_{s \le t} g_{s,i}^2}` for every weight.

    References
    ----------
    J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods", 2011.
    """
    state["squares"] = state["squares"] + gradient * gradient
    lengths: Floats = state["step"] / (np.sqrt(state["squares"]) + _TINY)
    return lengths


RULES: dict[str, Rule] = {
    "fixed": fixed,
    "decaying": decaying,
    "root": root,
    "pegasos": pegasos,
    "adagrad": adagrad,
}


@dataclass(frozen=True)
class Stepping(Solver):
    """The settings of all stochastic solvers, which say what each means for them."""

    rule: str = "adagrad"
    step_size: float | None = None
    average: float = 0.0
    horizon: int | None = None
    evaluate: bool = False

    def __post_init__(self) -> None:
        checks.one_of("rule", self.rule, tuple(RULES))
        if self.step_size is not None:
            checks.number("step_size", self.step_size, low=0.0, open_low=True)
        checks.number("average", self.average, low=0.0, high=1.0)
        if self.horizon is not None:
            checks.integer("horizon", self.horizon, low=1)
        checks.boolean("evaluate", self.evaluate)

    @property
    def patience(self) -> int:
        """Iterations without gain that show that it has arrived; many, as values waver."""
        return 50


def first_step(trial: Callable[[float], float], guess: float) -> float:
    """Return the step for which `trial` returns the lowest value, by factors from a guess.

    References
    ----------
    L. Bottou, "Stochastic gradient descent tricks", 2012, section 5.2.
    """
    step, value = guess, trial(guess)
    for factor in (_FACTOR, 1.0 / _FACTOR):
        for _ in range(_TRIALS):
            following = trial(step * factor)
            if following > value or (following == value and factor > 1.0):
                break  # shorter steps may be as bad as the first, infinite even
            step, value = step * factor, following
        if step != guess:
            break
    return step


def share(update: int, fraction: float, horizon: int | None) -> float:
    r"""Return how much of the average the newest weights are to be.

    With a known end, :math:`1 / k` for the :math:`k`-th of the last `fraction` of all updates, and
    1 before. Without, weights count by :math:`t^k`, where :math:`k = 2 (1 - f) / f` gives the
    average the same centre as the last fraction :math:`f` has, at any time.

    Parameters
    ----------
    update
        Number of the update, from 1.
    fraction
        Share of the updates to average; 1 for all.
    horizon
        Number of the last update, None if unknown.

    References
    ----------
    O. Shamir and T. Zhang, "Stochastic gradient descent for non-smooth optimization", 2013.
    """
    if horizon is not None:
        return 1.0 / max(update - math.floor((1.0 - fraction) * horizon), 1)
    power = 2.0 * (1.0 - fraction) / fraction
    return (power + 1.0) / (update + power)
