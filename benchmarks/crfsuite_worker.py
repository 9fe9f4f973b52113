"""Train and tag CoNLL-2000 with python-crfsuite, in one process; prints figures as JSON.

Usage: python crfsuite_worker.py lbfgs|l2sgd TRAIN TEST
"""

from __future__ import annotations

import json
import pathlib
import re
import resource
import sys
import tempfile
import time

import numpy as np
import pycrfsuite

from structlearn.metrics.chunks import chunk_scores
from templates import expand, read

PASSES = {"lbfgs": 135, "l2sgd": 20}
REPEATS = 3


class Trainer(pycrfsuite.Trainer):
    """Notes when each line of the log came."""

    def __init__(self, *args, **kwargs):
        self.log = []
        super().__init__(*args, **kwargs)

    def message(self, message):
        self.log.append((time.perf_counter(), message))


def main(algorithm: str, train_path: str, test_path: str) -> dict:
    trainer = Trainer(algorithm=algorithm, verbose=True)
    for rows, labels in read(train_path):
        trainer.append(expand(rows), labels)
    trainer.set_params({"c2": 0.5, "max_iterations": PASSES[algorithm]})
    with tempfile.TemporaryDirectory() as folder:
        model = str(pathlib.Path(folder) / "model")
        begun = time.perf_counter()
        trainer.train(model)
        out = {"seconds": time.perf_counter() - begun, "curve": curve(trainer.log, begun)}
        out["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        tagger = pycrfsuite.Tagger()
        tagger.open(model)
        return out | tag(tagger, test_path)


def curve(log: list[tuple[float, str]], begun: float) -> list[dict]:
    """Objective against time, by the lines of the log."""
    out = []
    for at, message in log:
        if found := re.search(r"(?:Loss|loss): *([\d.]+)", message):
            out.append({"seconds": at - begun, "value": float(found[1])})
    return out


def tag(tagger: pycrfsuite.Tagger, test_path: str) -> dict:
    sentences = read(test_path)
    strings = [expand(rows) for rows, _ in sentences]
    tokens = sum(map(len, strings))
    given = least(lambda: [tagger.tag(s) for s in strings])
    whole = least(lambda: [tagger.tag(expand(rows)) for rows, _ in read(test_path)])
    names = sorted({label for _, labels in sentences for label in labels} | set(tagger.labels()))
    number = {name: i for i, name in enumerate(names)}
    gold = np.array([number[label] for _, labels in sentences for label in labels])
    found = np.array([number[label] for s in strings for label in tagger.tag(s)])
    offsets = np.cumsum([0, *map(len, strings)])
    f1 = 100 * chunk_scores(gold, found, offsets, names).f1
    return {"f1": f1, "strings": tokens / given, "file": tokens / whole}


def least(work) -> float:
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
