"""Drivers: solvers that hand another solver one changed objective after the other."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.watch import Ending, Watch, time_left
from structlearn._src.learn.loss import NonNegative
from structlearn._src.learn.objective import Ability, Objective
from structlearn._src.learn.world import Budget
from structlearn._src.solve.base import Report, Solver, State, draw_seed, refusal, stream
from structlearn._src.solve.lbfgs import Lbfgs, Owlqn
from structlearn._src.solve.loop import Callback, Event, Fit, run

_COOLINGS = 30  # temperatures: from 1 down to rounding by the factor of `Annealed`
_KEPT = ("best", "last")  # which inner weights count
_ROUNDING = 1e-12  # relative differences of values below this say nothing


class _Driver(Solver):
    """What drivers share."""

    inner: Solver

    def refuses(self, objective: Objective) -> str:
        """Refuse what the inner solver refuses, and say which solver that is."""
        why = refusal(self.inner, objective)
        return f"its inner solver {self.inner.name!r} refuses: {why}" if why else ""


@dataclass(frozen=True)
class Annealed(_Driver):
    r"""Minimise smoothed losses at decreasing temperatures.

    A soft maximum over :math:`N` labellings at temperature :math:`\epsilon` exceeds the maximum
    by at most :math:`\epsilon \log N`, so the minima of the smoothed objectives approach the
    minimum of the objective. A quasi-Newton solver gets there in far fewer evaluations than
    subgradient steps, and does not mistake a non-differentiable point, such as weights of 0, for a
    minimum.

    One iteration is one temperature. Annealing ends when cooling no longer helps.

    Parameters
    ----------
    inner
        Solver for the smoothed objectives.
    first, last
        First temperature, and the temperature down to which it cools in any case.
    factor
        Factor of the temperature after every iteration.
    inner_iter
        Maximum number of iterations of the inner solver for each temperature.
    inner_tol
        Its relative tolerance. Annealing ends when two successive temperatures gain less.

    References
    ----------
    Y. Nesterov, "Smooth minimization of non-smooth functions", 2005.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import Annealed
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(loss="hinge", solver=Annealed(factor=0.1))
    >>> labeler.fit(X, Y).converged_
    True
    """

    inner: Solver = field(default_factory=Lbfgs)
    first: float = 1.0
    last: float = 1e-3
    factor: float = 0.3
    inner_iter: int = 200
    inner_tol: float = 1e-5
    name: ClassVar[str] = "annealed"
    needs: ClassVar[frozenset[Ability]] = frozenset({Ability.SOFTEN})

    def __post_init__(self) -> None:
        checks.number("first", self.first, low=0.0, open_low=True)
        checks.number("last", self.last, low=0.0, open_low=True)
        checks.number("factor", self.factor, low=0.0, high=1.0, open_low=True, open_high=True)
        checks.integer("inner_iter", self.inner_iter, low=1)
        checks.number("inner_tol", self.inner_tol, low=0.0)

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Value the weights."""
        value = objective.value(weights)
        return {
            "weights": weights, "value": value, "best": value, "iteration": 0, "stalls": 0,
            "seed": draw_seed(rng),
        }  # fmt: skip

    def step(self, objective: Objective, state: State) -> Report:
        """Minimise at one temperature."""
        eps = self.first * self.factor ** state["iteration"]
        state["iteration"] += 1
        fit = _minimise(self, self.inner, objective.softened(eps), state)
        value = objective.value(fit.weights)
        gain = state["best"] - value
        state |= {"weights": fit.weights, "value": value, "best": min(state["best"], value)}
        state["stalls"] = 0 if gain > self.inner_tol * abs(value) else state["stalls"] + 1
        done = bool(state["stalls"] >= 2 and eps <= self.last)
        words = f"converged: cooling to {eps:.2g} gained less than {self.inner_tol:g}"
        return Report(value, done=done, words=words if done else "")


