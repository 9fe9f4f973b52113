"""States of a chain that hardly moves, drawn and true: figure 2 of the paper on M2iHMMs.

References
----------
A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014, section 5.2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score

from papers.arrays import Floats, Ints
from papers.base import Claim, Estimate, Experiment, Report, Settings, Table, Units
from papers.data.switching import Steps, Switching
from papers.documents import INFINITE_HMM
from papers.pictures import PALETTE, new_figure
from structlearn import MaxMarginHMM

_SWEEPS = (25, 50, 100)  # after which figure 2 shows the states
_MOVES = "M2iHMM-1 with splits and merges"
_SHOWN = ("M2iHMM-2", "M2iHMM-1", _MOVES)


def still_chain(n_steps: int, seed: Any) -> Steps:
    """Draw a chain that hardly moves between three states, two of which overlap.

    The paper prints 0.01 + 0.98 on the diagonal, whose rows sum to 1.01.
    """
    transitions = 0.01 * np.ones((3, 3)) + 0.97 * np.eye(3)
    return Switching(np.array([2.5, 1.5, -1.5]), np.ones(3), transitions).sample(n_steps, seed)


def units(settings: Settings) -> list[dict[str, Any]]:
    """Return one unit for each chain and model."""
    return [
        {"trial": i, "model": model, "seed": settings.seed, "quick": settings.quick}
        for i in range(settings.count(full=10, quick=2))
        for model in _SHOWN
    ]


def work(trial: int, model: str, seed: int, quick: bool) -> dict[str, Any]:
    """Draw states of a chain from a random start, and compare with the truth."""
    steps = still_chain(100 if quick else 500, [seed, trial])
    sampler = MaxMarginHMM(
        likelihood=model != "M2iHMM-2", alpha0=2.0, gamma0=2.0, n_start=10, spread=0.25,
        merge=False, n_moves=4 if model == _MOVES else 0, burn_in=0, n_draws=max(_SWEEPS),
        n_chains=1, random_state=seed + trial, n_jobs=1,
    ).fit([steps.features], [steps.labels])  # fmt: skip
    paths = {sweep: sampler.draws_[sweep - 1].states for sweep in _SWEEPS}
    found: dict[str, Any] = {
        str(sweep): {
            "agree": 100.0 * one_to_one(states, steps.states),
            "index": float(adjusted_rand_score(steps.states, states)),
            "states": len(np.unique(states)),
        }
        for sweep, states in paths.items()
    }
    if trial == 0:
        found["bars"] = {sweep: matched(states, steps.states) for sweep, states in paths.items()}
        found["truth"] = steps.states
        found["features"] = steps.features[:, 0].round(2)
        found["labels"] = steps.labels
    return found


def matched(states: Ints, truth: Ints) -> Ints:
    """Return every state's partner among the true ones, one to one; others count on from these."""
    counts = np.zeros((states.max() + 1, truth.max() + 1))
    np.add.at(counts, (states, truth), 1.0)
    names = np.full(len(counts), -1)
    rows, columns = linear_sum_assignment(counts, maximize=True)
    names[rows] = columns
    alone = np.flatnonzero((names < 0) & (counts.sum(axis=1) > 0))
    names[alone] = counts.shape[1] + np.arange(len(alone))
    return names[states]


def one_to_one(states: Ints, truth: Ints) -> float:
    """Share of steps in the partner of their true state, where each has one partner at most."""
    return float((matched(states, truth) == truth).mean())


def report(done: Units) -> Report:
    """Tell how close states come to the truth, and how many there are."""
    rows = []
    for name in _SHOWN:
        for sweep in _SWEEPS:
            each = [u.found[str(sweep)] for u in done if u.given["model"] == name]
            rows.append(
                {"model": name, "sweep": sweep, "agree, one to one (%)": _mean(each, "agree")}
                | {"adjusted Rand index": _mean(each, "index"), "states": _mean(each, "states")}
            )
    n = sum(u.given["model"] == _MOVES for u in done)
    heading = f"Figure 2, right: {n} chains of three states"
    return Report((Table.of(heading, rows),), tuple(_claims(done)))


def _mean(each: list[Any], what: str) -> Estimate:
    return Estimate.of([one[what] for one in each])


def _claims(done: Units) -> Iterator[Claim]:
    def agree(name: str, sweep: int) -> Floats:
        return np.array([u.found[str(sweep)]["agree"] for u in done if u.given["model"] == name])

    late = agree("M2iHMM-2", 100)
    yield Claim.above("M2iHMM-2 comes to the truth with minor errors (% agree)", late, than=90.0)
    gain = late - agree("M2iHMM-2", 25)
    yield Claim.above("it is worse after 25 sweeps than after 100 (points)", gain)
    early = agree("M2iHMM-1", 25)
    yield Claim.above("M2iHMM-1 is fairly good after 25 sweeps (% agree)", early, than=70.0)
    yield Claim.above("then it is ahead of M2iHMM-2 (points)", early - agree("M2iHMM-2", 25))
    missed = 100.0 - agree("M2iHMM-1", 100)
    yield Claim.above("M2iHMM-1 does not recover all states (% wrong)", missed)


def draw_states(done: Units) -> Any:
    """Draw the steps by label, and below the states of every step, one bar for each sweep."""
    first = {u.given["model"]: u.found for u in done if u.given["trial"] == 0}
    any_ = first[_MOVES]
    figure = new_figure(9.0, 6.0)
    above, below = figure.subplots(2, 1, height_ratios=(1, 1.2))
    steps = np.arange(len(any_["truth"]))
    for label, marker in ((0, "o"), (1, "^")):
        which = np.array(any_["labels"]) == label
        style = {"color": PALETTE[label], "markersize": 3, "label": f"label {label}"}
        above.plot(steps[which], np.array(any_["features"])[which], marker, **style)
    above.set(xlabel="step", ylabel="x", xlim=(-0.5, len(steps) - 0.5))
    above.legend(frameon=False, ncols=2)
    bars = {"truth": any_["truth"]} | {
        f"{name}, sweep {sweep}": found["bars"][str(sweep)]
        for name, found in first.items()
        for sweep in _SWEEPS
    }
    _draw_bars(below, bars)
    return figure


def _draw_bars(axes: Any, bars: dict[str, Any]) -> None:
    """States without a true partner are grey, the darker the later they come."""
    colours = np.array([_rgb(c) for c in PALETTE[:3]] + [[g] * 3 for g in (0.75, 0.6, 0.45, 0.3)])
    names = np.minimum(np.array([*bars.values()]), len(colours) - 1)
    axes.imshow(colours[names], aspect="auto", interpolation="nearest")
    axes.set(xlabel="step", yticks=range(len(bars)), yticklabels=list(bars))


def _rgb(colour: str) -> list[float]:
    return [int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5)]


EXPERIMENTS = (
    Experiment(
        "infinite-states",
        INFINITE_HMM,
        "figure 2",
        "How close do states come to the true ones in 25, 50 and 100 sweeps, how many are they?",
        _SHOWN,
        units,
        work,
        report,
        {"states": draw_states},
        (
            "States are matched with true ones one to one: a true state in two parts counts half.",
            'The paper shows one chain and says "minor errors" and "fairly good"; 90 % and 70 % '
            "are our readings of these words.",
            "Label 1 is on the same side of all means. Settings are the paper's; the last model "
            "adds splits and merges of states, which the paper does not have.",
        ),
    ),
)
