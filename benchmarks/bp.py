"""Loopy sum-product on the 100x100 grid of five states, next to PGMax in the same run."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np

import models
import structlearn as sl
from report import Report
from structlearn._src.inference.base import Problem
from structlearn._src.inference.messenger import Messenger
from timing import best

SWEEPS = 20
REPEATS = 12
# PGMax runs with this old jax only; its other requirements (TensorFlow, Jupyter) are not used.
PGMAX = (
    "pgmax==0.6.1", "jax==0.4.34", "jaxlib==0.4.34", "ml_dtypes==0.5.1", "opt_einsum==3.4.0",
    "numpy==2.0.2", "scipy==1.14.1", "numba==0.61.2", "llvmlite==0.44.0",
)  # fmt: skip


def run(out: pathlib.Path) -> Report:
    report = Report("bp", "sum-product on a random 100x100 grid, 5 states; CPU time, one thread")
    model = models.random_grid()
    problem = _problem(model)
    speeds = {f"structlearn, {s}": _speed(problem, s) for s in ("sequential", "flooding")}
    peer = _pgmax(model, out, report)
    for name, speed in speeds.items():
        report.add(name, speed, "messages/s")
    if peer:
        theirs = peer["messages_per_cpu_second"]
        report.add("PGMax, flooding", theirs, "messages/s", note=_describe(peer))
        for name, speed in speeds.items():
            report.add(f"{name} / PGMax", speed / theirs, "x", 10.0, at_least=True)
        _draw({**speeds, "PGMax, flooding": theirs}, out)
    answer = _to_tolerance(model, report)
    if peer:
        _compare(np.array(peer["marginals"]), answer, report)
        report.details["pgmax"] = {k: v for k, v in peer.items() if k != "marginals"}
    return report


def _problem(model: dict[str, np.ndarray]) -> Problem:
    graph = models.as_graph(model)
    return Problem(graph.wiring, graph.potentials)


def _speed(problem: Problem, schedule: str) -> float:
    """Messages per CPU second over a fixed number of sweeps."""
    damping = 0.5 if schedule == "flooding" else 0.0
    timing = best(
        lambda messenger: messenger.run(SWEEPS, 0.0),
        repeats=REPEATS,
        prepare=lambda: Messenger(problem, schedule=schedule, damping=damping),
    )
    edges = int((problem.wiring.arities == 2).sum())
    return 2 * edges * SWEEPS / timing.cpu


def _to_tolerance(model: dict[str, np.ndarray], report: Report) -> sl.Answer:
    """From an already built graph to messages that move by at most 1e-4."""
    graph = models.as_graph(model)
    problem = Problem(graph.wiring, graph.potentials)
    alone = best(lambda m: m.run(500, 1e-4), REPEATS, prepare=lambda: Messenger(problem))
    ask = {"method": "bp", "restarts": 0, "tol": 1e-4}
    whole = best(lambda: sl.infer(graph, "marginals", **ask), REPEATS)
    report.add("messages to 1e-4", alone.cpu, "s", 0.15, note=f"wall {alone.wall:.3f} s")
    note = f"wall {whole.wall:.3f} s; {whole.result.status}"
    report.add('infer(..., method="bp", tol=1e-4)', whole.cpu, "s", 0.15, note=note)
    return whole.result


def _describe(peer: dict) -> str:
    return (
        f"float32; compiling {peer['compile']:.1f} s extra; "
        f"{peer['sweeps_to_tolerance']} sweeps to 1e-4"
    )


def _compare(theirs: np.ndarray, answer: sl.Answer, report: Report) -> None:
    apart = np.abs(theirs - answer.marginals.array()).max()
    report.remarks.append(f"largest difference between a marginal of PGMax and ours: {apart:.1e}")


def _pgmax(model: dict[str, np.ndarray], out: pathlib.Path, report: Report) -> dict | None:
    """Run the worker in PGMax's own environment, made on first use."""
    try:
        python = _environment(out / "pgmax-venv")
        np.savez(out / "grid100.npz", **model)
        worker = pathlib.Path(__file__).with_name("pgmax_worker.py")
        command = [python, worker, out / "grid100.npz", str(SWEEPS), "5"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout or "").strip().splitlines()[-1:]
        report.remarks.append(f"PGMax could not be run: {' '.join(last)}")
        return None


def _environment(folder: pathlib.Path) -> pathlib.Path:
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    ready = folder / ".ready"
    if not ready.exists() or ready.read_text().split() != list(PGMAX):
        print("making an environment for PGMax ...", file=sys.stderr)
        _quiet(sys.executable, "-m", "venv", "--clear", str(folder))
        _quiet(str(python), "-m", "pip", "install", "--no-deps", *PGMAX)
        ready.write_text("\n".join(PGMAX))
    return python


def _quiet(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def _draw(speeds: dict[str, float], out: pathlib.Path) -> None:
    figure, axes = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
    values = [v / 1e6 for v in speeds.values()]
    bars = axes.barh(list(speeds), values, color=["#2a6f97", "#61a5c2", "#adb5bd"])
    axes.bar_label(bars, fmt="%.2f", padding=4)
    axes.invert_yaxis()
    axes.set(xlabel="million messages per CPU second", xlim=(0, max(values) * 1.15))
    axes.set_title("Sum-product, 100x100 grid, 5 states", loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(out / "bp.png", dpi=150)
    plt.close(figure)
