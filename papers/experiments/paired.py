"""Paired learning on grids with hidden labels: how many message sweeps a good objective takes.

References
----------
S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs", 2015,
which asks in its last section whether the idea carries over to discrete graphs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from papers.base import Record, Settings, Table, whole
from papers.data.synthetic import noisy_images, quadrants
from papers.documents import PAIRED_DUAL
from structlearn._src.common.arrays import Floats
from structlearn._src.display.pictures import new_figure, styled
from structlearn._src.estimators.structured.graph import GridLabeler
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.solve.base import Solver
from structlearn._src.solve.drivers import Paired
from structlearn._src.solve.loop import Event
from structlearn._src.solve.loop import run as minimise
from structlearn._src.solve.stochastic import Stochastic

_CLOSE = 1.01  # times the objective that subgradient steps end at
_STEP, _SHARE, _VARIANCE = 0.3, 0.5, 1.0
_SWEEPS = (2, 5, 10)


@dataclass(frozen=True, eq=False)
class Curve:
    """Objective, by converged inference, against the message sweeps done until then."""

    name: str
    sweeps: Floats
    values: Floats

    def until(self, value: float) -> float:
        """Return the number of sweeps after which the objective was at most `value`."""
        below = np.flatnonzero(self.values <= value)
        return float(self.sweeps[below[0]]) if len(below) else float("inf")


def run(settings: Settings) -> Record:
    """Objective against message sweeps, for inference to convergence and for a few sweeps."""
    steps = 40 if settings.quick else 150
    curves = train(settings.seed, (6, 8) if settings.quick else (20, 40), steps)
    target = _CLOSE * float(curves[0].values.min())
    rows = [
        {
            "worlds": curve.name,
            "objective at the end": float(curve.values.min()),
            "sweeps in all": int(curve.sweeps[-1]),
            "sweeps to within 1 %": curve.until(target),
        }
        for curve in curves
    ]
    note = (
        "Within 1 % of what subgradient steps reach; both worlds' sweeps count. With a single "
        "sweep per step, weights run off to where the Bethe approximation has no meaning."
    )
    return Record(
        "paired",
        "Hidden CRF on grids, half of the labels hidden: paired learning",
        (Table.of(f"{steps} steps of AdaGrad", rows),),
        (note,),
        {"curves": lambda: _draw(curves)},
    )


def train(seed: int, shape: tuple[int, int], steps: int) -> list[Curve]:
    """Train by subgradient steps, and by paired ones with a few sweeps each."""
    images, labels = noisy_images(quadrants(*shape), 4, _VARIANCE, _SHARE, seed)
    objective = _objective(images - images.mean(), labels)
    start = np.random.default_rng(seed).normal(0.0, 0.01, objective.n_weights)
    inner = Stochastic(rule="adagrad", step_size=_STEP)
    ways: dict[str, Solver] = {"to convergence": inner}
    ways |= {f"{n} sweeps": Paired(inner, sweeps=n) for n in _SWEEPS}
    return [_curve(name, solver, objective, start, steps) for name, solver in ways.items()]


def _objective(images: Floats, labels: Any) -> StructuredObjective:
    labeler = GridLabeler(loss="log", inference="bp", n_jobs=1)
    return labeler.objective(list(images), list(labels))


def _curve(
    name: str, solver: Solver, objective: StructuredObjective, start: Floats, steps: int
) -> Curve:
    weights: list[Floats] = []
    sweeps: list[int] = []

    def note(event: Event) -> None:
        weights.append(np.array(event.weights))
        sweeps.append(event.inference_steps)

    minimise(solver, objective, start, max_iter=steps, tol=None, callbacks=(note,))
    return Curve(name, np.array(sweeps, float), np.array([objective.value(w) for w in weights]))


def _draw(curves: list[Curve]) -> Any:
    axes = new_figure().subplots()
    for name, curve, style in styled({curve.name: curve for curve in curves}, axes):
        axes.plot(curve.sweeps, curve.values, label=name, **style)
    axes.set(xlabel="message sweeps", ylabel="objective", xscale="log", yscale="log")
    axes.legend(frameon=False)
    return axes.figure


EXPERIMENTS = (whole("paired", PAIRED_DUAL, "section 5", run, ("subgradient", "paired"), ()),)
