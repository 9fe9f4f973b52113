"""CoNLL-2000 on a card and on the host: seconds until the objective is within 0.1 % of the optimum.

Usage: python benchmarks/gpu_conll.py TRAIN [SECONDS]
"""

from __future__ import annotations

import pathlib
import sys
import tempfile
import time
import warnings

import numpy as np

from structlearn import SequenceLabeler, on, read_columns
from structlearn._src.cli.taggers import gold_labels, without_last

LIMIT = float(sys.argv[2]) if len(sys.argv) > 2 else 25.0  # seconds of each long run


def read(path):
    both = read_columns(path)
    return without_last(both), gold_labels(both)


def fit(X, Y, place, **options):
    """Return values by seconds of one fit."""
    curve = []
    begun = time.perf_counter()
    labeler = SequenceLabeler(features="sparse", solver="lbfgs", random_state=0, **options)
    labeler.set_params(callbacks=(lambda e: curve.append((time.perf_counter() - begun, e.value)),))
    with on(place), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labeler.fit(X, Y)
    spent = labeler.history_.seconds
    seconds = np.array(spent[-len(curve) :])
    return labeler, seconds, np.array([value for _, value in curve])


def main():
    begun = time.perf_counter()
    X, Y = read(sys.argv[1])
    print(f"read in {time.perf_counter() - begun:.1f} s", flush=True)
    place = "cuda" if len(sys.argv) < 4 else sys.argv[3]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as few:
        few.write("\n\n".join(pathlib.Path(sys.argv[1]).read_text().split("\n\n")[:300]) + "\n")
        few.flush()
        fit(*read(few.name), place, max_iter=3)  # kernels are compiled
    labeler, seconds, values = fit(X, Y, place, max_iter=400, tol=1e-6, time_limit=LIMIT)
    best = values.min()
    print(f"{len(labeler.weights_)} weights; best value {best:.4f}, {labeler.status_}", flush=True)
    for share in (1e-2, 1e-3, 1e-4):
        near = np.flatnonzero(values <= best * (1.0 + share))
        print(f"within {share:g} of it after {seconds[near[0]]:.2f} s, {near[0] + 1} iterations")
    each = np.diff(seconds)
    print(f"an iteration takes {1e3 * np.median(each):.1f} ms", flush=True)
    objective = SequenceLabeler(features="sparse").objective(X, Y)
    value = objective.value(labeler.weights_)
    print(f"value of these weights on the host {value:.4f}, off by {values[-1] / value - 1.0:.1e}")


if __name__ == "__main__":
    main()
