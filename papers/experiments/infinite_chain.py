"""Chains whose states have rules of their own: table 2 and figure 2 of the paper on M2iHMMs.

References
----------
A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014, section 5.2.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.svm import LinearSVC

from papers.base import Estimate, Record, Settings, Table, whole
from papers.comparators import SwitchingSVM
from papers.data.switching import SETTINGS, Steps, Switching
from papers.documents import INFINITE_HMM
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.display.pictures import PALETTE, new_figure
from structlearn._src.estimators.bayesian.infinite_svm import InfiniteSVM
from structlearn._src.estimators.bayesian.max_margin_hmm import MaxMarginHMM

#: Accuracy in the paper, in the order of the settings.
PAPER = {
    "linear SVM": (61.9, 64.0, 63.2),
    "iM2EDM": (67.2, 67.6, 66.7),
    "M2iHMM-2": (69.4, 70.4, 70.2),
    "GiSVM": (79.6, 79.1, 82.2),
    "M2iHMM-1": (91.2, 85.0, 84.8),
}
_ORACLES = {"oracle, step alone": True, "oracle, chain": False}
_MORE, _LONG = "GiSVM, three chains", "M2iHMM-1, three chains, five times the burn-in"
_BEHIND = (
    ("GiSVM", "oracle, step alone"),
    (_MORE, "oracle, step alone"),
    ("M2iHMM-1", "oracle, chain"),
    (_LONG, "oracle, chain"),
)
_SWEEPS = (25, 50, 100)  # after which figure 2 shows the states


def models(seed: int, quick: bool = False) -> dict[str, Any]:
    """Return all models, set up as in the paper where it says how.

    Deviations of the features are about 2: a variance of 400 on scaled features is 100 on them as
    they are, and a spread of 0.25 is the variance of 1 that the states have.
    """
    n = 10 if quick else 100
    sampled: dict[str, Any] = {"n_draws": n, "n_start": 10, "random_state": seed, "n_jobs": 1}
    alone: dict[str, Any] = {"n_chains": 1}
    sampled |= {"variance": 400.0, "spread": 0.25}
    chain = sampled | {"alpha0": 2.0, "gamma0": 2.0, "merge": False}
    field: dict[str, Any] = {"max_iter": n // 2, "spread": 0.25, "random_state": seed}
    return {
        "linear SVM": LinearSVC(),
        "iM2EDM": SwitchingSVM(likelihood=False, **field),
        "iM2EDM with likelihood": SwitchingSVM(**field),
        "M2iHMM-2": MaxMarginHMM(likelihood=False, burn_in=n, **chain, **alone),
        "GiSVM": InfiniteSVM(concentration=2.0, burn_in=n, **sampled, **alone),
        _MORE: InfiniteSVM(concentration=2.0, burn_in=n, n_chains=3, **sampled),
        "M2iHMM-1": MaxMarginHMM(burn_in=n, **chain, **alone),
        _LONG: MaxMarginHMM(burn_in=5 * n, n_chains=3, **chain),
    }


class Outcome(NamedTuple):
    """Accuracy in per cent, and seconds of training and testing."""

    accuracy: float
    train: float = np.nan
    test: float = np.nan


def outcome(model: Any, train: Steps, test: Steps) -> Outcome:
    """Train on one sequence and label another; models of single rows see no order."""
    chain = not isinstance(model, LinearSVC | InfiniteSVM)
    wrapped: Callable[[Any], Any] = (lambda a: [a]) if chain else (lambda a: a)
    began = time.perf_counter()
    model.fit(wrapped(train.features), wrapped(train.labels))
    trained = time.perf_counter()
    found = model.predict(wrapped(test.features))
    tested = time.perf_counter()
    right = (found[0] if chain else found) == test.labels
    return Outcome(100.0 * float(np.mean(right)), trained - began, tested - trained)


def trial(setting: str, sides: str, seed: list[int], quick: bool) -> dict[str, Outcome]:
    """Draw a chain, and see how well everyone predicts its labels."""
    chain = Switching.draw(setting, sides=sides, random_state=[*seed, 0])
    sizes = (100, 500) if quick else (500, 5000)
    train, test = (chain.sample(n, [*seed, 1 + i]) for i, n in enumerate(sizes))
    found = {name: outcome(m, train, test) for name, m in models(seed[0], quick).items()}
    for name, alone in _ORACLES.items():
        shares = chain.label_probabilities(test.features, alone=alone)
        found[name] = Outcome(100.0 * float((shares.argmax(axis=1) == test.labels).mean()))
    return found


def study(settings: Settings, sides: str) -> tuple[Table, Table]:
    """Accuracies beside the paper's, and how far models are behind those who know all."""
    n = settings.count(full=10, quick=1)
    found: dict[str, list[dict[str, Outcome]]] = {setting: [] for setting in SETTINGS}
    for _, seed in settings.repeat(n, "set"):
        for setting, trials in found.items():
            trials.append(trial(setting, sides, seed, settings.quick))
    names = list(found["vague"][0])
    rows, behind = [], []
    for name in names:
        row: dict[str, Any] = {"model": name}
        for i, (setting, trials) in enumerate(found.items()):
            values = [t[name].accuracy for t in trials]
            row[setting] = Estimate(float(np.mean(values)), float(np.std(values)))
            row[f"paper's {setting}"] = PAPER[name][i] if name in PAPER else ""
        every = [t[name] for trials in found.values() for t in trials]
        row["train s"] = float(np.mean([o.train for o in every]))
        row["test s"] = float(np.mean([o.test for o in every]))
        rows.append(row)
    for name, oracle in _BEHIND:
        gaps = {
            setting: Estimate.of([t[oracle].accuracy - t[name].accuracy for t in trials])
            for setting, trials in found.items()
        }
        behind.append({"model": f"{name} behind {oracle}"} | gaps)
    heading = f"Accuracy (%), {n} sets, sides {sides}"
    return Table.of(heading, rows), Table.of(f"Points behind, sides {sides}", behind)


