"""Rule programs: grounding and inference beside PSL (pslpython), in the same run.

Each side runs in a process of its own from the files to the values, start-up included. Both
assignments are judged by the same energy in double precision; PSL may miss hard constraints by a
few thousandths and so lie below the optimum, which is then allowed for.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

import psl_models
from report import Report

WORKER = pathlib.Path(__file__).with_name("psl_worker.py")
#: Programs among the data sets: (CPU ratio wanted, tolerance of ours)
STORED = {
    "simple-acquaintances": (None, 1e-5),
    "cora": (5.0, 1e-5),
    "citeseer": (5.0, 1e-5),
    "bitcoin-otc-trust": (None, 1e-5),
    "er-citeseer": (10.0, 1e-4),
}
GROUPS, NODES = 400, 50_000  # about a million potentials


def run(out: pathlib.Path) -> Report:
    report = Report("psl", "rule programs beside PSL, from files to values")
    stored = os.environ.get("STRUCTLEARN_DATA")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if stored and (pathlib.Path(stored) / "psl").is_dir():
            for program, (ratio, tolerance) in STORED.items():
                path = pathlib.Path(stored) / "psl" / program / "model.json"
                _stored(report, program, path, folder, ratio, tolerance)
        else:
            report.remarks.append("no stored programs: STRUCTLEARN_DATA names no folder with psl")
        for kind, path in (
            ("trust", psl_models.trust(folder / "trust", GROUPS)),
            ("collective", psl_models.collective(folder / "collective", NODES)),
        ):
            _large(report, kind, path, folder)
        _growth(report, out, folder)
    return report


def _stored(
    report: Report,
    name: str,
    path: pathlib.Path,
    folder: pathlib.Path,
    wanted: float | None,
    tolerance: float,
) -> None:
    mine, theirs = _both(path, folder, tolerance)
    report.details[name] = {"ours": mine, "psl": theirs}
    note = f"{mine['cpu']:.2f} s against {theirs['cpu']:.1f} s"
    report.add(f"{name}: less CPU than PSL", theirs["cpu"] / mine["cpu"], "x", wanted, True, note)
    _energies(report, name, mine, theirs)
    if name == "bitcoin-otc-trust":
        note = f"{mine['ground_wall']:.2f} s with start-up against {theirs['ground']:.1f} s"
        ratio = theirs["ground"] / mine["ground_wall"]
        report.add(f"{name}: quicker grounding (wall)", ratio, "x", 20.0, True, note)
    if name == "er-citeseer":
        seconds = _clarabel(path)
        note = f"of Clarabel's {seconds:.1f} s (solve alone)"
        report.add(f"{name}: our CPU, all", mine["cpu"], "s", seconds, note=note)


def _large(report: Report, kind: str, path: pathlib.Path, folder: pathlib.Path) -> None:
    mine, theirs = _both(path, folder, 1e-4)
    report.details[kind] = {"ours": mine, "psl": theirs}
    note = f"{mine['forms']:,} forms, {mine['wall']:.1f} s against {theirs['wall']:.1f} s"
    ratio = theirs["wall"] / mine["wall"]
    report.add(f"{kind}: less wall time than PSL", ratio, "x", 10.0, True, note)
    note = f"{mine['rss']:.0f} MB against {theirs['rss']:.0f} MB"
    report.add(f"{kind}: part of PSL's memory", mine["rss"] / theirs["rss"], "", 0.5, note=note)
    _energies(report, kind, mine, theirs)


def _energies(report: Report, name: str, mine: dict, theirs: dict) -> None:
    slack = 1e-4 if theirs["violation"] > 1e-6 else 1e-6
    note = (
        f"{mine['energy']:.6g} against {theirs['energy']:.6g}; hard constraints missed by "
        f"{mine['violation']:.0e} and {theirs['violation']:.0e}; gap {mine['gap']:.1e}"
    )
    part = mine["energy"] / theirs["energy"]
    report.add(f"{name}: energy by PSL's", part, "", 1.0 + slack, note=note)


def _both(path: pathlib.Path, folder: pathlib.Path, tolerance: float) -> tuple[dict, dict]:
    mine = _work("ours", path, folder / "ours.npy", str(tolerance))
    theirs = _work("theirs", path, folder / "theirs.json")
    return mine, theirs | _judge(path, folder / "theirs.json")


def _work(side: str, path: pathlib.Path, values: pathlib.Path, *more: str) -> dict:
    command = [sys.executable, str(WORKER), side, str(path), str(values), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"^@@(.*)$", done.stdout, re.MULTILINE)
    if done.returncode or not found:
        raise RuntimeError(f"{side} failed on {path.name}: {(done.stdout + done.stderr)[-2000:]}")
    log = done.stdout + done.stderr
    marks = [re.search(rf"^(\d+)\s+\[.*{words}", log, re.MULTILINE) for words in _STAGES]
    stages = [int(mark[1]) / 1000 for mark in marks if mark]
    return json.loads(found[1]) | ({"ground": stages[1] - stages[0]} if len(stages) == 2 else {})


_STAGES = ("Grounding out model", "Grounding complete")


def _judge(path: pathlib.Path, values: pathlib.Path) -> dict:
    """Energy and violation of PSL's values in our ground program."""
    from structlearn import RuleModel

    model = RuleModel.from_file(path)
    atoms = json.loads(values.read_text(encoding="utf-8"))
    hinges = model.grounding_.hinges
    y = np.full(model.grounding_.hinges.n_variables, 0.5)
    for name, numbers in _by_predicate(atoms).items():
        places, arguments = model.tables.arguments(name)
        keys = zip(*(map(str, column) for column in arguments), strict=True)
        y[places] = [numbers[key] for key in keys]
    weights = np.where(np.isfinite(model.weights_), model.weights_, 0.0)
    missed = float(hinges.violations(y).max(initial=0.0))
    return {"energy": hinges.energy(y, weights), "violation": missed}


