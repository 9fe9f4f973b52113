"""From a cold start: import, the first answer with nothing compiled, and a second process."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

from report import Report
from timing import Timing

WORKER = pathlib.Path(__file__).with_name("startup_worker.py")


def run(out: pathlib.Path) -> Report:
    report = Report("startup", "marginals of a small loopy grid in a new process")
    imported = min((_process("import", None)[1] for _ in range(5)), key=lambda x: x["wall"])
    report.add(
        "import structlearn", imported["wall"], "s", 0.3, note=f"CPU {imported['cpu']:.3f} s"
    )
    for method in ("auto", "bp"):
        cache = out / "cold-cache"
        shutil.rmtree(cache, ignore_errors=True)
        _, cold = _process(method, cache)
        note = f"CPU {cold['cpu']:.2f} s; compiles"
        report.add(f"first answer, method={method!r}", cold["wall"], "s", 10.0, note=note)
        warm = min((_process(method, cache)[0] for _ in range(4)), key=lambda t: t.wall)
        note = f"CPU {warm.cpu:.2f} s; start and import included"
        report.add(f"second process, method={method!r}", warm.wall, "s", 1.5, note=note)
        shutil.rmtree(cache)
    return report


def _process(task: str, cache: pathlib.Path | None) -> tuple[Timing, dict[str, float]]:
    """Time of a whole process, and what it measured itself."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    cpu = _children()
    wall = time.perf_counter()
    command = [sys.executable, str(WORKER), task]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Timing(_children() - cpu, time.perf_counter() - wall), json.loads(done.stdout)


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
