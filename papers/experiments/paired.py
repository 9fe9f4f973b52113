"""Paired learning on grids with hidden labels: how many message sweeps a good objective takes.

References
----------
S. Bach et al., "Paired-dual learning for fast training of latent variable hinge-loss MRFs", 2015,
which asks in its last section whether the idea carries over to discrete graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from papers.arrays import Floats
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.data.synthetic import noisy_images, quadrants
from papers.documents import PAIRED_DUAL
from papers.inside import StructuredObjective
from papers.pictures import new_figure, styled
from structlearn import GridLabeler
from structlearn.solvers import Event, Paired, Stochastic
from structlearn.solvers import run as minimise

_CLOSE = 1.01  # times the objective that subgradient steps end at
_STEP, _SHARE, _VARIANCE = 0.3, 0.5, 1.0
_SWEEPS = (2, 5, 10)


_CONVERGED = "to convergence"
WAYS = {_CONVERGED: 0} | {f"{n} sweeps": n for n in _SWEEPS}
_JUDGED = "5 sweeps"  # neither the fewest nor the most: not the best of what came out
_TRIALS = 5


def units(settings: Settings) -> list[dict[str, Any]]:
    """Return one unit for each set of images and way to infer."""
    shape, steps = ((6, 8), 40) if settings.quick else ((20, 40), 150)
    return [
        {"seed": [settings.seed, i], "way": way, "shape": list(shape), "steps": steps}
        for i in range(settings.count(_TRIALS, 1))
        for way in WAYS
    ]


def work(seed: list[int], way: str, shape: list[int], steps: int) -> dict[str, Any]:
    """Train by subgradient steps, or by paired ones with a few sweeps each.

    What comes back are objectives by converged inference, against the message sweeps until then.
    """
    rows, columns = shape
    images, labels = noisy_images(
        quadrants(rows, columns), 4, _VARIANCE, _SHARE, np.random.default_rng(seed)
    )
    objective = _objective(images - images.mean(), labels)
    start = np.random.default_rng(seed).normal(0.0, 0.01, objective.n_weights)
    inner = Stochastic(rule="adagrad", step_size=_STEP)
    solver = Paired(inner, sweeps=WAYS[way]) if WAYS[way] else inner
    weights: list[Floats] = []
    sweeps: list[int] = []

    def note(event: Event) -> None:
        weights.append(np.array(event.weights))
        sweeps.append(event.inference_steps)

    minimise(solver, objective, start, max_iter=steps, tol=None, callbacks=(note,))
    return {"sweeps": sweeps, "values": [objective.value(w) for w in weights]}


def until(found: Mapping[str, Any], value: float) -> float:
    """Return the number of sweeps after which the objective was at most `value`."""
    below = (n for n, v in zip(found["sweeps"], found["values"], strict=True) if v <= value)
    return float(next(below, np.inf))


def _finite(needed: Mapping[str, list[float]]) -> dict[str, list[float]]:
    return {way: [n for n in each if np.isfinite(n)] for way, each in needed.items()}


def _saved(few: float, converged: float) -> float:
    """Return the percentage of sweeps that `few` saves; what never comes as far saves nothing."""
    return 100.0 * (1.0 - min(few / converged, 1.0)) if np.isfinite(few) else 0.0


def report(done: Units) -> Report:
    """Compare the sweeps that each way takes to come as far as inference to convergence."""
    trials: dict[str, dict[str, Mapping[str, Any]]] = {}
    for unit in done:
        trials.setdefault(str(unit.given["seed"]), {})[unit.given["way"]] = unit.found
    needed = {
        way: [until(t[way], _CLOSE * min(t[_CONVERGED]["values"])) for t in trials.values()]
        for way in WAYS
    }
    rows = [
        {
            "worlds": way,
            "objective at the end": Estimate.of([min(t[way]["values"]) for t in trials.values()]),
            "sweeps in all": Estimate.of([t[way]["sweeps"][-1] for t in trials.values()]),
            "sweeps to within 1 %": Estimate.of(reached) if reached else "never",
            "never": len(trials) - len(reached),
        }
        for way, reached in _finite(needed).items()
    ]
    saved = [_saved(*both) for both in zip(needed[_JUDGED], needed[_CONVERGED], strict=True)]
    says = f"paired learning with {_JUDGED} needs fewer than inference to convergence (% saved)"
    return Report((Table.of(f"{len(trials)} trials", rows),), (Claim.above(says, saved),))


def _objective(images: Floats, labels: Any) -> StructuredObjective:
    labeler = GridLabeler(loss="log", inference="trw", n_jobs=1)
    return labeler.objective(list(images), list(labels))


def draw(done: Units) -> Any:
    """Draw the objective of the first trial against message sweeps."""
    first = done[0].given["seed"]
    curves = {u.given["way"]: u.found for u in done if u.given["seed"] == first}
    axes = new_figure().subplots()
    for name, found, style in styled(curves):
        axes.plot(found["sweeps"], found["values"], label=name, **style)
    axes.set(xlabel="message sweeps", ylabel="objective", xscale="log", yscale="log")
    axes.legend(frameon=False)
    return axes.figure


EXPERIMENTS = (
    Experiment(
        "paired",
        PAIRED_DUAL,
        "section 5",
        "Does paired learning of a hidden CRF on grids need fewer message sweeps?",
        tuple(WAYS),
        units,
        work,
        report,
        {"curves": draw},
        (
            "The paper leaves the question open. Half of the labels of noisy images are hidden; "
            "steps are AdaGrad's. Within 1 % of what subgradient steps reach; both worlds' sweeps "
            "count.",
            "Messages are tree-reweighted: their objective is never negative. Under plain ones, "
            "which were tried first, weights run off to where the Bethe approximation has no "
            "meaning, and objectives fall below 0.",
        ),
        version=2,
    ),
)
