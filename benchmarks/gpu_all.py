"""All that is measured on a card, in one command of at most four minutes.

Usage: python benchmarks/gpu_all.py --out FILE [--parts chains smoke fields conll messages]. Every
part runs in a process of its own under a limit of its own; what fails does not stop the others.
CoNLL-2000 is taken from the folder that STRUCTLEARN_DATA names.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOTAL = 238.0  # seconds for all parts
#: By name: arguments after the file, and seconds.
PARTS = {
    "chains": (["gpu_chains.py", "--quick"], 75.0),
    "smoke": (["gpu_smoke.py", "--jobs", "12"], 65.0),
    "fields": (["gpu_fields.py", "--race", "120"], 155.0),
    "conll": (["gpu_conll.py"], 65.0),
    "messages": (["gpu_messages.py", "--quick"], 30.0),
}


def command(name, out):
    """What runs a part."""
    file, *options = PARTS[name][0]
    if name == "conll":
        data = os.environ.get("STRUCTLEARN_DATA", "")
        options = [str(pathlib.Path(data, "conll2000", "train.txt")), "12"]
    if name != "messages":
        options += ["--out", out]
    return [sys.executable, str(HERE / file), *options]


def run(name, left, environment):
    """Run a part, print its lines as they come, and return what is kept."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "found.json")
        limit = min(PARTS[name][1], left)
        print(f"==== {name}, at most {limit:.0f} s", flush=True)
        begun = time.monotonic()
        lines = []
        with subprocess.Popen(
            ["timeout", "-k", "3", f"{limit:.0f}", *command(name, out)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment,
        ) as process:  # fmt: skip
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line.rstrip())
        took = time.monotonic() - begun
        print(f"==== {name}: exit {process.returncode} after {took:.0f} s", flush=True)
        found = {"seconds": took, "exit": process.returncode, "output": lines[-300:]}
        if os.path.exists(out):
            found["found"] = json.loads(pathlib.Path(out).read_text())
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args()
    paths = [str(HERE.parent / "src"), str(HERE.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    begun = time.monotonic()
    found = {}
    for name in args.parts:
        left = TOTAL - (time.monotonic() - begun)
        if left < 10.0:
            print(f"==== {name}: no time left", flush=True)
            continue
        found[name] = run(name, left, environment)
        pathlib.Path(args.out).write_text(json.dumps(found, indent=1))
    print(f"==== all in {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
