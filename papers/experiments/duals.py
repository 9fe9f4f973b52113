"""Paired-dual learning, EM and subgradient steps side by side, by the steps of ADMM they take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from papers.base import Estimate, Table
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.display.pictures import new_figure, styled
from structlearn._src.learn.field_objective import FieldObjective
from structlearn._src.solve.base import Solver
from structlearn._src.solve.drivers import Cccp, Paired
from structlearn._src.solve.loop import Event
from structlearn._src.solve.loop import run as minimise
from structlearn._src.solve.stochastic import Stochastic

_CLOSE = 1.01  # times the objective that another learner ends at
_SHORTER = 1 / 3  # steps of EM against those of others

#: What weights are worth on data that they were not learnt from.
Score = Callable[[Floats], float]
EM, PRIMAL = "EM", "subgradient"


@dataclass(frozen=True)
class Race:
    """Learners with the same steps, which differ in how far they infer before each.

    Parameters
    ----------
    inner
        The steps; those of EM are a third as long.
    updates
        Number of them.
    warm_up
        Evaluations of paired learners before the first step, K.
    repeats
        Steps of EM for one estimate of the hidden variables.
    points
        How often objective and score are looked at.
    """

    inner: Stochastic = field(
        default_factory=lambda: Stochastic(rule="adagrad", step_size=0.3, average=0.5)
    )
    updates: int = 200
    warm_up: int = 0
    repeats: int = 10
    points: int = 16

    def learners(self) -> dict[str, tuple[Solver, int]]:
        """Return the solvers, and how many iterations make up all updates."""
        # It starts its steps anew with every estimate, so long ones would never settle.
        shorter = replace(self.inner, step_size=_SHORTER * (self.inner.step_size or 1.0))
        em = Cccp(shorter, inner_iter=self.repeats, inner_tol=0.0)
        return {
            "paired, N=1": (Paired(self.inner, 1, self.warm_up), self.updates),
            "paired, N=10": (Paired(self.inner, 10, self.warm_up), self.updates),
            EM: (em, self.updates // self.repeats),
            PRIMAL: (self.inner, self.updates),
        }

    def run(self, objective: FieldObjective, score: Score) -> list[Curve]:
        """Let all learners start from the same weights."""
        return [
            Path.of(solver, objective, count).curve(name, objective, score, self.points)
            for name, (solver, count) in self.learners().items()
        ]


@dataclass(frozen=True, eq=False)
class Curve:
    """Objective, by converged inference, and score against the steps of ADMM until then."""

    name: str
    steps: Floats
    values: Floats
    scores: Floats
    weights: Floats  #: at the end

    def until(self, value: float) -> float:
        """Return the number of steps after which the objective was at most `value`."""
        below = np.flatnonzero(self.values <= value)
        return float(self.steps[below[0]]) if len(below) else float("inf")


class Path(NamedTuple):
    """Weights after every iteration, and the steps of ADMM until then."""

    weights: list[Floats]
    steps: list[int]

    @classmethod
    def of(cls, solver: Solver, objective: FieldObjective, iterations: int) -> Path:
        """Learn, and keep all weights on the way."""
        path = cls([], [])

        def note(event: Event) -> None:
            path.weights.append(event.weights.copy())
            path.steps.append(event.inference_steps)

        start = objective.start
        minimise(solver, objective, start, max_iter=iterations, tol=None, callbacks=(note,))
        return path

    def curve(self, name: str, judge: FieldObjective, score: Score, points: int) -> Curve:
        """Judge some of the weights."""
        which = _spaced(len(self.steps), points)
        found = [(judge.value(self.weights[i]), score(self.weights[i])) for i in which]
        values, scores = np.array(found).T
        steps = np.array(self.steps, float)[which]
        return Curve(name, steps, values, scores, self.weights[-1])


def _spaced(n: int, points: int) -> Ints:
    """Return about so many places, the first ones closer together; the last is always there."""
    return np.unique(np.geomspace(1, n, points).round().astype(np.int64)) - 1


# ---- what came out -----------------------------------------------------------------------


def table(heading: str, races: Sequence[Sequence[Curve]], measure: str) -> Table:
    """One row for each learner, with means over races."""
    return Table.of(heading, [_row(each, races, measure) for each in zip(*races, strict=True)])


def _row(curves: Sequence[Curve], races: Sequence[Sequence[Curve]], measure: str) -> dict[str, Any]:
    shares = {rival: _shares(curves, races, rival) for rival in (EM, PRIMAL)}
    return {
        "learner": curves[0].name,
        "objective": Estimate.of([curve.values[-1] for curve in curves]),
        "ADMM steps": int(np.mean([curve.steps[-1] for curve in curves])),
        **{f"% of {rival}'s": f"{100 * np.mean(x):.1f}" for rival, x in shares.items()},
        measure: mean_text([float(curve.scores[-1]) for curve in curves]),
    }


def mean_text(values: Sequence[float]) -> str:
    """Write a mean with four digits, and its standard error where there is one."""
    mean, error = Estimate.of(values)
    return f"{mean:.4g}" + ("" if math.isnan(error) else f" ±{error:.2g}")


def _shares(curves: Sequence[Curve], races: Sequence[Sequence[Curve]], rival: str) -> list[float]:
    """Steps until a learner is within 1 % of where a rival ends, as shares of the rival's."""
    ends = [next(curve for curve in race if curve.name == rival) for race in races]
    return [
        curve.until(_CLOSE * end.values[-1]) / end.steps[-1]
        for curve, end in zip(curves, ends, strict=True)
    ]


NOTE = (
    '"% of EM\'s" is the number of ADMM steps, of both worlds together, until the objective is '
    "within 1 % of where EM ends, by the number that EM takes in all; the same for subgradient "
    "steps. Objectives are those of converged inference, found after the fact."
)


def draw(curves: Sequence[Curve], measure: str) -> Any:
    """Draw objective and score against the steps of ADMM, as in figure 1 of the paper."""
    figure = new_figure()
    left, right = figure.subplots(1, 2)
    for axes, name in ((left, "values"), (right, "scores")):
        for label, curve, style in styled({curve.name: curve for curve in curves}, axes):
            axes.plot(curve.steps, getattr(curve, name), label=label, **style)
        axes.set(xlabel="ADMM steps", xscale="log")
    left.set(ylabel="objective")
    right.set(ylabel=measure)
    left.legend(frameon=False)
    return figure
