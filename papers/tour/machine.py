"""Marginal MAP: a machine that is fine in one way and broken in many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Floats, Ints
from papers.pictures import PALETTE, new_figure
from papers.tour.base import Stop, prose, table
from structlearn import Answer, ChainDisplay, FactorGraph, hidden_chain, infer, infer_many

DAYS, FAULTS = 1000, 5
_HOURS = 8  # so few that all outputs of a day can be listed
CHANGE = 0.1  # chance per hour to break if fine, and to be repaired if broken
MEANS = np.concatenate([[0.0], np.linspace(1.0, 3.0, FAULTS)])  # vibration when fine, and broken
NOISE = 1.5  # wider than the steps between faults, so that none is sure
_WAYS = ("marginal MAP", "joint MAP", "best of each marginal")


class Days(NamedTuple):
    """Days of the machine, and what was found out about them."""

    outputs: Ints  #: fine or broken, (days, hours)
    hidden: Ints  #: 0 or the number of the fault
    readings: Floats
    found: dict[str, Ints]  #: outputs by each way
    soft: Sequence[Answer]


HEADING = "Hidden faults: why joint MAP gets the outputs wrong"


def run(rng: np.random.Generator) -> Stop:
    """Draw many days, and count who gets them right."""
    days = solve(rng, DAYS)
    right = {way: found == days.outputs for way, found in days.found.items()}
    differ = (days.found["marginal MAP"] != days.found["joint MAP"]).any(axis=1).mean()
    lines = [
        *prose(
            f"A machine is fine in one way and broken in {FAULTS}. Faults come and go, and a "
            "sensor of its vibration sees them badly. Outputs are fine or broken, hour by hour; "
            "which fault it is stays hidden. Joint MAP is the one most probable story, faults "
            "included; each single story with faults is improbable, so it says 'fine' too often. "
            "Marginal MAP first adds up all stories with the same outputs."
        ),
        "",
        f"{DAYS} days of {_HOURS} hours:",
        *table(
            ["whole days right", "hours right"],
            {way: [r.all(axis=1).mean(), r.mean()] for way, r in right.items()},
        ),
        "",
        *prose(
            f"Joint and marginal MAP differ on {differ:.0%} of the days. Marginal MAP is meant for "
            "whole days, the best of each marginal for single hours; joint MAP answers neither "
            "question."
        ),
    ]
    return Stop(HEADING, lines, {"machine": lambda: _draw(days, right)})


def solve(rng: np.random.Generator, n_days: int) -> Days:
    """Draw days, and ask for their outputs in three ways."""
    drawn = infer(_day(), "samples", n_samples=n_days, random_state=rng).samples
    assert drawn is not None
    outputs = drawn[:, :_HOURS]
    hidden = drawn[:, _HOURS:]
    readings = rng.normal(MEANS[hidden], NOISE)
    graphs = [_day(row) for row in readings]
    soft = infer_many(graphs, "marginals")
    found = {
        "marginal MAP": _outputs(infer_many(graphs, "marginal_map")),
        "joint MAP": _outputs(infer_many(graphs, "map")),
        "best of each marginal": np.array([_broken(a) > 0.5 for a in soft]).astype(np.int64),
    }
    return Days(outputs, hidden, readings, found, soft)


def _day(readings: Floats | None = None) -> FactorGraph:
    """Outputs over a hidden chain; without readings the prior that days are drawn from."""
    states = 1 + FAULTS
    moves = np.empty((states, states))
    moves[0, 0] = 1 - CHANGE
    moves[0, 1:] = CHANGE / FAULTS
    moves[1:, 0] = CHANGE
    moves[1:, 1:] = (1 - CHANGE) / FAULTS
    hidden = np.zeros((_HOURS, states))
    hidden[0] = np.log([0.5, *[0.5 / FAULTS] * FAULTS])
    if readings is not None:
        hidden -= (readings[:, None] - MEANS) ** 2 / (2 * NOISE**2)
    fits = np.full((2, states), -np.inf)
    fits[0, 0] = fits[1, 1:] = 0.0
    return hidden_chain(np.zeros((_HOURS, 2)), hidden, np.log(moves), fits)


def _outputs(answers: Sequence[Answer]) -> Ints:
    return np.array([[answer.assignment[t] for t in range(_HOURS)] for answer in answers])  # type: ignore[index]


def _broken(answer: Answer) -> Floats:
    """Probability of being broken, hour by hour."""
    assert answer.marginals is not None
    return np.array([answer.marginals[t][1] for t in range(_HOURS)])


def _draw(days: Days, right: dict[str, Any]) -> Any:
    figure = new_figure(11.0, 4.7)
    left, other = figure.subplots(1, 2, width_ratios=(1, 1.7))
    _draw_shares(left, right)
    day = _telling_day(days)
    broken = 1 + FAULTS  # a colour of its own for the outputs
    outputs = {
        "joint MAP": days.found["joint MAP"][day],
        "marginal MAP": days.found["marginal MAP"][day],
        "truth": days.outputs[day],
    }
    ChainDisplay.from_answer(
        days.soft[day],
        variables=list(range(_HOURS, 2 * _HOURS)),
        paths={name: broken * path for name, path in outputs.items()},
        state_names=["fine", *(f"fault {k}" for k in range(1, broken)), "broken: any fault"],
        colours=(PALETTE[4], *_reds(), "0.25"),
    ).plot(other, title=f"Day {day}: marginals of the hidden states, and outputs")
    other.set_xticks(range(_HOURS), labels=range(1, 1 + _HOURS))
    other.set(xlabel="hour")
    figure.supxlabel(
        "Marginal MAP is the most probable day as a whole: an hour of it may differ from what is "
        "most probable at that hour.",
        fontsize=9,
        color="0.35",
    )
    return figure


def _draw_shares(ax: Any, right: dict[str, Any]) -> None:
    at = np.arange(len(_WAYS))
    for shift, (name, colour, values) in enumerate(
        (
            ("whole days", PALETTE[0], [right[w].all(axis=1).mean() for w in _WAYS]),
            ("hours", PALETTE[4], [right[w].mean() for w in _WAYS]),
        )
    ):
        bars = ax.bar(at + 0.4 * shift - 0.2, values, 0.38, color=colour, label=name)
        ax.bar_label(bars, [f"{v:.0%}" for v in values], padding=2)
    ax.set_xticks(at, labels=["marginal\nMAP", "joint\nMAP", "best of each\nmarginal"])
    ax.set(ylim=(0, 1.15), yticks=[], title=f"Outputs right, {DAYS} days")
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.legend(frameon=False, loc="upper center", ncols=2)


def _reds() -> list[Any]:
    import matplotlib

    return [tuple(c) for c in matplotlib.colormaps["YlOrRd"](np.linspace(0.35, 0.95, FAULTS))]


def _telling_day(days: Days) -> int:
    """A day that marginal MAP has right, with joint MAP as far off as on any such day."""
    fine = (days.found["marginal MAP"] == days.outputs).all(axis=1)
    off = (days.found["joint MAP"] != days.outputs).sum(axis=1)
    both = (days.outputs.min(axis=1) == 0) & (days.outputs.max(axis=1) == 1)
    return int(np.argmax(np.where(fine & both, off, -1)))
