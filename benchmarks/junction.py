"""Junction tree on two models of the UAI 2014 competition, ordering included."""

from __future__ import annotations

import json
import math
import pathlib

import models
import structlearn as sl
from report import Report
from timing import best

LIMITS = {"Segmentation_16": 0.5, "Grids_13": 2.0}  # seconds of CPU


def run(out: pathlib.Path) -> Report:
    report = Report("junction", "exact answers to UAI models; CPU time, ordering included")
    for name, limit in LIMITS.items():
        path = models.data("uai", "mar", f"{name}.uai")
        if path is None:
            report.remarks.append(f"{name} skipped: no uai/mar/{name}.uai in STRUCTLEARN_DATA")
            continue
        for query in ("partition", "marginals"):
            # A model read afresh each time: orders are remembered per wiring.
            timing = best(
                lambda graph, q=query: sl.infer(graph, q, method="junction_tree"),
                repeats=3,
                prepare=lambda p=path: sl.read_uai(p),
            )
            answer = timing.result
            note = f"wall {timing.wall:.3f} s; {answer.status}{_check(path, name, answer.value)}"
            report.add(f"{name}, {query}", timing.cpu, "s", limit, note=note)
    return report


def _check(path: pathlib.Path, name: str, value: float) -> str:
    """Distance from the verified answer, where the data folder has one."""
    index = path.parents[1] / "index.json"
    entry = json.loads(index.read_text()).get(f"mar/{name}", {}) if index.exists() else {}
    if "log10Z_exact" not in entry:
        return ""
    return f"; log10 Z off by {abs(value / math.log(10) - entry['log10Z_exact']):.0e}"
