"""More data than memory: resident memory and time of rules and of sequences, by size.

Usage: python benchmarks/memory.py {rules,chains} [--sizes 3e6 ...] [--limit 4GB] [--fit 2]

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
    """Largest resident memory so far, in GB; getrusage would count the parent's too."""
    status = pathlib.Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1e6
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
        cpu = time.process_time()
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
        "CPU s": time.process_time() - cpu,
        "data GB": made,
        "ground GB": after,
        "infer GB": answered,
        "peak GB": peak(),
    }


TEMPLATE = "\n".join(
    [
        *(f"U0{i}:%x[{shift},0]" for i, shift in enumerate((-1, 0, 1))),
        *(f"U1{i}:%x[{shift},1]" for i, shift in enumerate((-2, -1, 0, 1, 2))),
        "U20:%x[-1,1]/%x[0,1]",
        "U21:%x[0,1]/%x[1,1]",
        "B",
    ]
)


def chains(size: int, limit: str | None, passes: int) -> dict[str, float]:
    """Learn from column files in partitions, and label them."""
    from structlearn import ColumnFiles, SequenceLabeler

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "train.txt"
        tokens = write_tokens(path, size)
        text = path.stat().st_size / 1e9
        made = peak()
        files = ColumnFiles(path, memory_limit=limit or "1000GB")
        labeler = SequenceLabeler(
            features="sparse", template=TEMPLATE, max_iter=passes, tol=None, random_state=0
        )
        cpu = time.process_time()
        begun = time.perf_counter()
        warnings.simplefilter("ignore")
        labeler.fit(files, None)
        learnt = time.perf_counter()
        after = peak()
        right = 0
        for part in files:
            words = part._replace(ids=part.ids[:, :-1], vocabularies=part.vocabularies[:-1])
            for found, gold in zip(labeler.predict(words), part.labels(), strict=True):
                right += int((found == gold).sum())
        answered = time.perf_counter()
    return {
        "tokens": tokens,
        "text GB": text,
        "weights": len(labeler.weights_),
        "passes": labeler.n_iter_,
        "fit s": learnt - begun,
        "label s": answered - learnt,
        "CPU s": time.process_time() - cpu,
        "accuracy": right / tokens,
        "data GB": made,
        "fit GB": after,
        "peak GB": peak(),
    }


def write_tokens(path: pathlib.Path, size: int, seed: int = 0) -> int:
    """Write sentences of 5 to 40 tokens: a word, a tag that says much of the label, the label."""
    import numpy as np

    rng = np.random.default_rng(seed)
    words = np.array([f"w{i}" for i in range(20_000)], object)
    tags = np.array([f"t{i}" for i in range(12)], object)
    labels = np.array([f"L{i}" for i in range(5)], object)
    written = 0
    with path.open("w") as file:
        while written < size:
            lengths = rng.integers(5, 41, 20_000)
            n = int(lengths.sum())
            label = np.cumsum(rng.random(n) < 0.4) % 5
            tag = np.where(rng.random(n) < 0.7, 2 * label + rng.integers(2, size=n), 10)
            word = rng.zipf(1.3, n) % 4000 * 5 + np.where(rng.random(n) < 0.8, label, 0)
            cells = np.column_stack([words[word], tags[tag], labels[label]])
            ends = np.zeros(n, bool)
            ends[np.cumsum(lengths) - 1] = True
            lines = (
                f"{a} {b} {c}\n\n" if end else f"{a} {b} {c}\n"
                for (a, b, c), end in zip(cells.tolist(), ends.tolist(), strict=True)
            )
            file.writelines(lines)
            written += n
    return written


KINDS = {"rules": rules, "chains": chains}
SIZES = {"rules": (750_000, 1_500_000, 3_000_000), "chains": (1_250_000, 2_500_000, 5_000_000)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