# ---- figure 2 ----------------------------------------------------------------------------


def recovered(seed: int, quick: bool = False) -> dict[str, Ints]:
    """States of a chain of 500 steps that hardly moves: the truth, and some draws of both models.

    States have the number of the true state that most of their steps are in.
    """
    transitions = 0.01 * np.ones((3, 3)) + 0.97 * np.eye(3)
    chain = Switching(np.array([2.5, 1.5, -1.5]), np.ones(3), transitions)
    steps = chain.sample(100 if quick else 500, seed)
    bars = {"truth": steps.states}
    for name, likelihood in (("M2iHMM-2", False), ("M2iHMM-1", True)):
        model = MaxMarginHMM(
            likelihood=likelihood, alpha0=2.0, gamma0=2.0, n_start=10, spread=0.25, merge=False,
            burn_in=0, n_draws=max(_SWEEPS), n_chains=1, random_state=seed, n_jobs=1,
        ).fit([steps.features], [steps.labels])  # fmt: skip
        for sweep in _SWEEPS:
            bars[f"{name}, sweep {sweep}"] = matched(model.draws_[sweep - 1].states, steps.states)
    return bars


def matched(states: Ints, truth: Ints) -> Ints:
    """Return the true state that most steps of every state are in."""
    counts = np.zeros((states.max() + 1, truth.max() + 1))
    np.add.at(counts, (states, truth), 1.0)
    return counts.argmax(axis=1)[states]


def draw(bars: dict[str, Ints]) -> Any:
    """Draw the states of every step, one bar for each sweep."""
    figure = new_figure(8.0, 3.6)
    axes = figure.subplots()
    colours = np.array([_rgb(colour) for colour in PALETTE[:3]])
    axes.imshow(colours[np.stack([*bars.values()])], aspect="auto", interpolation="nearest")
    axes.set(xlabel="step", yticks=range(len(bars)), yticklabels=list(bars))
    return figure


def _rgb(colour: str) -> Floats:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255.0


# ---- the experiment ----------------------------------------------------------------------


def run(settings: Settings) -> Record:
    """Make table 2 and figure 2 again."""
    tables = [table for sides in ("random", "same") for table in study(settings, sides)]
    bars = recovered(settings.seed, settings.quick)
    agree = [
        {"states": name, "agree with the truth (%)": 100.0 * float((b == bars["truth"]).mean())}
        for name, b in bars.items()
    ]
    return Record(
        "infinite-chain",
        "Chains whose states have rules of their own: table 2 and figure 2",
        (*tables, Table.of("Figure 2", agree)),
        (
            "After ± is the standard deviation over sets, as in the paper; of points behind, the "
            "standard error. Sets differ by more than 10 points, so that only the distance to "
            "someone who knows everything but the states can be compared.",
            "The paper does not say on which side of the mean of a state label 1 is: the same for "
            "all, or at random.",
        ),
        {"states": partial(draw, bars)},
    )


EXPERIMENTS = (
    whole(
        "infinite-chain",
        INFINITE_HMM,
        "table 2, figure 2",
        run,
        ("SVM", "iM2EDM", "M2iHMM-2", "GiSVM", "M2iHMM-1"),
        (),
    ),
)
