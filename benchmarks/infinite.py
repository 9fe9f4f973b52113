"""Infinite hidden Markov models: CPU seconds a sweep, two cores, growth, and peers in the same run.

Every figure comes from a process of its own. Points are drawn from 20 Gaussian states in 10
dimensions, with 8 labels for the max-margin model. Peers with a fixed number of states get 20; they
run in an environment of their own. Theirs are other models: jax-moseq's is autoregressive, and
hmmlearn does not sample.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import numpy as np

from report import Report

WORKER = pathlib.Path(__file__).with_name("infinite_worker.py")
STEPS = (5_000, 50_000, 200_000)
#: Estimator: most CPU seconds of a sweep of 50,000 steps
OURS = {"InfiniteHMM": 0.15, "MaxMarginHMM": 0.3}
SWEEPS = {5_000: 60, 50_000: 30, 200_000: 20}
SEQUENCES, LENGTH, REPEATS = 256, 2_000, 2
#: Environment: what is installed there, and who runs there
ENVIRONMENTS = {
    "infinite-venv": (
        ("jax-moseq==0.3.7", "dynamax==1.0.2", "jax==0.10.2", "jaxlib==0.10.2", "hmmlearn==0.3.3"),
        ("jax-moseq", "hmmlearn", "hmmlearn, variational"),
    ),
    "pyhsmm-venv": (("pyhsmm",), ("pyhsmm",)),
}
DOES = {
    "jax-moseq": "Gibbs, weak limit, sticky, autoregressive",
    "pyhsmm": "Gibbs, weak limit, sticky",
    "hmmlearn": "EM",
    "hmmlearn, variational": "variational Bayes",
}
LIMIT = 300  # seconds for an installation; a failure is remembered


def run(out: pathlib.Path) -> Report:
    report = Report("infinite", "infinite hidden Markov models; CPU seconds a sweep, one thread")
    ours = {name: _sweeps(report, out, name) for name in OURS}
    for name, found in ours.items():
        _growth(report, name, found)
    for folder, (packages, names) in ENVIRONMENTS.items():
        try:
            python = _environment(out / folder, packages)
            for name in names:
                _peer(report, python, name, ours["InfiniteHMM"])
                report.save(out)
        except RuntimeError as reason:
            report.remarks.append(f"{packages[0]} {reason}")
    for name in OURS:
        _two_cores(report, name)
        report.save(out)
    return report


def _sweeps(report: Report, out: pathlib.Path, name: str) -> dict[int, float]:
    """CPU seconds of a sweep by number of steps."""
    seconds: dict[int, float] = {}
    for steps in STEPS:
        found = _work(sys.executable, name, steps, SWEEPS[steps])
        seconds[steps] = found["cpu"]
        report.details[f"{name} {steps}"] = found
        note = f"{found['states']} states; least {found['least']:.4f} s"
        target = OURS[name] if steps == 50_000 else None
        report.add(f"{name}, {steps:,} steps", found["cpu"], "s", target, note=note)
        report.save(out)
    return seconds


def _growth(report: Report, name: str, seconds: dict[int, float]) -> None:
    steps = STEPS[-2:]
    power = float(np.polyfit(np.log(steps), np.log([seconds[n] for n in steps]), 1)[0])
    note = f"{steps[0]:,} to {steps[1]:,} steps"
    report.add(f"{name}: power of growth", power, "", 1.1, note=note)


def _peer(report: Report, python: pathlib.Path, name: str, ours: dict[int, float]) -> None:
    for steps in STEPS[:2]:
        found = _work(python, name, steps, 10 if steps < 50_000 else 5)
        report.details[f"{name} {steps}"] = found
        note = f"{found['cpu']:.3f} s CPU, {found['wall']:.3f} s wall; {DOES[name]}"
        what = f"{name}, {steps:,} steps: CPU by InfiniteHMM's"
        report.add(what, found["cpu"] / ours[steps], "x", note=note)


def _two_cores(report: Report, name: str) -> None:
    found = _work(sys.executable, "two", name, SEQUENCES, LENGTH, 10, REPEATS)
    report.details[f"{name} two"] = found
    one, two = found["one"], found["two"]
    possible = one["cpu"] / (two["serial"] + (two["cpu"] - two["serial"]) / 2)
    # Where a core is slower beside another busy one, no program can be twice as fast on two.
    quiet = found["others"] < 0.05
    steady = two["cpu"] < 1.1 * one["cpu"]
    alone = "" if quiet else "not judged, others were busy; "
    alone += "" if steady else "not judged, cores are slower together; "
    note = (
        f"{alone}{two['cpu'] / two['wall']:.2f} cores busy; wall {one['wall']:.3f} -> "
        f"{two['wall']:.3f} s; CPU {one['cpu']:.3f} -> {two['cpu']:.3f} s, "
        f"{two['serial']:.3f} s in one thread: {possible:.2f} x possible"
    )
    what = f"{name}, {SEQUENCES} sequences of {LENGTH:,}: two threads"
    report.add(what, one["wall"] / two["wall"], "x", 1.8 if quiet and steady else None, True, note)


def _work(python: str | pathlib.Path, *given: object) -> dict:
    command = [str(python), str(WORKER), *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"does not run: {_last(done.stderr)}")
    return json.loads(done.stdout.splitlines()[-1])


def _environment(folder: pathlib.Path, packages: tuple[str, ...]) -> pathlib.Path:
    """Return the interpreter of an environment with these packages."""
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    tried = folder / ".tried"
    wanted, _, reason = (tried.read_text() if tried.exists() else "").partition("\n")
    if wanted.split() != list(packages):
        print(f"making an environment for {packages[0]} ...", file=sys.stderr)
        reason = _install(folder, python, packages)
        tried.write_text(" ".join(packages) + "\n" + reason)
    if reason:
        raise RuntimeError(f"does not install: {reason}")
    return python


def _install(folder: pathlib.Path, python: pathlib.Path, packages: tuple[str, ...]) -> str:
    """Install packages; return what went wrong."""
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    command = [str(python), "-m", "pip", "install", *packages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return f"not within {LIMIT} s"
    return _last(done.stdout + done.stderr) if done.returncode else ""


def _last(text: str) -> str:
    """Return the line of a log that says what went wrong."""
    lines = [line.strip() for line in text.strip().splitlines()] or ["no reason given"]
    errors = [line for line in lines if "Error: " in line]
    return (errors or lines)[-1]
