"""Ten thousand small graphs: two threads against one, and many small against one big."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import models
import structlearn as sl
from report import Report
from structlearn._src.common import threads
from structlearn._src.graph.joined import join
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.chain_batch import Chains
from structlearn._src.inference.junction import EliminationTree, order_for
from structlearn._src.inference.message_plan import MessagePlan
from structlearn._src.inference.messenger import Messenger
from timing import Timing, best, undisturbed

COUNT = 10_000
DIFFERENT = 1_000  # graphs with potentials of their own; the rest repeat them
SPEED_UP = 1.7
# Forward-backward on a chain costs less than making its answer, so that threads cannot help much.
LIGHT = 'infer_many on chains, method="chain"'


def run(out: pathlib.Path) -> Report:
    title = f"{COUNT:,} small graphs at once; wall time of one thread / two threads"
    report = Report("batch", title)
    rng = np.random.default_rng(5)
    mixed = _many(rng, models.small_hidden_chain, models.small_grid)
    chains = _many(rng, models.small_chain)
    works = {
        "joined wiring, messages to 1e-6": _messages(_joined(mixed)),
        "joined wiring, elimination": _elimination(_joined(mixed)),
        "chains, forward-backward": _forward_backward(rng),
        'infer_many, method="bp"': _ask(mixed, "bp"),
        'infer_many, method="junction_tree"': _ask(mixed, "junction_tree"),
        LIGHT: _ask(chains, "chain"),
    }
    timings = {name: _one_and_two(work) for name, work in works.items()}
    for name, (one, two) in timings.items():
        quiet = one.quiet and two.quiet
        alone = "" if quiet else "not judged, others were busy; "
        note = (
            f"{alone}wall {one.wall:.3f} -> {two.wall:.3f} s; CPU {one.cpu:.3f} -> "
            f"{two.cpu:.3f} s, {two.serial:.3f} s in one thread: "
            f"{_possible(one, two):.2f} x possible"
        )
        target = SPEED_UP if quiet and name != LIGHT else None
        report.add(name, one.wall / two.wall, "x", target, at_least=True, note=note)
    report.remarks.append(
        "runs that other programs disturbed are not counted unless a note says so; 'possible' is "
        "what the CPU times allow; on chains most of the time goes into making the answers"
    )
    one, two = _one_and_two(_sorting(rng))
    report.add("for comparison: sorting separate arrays", one.wall / two.wall, "x", note="NumPy")
    _against_one_big(report, rng)
    _draw({name: (one.wall, two.wall) for name, (one, two) in timings.items()}, out)
    return report


def _one_and_two(work: Callable[[int], Any]) -> list[Timing]:
    """Times with one thread and with two."""
    work(2)
    return undisturbed(work, (1, 2))


def _possible(one: Timing, two: Timing) -> float:
    """Speed-up if the work outside the calling thread is shared evenly by two cores."""
    return one.cpu / (two.serial + (two.cpu - two.serial) / 2)


def _many(rng: np.random.Generator, *kinds: Callable) -> list[sl.FactorGraph]:
    """COUNT graphs of the given kinds, in turn."""
    graphs = [kinds[i % len(kinds)](rng) for i in range(DIFFERENT)]
    for graph in graphs:
        graph.wiring  # noqa: B018  compiled on first use, which is not what is timed
    return [graphs[i % DIFFERENT] for i in range(COUNT)]


def _joined(graphs: list[sl.FactorGraph]) -> Problem:
    wiring = join([g.wiring for g in graphs])
    return Problem(wiring, np.concatenate([g.potentials for g in graphs]))


def _messages(problem: Problem) -> Callable[[int], Any]:
    """Messages from nothing to rest, and beliefs; set up once, as when a model is learned."""
    plan = MessagePlan(problem)

    def work(n_jobs: int) -> Any:
        messenger = Messenger(problem, plan=plan, n_jobs=n_jobs)
        messenger.run(500, 1e-6)
        return messenger.value()

    return work


def _elimination(problem: Problem) -> Callable[[int], Any]:
    """Forward and back; planned once, as when a model is learned."""
    tree = EliminationTree(problem, order_for(problem, Options().max_table))

    def work(n_jobs: int) -> Any:
        tree.n_jobs = n_jobs
        with tree.stores.lend() as store:
            return tree.forward(problem.potentials, store), tree.backward(store)

    return work


def _forward_backward(rng: np.random.Generator) -> Callable[[int], Any]:
    nodes = rng.normal(size=(25 * COUNT, 9))
    edges = rng.normal(size=(24 * COUNT, 9, 9))
    offsets = np.arange(0, 25 * COUNT + 1, 25)
    return lambda n_jobs: Chains(nodes, edges, offsets, n_jobs).marginals("sum")


def _ask(graphs: list[sl.FactorGraph], method: str) -> Callable[[int], Any]:
    return lambda n_jobs: sl.infer_many(graphs, method=method, restarts=0, n_jobs=n_jobs)


def _sorting(rng: np.random.Generator) -> Callable[[int], Any]:
    """Work that shares nothing: what two threads can bring on this machine just now."""
    arrays = rng.normal(size=(8, 1_000_000))
    ranges = [(i, i + 1) for i in range(len(arrays))]
    return lambda n_jobs: threads.run(lambda a, b: np.sort(arrays[a]), ranges, n_jobs)


def _against_one_big(report: Report, rng: np.random.Generator) -> None:
    """The same number of variables and edges, once in small grids and once in one."""
    small = _joined(_many(rng, models.small_grid))
    side = int(np.sqrt(small.wiring.n_variables))
    edges = 2 * side * (side - 1)
    graph = sl.grid(rng.normal(size=(side, side, 3)), rng.normal(size=(edges, 3, 3)))
    big = Problem(graph.wiring, graph.potentials)
    cost = {}
    for name, problem in (("small", small), ("big", big)):
        timing = best(lambda p=problem: _sweeps(p), 4)
        cost[name] = timing.cpu / int((problem.wiring.arities == 2).sum())
    note = f"{cost['small'] * 1e9:.0f} and {cost['big'] * 1e9:.0f} ns of CPU per edge, 5 sweeps"
    what = f"cost per edge, {COUNT:,} 4x4 grids / one {side}x{side} grid"
    report.add(what, cost["small"] / cost["big"], "x", 1.5, note=note)


def _sweeps(problem: Problem) -> None:
    Messenger(problem, n_jobs=1).run(5, 0.0)


def _draw(walls: dict[str, tuple[float, float]], out: pathlib.Path) -> None:
    figure, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
    place = np.arange(len(walls))
    for i, (label, colour) in enumerate((("1 thread", "#adb5bd"), ("2 threads", "#2a6f97"))):
        axes.barh(
            place + (i - 0.5) * 0.38,
            [w[i] for w in walls.values()],
            0.38,
            label=label,
            color=colour,
        )
    for y, (one, two) in zip(place, walls.values(), strict=True):
        axes.annotate(
            f"{one / two:.2f}x", (max(one, two), y), (5, 0), "data", "offset points", va="center"
        )
    axes.set_yticks(place, list(walls))
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_xlabel("seconds of wall time")
    axes.set_title(f"{COUNT:,} small graphs", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(out / "batch.png", dpi=150)
    plt.close(figure)
