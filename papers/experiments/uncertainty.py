"""Hidden chains whose hidden cells are known more or less well.

References
----------
W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, table 3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from papers.arrays import Floats
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.comparators.alternating import Conditional, Delta, MinEntropy, predict_jointly, renyi
from papers.data.synthetic import Spread
from papers.documents import MARGINAL_SVM
from papers.experiments.field import AVERAGED, CHAIN, PRINTED, Trial
from papers.experiments.simulated import READING
from papers.experiments.trio import TRIO
from papers.pictures import new_figure, styled
from structlearn.losses import Objective
from structlearn.solvers import Lbfgs, Stochastic, run

#: Accuracies that the paper prints by sigma_h, in the order of `MODELS`.
PAPER = {
    10.0: (79.30, 79.46, 78.68, 79.04, 77.16),
    1.0: (70.00, 70.07, 69.88, 68.53, 67.91),
    0.5: (67.24, 65.98, 66.66, 66.05, 65.15),
    0.1: (69.63, 67.91, 69.03, 65.19, 67.96),
    0.01: (73.88, 71.38, 72.58, 67.21, 71.52),
    0.001: (72.08, 69.24, 70.88, 65.48, 66.54),
}
SIGMAS = tuple(PAPER)
MODELS = ("M", "L", "H", "M3E", "ModLat")
_NAMES = {"L": "LSSVM", "H": "HCRF"}
_LARGE = (10.0, 1.0)  # sigma_h at which the paper's LSSVM leads
SPREADS = (3.0, float(np.sqrt(2.0)), 0.7, 0.0)

_STEP = 0.02
_STEPS = 200
_ALPHA = 2.0  # order of Rényi's entropy in M3E
_BETA = 0.1  # weight of the own diversity in ModLat's dissimilarity
_ROUNDS = 5  # of ModLat, which learns its two distributions in turn


def _small(quick: bool) -> Any:
    return replace(CHAIN, rows=10, n_test=50) if quick else CHAIN


# ---- table 3 -----------------------------------------------------------------------------


def units(settings: Settings) -> list[dict[str, Any]]:
    """One trial with one spread each; the same seed draws the same random numbers for all."""
    sigmas = (10.0, 0.1) if settings.quick else SIGMAS
    n = settings.count(40, 2)
    return [
        {"sigma": sigma, "seed": [settings.seed, i], "quick": settings.quick}
        for sigma in sigmas
        for i in range(n)
    ]


def five(sigma: float, seed: list[int], quick: bool) -> dict[str, float]:
    """Accuracy of all five models."""
    trial = Trial.draw(_small(quick), seed, Spread(hidden=sigma))
    found = {
        learner.letter: trial.accuracy(learner, trial.fit(learner, PRINTED).weights)
        for learner in TRIO
    }
    return found | {"M3E": min_entropy(trial), "ModLat": two_distributions(trial)}


def _averaged(objective: Objective, start: Floats, steps: int) -> Floats:
    solver = Stochastic(rule="fixed", step_size=_STEP, average=0.5, horizon=steps)
    return run(solver, objective, start, max_iter=steps, tol=None).weights


def min_entropy(trial: Trial) -> float:
    """Accuracy of M3E."""
    objective = MinEntropy(trial.model, trial.train, renyi(_ALPHA))
    weights = _averaged(objective, trial.start, _STEPS)
    outputs = objective.predict(weights, trial.test)
    return trial.right(outputs[:, : int((~trial.field.hidden).sum())])


def two_distributions(trial: Trial) -> float:
    """Accuracy of ModLat: the predicting and the describing weights are learnt in turn."""
    weights = describing = trial.start
    for _ in range(_ROUNDS):
        _, hidden = predict_jointly(trial.model, weights, trial.train)
        conditional = Conditional(trial.model, trial.train, hidden, _BETA)
        describing = run(Lbfgs(), conditional, describing, max_iter=50, tol=None).weights
        delta = Delta(trial.model, trial.train, conditional.likely(describing))
        weights = _averaged(delta, weights, _STEPS // _ROUNDS)
    outputs, _ = predict_jointly(trial.model, weights, trial.test)
    return trial.right(outputs[:, : int((~trial.field.hidden).sum())])


def by(done: Units, key: str) -> dict[float, dict[str, Floats]]:
    """Accuracies by what was given, then by model, trials in the same order everywhere."""
    levels = list(dict.fromkeys(unit.given[key] for unit in done))
    found: dict[float, dict[str, Floats]] = {}
    for level in levels:
        here = [unit for unit in done if unit.given[key] == level]
        here.sort(key=lambda unit: unit.given["seed"])
        found[level] = {
            name: np.array([unit.found[name] for unit in here]) for name in here[0].found
        }
    return found


def table_3(done: Units) -> Report:
    """Accuracies by sigma_h, beside the paper's."""
    found = by(done, "sigma")
    rows = []
    for sigma, each in found.items():
        row: dict[str, Any] = {"sigma_h": f"{sigma:g}"}
        row |= {name: Estimate.of(each[name]) for name in MODELS}
        row |= {"M - L": Estimate.of(each["M"] - each["L"])}
        row["paper"] = " / ".join(map(str, PAPER[sigma]))
        rows.append(row)
    trials = len(done) // len(found)
    table = Table.of(f"Accuracy (%), {trials} trials; the paper's in the same order", rows)
    return Report((table,), tuple(_claims(found)))


