"""CoNLL-2000 on a card and on the host: seconds until the objective is within 0.1 % of the optimum.

Usage: python benchmarks/gpu_conll.py TRAIN [SECONDS] [PLACE] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import pathlib
import tempfile
import time
import warnings

import numpy as np

from structlearn import SequenceLabeler, on, read_columns
from structlearn._src.cli.taggers import gold_labels, without_last


def read(path):
    both = read_columns(path)
    return without_last(both), gold_labels(both)


def fit(X, Y, place, **options):
    """Return a labeler, and values by seconds since the fit and since its solver began."""
    curve = []
    begun = time.perf_counter()
    labeler = SequenceLabeler(features="sparse", solver="lbfgs", random_state=0, **options)
    labeler.set_params(callbacks=(lambda e: curve.append((time.perf_counter() - begun, e.value)),))
    with on(place), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labeler.fit(X, Y)
    seconds, values = np.array(curve).T
    return labeler, seconds, np.array(labeler.history_.seconds[-len(curve) :]), values


def few(path, sentences=300):
    """The first sentences, and those with labels that these lack: kernels are for so many."""
    blocks = pathlib.Path(path).read_text().split("\n\n")
    labels = [{line.split()[-1] for line in block.splitlines() if line} for block in blocks]
    seen = set().union(*labels[:sentences])
    kept = blocks[:sentences]
    for block, own in zip(blocks[sentences:], labels[sentences:], strict=True):
        if own - seen:
            kept.append(block)
            seen |= own
    return "\n\n".join(kept) + "\n"


def compile_kernels(path, place):
    """Fit a few sentences with all labels: kernels are compiled once, then taken from a cache."""
    begun = time.perf_counter()
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(few(path))
        file.flush()
        fit(*read(file.name), place, max_iter=3)
    return time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train")
    parser.add_argument("limit", type=float, nargs="?", default=25.0, help="seconds of a long run")
    parser.add_argument("place", nargs="?", default="cuda")
    parser.add_argument("--out")
    args = parser.parse_args()
    found = {}
    begun = time.perf_counter()
    X, Y = read(args.train)
    found["read"] = time.perf_counter() - begun
    found["compile"] = compile_kernels(args.train, args.place)
    print(
        f"read in {found['read']:.1f} s, kernels compiled in {found['compile']:.1f} s", flush=True
    )
    options = {"max_iter": 400, "tol": 1e-6, "time_limit": args.limit}
    labeler, whole, seconds, values = fit(X, Y, args.place, **options)
    best = values.min()
    found["best"] = float(best)
    print(f"{len(labeler.weights_)} weights; best value {best:.4f}, {labeler.status_}", flush=True)
    for share in (1e-2, 1e-3, 1e-4):
        i = np.flatnonzero(values <= best * (1.0 + share))[0]
        found[f"within {share:g}"] = [float(whole[i]), float(seconds[i]), int(i + 1)]
        print(f"within {share:g} of it after {i + 1} iterations: {seconds[i]:.2f} s since the "
              f"features are made, {whole[i]:.2f} s since the call of fit")  # fmt: skip
    found["features"] = float(whole[0] - seconds[0])
    found["first"] = float(seconds[0])
    found["iteration_ms"] = 1e3 * float(np.median(np.diff(seconds)))
    print(f"features {found['features']:.2f} s, first step {found['first']:.2f} s, then an "
          f"iteration takes {found['iteration_ms']:.2f} ms", flush=True)  # fmt: skip
    objective = SequenceLabeler(features="sparse").objective(X, Y)
    if args.place == "cuda":
        found["profiles"] = profiles(objective, labeler.weights_)
    if args.out:
        pathlib.Path(args.out).write_text(json.dumps(found, indent=1))
    value = objective.value(labeler.weights_)
    print(
        f"value of these weights on the host {value:.4f}, off by {labeler.value_ / value - 1.0:.1e}"
    )


def profiles(objective, weights):
    """Where an evaluation and a step of L-BFGS spend their time."""
    import torch

    from benchmarks.gpu_profile import profiled
    from structlearn._src.cuda.card_lbfgs import CardLbfgs
    from structlearn._src.cuda.chain_objective import CardObjective

    begun = time.perf_counter()
    card = CardObjective.of(objective, "cuda")
    up = torch.from_numpy(weights).cuda()
    card.value_gradient(up)
    torch.cuda.synchronize()
    print(f"first evaluation {time.perf_counter() - begun:.2f} s", flush=True)
    solver = CardLbfgs()
    state = solver.start(card, 0.0 * weights, np.random.default_rng(0))
    for _ in range(12):
        solver.step(card, state)
    return {
        "evaluation": profiled("an evaluation", lambda: card.value_gradient(up)),
        "step": profiled("a step of L-BFGS", lambda: solver.step(card, state)),
    }


if __name__ == "__main__":
    main()
