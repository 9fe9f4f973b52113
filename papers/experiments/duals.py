"""Paired-dual learning, EM and subgradient steps side by side, by the steps of ADMM they take.

References
----------
S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs", 2015,
section 4 and figure 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Floats, Ints
from papers.base import Claim, Estimate, Report, Table, Unit, Units
from papers.inside import FieldObjective
from papers.pictures import PALETTE, new_figure, styled
from structlearn.solvers import Cccp, Event, Paired, Solver, Stochastic
from structlearn.solvers import run as minimise

FINEST, COARSER, EM, PRIMAL = "paired, N=1", "paired, N=10", "EM", "subgradient"
LEARNERS = (FINEST, COARSER, EM, PRIMAL)
#: A unit beside the learners: what those score who learn no weights.
BASELINES = "baselines"

_CLOSE = 1.01  # times the objective that another learner ends at
_GOOD = 0.9  # of the way from the first objective to the best of all: a good model

#: What weights are worth on data that they were not learnt from.
Score = Callable[[Floats], float]

READINGS = (
    '"% of EM\'s" is the number of ADMM steps, of both worlds together, until the objective is '
    "within 1 % of where EM ends, by the number that EM takes in all; the same for subgradient "
    "steps. A rival is itself within 1 % before it ends: verdicts count its steps until then. "
    "Objectives are those of converged inference, found after the fact.",
    "Steps are AdaGrad's, with averages of the last half, where the paper takes plain steps scaled "
    "by the number of potentials and averages all; it names AdaGrad as a variant. Of several sizes "
    "of steps each learner takes the one that ends at the lowest objective of the training data; "
    "the steps of the others are not counted.",
)


# ---- learning ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Course:
    """How learners learn: all take the same number of steps.

    Parameters
    ----------
    updates
        Steps of the weights.
    warm_up
        Evaluations of paired learners before the first step, K.
    sizes
        Of steps, to choose from by the objective at the end.
    repeats
        Steps of EM for one estimate of the hidden variables.
    points
        How often objective and score are looked at.
    """

    updates: int = 200
    warm_up: int = 0
    sizes: tuple[float, ...] = (0.1, 0.3, 1.0)
    repeats: int = 10
    points: int = 16

    def solver(self, learner: str, size: float) -> tuple[Solver, int]:
        """Return a solver, and how many iterations make up all updates."""
        inner = Stochastic(rule="adagrad", step_size=size, average=0.5)
        if learner == EM:
            em = Cccp(inner, inner_iter=self.repeats, inner_tol=0.0)
            return em, self.updates // self.repeats
        steps = {FINEST: 1, COARSER: 10}.get(learner)
        return (Paired(inner, steps, self.warm_up) if steps else inner), self.updates

    def learn(self, learner: str, objective: FieldObjective) -> Path:
        """Learn with steps of all sizes; keep the path that ends lowest."""
        paths = [Path.of(*self.solver(learner, size), objective, size) for size in self.sizes]
        return min(paths, key=lambda path: objective.value(path.weights[-1]))


class Path(NamedTuple):
    """Weights after every iteration, and the steps of ADMM until then."""

    weights: list[Floats]
    steps: list[int]
    size: float

    @classmethod
    def of(cls, solver: Solver, iterations: int, objective: FieldObjective, size: float) -> Path:
        """Learn, and keep all weights on the way."""
        path = cls([], [], size)

        def note(event: Event) -> None:
            path.weights.append(event.weights.copy())
            path.steps.append(event.inference_steps)

        start = objective.start
        minimise(solver, objective, start, max_iter=iterations, tol=None, callbacks=(note,))
        return path

    def curve(self, objective: FieldObjective, score: Score, points: int) -> dict[str, Any]:
        """Judge some of the weights, and those to begin with."""
        which = _spaced(len(self.steps), points)
        weights = [objective.start, *(self.weights[i] for i in which)]
        return {
            "size": self.size,
            "steps": [0, *(self.steps[i] for i in which)],
            "values": [objective.value(w) for w in weights],
            "scores": [score(w) for w in weights],
        }


def _spaced(n: int, points: int) -> Ints:
    """Return about so many places, the first ones closer together; the last is always there."""
    return np.unique(np.geomspace(1, n, points).round().astype(np.int64)) - 1


# ---- what came out -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Curve:
    """Objective, by converged inference, and score against the steps of ADMM until then."""

    steps: Floats
    values: Floats
    scores: Floats

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Curve:
        """Read what a unit has found."""
        return cls(*(np.asarray(found[key], float) for key in ("steps", "values", "scores")))

    def until(self, value: float) -> float:
        """Return the number of steps after which the objective was at most `value`."""
        below = np.flatnonzero(self.values <= value)
        return float(self.steps[below[0]]) if len(below) else math.inf

    @property
    def first(self) -> float:
        """Steps until the first update of the weights."""
        return float(self.steps[1])


@dataclass(frozen=True, eq=False)
class Race:
    """The learners of one fold or split."""

    curves: dict[str, Curve]

    @classmethod
    def all(cls, units: Units) -> list[Race]:
        """Return the races of all folds, in the order of the units."""
        races: dict[str, dict[str, Curve]] = {}
        for unit in units:
            if unit.given["learner"] != BASELINES:
                curves = races.setdefault(str(unit.given["fold"]), {})
                curves[unit.given["learner"]] = Curve.of(unit.found)
        return [cls(curves) for curves in races.values()]

    def share(self, learner: str, rival: str) -> float:
        """Steps until a learner is within 1 % of where a rival ends, as share of the rival's."""
        end = self.curves[rival]
        return self.curves[learner].until(_CLOSE * end.values[-1]) / float(end.steps[-1])

    def saved(self, rival: str) -> float:
        """Percent of its own steps to there that the finest learner saves a rival.

        There is within 1 % of where the rival ends; who never gets there saves nothing.
        """
        goal = _CLOSE * float(self.curves[rival].values[-1])
        steps = self.curves[FINEST].until(goal) / self.curves[rival].until(goal)
        return 100.0 * (1.0 - min(steps, 1.0))

    def good(self) -> float:
        """Return an objective that is most of the way to the best that anyone finds."""
        start = self.curves[FINEST].values[0]
        best = min(curve.values.min() for curve in self.curves.values())
        return float(start + _GOOD * (best - start))

    def lead(self, rival: str) -> float:
        """How many steps before the first update of a rival the finest learner is good.

        One that never gets there is taken to be at its last step.
        """
        finest = self.curves[FINEST]
        return self.curves[rival].first - min(finest.until(self.good()), float(finest.steps[-1]))

    def gain(self, learner: str, rival: str) -> float:
        """How much higher a learner scores in the end."""
        return float(self.curves[learner].scores[-1] - self.curves[rival].scores[-1])


