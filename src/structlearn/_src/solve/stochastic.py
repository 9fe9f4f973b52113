"""Stochastic (sub)gradient steps over any objective, and what all stochastic solvers share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.watch import time_left
from structlearn._src.learn.objective import Ability, Objective
from structlearn._src.learn.world import Memory
from structlearn._src.solve.base import Report, Solver, State, current_weights, draw_seed, stream
from structlearn._src.solve.search import norm

_TINY = 1e-12  # added to roots of sums of squares that may be 0
_FACTOR = 4.0  # between two trials of a first step: within twice the best one
_TRIALS = 12  # in each direction, which spans 14 orders of magnitude
_SAMPLE = 1000  # examples on which first steps are tried
_UPDATES = 10  # full-batch updates of one trial

#: Names of the rules by which steps get shorter, in the order in which kernels count them.
RULES = ("fixed", "decaying", "root", "pegasos", "adagrad")


def step_length(rule: str, state: State, gradient: Floats) -> float | Floats:
    r"""Return the length of step :math:`t` by its rule, one for all weights or one for each.

    .. math:: \text{fixed} \quad & \eta \\
              \text{decaying} \quad & \eta / (1 + \eta \lambda (t - 1)) \\
              \text{root} \quad & \eta / \sqrt{t} \\
              \text{pegasos} \quad & 1 / (\lambda t) \\
              \text{adagrad} \quad & \eta / \sqrt{\textstyle\sum_{s \le t} g_{s,i}^2}

    with :math:`\eta` the state's ``step`` and :math:`\lambda` its ``strength``, the factor of the
    squares in the penalty.

    References
    ----------
    L. Bottou, "Stochastic gradient descent tricks", 2012, section 5.2, for the second.
    S. Shalev-Shwartz et al., "Pegasos: primal estimated sub-gradient solver for SVM", 2011.
    J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods", 2011.
    """
    step = float(state["step"])
    strength = state["strength"]
    t = state["updates"]
    if rule == "decaying":
        return float(step / (1.0 + step * strength * (t - 1)))
    if rule == "root":
        return step / math.sqrt(t)
    if rule == "pegasos":
        return float(1.0 / (strength * t))
    if rule == "adagrad":
        state["squares"] = state["squares"] + gradient * gradient
        lengths: Floats = step / (np.sqrt(state["squares"]) + _TINY)
        return lengths
    return step


@dataclass(frozen=True)
class Stepping(Solver):
    """The settings of all stochastic solvers, which say what each means for them."""

    rule: str = "adagrad"
    step_size: float | None = None
    average: float = 0.0
    horizon: int | None = None
    evaluate: bool = False

    def __post_init__(self) -> None:
        checks.one_of("rule", self.rule, RULES)
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

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Find the first step."""
        state: State = {"weights": weights.copy(), "seed": draw_seed(rng), "updates": 0}
        state |= {"iteration": 0, "strength": objective.penalty.ridge, "step": self.step_size}
        if self.rule == "adagrad":
            state["squares"] = np.zeros(len(weights))
        else:
            state["scales"] = objective.scales
        if self.average:
            state["average"] = weights.copy()
        if self.rule == "pegasos":
            state |= {"radius": _radius(objective), "step": 1.0}
        if state["step"] is None:
            state["step"] = self._tune(objective, state)
        if self.evaluate:
            state["value"] = objective.value(weights)
        return state

    def step(self, objective: Objective, state: State) -> Report:
        """Go through all examples once."""
        state["iteration"] += 1
        order = stream(state, state["iteration"]).permutation(objective.n_examples)
        met = self._visit(objective, state, order)
        if self.evaluate:
            return Report(objective.value(current_weights(state)))
        return Report(met + objective.penalty.value(state["weights"]), exact=False)

    @abstractmethod
    def _visit(self, objective: Any, state: State, order: Ints) -> float:
        """Take steps for the examples in `order`; return an estimate of all losses met so."""

    @abstractmethod
    def _guess(self, objective: Any, state: State, order: Ints) -> float:
        """Return a first step of about the right size."""

    def _tune(self, objective: Objective, state: State) -> float:
        """Return the first step that does best on a sample of the examples."""
        order = stream(state, 0).permutation(objective.n_examples)[:_SAMPLE]
        guess = 1.0 if self.rule == "adagrad" else self._guess(objective, state, order)
        return first_step(partial(self._try, objective, state, order), guess)

    def _try(self, objective: Objective, state: State, order: Ints, step: float) -> float:
        """Return the objective on the sample after one round of updates from the start."""
        arrays = {name: x.copy() for name, x in state.items() if isinstance(x, np.ndarray)}
        trial = {**state, **arrays, "step": step}
        with np.errstate(all="ignore"):  # steps that are far too long end in infinities
            self._visit(objective, trial, order)
            weights = current_weights(trial)
            if not np.isfinite(weights).all():
                return math.inf
            loss, _ = estimate(objective, weights, order, trial.get("memory"))
            value = loss + objective.penalty.value(weights)
        return value if math.isfinite(value) else math.inf


