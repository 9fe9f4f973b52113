"""CoNLL-2000 chunking with the CRF++ template: training and tagging beside CRFsuite.

Every figure comes from a process of its own, so that peak memory is that of one task alone. The
objective is the same for both: summed negative log-likelihoods plus half the squared weights, over
the attribute-label pairs seen in training (c2 = 0.5 in CRFsuite, C = 1 here).
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile

from report import Report

HERE = pathlib.Path(__file__).parent
OPTIMUM = 8930.33  # the lowest objective that a long run of L-BFGS has reached
CLOSE = 1.001  # times the optimum


def run(out: pathlib.Path) -> Report:
    from structlearn._src.files.datasets import data_path

    report = Report("tagging", "CoNLL-2000, CRF++ template, official split")
    train, test = (str(data_path("conll2000", f"{part}.txt")) for part in ("train", "test"))
    _worker("tagging_worker.py", "warm", train, test)
    tasks = ("sparse", "dense", "memory")
    ours = {task: _worker("tagging_worker.py", task, train, test) for task in tasks}
    with tempfile.TemporaryDirectory() as folder:
        given = train, test, f"{folder}/model"
        peer = {
            task: _worker("crfsuite_worker.py", task, *given)
            for task in ("lists", "lbfgs", "l2sgd")
        }
        ours["tag"] = _worker("tagging_worker.py", "tag", *given)
    report.details = {"structlearn": ours, "crfsuite": peer}
    _training(report, ours, peer)
    _tagging(report, ours["tag"])
    return report


def _training(report: Report, ours: dict, peer: dict) -> None:
    reached, theirs = (_when(curve["curve"]) for curve in (ours["sparse"], peer["lbfgs"]))
    report.add(
        "within 0.1 % of the sparse optimum, times CRFsuite L-BFGS", theirs / reached, "x", 5.0,
        at_least=True, note=f"{reached:.2f} s, {theirs:.1f} s",
    )  # fmt: skip
    sgd = peer["l2sgd"]
    enough = next((row for row in ours["sparse"]["curve"] if row["f1"] >= 93.66), None)
    seconds = enough["seconds"] if enough else float("inf")
    report.add(
        "F1 of 93.66 is reached, share of 20 passes of CRFsuite SGD", seconds / sgd["seconds"], "x",
        0.5, note=f"{seconds:.2f} s, {sgd['seconds']:.1f} s (its F1 {sgd['f1']:.2f})",
    )  # fmt: skip
    for space, target in (("sparse", 93.66), ("dense", 93.76)):
        row = ours[space]
        note = f"{row['seconds']:.2f} s, objective {row['value']:.2f}, {row['status']}"
        report.add(f"F1 with default settings, {space}", row["f1"], "%", target, True, note)
    report.add(
        "peak memory of `structlearn train`", ours["memory"]["rss"], "MB", peer["lists"]["rss"],
        note=f"from text to model in {ours['memory']['seconds']:.1f} s; CRFsuite "
        f"{peer['lists']['rss']:.0f} MB from lists, {peer['lbfgs']['rss']:.0f} MB fed sentence by "
        f"sentence",
    )  # fmt: skip


def _tagging(report: Report, rates: dict) -> None:
    for what, name, factor in (
        ("strings", "given lists of attributes", 3.0),
        ("file", "from the raw file", 5.0),
    ):
        mine = rates[what]
        theirs = rates[f"{what} crfsuite"]
        note = (
            f"{mine['wall']:,.0f} and {theirs['wall']:,.0f} tokens/s; by CPU time "
            f"{mine['cpu']:,.0f} and {theirs['cpu']:,.0f}, {mine['cpu'] / theirs['cpu']:.1f}x"
        )
        ratio = mine["wall"] / theirs["wall"]
        report.add(f"tagging {name}, times CRFsuite", ratio, "x", factor, True, note)
    report.add("tagging given sparse rows", rates["rows"]["wall"], "tokens/s")


def _when(curve: list[dict]) -> float:
    """Seconds until the objective was close to the optimum."""
    return next((r["seconds"] for r in curve if r["value"] <= CLOSE * OPTIMUM), float("inf"))


def _worker(name: str, *given: str) -> dict:
    command = [sys.executable, str(HERE / name), *given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} {given[0]} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