class Measure(NamedTuple):
    """What scores are."""

    name: str
    sign: float = 1.0  #: -1 where less is better
    slack: float = 0.02  #: differences that do not matter
    axis: str = ""  #: what the paper's axis shows


def report(units: Units, measure: Measure, more: Sequence[Claim] = ()) -> Report:
    """Compare all learners, and judge what the paper claims of them."""
    races = Race.all(units)
    sizes = {
        name: sorted({u.found["size"] for u in units if u.given["learner"] == name})
        for name in LEARNERS
    }
    rows = [_row(name, races, measure) | {"step": _listed(sizes[name])} for name in LEARNERS]
    tables = [Table.of(f"{len(races)} folds", rows), *_baselines(units, measure)]
    return Report(tuple(tables), (*_claims(races, measure), *more))


def _listed(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values)


def _row(name: str, races: Sequence[Race], measure: Measure) -> dict[str, Any]:
    curves = [race.curves[name] for race in races]
    return {
        "learner": name,
        "objective": Estimate.of([curve.values[-1] for curve in curves]),
        "ADMM steps": round(float(np.mean([curve.steps[-1] for curve in curves]))),
        **{f"% of {rival}'s": _percent(name, rival, races) for rival in (EM, PRIMAL)},
        "first update after": round(float(np.mean([curve.first for curve in curves]))),
        measure.name: mean_text([float(curve.scores[-1]) for curve in curves]),
    }


def _percent(name: str, rival: str, races: Sequence[Race]) -> str:
    shares = [100.0 * race.share(name, rival) for race in races]
    reached = [share for share in shares if math.isfinite(share)]
    missed = len(shares) - len(reached)
    text = f"{np.mean(reached):.1f}" if reached else "never"
    return f"{text} (not in {missed} of {len(shares)})" if missed and reached else text


def mean_text(values: Sequence[float]) -> str:
    """Write a mean with four digits, and its standard error where there is one."""
    mean, error = Estimate.of(values)
    return f"{mean:.4g}" + ("" if math.isnan(error) else f" ±{error:.2g}")


def _baselines(units: Units, measure: Measure) -> Iterator[Table]:
    found = [unit.found["scores"] for unit in units if unit.given["learner"] == BASELINES]
    rows = [
        {"baseline": name, measure.name: mean_text([each[name] for each in found])}
        for name in (found[0] if found else ())
    ]
    if measure.axis:
        rows.append({"baseline": "the paper's axis", measure.name: measure.axis})
    if rows:
        yield Table.of("", rows)


def _claims(races: Sequence[Race], measure: Measure) -> Iterator[Claim]:
    for rival in (EM, PRIMAL, COARSER):
        says = f"N=1 comes within 1 % of the end of {rival} in fewer steps of ADMM (% saved)"
        yield Claim.above(says, [race.saved(rival) for race in races])
    for rival in (EM, PRIMAL):
        leads = [race.lead(rival) for race in races]
        yield Claim.above(
            f"N=1 has a good model before the first update of {rival} (steps earlier; good: 90 % "
            "of the way to the best objective)",
            leads,
        )
        gains = [measure.sign * race.gain(FINEST, rival) for race in races]
        yield Claim.above(
            f"N=1 is as accurate as {rival} ({measure.name}, up to {measure.slack:g})",
            gains,
            than=-measure.slack,
        )


def draw(units: Units, measure: str) -> Any:
    """Draw objective and score of the first fold, and scores of all, as in figure 1."""
    races = Race.all(units)
    figure = new_figure(11.0, 3.6)
    left, middle, right = figure.subplots(1, 3)
    for axes, name in ((left, "values"), (middle, "scores")):
        for label, curve, style in styled(races[0].curves):
            axes.plot(curve.steps[1:], getattr(curve, name)[1:], label=label, **style)
    for i, label in enumerate(races[0].curves):
        every = [race.curves[label] for race in races]
        right.plot(
            np.concatenate([c.steps[1:] for c in every]),
            np.concatenate([c.scores[1:] for c in every]),
            "os^v"[i],
            color=PALETTE[i],
            markersize=3,
            label=label,
        )
    titles = ("one fold", "one fold", f"all {len(races)} folds")
    for axes, title in zip((left, middle, right), titles, strict=True):
        axes.set(xlabel="ADMM steps", xscale="log", title=title)
    left.set(ylabel="objective")
    middle.set(ylabel=measure)
    left.legend(frameon=False)
    return figure


def of_learner(units: Units, learner: str) -> Iterator[Unit]:
    """All units of one learner."""
    return (unit for unit in units if unit.given["learner"] == learner)
