"""Scores of the MAP portfolio next to the best figures known for the same models."""

from __future__ import annotations

import pathlib

import numpy as np

import models
import structlearn as sl
from report import Report, table
from timing import best

# Best score found by any of ten programs, its origin, and the bound of 200 sweeps of TRW-S.
KNOWN = {
    "grid100_k5_s05": (15949.3, "sum-product at 0.25, ICM", 15999.1),
    "grid100_k5_s10": (24293.9, "sum-product at 0.25, ICM", 24649.0),
    "grid100_k5_s20": (43979.7, "sum-product at 0.5, ICM", 45591.2),
    "potts100_k5": (14295.196, "TRW-S, proved", 14295.196),
}
FIRST_OF_TEN = 1382.682  # grid20x40_k5_x10 number 0, proved


def run(out: pathlib.Path) -> Report:
    report = Report("map", "scores of the most probable assignment (more is better)")
    lines = [["model", "score", "best known", "difference", "bound", "TRW-S bound", "CPU s"]]
    for name, (score, origin, bound) in KNOWN.items():
        path = models.data("bench_gm", f"{name}.npz")
        if path is None:
            report.remarks.append(f"{name} skipped: it is not in STRUCTLEARN_DATA")
            continue
        lines.append(_one(report, name, dict(np.load(path)), score, origin, bound))
    ten = models.data("bench_gm", "grid20x40_k5_x10.npz")
    if ten is not None:
        lines += _ten(report, dict(np.load(ten)))
    report.remarks += table(lines) if len(lines) > 1 else []
    return report


def _solve(model: dict[str, np.ndarray]):
    graph = models.as_graph({**model, "unary": model["unary"].astype(float)})
    timing = best(lambda: sl.infer(graph, "map", method="portfolio", random_state=0), repeats=1)
    return timing, timing.result


def _one(
    report: Report, name: str, model: dict, score: float, origin: str, bound: float
) -> list[str]:
    timing, answer = _solve(model)
    report.add(name, answer.value, "", score * (1 - 5e-6), at_least=True, note=answer.status)
    return _line(
        name, answer, timing.cpu, f"{score:.1f} ({origin})", answer.value - score, f"{bound:.1f}"
    )


def _ten(report: Report, models_: dict[str, np.ndarray]) -> list[list[str]]:
    lines, proved = [], 0
    for i, (unary, pair) in enumerate(zip(models_["unary"], models_["pair"], strict=True)):
        timing, answer = _solve({"unary": unary, "pair": pair, "edges": models_["edges"]})
        proved += answer.exact
        known = f"{FIRST_OF_TEN:.3f} (proved)" if i == 0 else "proved by TRW-S"
        away = answer.value - FIRST_OF_TEN if i == 0 else float("nan")
        lines.append(_line(f"grid20x40 #{i}", answer, timing.cpu, known, away, ""))
    report.add("grid20x40: proved optimal, of ten", proved, "", 10, at_least=True)
    return lines


def _line(
    name: str, answer: sl.Answer, cpu: float, known: str, away: float, bound: str
) -> list[str]:
    difference = "" if np.isnan(away) else f"{away:+.3f}"
    return [
        name,
        f"{answer.value:.3f}",
        known,
        difference,
        f"{answer.upper:.3f}",
        bound,
        f"{cpu:.2f}",
    ]
