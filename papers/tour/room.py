"""A chain, solved exactly: a room over many days, and who was in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from papers.arrays import Floats, Ints
from papers.pictures import PALETTE, new_figure
from papers.tour.base import Stop, prose, table
from structlearn import Answer, ChainDisplay, FactorGraph, chain, infer, infer_many

_STATES = ("empty", "one person", "meeting")
_COLOURS = (PALETTE[4], PALETTE[0], PALETTE[1])
_OPENS, _HOURS, _MINUTES = 7, 12, 5
_STEPS = _HOURS * 60 // _MINUTES
_LEVEL = np.array([400.0, 500.0, 600.0])  # carbon dioxide, parts per million
_NOISE = 90.0
_DAYS = 200
_MOVES = np.array([[0.93, 0.05, 0.02], [0.05, 0.91, 0.04], [0.03, 0.03, 0.94]])


HEADING = "An exact chain: who was in the room?"


class _Found(NamedTuple):
    """What is known of some days, all arrays (days, steps)."""

    truth: Ints
    readings: Floats
    ways: dict[str, Ints]  #: states by each way
    meeting: Floats  #: probability of a meeting
    soft: Sequence[Answer]


def run(rng: np.random.Generator) -> Stop:
    """Draw days, measure them badly, and find out what happened."""
    days = _solve(rng)
    wrong = {name: (states != days.truth).mean() for name, states in days.ways.items()}
    joint = list(days.ways.values())[1]
    hours = [days.meeting[0].sum(), (joint[0] == 2).sum(), (days.truth[0] == 2).sum()]
    hours = [steps * _MINUTES / 60 for steps in hours]
    low, middle, high = _LEVEL
    lines = [
        *prose(
            f"A room is empty, holds one person, or a meeting. All we see, every {_MINUTES} "
            f"minutes, is carbon dioxide: {low:.0f}, {middle:.0f} or {high:.0f} ppm, with noise of "
            f"{_NOISE:.0f}. A chain of {_STEPS} variables is solved exactly, for each of {_DAYS} "
            f"days."
        ),
        "",
        *table(["times wrong"], {name: [share] for name, share in wrong.items()}),
        "",
        *prose(
            "The best state of each time makes the fewest errors on average, the best path is the "
            "one that may have happened as a whole."
        ),
        f"Meetings of the first day: {hours[0]:.1f} hours expected, {hours[1]:.1f} on the best "
        f"path, {hours[2]:.1f} in truth.",
    ]
    return Stop(HEADING, lines, {"room": lambda: _draw(days)})


def _solve(rng: np.random.Generator) -> _Found:
    truth = infer(_day(), "samples", n_samples=_DAYS, random_state=rng).samples
    assert truth is not None
    readings = rng.normal(_LEVEL[truth], _NOISE)
    graphs = [_day(row) for row in readings]
    soft = infer_many(graphs, "marginals")
    beliefs = np.stack([ChainDisplay.from_answer(answer).marginals for answer in soft])  # type: ignore[misc]
    paths = [answer.assignment for answer in infer_many(graphs, "map")]
    ways = {
        "nearest level of each reading alone": np.abs(readings[..., None] - _LEVEL).argmin(axis=2),
        "most probable day (Viterbi)": np.array([list((path or {}).values()) for path in paths]),
        "most probable state of each time (marginals)": beliefs.argmax(axis=2),
    }
    return _Found(truth, readings, ways, beliefs[..., 2], soft)


def _day(readings: Floats | None = None) -> FactorGraph:
    """The chain of a day; without readings the prior that days are drawn from."""
    nodes = np.zeros((_STEPS, len(_STATES)))
    nodes[0] = np.log([0.90, 0.08, 0.02])
    if readings is not None:
        nodes -= (readings[:, None] - _LEVEL) ** 2 / (2 * _NOISE**2)
    return chain(nodes, np.log(_MOVES))


def _draw(days: _Found) -> Any:
    states, readings = days.truth[0], days.readings[0]
    alone, joint, each = (found[0] for found in days.ways.values())
    figure = new_figure(10.0, 5.4)
    above, below = figure.subplots(2, sharex=True, height_ratios=(1, 1.6))
    above.step(np.arange(_STEPS), _LEVEL[states], where="mid", color="black", label="truth")
    above.plot(readings, "o", color=PALETTE[5], markersize=3.5, label="readings")
    above.set(ylabel="CO$_2$ (ppm)", title="Who was in the room?")
    above.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
    above.spines[["top", "right"]].set_visible(False)
    display = ChainDisplay.from_answer(
        days.soft[0],
        paths={"reading alone": alone, "best path": joint, "best of each": each, "truth": states},
        state_names=_STATES,
        colours=_COLOURS,
    ).plot(below)
    hours = np.arange(0, _HOURS + 1, 2)
    labels = [f"{_OPENS + h}:00" for h in hours]
    display.ax_.set_xticks(hours * 60 / _MINUTES - 0.5, labels=labels)
    return figure