def _by_predicate(atoms: list[dict]) -> dict[str, dict[tuple[str, ...], float]]:
    out: dict[str, dict[tuple[str, ...], float]] = {}
    for atom in atoms:
        key = tuple(map(str, atom["arguments"]))
        out.setdefault(atom["predicate"], {})[key] = float(atom["value"])
    return out


def _clarabel(path: pathlib.Path) -> float:
    """CPU seconds of an interior-point solver on the same ground program."""
    import time

    import clarabel
    from scipy import sparse

    from structlearn import RuleModel
    from structlearn._src.field.hinges import AT_MOST, EQUAL, HINGE

    model = RuleModel.from_file(path)
    h = model.grounding_.hinges
    rows = sparse.csr_matrix((h.coefficients, h.variables, h.offsets), (h.n_forms, h.n_variables))
    soft = np.flatnonzero(h.kinds == HINGE)
    n = h.n_variables
    k = len(soft)
    weights = model.weights_[h.groups[soft]]
    square = h.powers[soft] == 2
    quadratic = sparse.diags(np.append(np.zeros(n), np.where(square, 2 * weights, 0.0))).tocsc()
    linear = np.append(np.zeros(n), np.where(square, 0.0, weights))
    parts, sides, cones = [], [], []
    for kind, cone in ((EQUAL, clarabel.ZeroConeT), (AT_MOST, clarabel.NonnegativeConeT)):
        which = np.flatnonzero(h.kinds == kind)
        if len(which):
            parts.append(sparse.hstack([rows[which], sparse.csr_matrix((len(which), k))]))
            sides.append(-h.constants[which])
            cones.append(cone(len(which)))
    ones = sparse.eye(n + k, format="csr")
    parts += [sparse.hstack([rows[soft], -sparse.eye(k)]), ones[:n], -ones]
    sides += [-h.constants[soft], np.ones(n), np.zeros(n + k)]
    cones.append(clarabel.NonnegativeConeT(k + n + n + k))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    begun = time.process_time()
    matrix = sparse.vstack(parts).tocsc()
    clarabel.DefaultSolver(
        quadratic, linear, matrix, np.concatenate(sides), cones, settings
    ).solve()
    return time.process_time() - begun


def _growth(report: Report, out: pathlib.Path, folder: pathlib.Path) -> None:
    """CPU and memory of ours as programs grow to ten million potentials."""
    sizes, seconds, memory = [], [], []
    for groups in (40, 400, 3600):
        path = psl_models.trust(folder / f"trust-{groups}", groups)
        mine = _work("ours", path, folder / "ours.npy", "1e-4")
        sizes.append(mine["forms"])
        seconds.append(mine["cpu"])
        memory.append(mine["rss"])
    report.details["growth"] = {"forms": sizes, "cpu": seconds, "rss": memory}
    power = float(np.polyfit(np.log(sizes[-2:]), np.log(seconds[-2:]), 1)[0])
    note = f"{sizes[-2]:,} to {sizes[-1]:,} forms, {seconds[-2]:.1f} to {seconds[-1]:.1f} s CPU"
    report.add("trust: power of growth", power, "", 1.1, note=note)
    note = f"{memory[-1]:.0f} MB in all"
    report.add("trust: memory per form", memory[-1] * 2**20 / sizes[-1], "bytes", note=note)
    _plot(out, sizes, seconds)


def _plot(out: pathlib.Path, sizes: list[int], seconds: list[float]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.loglog(sizes, seconds, "o-")
    axes.set(xlabel="ground potentials", ylabel="CPU seconds, files to values")
    figure.savefig(out / "psl.png", dpi=150)
