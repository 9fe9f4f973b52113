"""Chains whose states have rules of their own: table 2 of the paper on M2iHMMs.

References
----------
A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014, section 5.2.1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from papers.arrays import Floats
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.comparators import SwitchingSVM
from papers.data.switching import SETTINGS, Steps, Switching
from papers.documents import INFINITE_HMM
from structlearn import InfiniteSVM, MaxMarginHMM

#: Accuracy in the paper, in the order of the settings, then seconds of training and testing.
PAPER = {
    "linear SVM": ("61.9 ± 13.6", "64.0 ± 14.5", "63.2 ± 14.5", "3", "0.4"),
    "iM2EDM": ("67.2 ± 14.2", "67.6 ± 13.9", "66.7 ± 14.8", "164", "110"),
    "M2iHMM-2": ("69.4 ± 12.6", "70.4 ± 12.3", "70.2 ± 12.8", "45", "19"),
    "GiSVM": ("79.6 ± 16.6", "79.1 ± 15.3", "82.2 ± 13.9", "24", "3.6"),
    "M2iHMM-1": ("91.2 ± 5.9", "85.0 ± 9.9", "84.8 ± 10.6", "53", "15"),
}
_ORACLES = {"oracle, step alone": True, "oracle, chain": False}
_MORE = "GiSVM, three chains with splits and merges"
_LONG = "M2iHMM-1, the same and five times the burn-in"
_BEHIND = (
    ("GiSVM", "oracle, step alone"),
    (_MORE, "oracle, step alone"),
    ("M2iHMM-1", "oracle, chain"),
    (_LONG, "oracle, chain"),
)
_RANDOM, _SAME = "random", "same"


def models(seed: int, quick: bool = False) -> dict[str, Any]:
    """Return all models, set up as in the paper where it says how.

    Deviations of the features are about 2: a variance of 400 on scaled features is 100 on them as
    they are, and a spread of 0.25 is the variance of 1 that the states have. The paper's sampler
    has no splits and merges.
    """
    n = 10 if quick else 100
    sampled: dict[str, Any] = {"n_draws": n, "n_start": 10, "random_state": seed, "n_jobs": 1}
    sampled |= {"variance": 400.0, "spread": 0.25}
    mixture = sampled | {"concentration": 2.0, "burn_in": n}
    chain = sampled | {"alpha0": 2.0, "gamma0": 2.0, "merge": False}
    plain: dict[str, Any] = {"n_chains": 1, "n_moves": 0}
    field: dict[str, Any] = {"max_iter": n, "spread": 0.25, "random_state": seed}
    return {
        "linear SVM": LinearSVC(),
        "iM2EDM": SwitchingSVM(likelihood=False, **field),
        "M2iHMM-2": MaxMarginHMM(likelihood=False, burn_in=n, **chain, **plain),
        "GiSVM": InfiniteSVM(**mixture, **plain),
        "M2iHMM-1": MaxMarginHMM(burn_in=n, **chain, **plain),
        "iM2EDM with likelihood": SwitchingSVM(**field),
        _MORE: InfiniteSVM(**mixture, n_chains=3),
        _LONG: MaxMarginHMM(burn_in=5 * n, n_chains=3, **chain),
    }


# ---- table 2 -----------------------------------------------------------------------------


def units(settings: Settings) -> list[dict[str, Any]]:
    """Return one unit for each set and model; others than the paper's on random sides alone."""
    names = (*models(0), *_ORACLES)
    return [
        {"set": i, "setting": setting, "sides": sides, "model": name, "seed": settings.seed}
        | {"quick": settings.quick}
        for i in range(settings.count(full=10, quick=1))
        for sides in ((_RANDOM,) if settings.quick else (_RANDOM, _SAME))
        for setting in SETTINGS
        for name in names
        if name in PAPER or name in _ORACLES or (sides == _RANDOM and not settings.quick)
    ]


def work(set: int, setting: str, sides: str, model: str, seed: int, quick: bool) -> dict[str, Any]:
    """Draw a chain, and see how well a model predicts its labels."""
    chain = Switching.draw(setting, sides=sides, random_state=[seed, set, 0])
    sizes = (100, 500) if quick else (500, 5000)
    train, test = (chain.sample(n, [seed, set, 1 + i]) for i, n in enumerate(sizes))
    if model in _ORACLES:
        shares = chain.label_probabilities(test.features, alone=_ORACLES[model])
        return {"accuracy": 100.0 * float((shares.argmax(axis=1) == test.labels).mean())}
    return outcome(models(seed, quick)[model], train, test)


def outcome(model: Any, train: Steps, test: Steps) -> dict[str, Any]:
    """Train on one sequence and label another; models of single rows see no order."""
    chain = not isinstance(model, LinearSVC | InfiniteSVM)
    wrapped: Callable[[Any], Any] = (lambda a: [a]) if chain else (lambda a: a)
    began = time.process_time()
    model.fit(wrapped(train.features), wrapped(train.labels))
    trained = time.process_time()
    found = model.predict(wrapped(test.features))
    seconds = {"train": trained - began, "test": time.process_time() - trained}
    right = (found[0] if chain else found) == test.labels
    return {"accuracy": 100.0 * float(np.mean(right)), **seconds, **states_of(model)}


