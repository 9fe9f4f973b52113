"""Hidden chains learnt from few and from many examples.

References
----------
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, figure 3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from papers.arrays import Floats
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.documents import MARGINAL_SVM
from papers.experiments.field import CHAIN, Trial
from papers.experiments.simulated import READING
from papers.experiments.trio import TRIO, Learner
from papers.experiments.uncertainty import by
from papers.pictures import new_figure, styled
from structlearn.solvers import Cccp, Stochastic, run

SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
_FEW = 16  # training examples up to which the paper's MSSVM is far ahead of HCRF
_CELLS = 10  # and as many inputs: the chain of 20 nodes
_INNER, _OUTER = 60, 10


def units(settings: Settings) -> list[dict[str, Any]]:
    """One trial with one size each."""
    sizes = (4, 64) if settings.quick else SIZES
    n = settings.count(20, 2)
    return [{"size": size, "seed": [settings.seed, i]} for size in sizes for i in range(n)]


def errors(size: int, seed: list[int]) -> dict[str, float]:
    """Error rate of every learner."""
    trial = Trial.draw(replace(CHAIN, rows=_CELLS, n_train=size, n_test=500), seed)
    return {
        learner.letter: 100.0 - trial.accuracy(learner, weights_of(trial, learner))
        for learner in TRIO
    }


def weights_of(trial: Trial, learner: Learner) -> Floats:
    """Train by CCCP; the sum of losses grows with the examples, so that steps must shrink."""
    step = min(0.02, 0.6 / trial.train.n_examples)
    inner = Stochastic(rule="fixed", step_size=step, average=0.5, horizon=_INNER)
    solver = Cccp(inner, _INNER, inner_tol=0.0, keep="last")
    return run(solver, trial.objective(learner), trial.start, max_iter=_OUTER, tol=None).weights


def report(done: Units) -> Report:
    """Error rates by size."""
    found = by(done, "size")
    rows = []
    for size, each in found.items():
        row: dict[str, Any] = {"examples": size}
        row |= {name: Estimate.of(values) for name, values in each.items()}
        row |= {f"{name} - M": Estimate.of(each[name] - each["M"]) for name in "LH"}
        rows.append(row)
    trials = len(done) // len(found)
    table = Table.of(f"Error rate of the outputs (%), {trials} trials", rows)
    few = [size for size in found if size <= _FEW]
    gaps = {
        name: np.mean([found[size][name] - found[size]["M"] for size in found], axis=0)
        for name in "LH"
    }
    early = np.mean([found[size]["H"] - found[size]["M"] for size in few], axis=0)
    cross = [found[size]["H"] - found[size]["L"] for size in (min(found), max(found))]
    return Report(
        (table,),
        (
            Claim.above("MSSVM errs less than LSSVM at all sizes on average", gaps["L"]),
            Claim.above(f"MSSVM errs less than HCRF up to {max(few)} examples", early),
            Claim.above("HCRF errs more than LSSVM on the fewest examples", cross[0]),
            Claim.above("HCRF errs less than LSSVM on the most examples", -cross[1]),
        ),
    )


def _draw(done: Units) -> Any:
    found = by(done, "size")
    axes = new_figure().subplots()
    curves = {t.letter: [each[t.letter].mean() for each in found.values()] for t in TRIO}
    for name, curve, style in styled(curves):
        axes.semilogx(list(found), curve, base=2, label=name, **style)
    axes.set(xlabel="training examples", ylabel="error rate (%)")
    axes.legend(frameon=False)
    return axes.figure


EXPERIMENTS = (
    Experiment(
        "training-size",
        MARGINAL_SVM,
        "figure 3",
        "How do the learners err as there are more examples to learn from?",
        ("MSSVM", "LSSVM", "HCRF"),
        units,
        errors,
        report,
        {"curves": _draw},
        (
            READING,
            f"CCCP with {_OUTER} bounds of {_INNER} steps each, of length 0.02 up to 30 examples "
            "and 0.6 over their number beyond; the second half of the steps is averaged. Lengths "
            "were chosen on other seeds. The curves of the paper are not in its text.",
        ),
    ),
)
