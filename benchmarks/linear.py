"""Cost of one sweep of sum-product on grids up to 2000x2000: linear in the edges?

Three states and one table per edge: the largest grid has 4 million variables, 8 million edges
and 0.6 GB of tables. Everything in float64.
"""

from __future__ import annotations

import pathlib
import resource
import sys

import matplotlib.pyplot as plt
import numpy as np

import structlearn as sl
from report import Report
from structlearn._src.inference.base import Problem
from structlearn._src.inference.messenger import Messenger
from timing import Timing, best

SIDES = (50, 100, 200, 400, 1000, 2000)
STATES = 3
SWEEPS = 3
PARTS = {"one sweep": "o", "setting up messages": "s", "building and wiring the graph": "^"}


def run(out: pathlib.Path) -> Report:
    report = Report("linear", f"sum-product on N x N grids, {STATES} states; CPU time, one thread")
    edges = []
    seconds = {part: [] for part in PARTS}
    for side in SIDES:
        edges.append(2 * side * (side - 1))
        timings = _measure(side, repeats=4 if side <= 400 else 2)
        for part, timing in zip(PARTS, timings, strict=True):
            seconds[part].append(timing.cpu)
        figures = [
            f"{part} {timing.cpu:.3g} s" for part, timing in zip(PARTS, timings, strict=True)
        ]
        report.add(
            f"{side}x{side}", timings[0].cpu / edges[-1] * 1e9, "ns", note=", ".join(figures)
        )
    for part in PARTS:
        target = 1.1 if part == "one sweep" else None
        report.add(f"slope, {part}", slope(edges, seconds[part]), "", target)
    report.rows[0].what += ": one sweep, per edge"
    scale = 1e9 if sys.platform == "darwin" else 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale
    report.add("peak memory", peak, "GB", 12.0)
    report.remarks += [
        f"slopes of log seconds against log edges, by least squares from {SIDES[1]}x{SIDES[1]} on",
        f"memory that is touched for the first time costs {fresh_memory():.1f} s per GB here, "
        f"{fresh_memory(8) * 1000:.0f} ms if it stays in the cache: this bends the last two curves",
    ]
    report.details.update(edges=edges, cpu_seconds=seconds)
    _draw(edges, seconds, out)
    return report


def _measure(side: int, repeats: int) -> tuple[Timing, Timing, Timing]:
    rng = np.random.default_rng(side)
    nodes = rng.normal(size=(side, side, STATES))
    tables = rng.normal(0.0, 0.5, size=(2 * side * (side - 1), STATES, STATES))

    def build() -> sl.FactorGraph:
        graph = sl.grid(nodes, tables)
        graph.wiring  # noqa: B018  compiled on first use
        return graph

    built = best(build, repeats)
    problem = Problem(built.result.wiring, built.result.potentials)
    ready = best(lambda: Messenger(problem, n_jobs=1), repeats)
    sweeps = best(lambda: ready.result.run(SWEEPS, 0.0), repeats)
    return Timing(sweeps.cpu / SWEEPS, sweeps.wall / SWEEPS), ready, built


def fresh_memory(megabytes: int = 1024) -> float:
    """CPU seconds per GB to allocate and fill an array of that size."""
    timing = best(lambda: np.empty(megabytes * 2**17).fill(1.0), 3)
    return timing.cpu / megabytes * 1024


def slope(edges: list[int], seconds: list[float]) -> float:
    """Exponent of the growth, without the smallest grid (fixed costs)."""
    return float(np.polyfit(np.log(edges[1:]), np.log(seconds[1:]), 1)[0])


def _draw(edges: list[int], seconds: dict[str, list[float]], out: pathlib.Path) -> None:
    figure, axes = plt.subplots(figsize=(6.8, 4.6), layout="constrained")
    colours = ("#d1495b", "#2a6f97", "#edae49")
    for (part, marker), colour in zip(PARTS.items(), colours, strict=True):
        label = f"{part} (slope {slope(edges, seconds[part]):.2f})"
        axes.loglog(edges, seconds[part], marker=marker, ms=6, lw=1.6, color=colour, label=label)
    ends = np.array([edges[0], edges[-1]], float)
    base = min(s[0] for s in seconds.values()) * 0.5
    axes.loglog(ends, base * ends / ends[0], ls=":", color="#6c757d", label="linear (slope 1)")
    axes.set_xticks(edges, [f"{side}²\n{_short(e)}" for side, e in zip(SIDES, edges, strict=True)])
    axes.minorticks_off()
    axes.set(xlabel="grid size and number of edges", ylabel="CPU seconds")
    axes.set_title(f"Sum-product on grids, {STATES} states, one thread", loc="left", fontsize=11)
    axes.grid(alpha=0.25, lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(out / "linear.png", dpi=150)
    plt.close(figure)


def _short(count: int) -> str:
    return f"{count / 1e6:.3g}M" if count >= 1e6 else f"{count / 1e3:.3g}k"
