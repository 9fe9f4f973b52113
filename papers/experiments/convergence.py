"""How smoothly steps of one length lower the objectives on a hidden chain.

References
----------
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, figure 2.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from papers.base import Estimate, Record, Settings, Table, whole
from papers.documents import MARGINAL_SVM
from papers.experiments.field import CHAIN, Trial
from papers.experiments.trio import TRIO, Learner
from structlearn._src.common.arrays import Floats
from structlearn._src.display.pictures import new_figure, styled
from structlearn._src.solve.loop import run as minimise
from structlearn._src.solve.stochastic import Stochastic

_STEP = 0.02


def run(settings: Settings) -> Record:
    """Figure 2 of the marginal SVM paper: how the objectives waver under steps of one length."""
    n = settings.count(full=20, quick=2)
    steps = 60 if settings.quick else 200
    curves = {learner.letter: np.empty((n, steps + 1)) for learner in TRIO}
    for i, seed in settings.repeat(n):
        trial = Trial.draw(CHAIN, seed)
        for learner in TRIO:
            curves[learner.letter][i] = curve(trial, learner, steps)
    rows = [
        {
            "learner": f"{learner.letter}, {learner.title}",
            "start": Estimate.of(curves[learner.letter][:, 0]),
            f"after {steps // 4}": Estimate.of(curves[learner.letter][:, steps // 4]),
            f"after {steps}": Estimate.of(curves[learner.letter][:, -1]),
            "wavering (%)": Estimate.of(wavering(curves[learner.letter])),
        }
        for learner in TRIO
    ]
    notes = (
        f"Wavering is the mean change of the objective from step to step, in the second half of "
        f"{steps} steps of length {_STEP:g}, against the objective: most for maximised hidden "
        f"cells, less for summed ones, next to none where outputs are summed too.",
    )
    return Record(
        "convergence",
        "Hidden chain: objective under subgradient steps of one length",
        (Table.of(f"{n} trials", rows),),
        notes,
        {"curves": partial(_draw, {name: rows[0] for name, rows in curves.items()})},
    )


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


def _draw(curves: dict[str, Floats]) -> Any:
    axes = new_figure().subplots()
    for name, values, style in styled(curves, axes):
        axes.plot(values, label=name, **style)
    axes.set(xlabel="steps", ylabel="objective")
    axes.legend(frameon=False)
    return axes.figure


EXPERIMENTS = (whole("convergence", MARGINAL_SVM, "figure 2", run, ("MSSVM", "LSSVM", "HCRF"), ()),)