def states_of(model: Any) -> dict[str, int]:
    """Return the number of states or components, of fitted models that have them."""
    for name in ("n_states_", "n_components_"):
        if hasattr(model, name):
            return {"states": int(getattr(model, name))}
    return {}


class _Found:
    """What units have found, by sides, setting and model, in the order of the sets."""

    def __init__(self, done: Units) -> None:
        self.done = done

    def __call__(self, what: str, sides: str, model: str, setting: str = "") -> list[float]:
        """Figures of one kind; without a setting, those of all one after the other."""
        kept = (
            unit
            for name in ([setting] if setting else SETTINGS)
            for unit in self.done
            if (unit.given["sides"], unit.given["model"], unit.given["setting"])
            == (sides, model, name)
        )
        return [unit.found[what] for unit in kept if what in unit.found]

    def gain(self, one: str, other: str, sides: str, setting: str = "") -> Floats:
        """By how many points one model is ahead, on every set."""
        first, second = (self("accuracy", sides, name, setting) for name in (one, other))
        return np.subtract(first, second)


def report(done: Units) -> Report:
    """Put ours beside the paper's, and judge its order."""
    found = _Found(done)
    given = {sides for unit in done if (sides := unit.given["sides"])}
    tables: list[Table] = []
    claims: list[Claim] = []
    for sides in (s for s in (_RANDOM, _SAME) if s in given):
        names = [n for n in (*models(0), *_ORACLES) if found("accuracy", sides, n)]
        rows = [_row(found, sides, name) for name in names]
        tables.append(Table.of(f"Accuracy (%), sides {sides}", rows))
        behind = [(one, oracle) for one, oracle in _BEHIND if one in names]
        rows = [
            {"model": f"{one} behind {oracle}"}
            | {s: Estimate.of(found.gain(oracle, one, sides, s)) for s in SETTINGS}
            for one, oracle in behind
        ]
        tables.append(Table.of(f"Points behind, sides {sides}", rows))
        claims += _claims(found, sides)
    return Report(tuple(tables), tuple(claims))


def _row(found: _Found, sides: str, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {"model": name}
    paper = PAPER.get(name, ("",) * 5)
    for i, setting in enumerate(SETTINGS):
        row[setting] = Estimate.of(found("accuracy", sides, name, setting))
        row[f"paper's {setting}"] = paper[i]
    states = found("states", sides, name)
    row["states"] = Estimate.of(states) if states else ""
    for i, what in enumerate(("train", "test")):
        row[f"{what}, CPU s"] = median(found(what, sides, name))
        row[f"paper's {what} s"] = paper[3 + i]
    return row


def median(seconds: list[float]) -> Any:
    """Return what most took: the first unit of a process also loads compiled code."""
    return float(np.median(seconds)) if seconds else ""


def _claims(found: _Found, sides: str) -> Iterator[Claim]:
    order = list(PAPER)
    for worse, better in pairwise(order):
        gains = found.gain(better, worse, sides)
        yield Claim.above(f"sides {sides}: {better} is more accurate than {worse} (points)", gains)
    leads = [found.gain("M2iHMM-1", "GiSVM", sides, s) for s in ("positive", "vague")]
    yield Claim.above(
        f"sides {sides}: M2iHMM-1 leads GiSVM by most where states stay (points more)",
        leads[0] - leads[1],
    )
    slower = np.subtract(found("train", sides, "iM2EDM"), found("train", sides, "M2iHMM-2"))
    yield Claim.above(f"sides {sides}: M2iHMM-2 trains faster than iM2EDM (CPU s)", slower)


# ---- the experiment ----------------------------------------------------------------------

_SIDES = (
    "The paper does not say on which side of the mean of a state label 1 is: the same for all, or "
    "at random."
)
EXPERIMENTS = (
    Experiment(
        "infinite-chain",
        INFINITE_HMM,
        "table 2",
        "How accurate are models of chains whose states have rules of their own for the label?",
        (*PAPER, "iM2EDM with likelihood", "oracles"),
        units,
        work,
        report,
        readings=(
            "After ± in our columns is the standard error over sets, in the paper's the standard "
            "deviation. Sets differ by more than 10 points, so that differences are paired, and "
            "models are compared with someone who knows everything but the states.",
            _SIDES,
            "All settings are the paper's (c, l, K0, alpha0, gamma0, numbers of sweeps, rounds); "
            "variances, which it does not give, follow from the generator, not from results.",
            "Rows of the paper have its sampler, without splits and merges; states vote by their "
            "probabilities, where the paper draws them in turn with the labels.",
        ),
    ),
)