@dataclass(frozen=True)
class Cccp(_Driver):
    r"""CCCP: replace the concave part by its tangent, minimise the convex bound, repeat.

    .. math:: w_{t+1} = \operatorname{argmin}_w f^+(w) - f^-(w_t)
              - \langle \nabla f^-(w_t), w - w_t \rangle

    The bound touches the objective at :math:`w_t`, so lowering the bound lowers the
    objective. One iteration is one bound with all its inner steps, which start at :math:`w_t`; a
    time limit is checked in between. If they do not lower the objective, as averaged
    iterates need not, quasi-Newton steps on a bound smoothed at decreasing temperatures replace
    them; if these find nothing either, :math:`w_t` is kept. Weights with bounds have no such steps,
    and there the objective may rise.

    Parameters
    ----------
    inner
        Solver for the convex problems.
    inner_iter
        Maximum number of its iterations for each of them.
    inner_tol
        Its relative tolerance; 0 takes all steps, which subgradient methods need, because they do
        not descend at every step.
    keep
        "best" continues from the best inner weights, as above. "last" continues from the last ones,
        whatever their value, which is algorithm 2 as published: subgradient steps then move around
        non-differentiable points at which the best weights lie, the objective may rise, and the
        result is the last weights.

    References
    ----------
    A. Yuille and A. Rangarajan, "The concave-convex procedure", 2003.
    W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014,
    algorithm 2.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import Cccp, Lbfgs
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> hidden = SequenceLabeler(hidden="node", solver=Cccp(Lbfgs()), random_state=0)
    >>> hidden = hidden.set_params(max_iter=3, tol=None)
    >>> hidden.fit(X, Y).n_iter_
    3
    """

    inner: Solver
    inner_iter: int = 50
    inner_tol: float = 1e-4
    keep: str = field(default="best", metadata={"later": True})
    name: ClassVar[str] = "cccp"
    needs: ClassVar[frozenset[Ability]] = frozenset({Ability.LINEARISE})

    def __post_init__(self) -> None:
        checks.integer("inner_iter", self.inner_iter, low=1)
        checks.number("inner_tol", self.inner_tol, low=0.0)
        checks.one_of("keep", self.keep, _KEPT)

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Value the weights."""
        memory = objective.begin()
        state = {"weights": weights, "value": objective.value(weights, memory), "memory": memory}
        return state | {"iteration": 0, "seed": draw_seed(rng)}

    def step(self, objective: Objective, state: State) -> Report:
        """Minimise one bound."""
        bound = objective.linearise(state["weights"], state["memory"])
        state["iteration"] += 1
        if self.keep == "last":
            return self._wander(objective, bound, state)
        before = state["value"]
        careful = _careful(bound)
        sure = self.inner.proves and bound.smooth
        for inner in (self.inner,) if sure or careful is None else (self.inner, careful):
            fit = _minimise(self, inner, bound, state)
            memory = state["memory"] if fit.memory is None else fit.memory
            value = objective.value(fit.weights, memory)
            if value == math.inf:  # time is up, and ends the run around
                return Report(before)
            rise = value - before
            if careful is None or rise < -_ROUNDING * abs(before):
                state |= {"weights": fit.weights, "value": value, "memory": memory}
                return Report(value)
        words = (
            "converged: the bound has its optimum where it touches the objective"
            if fit.converged
            else f"stuck: no step of {inner.name!r} lowers the bound, which may be non-smooth"
        )
        return Report(before, done=True, words=words, stuck=not fit.converged)

    def _wander(self, objective: Objective, bound: Objective, state: State) -> Report:
        """Take all inner steps, and go on from the last."""
        newest = [state["weights"]]

        def follow(event: Event) -> None:
            newest[0] = event.weights.copy()

        fit = _minimise(self, self.inner, bound, state, (follow,))
        memory = state["memory"] if fit.memory is None else fit.memory
        value = objective.value(newest[0], memory)
        state |= {"weights": newest[0], "value": value, "memory": memory}
        return Report(value, exact=False)


def _careful(bound: Objective) -> Solver | None:
    """Return a solver that knows whether it has arrived; kinks are smoothed, and then cooled."""
    if isinstance(bound.penalty, NonNegative):
        return None  # fields, whose kinks are everywhere
    quick = next((each for each in (Lbfgs(), Owlqn()) if not refusal(each, bound)), None)
    if quick is None or bound.smooth:
        return quick
    cooled = Annealed(quick)
    return quick if refusal(cooled, bound) else cooled


def _minimise(
    driver: Annealed | Cccp,
    inner: Solver,
    objective: Objective,
    state: State,
    callbacks: tuple[Callback, ...] = (),
) -> Fit:
    """Let a solver minimise a changed objective from where the weights are."""
    cooling = isinstance(inner, Annealed) and inner is not driver.inner
    fit = run(
        inner,
        objective,
        state["weights"],
        max_iter=_COOLINGS if cooling else driver.inner_iter,
        tol=None if cooling else driver.inner_tol or None,  # cooling knows by itself when to end
        patience=driver.patience,  # little: the next minimisation mends what this one leaves
        rng=stream(state, state["iteration"]),
        callbacks=callbacks,
        watch=Watch(time_left()),
        tested=False,
    )
    if fit.ended == Ending.INTERRUPTED:
        raise KeyboardInterrupt  # half a minimisation is dropped, as half a step would be
    return fit


@dataclass(frozen=True)
class Paired(_Driver):
    """Paired-dual learning: a few warm-started sweeps of inference, then a step.

    Both worlds are warm-started from one evaluation to the next, so that inference and weights
    converge together. Intermediate values are inexact and are not used to choose the best weights:
    the result is the weights of the last step, or their average.

    Parameters
    ----------
    inner
        Solver for the steps; without line search, because the value at fixed weights changes.
    sweeps
        Number of message sweeps, or steps of ADMM, per evaluation.
    warm_up
        Number of evaluations before the first step.

    References
    ----------
    S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs",
    2015.

    Examples
    --------
    >>> from structlearn import GridLabeler
    >>> from structlearn.solvers import Paired, Stochastic
    >>> solver = Paired(Stochastic(), sweeps=2)
    >>> labeler = GridLabeler(solver=solver, inference="bp", max_iter=3, tol=None)
    >>> labeler.fit([[[0.9, 0.8], [0.1, 0.2]]], [[[1, 1], [0, 0]]]).n_iter_
    3
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

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Warm the worlds up and start the inner solver on them."""
        view = objective.with_budget(Budget(self.sweeps))
        memory = view.begin()
        for _ in range(self.warm_up):
            view.value(weights, memory)
        return self.inner.start(view.warmed(memory), weights, rng)

    def step(self, objective: Objective, state: State) -> Report:
        """Take one step of the inner solver, with inference warm-started."""
        report = self.inner.step(objective.with_budget(Budget(self.sweeps)), state)
        return report._replace(exact=False)
