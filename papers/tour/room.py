"""A chain, solved exactly: a room over a day, and who was in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.arrays import Floats, Ints
from papers.pictures import PALETTE, new_figure
from papers.tour.base import Stop, prose, table
from structlearn import Answer, ChainDisplay, FactorGraph, chain, infer

_STATES = ("empty", "one person", "meeting")
_COLOURS = (PALETTE[4], PALETTE[0], PALETTE[1])
_OPENS, _HOURS, _MINUTES = 7, 12, 5
_STEPS = _HOURS * 60 // _MINUTES
_LEVEL = np.array([400.0, 500.0, 600.0])  # carbon dioxide, parts per million
_NOISE = 90.0
_MOVES = np.array([[0.93, 0.05, 0.02], [0.05, 0.91, 0.04], [0.03, 0.03, 0.94]])


def run(rng: np.random.Generator) -> Stop:
    """Draw a day, measure it badly, and find out what happened."""
    truth = infer(_day(), "samples", n_samples=1, random_state=rng).samples
    assert truth is not None
    states = truth[0]
    readings = rng.normal(_LEVEL[states], _NOISE)
    graph = _day(readings)
    soft = infer(graph, "marginals")
    path = infer(graph, "map")
    shown = ChainDisplay.from_answer(soft, paths={"map": path})
    alone = np.abs(readings[:, None] - _LEVEL).argmin(axis=1)
    assert shown.marginals is not None
    each = shown.marginals.argmax(axis=1)
    joint = shown.paths["map"]
    hours = np.array([shown.marginals[:, 2].sum(), (joint == 2).sum(), (states == 2).sum()])
    hours = hours * _MINUTES / 60
    low, middle, high = _LEVEL
    lines = [
        *prose(
            f"A room is empty, holds one person, or a meeting. All we see, every {_MINUTES} "
            f"minutes, is carbon dioxide: {low:.0f}, {middle:.0f} or {high:.0f} ppm, with noise of "
            f"{_NOISE:.0f}. A chain of {_STEPS} variables is solved exactly."
        ),
        "",
        *table(
            ["times wrong"],
            {
                "nearest level of each reading alone": [(alone != states).mean()],
                "most probable day (Viterbi)": [(joint != states).mean()],
                "most probable state of each time (marginals)": [(each != states).mean()],
            },
        ),
        "",
        f"Hours of meetings: {hours[0]:.1f} expected, {hours[1]:.1f} on the Viterbi path, "
        f"{hours[2]:.1f} in truth.",
    ]
    return Stop(
        "An exact chain: who was in the room?",
        lines,
        {"room": lambda: _draw(states, readings, alone, soft, path)},
    )


def _day(readings: Floats | None = None) -> FactorGraph:
    """The chain of a day; without readings the prior that days are drawn from."""
    nodes = np.zeros((_STEPS, len(_STATES)))
    nodes[0] = np.log([0.90, 0.08, 0.02])
    if readings is not None:
        nodes -= (readings[:, None] - _LEVEL) ** 2 / (2 * _NOISE**2)
    return chain(nodes, np.log(_MOVES))


def _draw(states: Ints, readings: Floats, alone: Ints, soft: Answer, path: Answer) -> Any:
    figure = new_figure(10.0, 5.4)
    above, below = figure.subplots(2, sharex=True, height_ratios=(1, 1.6))
    above.step(np.arange(_STEPS), _LEVEL[states], where="mid", color="black", label="truth")
    above.plot(readings, "o", color=PALETTE[5], markersize=3.5, label="readings")
    above.set(ylabel="CO$_2$ (ppm)", title="Who was in the room?")
    above.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0)
    above.spines[["top", "right"]].set_visible(False)
    display = ChainDisplay.from_answer(
        soft,
        paths={"reading alone": alone, "Viterbi": path, "truth": states},
        state_names=_STATES,
        colours=_COLOURS,
    ).plot(below)
    hours = np.arange(0, _HOURS + 1, 2)
    labels = [f"{_OPENS + h}:00" for h in hours]
    display.ax_.set_xticks(hours * 60 / _MINUTES - 0.5, labels=labels)
    return figure
