"""Train python-crfsuite on CoNLL-2000, one task per process; prints figures as JSON.

Usage: python crfsuite_worker.py lbfgs|l2sgd|lists TRAIN TEST MODEL

Sentences are made and handed over one by one. ``lists`` holds the attributes of all of them first,
as sklearn-crfsuite and most programs do, for their memory; it trains for one pass only.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time

import numpy as np
import pycrfsuite

from structlearn.metrics import chunk_scores
from templates import expand, read

PASSES = {"lbfgs": 135, "l2sgd": 20, "lists": 1}


class Trainer(pycrfsuite.Trainer):
    """Notes when each line of the log came."""

    def __init__(self, *args, **kwargs):
        self.log = []
        super().__init__(*args, **kwargs)

    def message(self, message):
        self.log.append((time.perf_counter(), time.process_time(), message))


def main(task: str, train_path: str, test_path: str, model: str) -> dict:
    algorithm = "lbfgs" if task == "lists" else task
    trainer = Trainer(algorithm=algorithm, verbose=True)
    examples = ((expand(rows), labels) for rows, labels in read(train_path))
    if task == "lists":
        examples = list(examples)
    for attributes, labels in examples:
        trainer.append(attributes, labels)
    trainer.set_params({"c2": 0.5, "max_iterations": PASSES[task]})
    begun, cpu = time.perf_counter(), time.process_time()
    trainer.train(model)
    out = {"seconds": time.perf_counter() - begun, "curve": curve(trainer.log, begun, cpu)}
    out["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return out | {"f1": f1(model, test_path)}


def curve(log: list[tuple[float, float, str]], begun: float, cpu: float) -> list[dict]:
    """Objective against time, by the clock and of the processor, by the lines of the log."""
    out = []
    for at, used, message in log:
        if found := re.search(r"(?:Loss|loss): *([\d.]+)", message):
            row = {"seconds": at - begun, "cpu": used - cpu, "value": float(found[1])}
            out.append(row)
    return out


def f1(model: str, test_path: str) -> float:
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    sentences = read(test_path)
    names = sorted({label for _, labels in sentences for label in labels} | set(tagger.labels()))
    number = {name: i for i, name in enumerate(names)}
    gold = np.array([number[label] for _, labels in sentences for label in labels])
    found = np.array([number[label] for rows, _ in sentences for label in tagger.tag(expand(rows))])
    offsets = np.cumsum([0, *(len(labels) for _, labels in sentences)])
    return 100 * chunk_scores(gold, found, offsets, names).f1


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