def _claims(found: dict[float, dict[str, Floats]]) -> list[Claim]:
    large = [sigma for sigma in found if sigma in _LARGE]
    small = [sigma for sigma in found if sigma not in _LARGE]
    leads = {
        name: {s: found[s]["M"] - found[s][name] for s in found} for name in MODELS if name != "M"
    }
    claims = [
        Claim.above(
            f"MSSVM beats {_NAMES.get(name, name)} where hidden cells are uncertain",
            np.mean([leads[name][sigma] for sigma in small], axis=0),
        )
        for name in leads
    ]
    rise = np.mean([leads["L"][s] for s in small], axis=0)
    rise = rise - np.mean([leads["L"][s] for s in large], axis=0)
    return [Claim.above("the lead of MSSVM over LSSVM grows as sigma_h falls", rise), *claims]


# ---- evidence about hidden cells ---------------------------------------------------------


def sight_units(settings: Settings) -> list[dict[str, Any]]:
    """One trial with one spread each."""
    spreads = (SPREADS[0], SPREADS[-1]) if settings.quick else SPREADS
    n = settings.count(60, 3)
    return [
        {"spread": spread, "seed": [settings.seed, i], "quick": settings.quick}
        for spread in spreads
        for i in range(n)
    ]


def three(spread: float, seed: list[int], quick: bool) -> dict[str, float]:
    """Accuracy of the three learners, by averaged steps and by CCCP."""
    trial = Trial.draw(_small(quick), seed, Spread(hidden_input=spread))
    ways = {"": AVERAGED, " CCCP": PRINTED}
    return {
        f"{learner.letter}{suffix}": trial.accuracy(learner, trial.fit(learner, how).weights)
        for suffix, how in ways.items()
        for learner in TRIO
    }


def sight_report(done: Units) -> Report:
    """Accuracies by the spread of what inputs say of hidden cells."""
    found = by(done, "spread")
    rows = []
    for spread, each in found.items():
        row: dict[str, Any] = {"spread": f"{spread:.2f}"}
        row |= {name: Estimate.of(values) for name, values in each.items()}
        row |= {"M - L": Estimate.of(each["M"] - each["L"])}
        row |= {"M - L CCCP": Estimate.of(each["M CCCP"] - each["L CCCP"])}
        row |= {"M - H": Estimate.of(each["M"] - each["H"])}
        rows.append(row)
    claims = []
    for suffix, how in (("", "averaged steps"), (" CCCP", "CCCP")):
        for rival, name in (("L", "LSSVM"), ("H", "HCRF")):
            leads = [
                found[s][f"M{suffix}"] - found[s][f"{rival}{suffix}"]
                for s in (min(found), max(found))
            ]
            says = f"the lead of MSSVM over {name} grows as hidden cells are seen less, by {how}"
            claims.append(Claim.above(says, leads[0] - leads[1]))
    trials = len(done) // len(found)
    table = Table.of(f"Accuracy (%), {trials} trials", rows)
    return Report((table,), tuple(claims))


def _draw(key: str, names: tuple[str, ...], done: Units) -> Any:
    found = by(done, key)
    axes = new_figure().subplots()
    curves = {name: [each[name].mean() for each in found.values()] for name in names}
    for name, curve, style in styled(curves):
        axes.plot([f"{level:.3g}" for level in found], curve, label=name, **style)
    axes.set(xlabel=key, ylabel="accuracy (%)")
    axes.legend(frameon=False)
    return axes.figure


# ---- the experiments ---------------------------------------------------------------------

EXPERIMENTS = (
    Experiment(
        "hidden-potentials",
        MARGINAL_SVM,
        "table 3",
        "Who gains as the potentials of hidden cells alone say less of them?",
        ("MSSVM", "LSSVM", "HCRF", "M3E", "ModLat"),
        units,
        five,
        table_3,
        {"curves": lambda done: _draw("sigma", MODELS, done)},
        (
            READING,
            "MSSVM, LSSVM and HCRF by CCCP as printed. M3E (order 2) and ModLat (own diversity "
            "weighted 0.1, a cost of 1 for hidden cells that differ) are our own, by 200 averaged "
            "steps of 0.02: the paper uses default settings of packages that are not available. "
            "Nothing was chosen by the test sets.",
        ),
    ),
    Experiment(
        "hidden-evidence",
        MARGINAL_SVM,
        "beside table 3",
        "Who gains as the inputs say less of hidden cells?",
        ("MSSVM", "LSSVM", "HCRF"),
        sight_units,
        three,
        sight_report,
        {"curves": lambda done: _draw("spread", ("M", "L", "H"), done)},
        (
            READING,
            "The spread is the standard deviation of the potentials between hidden cells and "
            "inputs, which the paper leaves alone.",
        ),
    ),
)
