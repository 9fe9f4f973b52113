"""A noisy picture cleaned on a grid, by MAP and by marginals."""

from __future__ import annotations

from typing import Any

import numpy as np

from papers.arrays import Floats, Ints
from papers.pictures import new_figure
from papers.tour.base import Stop, prose, table
from structlearn import Answer, ConvergenceDisplay, FactorGraph, GridDisplay, grid, infer

_SHAPE = (60, 80)
_LEVELS = 5
_NOISE = 0.8  # standard deviation, in grey levels
_HOUSE = np.s_[20:56, 36:72]
_BOND = 1.5  # log potential of two neighbours being equal


HEADING = "A noisy picture, cleaned"


def run(rng: np.random.Generator) -> Stop:
    """Blur a drawing with noise and restore it."""
    truth = scene()
    noisy = truth + rng.normal(0.0, _NOISE, truth.shape)
    graph = potts(noisy)
    best = infer(graph, "map", random_state=rng)
    soft = infer(graph, "marginals", random_state=rng)
    alone = np.clip(np.rint(noisy), 0, _LEVELS - 1)
    joint, each = _labels(best), _labels(soft)
    rows, columns = truth.shape
    lines = [
        *prose(
            f"A picture of {rows} x {columns} pixels in {_LEVELS} grey levels, with noise of "
            f"{_NOISE} levels. Equal neighbours get a bonus of {_BOND}; {graph.n_factors} factors "
            f"in all."
        ),
        "",
        *table(
            ["pixels wrong"],
            {
                "nearest level of each pixel alone": [(alone != truth).mean()],
                "most probable picture (MAP)": [(joint != truth).mean()],
                "most probable level of each pixel (marginals)": [(each != truth).mean()],
            },
        ),
        "",
        *prose(f"MAP by {best.method}: {best.status}."),
        *prose(f"Marginals by {soft.method}: {soft.status}."),
    ]
    pictures = {
        "picture": lambda: _draw(truth, noisy, best, soft),
        "messages": lambda: _draw_messages(noisy[_HOUSE]),
    }
    return Stop(HEADING, lines, pictures)


def scene() -> Ints:
    """A house in the hills by night, in five grey levels."""
    y, x = np.mgrid[: _SHAPE[0], : _SHAPE[1]]
    levels = np.full(_SHAPE, 1)
    levels[(y - 13) ** 2 + (x - 64) ** 2 <= 70] = 4
    levels[y >= 16 + 0.8 * np.abs(x - 28)] = 2
    levels[y >= 45 + 4 * np.sin(x / 11)] = 0
    levels[(y >= 34) & (y < 54) & (x >= 42) & (x < 66)] = 3
    levels[(y >= 22) & (y < 34) & (np.abs(x - 53.5) <= 1.3 * (y - 22))] = 0
    for left in (45, 57):
        levels[(y >= 38) & (y < 44) & (x >= left) & (x < left + 6)] = 0
    levels[(y >= 45) & (y < 54) & (x >= 51) & (x < 57)] = 1
    return levels


def potts(noisy: Floats) -> FactorGraph:
    """Noise model at every pixel, and a bonus for equal neighbours."""
    nodes = -((noisy[..., None] - np.arange(_LEVELS)) ** 2) / (2 * _NOISE**2)
    return grid(nodes, _BOND * np.eye(_LEVELS))


def _labels(answer: Answer) -> Ints:
    return GridDisplay.from_answer(answer, _SHAPE).values


def _draw(truth: Ints, noisy: Floats, best: Answer, soft: Answer) -> Any:
    figure = new_figure(10.5, 5.6)
    axes = figure.subplots(2, 3).ravel()
    style: dict[str, Any] = {"n_states": _LEVELS, "colours": "gray"}
    alone = np.clip(np.rint(noisy), 0, _LEVELS - 1).astype(np.int64)
    joint, each = _labels(best), _labels(soft)

    def titled(words: str, labels: Ints) -> str:
        return f"{words}: {(labels != truth).mean():.1%} wrong"

    GridDisplay(truth, **style).plot(axes[0], title="truth", legend=False)
    axes[1].imshow(noisy, cmap="gray", vmin=-1.5, vmax=_LEVELS + 0.5, interpolation="nearest")
    axes[1].set(xticks=[], yticks=[], title=f"with noise of {_NOISE} levels")
    for ax, words, labels in (
        (axes[2], "each pixel alone", alone),
        (axes[3], "MAP", joint),
        (axes[4], "best of each marginal", each),
    ):
        GridDisplay(labels, **style).plot(ax, title=titled(words, labels), legend=False)
    sure = GridDisplay.from_answer(soft, _SHAPE, show="certainty")
    sure.plot(axes[5], title="probability of that level")
    return figure


def _draw_messages(noisy: Floats) -> Any:
    schedules = ("sequential", "flooding")
    display = ConvergenceDisplay.from_graph(potts(noisy), schedules=schedules, sweeps=150)
    display.traces = {
        "one after the other (default)": display.traces["sequential"],
        "all at once": display.traces["flooding"],
    }
    rows, columns = noisy.shape
    return display.plot(title=f"Belief propagation converges ({rows} x {columns} pixels)").figure_
