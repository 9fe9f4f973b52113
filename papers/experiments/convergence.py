"""How smoothly steps of one length lower the objectives on a hidden chain.

References
----------
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, figure 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.arrays import Floats
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.documents import MARGINAL_SVM
from papers.experiments.field import CHAIN, Trial
from papers.experiments.simulated import READING
from papers.experiments.trio import TRIO, Learner
from papers.pictures import new_figure, styled
from structlearn.solvers import Stochastic
from structlearn.solvers import run as minimise

_STEP = 0.02


def units(settings: Settings) -> list[dict[str, Any]]:
    """One trial each."""
    steps = 60 if settings.quick else 200
    n = settings.count(20, 2)
    return [{"seed": [settings.seed, i], "steps": steps} for i in range(n)]


def curves(seed: list[int], steps: int) -> dict[str, Floats]:
    """The objective of every learner, step by step."""
    trial = Trial.draw(CHAIN, seed)
    return {learner.letter: curve(trial, learner, steps) for learner in TRIO}


def report(done: Units) -> Report:
    """Objectives on the way, and how they waver."""
    found = {t.letter: np.array([unit.found[t.letter] for unit in done]) for t in TRIO}
    steps = done[0].given["steps"]
    wavers = {letter: wavering(each) for letter, each in found.items()}
    rows = [
        {
            "learner": f"{learner.letter}, {learner.title}",
            "start": Estimate.of(found[learner.letter][:, 0]),
            f"after {steps // 4}": Estimate.of(found[learner.letter][:, steps // 4]),
            f"after {steps}": Estimate.of(found[learner.letter][:, -1]),
            "wavering (%)": Estimate.of(wavers[learner.letter]),
        }
        for learner in TRIO
    ]
    claims = (
        Claim.above("the objective of LSSVM wavers more than MSSVM's", wavers["L"] - wavers["M"]),
        Claim.above("the objective of MSSVM wavers more than HCRF's", wavers["M"] - wavers["H"]),
    )
    return Report((Table.of(f"{len(done)} trials", rows),), claims)


def curve(trial: Trial, learner: Learner, steps: int) -> Floats:
    """(steps + 1,) The objective before and after every step."""
    solver = Stochastic(rule="fixed", step_size=_STEP)
    fit = minimise(solver, trial.objective(learner), trial.start, max_iter=steps, tol=None)
    return fit.history.value


def wavering(curves: Floats) -> Floats:
    """Mean change in the second half of every curve, in percent of the mean objective there."""
    later = curves[:, curves.shape[1] // 2 :]
    percent: Floats = 100.0 * np.abs(np.diff(later, axis=1)).mean(axis=1) / later.mean(axis=1)
    return percent


def _draw(done: Units) -> Any:
    axes = new_figure().subplots()
    first = {learner.letter: done[0].found[learner.letter] for learner in TRIO}
    for name, values, style in styled(first):
        axes.plot(values, label=name, **style)
    axes.set(xlabel="steps", ylabel="objective")
    axes.legend(frameon=False)
    return axes.figure


EXPERIMENTS = (
    Experiment(
        "convergence",
        MARGINAL_SVM,
        "figure 2",
        "How smoothly do steps of one length lower the objectives?",
        ("MSSVM", "LSSVM", "HCRF"),
        units,
        curves,
        report,
        {"curves": _draw},
        (
            READING,
            "Wavering is the mean change of the objective from step to step in the second half of "
            f"the steps of length {_STEP:g}, against the objective.",
        ),
    ),
)