def first_step(trial: Callable[[float], float], guess: float) -> float:
    """Return the step for which `trial` returns the lowest value, by factors from a guess."""
    step, value = guess, trial(guess)
    for factor in (_FACTOR, 1.0 / _FACTOR):
        for _ in range(_TRIALS):
            if time_left() == 0.0:
                return step
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
    average the same centre as the last fraction :math:`f` has, at any time (O. Shamir and T. Zhang,
    "Stochastic gradient descent for non-smooth optimization", 2013). Updates count from 1, and
    `horizon` is the number of the last one, None if unknown.
    """
    if horizon is not None:
        return 1.0 / max(update - math.floor((1.0 - fraction) * horizon), 1)
    power = 2.0 * (1.0 - fraction) / fraction
    return (power + 1.0) / (update + power)


@dataclass(frozen=True)
class Stochastic(Stepping):
    r"""Stochastic gradient steps on a few examples at a time, or on all.

    .. math:: g = \nabla \Omega(w) + \frac{n}{|B|} C \sum_{i \in B} c_i \nabla \ell_i(w), \qquad
              w := \operatorname{prox}(w - \eta_t g)

    One iteration is one pass over all examples, in a new random order. Without batches that is
    one step. Pegasos also keeps the weights in a ball that contains the optimum. If the
    objective has `scales`, they multiply the step lengths, one for each weight; AdaGrad adapts its
    own.

    Parameters
    ----------
    rule
        Length of the steps, one of `RULES`.
    step_size
        First step :math:`\eta`; None tries several on a sample of the examples and uses the best.
        Pegasos needs none.
    average
        Fraction of the steps, at the end, whose weights are averaged; 0 for none, 1 for all.
    horizon
        Number of iterations that will be run, which makes the fraction exact.
    evaluate
        Compute the objective at the result after each iteration. Without it, a run over batches
        reports the losses encountered on the way; a run without batches reports the objective at
        its current weights, which are not the result if it averages.
    batch_size
        Number of examples per step; None for all.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import Stochastic
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(solver=Stochastic(batch_size=1), max_iter=5, tol=None)
    >>> labeler.fit(X, Y).n_iter_
    5
    """

    batch_size: int | None = None
    name: ClassVar[str] = "stochastic"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size is not None:
            checks.integer("batch_size", self.batch_size, low=1)

    def refuses(self, objective: Objective) -> str:
        """Refuse Pegasos where the penalty has no squares, and batches where there are none."""
        if self.batch_size is not None and Ability.BATCHES not in objective.abilities:
            return f"batch_size={self.batch_size} needs {Ability.BATCHES.value}; use None"
        if self.rule == "pegasos" and objective.penalty.ridge == 0.0:
            return "Pegasos needs a penalty on the square of every weight; AdaGrad does not"
        return ""

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Find the first step, and value the weights where that is needed anyway."""
        state = super().start(objective, weights, rng)
        if self.batch_size is None:
            state |= objective.value_gradient(weights, objective.begin())._asdict()
        return state

    def step(self, objective: Objective, state: State) -> Report:
        """Go through all examples once."""
        if self.batch_size is not None:
            return super().step(objective, state)
        state["iteration"] += 1
        return self._whole(objective, state)

    def _visit(self, objective: Objective, state: State, order: Ints) -> float:
        met = 0.0
        batches = list(self._batches(order))
        if self.batch_size is None:  # only when steps are tried
            batches *= _UPDATES
            state["memory"] = objective.begin()
        for which in batches:
            loss, gradient = estimate(objective, state["weights"], which, state.get("memory"))
            met += loss * len(which) / len(order)
            self._update(objective, state, gradient)
            if self.batch_size is None and time_left() == 0.0:
                break
        return met

    def _guess(self, objective: Objective, state: State, order: Ints) -> float:
        """Return Polyak's step for an optimum of 0, whatever the scale of the objective."""
        which = next(self._batches(order))
        loss, gradient = estimate(objective, state["weights"], which, None)
        size = float(gradient @ gradient)
        return loss / size if loss > 0.0 and size > 0.0 else 1.0

    def _whole(self, objective: Objective, state: State) -> Report:
        """Take one step on all examples; the gradient for the next comes with the value."""
        self._update(objective, state, state["gradient"])
        found = objective.value_gradient(state["weights"], state["memory"])
        state["gradient"] = found.gradient
        gradient = norm(found.gradient) if objective.penalty.smooth else math.nan
        if not self.average:
            return Report(found.value, gradient=gradient)
        if self.evaluate:
            return Report(objective.value(current_weights(state), state["memory"]))
        return Report(found.value, exact=False)

    def _update(self, objective: Objective, state: State, gradient: Floats) -> None:
        state["updates"] += 1
        length = step_length(self.rule, state, gradient) * state.get("scales", 1.0)
        weights = state["weights"] - length * gradient
        if not objective.penalty.smooth:
            # One length for each weight is fine: what has kinks is a sum over weights.
            weights = objective.penalty.prox(weights, cast(float, length))
        if self.rule == "pegasos":
            weights *= min(1.0, state["radius"] / max(norm(weights), np.finfo(float).tiny))
        state["weights"] = weights
        if self.average:
            part = share(state["updates"], self.average, self._last(objective.n_examples))
            state["average"] += part * (weights - state["average"])

    def _batches(self, order: Ints) -> Iterator[Ints]:
        size = self.batch_size or len(order)
        for first in range(0, len(order), size):
            yield order[first : first + size]

    def _last(self, n_examples: int) -> int | None:
        """Return the number of the last update, None if unknown."""
        if self.horizon is None:
            return None
        return self.horizon * math.ceil(n_examples / (self.batch_size or n_examples))


def estimate(
    objective: Objective, weights: Floats, which: Ints, memory: Memory
) -> tuple[float, Floats]:
    """Return unbiased estimates of the whole loss, and of the whole gradient with the penalty's."""
    scale = objective.n_examples / len(which)
    if scale == 1.0:
        found = objective.loss_gradient(weights, memory)
    else:
        found = objective.batch_gradient(weights, which)
    return scale * found.value, scale * found.gradient + objective.penalty.gradient(weights)


def _radius(objective: Objective) -> float:
    r"""Return a bound on the norm of the optimum.

    For convex losses :math:`L \ge 0`, :math:`\lambda \|w^*\|^2 = -\langle \nabla L(w^*), w^*
    \rangle \le L(0)`; else :math:`\frac{\lambda}{2} \|w^*\|^2 \le F(w^*) \le L(0)`.
    """
    worst = objective.value(np.zeros(objective.n_weights))
    return math.sqrt((1.0 if objective.convex else 2.0) * worst / objective.penalty.ridge)
