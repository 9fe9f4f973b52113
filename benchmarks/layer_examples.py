"""The examples of layers over seeds, each seed and loss in a process of its own.

Usage: python benchmarks/layer_examples.py --out FILE [--seeds 5] [--device cuda] [--jobs 14]
[--limit 170]. Prints means with standard errors, and paired differences between ways of learning.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
#: By example: the losses that run apart, or None for all at once; long ones first.
EXAMPLES = {
    "citations": (None,),
    "segmentation": ("marginal", "log", "softmax"),
    "tagger": ("hybrid", "log", "dropped", "softmax"),
}


def command(example, loss, seed, args):
    """What runs one example with one seed."""
    found = [sys.executable, str(ROOT / "examples" / "layers" / f"{example}.py")]
    found += ["--seeds", "1", "--first", str(seed)]
    if loss is not None:
        found += ["--losses", loss]
    if example == "tagger":
        found += ["--device", args.device, "--sentences", str(args.sentences)]
        found += ["--epochs", str(args.epochs)]
    return found


def run(task, args, ends):
    """Return the numbers that one process prints, by name."""
    example, loss, seed = task
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    left = ends - time.monotonic()
    if left < 5.0:
        return task, {}, "no time left"
    begun = time.monotonic()
    try:
        done = subprocess.run(
            command(example, loss, seed, args), capture_output=True, text=True, timeout=left,
            env=environment, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return task, {}, "stopped by the limit"
    rows = [line.split() for line in done.stdout.splitlines()]
    found = {row[0]: float(row[1]) for row in rows if len(row) == 4 and row[2] == "+-"}
    failed = "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1][:300]
    return task, found, failed or f"{time.monotonic() - begun:.0f} s"


def tell(example, found):
    """Print a table, and the differences of all pairs of rows over the seeds they share."""
    print(f"-- {example}", flush=True)
    for name, by_seed in found.items():
        print(f"{name:>9}  {line(list(by_seed.values()))}  ({len(by_seed)} seeds)")
    for a, b in combinations(found, 2):
        both = sorted(found[a].keys() & found[b].keys())
        if len(both) > 1:
            print(f"{a:>9} less {b:<9} {line([found[a][s] - found[b][s] for s in both])}")


def line(values):
    """The mean with its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
    return f"{np.mean(values):.4f} +- {error:.4f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="cpu", help="of the tagger")
    parser.add_argument("--sentences", type=int, default=1000, help="of the tagger")
    parser.add_argument("--epochs", type=int, default=8, help="of the tagger")
    parser.add_argument("--jobs", type=int, default=14, help="processes at a time")
    parser.add_argument("--limit", type=float, default=170.0, help="seconds for all")
    parser.add_argument("--examples", nargs="+", default=list(EXAMPLES), choices=EXAMPLES)
    args = parser.parse_args()
    ends = time.monotonic() + args.limit
    tasks = [(e, loss, s) for e in args.examples for loss in EXAMPLES[e] for s in range(args.seeds)]
    found = {example: {} for example in args.examples}
    with ThreadPoolExecutor(args.jobs) as pool:
        for task, numbers, told in pool.map(lambda task: run(task, args, ends), tasks):
            print(*task, numbers, told, flush=True)
            for name, value in numbers.items():
                found[task[0]].setdefault(name, {})[task[2]] = value
    for example, table in found.items():
        tell(example, table)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
