"""Train or tag CoNLL-2000 with structlearn, one task per process; prints figures as JSON.

Usage: python tagging_worker.py warm|sparse|dense|memory TRAIN TEST
       python tagging_worker.py tag TRAIN TEST MODEL

``tag`` takes turns with CRFsuite, whose model is MODEL.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import sys
import tempfile
import time
import warnings
from itertools import pairwise

import numpy as np

HERE = pathlib.Path(__file__).parent
sys.path.append(str(HERE.parent / "tests"))

from kernel_cache import kernel_hash  # noqa: E402

os.environ.setdefault("NUMBA_CACHE_DIR", str(HERE.parent / ".numba_cache" / kernel_hash()))

import pycrfsuite  # noqa: E402
from scipy.sparse import csr_array  # noqa: E402

from structlearn import SequenceLabeler, read_columns  # noqa: E402
from structlearn._src.cli.main import main as command  # noqa: E402
from structlearn._src.cli.taggers import ColumnTagger, gold_labels, without_last  # noqa: E402
from structlearn._src.text.columns import Columns  # noqa: E402
from structlearn.metrics import chunk_scores  # noqa: E402
from templates import expand, read  # noqa: E402
from timing import undisturbed  # noqa: E402

REPEATS = 7


def columns(path: str) -> tuple[Columns, list]:
    both = read_columns(path)
    return without_last(both), gold_labels(both)


def f1(labeler: SequenceLabeler, X: object, Y: list) -> float:
    names = sorted({name for y in Y for name in y})
    number = {name: i for i, name in enumerate(names)}
    offsets = np.cumsum([0, *map(len, Y)])
    gold = np.array([number[name] for y in Y for name in y])
    found = np.array([number.get(name, -1) for y in labeler.predict(X) for name in y])
    return 100 * chunk_scores(gold, found, offsets, names).f1


def train(space: str, train_path: str, test_path: str) -> dict:
    X, Y = columns(train_path)
    passes: list[tuple[float, np.ndarray]] = []  # CPU seconds, features included, and weights
    labeler = SequenceLabeler(features=space, random_state=0)
    if space == "sparse":
        begun = time.process_time()
        labeler.set_params(
            callbacks=(
                lambda event: passes.append((time.process_time() - begun, np.array(event.weights))),
            )
        )
    labeler.fit(X, Y)
    test = columns(test_path)
    history = labeler.history_
    out = {"f1": f1(labeler, *test), "value": labeler.value_, "status": labeler.status_}
    out |= {"seconds": float(history.seconds[-1]), "rss": peak(), "curve": []}
    objective = labeler.objective(X, Y) if passes else None
    for seconds, (cpu, weights) in zip(history.seconds[-len(passes) :], passes, strict=False):
        labeler.weights_ = weights
        row = {"seconds": float(seconds), "cpu": cpu, "value": objective.value(weights)}
        out["curve"].append({**row, "f1": f1(labeler, *test)})
    return out


def memory(train_path: str, test_path: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        command(["train", train_path, "--model", f"{folder}/model", "--quiet"])
        return {"seconds": time.perf_counter() - begun, "rss": peak()}


def tag(train_path: str, test_path: str, peer_model: str) -> dict:
    """Tokens per second of wall and CPU time, given strings, sparse rows, or the file."""
    with tempfile.TemporaryDirectory() as folder:
        command(["train", train_path, "--model", f"{folder}/model", "--quiet"])
        tagger = ColumnTagger.load(pathlib.Path(f"{folder}/model"))
    peer = pycrfsuite.Tagger()
    peer.open(peer_model)
    strings = [expand(rows) for rows, _ in read(test_path)]
    labeler = strings_labeler(train_path)
    matrices, sparse = rows_labeler(labeler, strings)
    work = {
        "strings": lambda: labeler.predict(strings),
        "strings crfsuite": lambda: [peer.tag(s) for s in strings],
        "file": lambda: tagger.predict(without_last(read_columns(test_path))),
        "file crfsuite": lambda: [peer.tag(expand(rows)) for rows, _ in read(test_path)],
        "rows": lambda: sparse.predict(matrices),
    }
    for once in work.values():
        once()
    timings = undisturbed(lambda once: once(), tuple(work.values()), REPEATS)
    n = sum(map(len, strings))
    rates = ({"wall": n / t.wall, "cpu": n / t.cpu} for t in timings)
    return dict(zip(work, rates, strict=True))


def strings_labeler(train_path: str) -> SequenceLabeler:
    """A labeler of lists of attributes; training is cut short, which tagging does not notice."""
    some = read(train_path)
    labeler = SequenceLabeler(features="sparse", max_iter=3, tol=0.0)
    with warnings.catch_warnings(action="ignore"):
        return labeler.fit([expand(rows) for rows, _ in some], [labels for _, labels in some])


def rows_labeler(labeler: SequenceLabeler, strings: list) -> tuple[list, SequenceLabeler]:
    """The same features as sparse matrices, and a labeler for these that is hardly trained."""
    rows = labeler.plan_.reader.nodes.vocabulary.transform(strings)
    matrix = csr_array(
        (np.ones(len(rows.columns)), rows.columns, rows.offsets), (rows.n_rows, rows.n_columns)
    )
    starts = np.cumsum([0, *map(len, strings)])
    matrices = [matrix[a:b] for a, b in pairwise(starts)]
    labels = [["a"] * (len(s) - 1) + ["b"] for s in strings]
    sparse = SequenceLabeler(max_iter=1, tol=0.0)
    with warnings.catch_warnings(action="ignore"):
        return matrices, sparse.fit(matrices[:200], labels[:200])


def peak() -> float:
    """Peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(task: str, *paths: str) -> dict:
    if task == "warm":
        command(["warm-up"])
        return {}
    if task in ("sparse", "dense"):
        return train(task, *paths)
    return {"memory": memory, "tag": tag}[task](*paths)


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
