"""More data than memory: resident memory and time of rules and of sequences, by size.

Usage: python benchmarks/memory.py rules [--groundings 3e6 ...] [--limit 4GB] [--fit 3]

Every size runs in a process of its own, on generated data in the folder for temporary files. The
table shows the largest resident memory of the process and seconds; where the cost is linear,
seconds per million stay the same. The full sizes are 30e6 groundings and 50e6 tokens.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
import warnings

HERE = pathlib.Path(__file__).parent
GROUNDINGS_PER_GROUP = 2400  # of the trust program, about


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--sizes", type=float, nargs="+", help="groundings, or tokens")
    parser.add_argument("--limit", default="", help="memory limit, such as 4GB; none if empty")
    parser.add_argument("--fit", type=int, default=2, help="iterations of learning")
    parser.add_argument("--one", type=float, help=argparse.SUPPRESS)  # a process for one size
    given = parser.parse_args(arguments)
    if given.one is not None:
        print(json.dumps(KINDS[given.kind](int(given.one), given.limit or None, given.fit)))
        return 0
    print(f"{given.kind}, memory limit {given.limit or 'none'}")
    for n, size in enumerate(given.sizes or SIZES[given.kind]):
        command = [sys.executable, __file__, given.kind, "--one", str(size)]
        options = ["--limit", given.limit, "--fit", str(given.fit)]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        if done.returncode:
            print(done.stderr)
            return 1
        found = json.loads(done.stdout.splitlines()[-1])
        if n == 0:
            print(" ".join(f"{name:>14}" for name in found))
        print(" ".join(f"{value:14.6g}" for value in found.values()), flush=True)
    return 0


def peak() -> float:
    """Largest resident memory so far, in GB."""
    scale = 1e9 if sys.platform == "darwin" else 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def rules(size: int, limit: str | None, iterations: int) -> dict[str, float]:
    """Ground the trust program, infer, and learn a little."""
    import psl_models
    from structlearn import RuleModel

    with tempfile.TemporaryDirectory() as folder:
        groups = max(size // GROUNDINGS_PER_GROUP, 1)
        path = psl_models.trust(pathlib.Path(folder), groups)
        made = peak()
        begun = time.perf_counter()
        warnings.simplefilter("ignore")
        model = RuleModel.from_file(path, memory_limit=limit, tol=1e-4)
        count = model.grounding_.hinges.n_forms
        grounded = time.perf_counter()
        after = peak()
        model.predict(frame="dict")
        inferred = time.perf_counter()
        answered = peak()
        values = model.predict("Trusts", frame="dict")
        truth = {"Trusts": {**values, "value": values["value"].round()}}
        model.fit(truth, latent=["Trusting", "Trustworthy"], max_iter=iterations, tol=None)
        learnt = time.perf_counter()
    return {
        "groundings": count,
        "targets": model.tables.n_free,
        "ground s": grounded - begun,
        "infer s": inferred - grounded,
        "fit s": learnt - inferred,
        "data GB": made,
        "ground GB": after,
        "infer GB": answered,
        "peak GB": peak(),
    }


KINDS = {"rules": rules}
SIZES = {"rules": (750_000, 1_500_000, 3_000_000)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
