"""The same tagger by sklearn-crfsuite and by structlearn, on the base noun phrases of CRF++.

Run ``pip install sklearn-crfsuite``, then ``python benchmarks/coming_from/compare_crfsuite.py``.
Both programs get the same attributes, the same penalty and weights for the same pairs, so they
minimise one function: their minima must agree.
"""

from __future__ import annotations

import numpy as np
import sklearn_crfsuite
from comparison import Figure, conclude

from structlearn import SequenceLabeler
from structlearn.datasets import load_basenp
from structlearn.metrics import chunk_scores

C = 1.0


def attributes(words: list[str], tags: list[str]) -> list[list[str]]:
    """Return the word, the tag and those of the neighbours, for every token."""
    columns = {"w": ["^", *words, "$"], "t": ["^", *tags, "$"]}
    steps = {"-1": -1, "": 0, "+1": 1}
    return [
        [f"{c}{s}={cells[i + d]}" for c, cells in columns.items() for s, d in steps.items()]
        for i in range(1, len(words) + 1)
    ]


def read(part: str) -> tuple[list[list[list[str]]], list[list[str]]]:
    data = load_basenp(part)
    X = [attributes(list(w), list(t)) for w, t in zip(data.labels(0), data.labels(1), strict=True)]
    return X, [list(labels) for labels in data.labels()]


def f1(truth: list[list[str]], found: list[list[str]], names: list[str]) -> float:
    number = {name: i for i, name in enumerate(names)}
    offsets = np.cumsum([0, *map(len, truth)])
    true, guessed = (np.array([number[y] for row in rows for y in row]) for rows in (truth, found))
    return 100 * chunk_scores(true, guessed, offsets, names).f1


def compare(features: str) -> list[Figure]:
    X, Y = read("train")
    X_test, Y_test = read("test")
    dense = features == "dense"
    crf = sklearn_crfsuite.CRF(
        algorithm="lbfgs",
        c2=1 / (2 * C),
        all_possible_states=dense,
        all_possible_transitions=dense,
        max_iterations=1000,
        epsilon=1e-7,
        delta=1e-9,
    ).fit(X, Y)
    labeler = SequenceLabeler(features=features, C=C, tol=1e-9).fit(X, Y)
    names = [str(name) for name in labeler.classes_]
    marginals = [[t[name] for name in names] for row in crf.predict_marginals(X_test) for t in row]
    apart = np.abs(np.array(marginals) - np.concatenate(labeler.predict_marginals(X_test))).max()
    theirs = [list(row) for row in crf.predict(X_test)]
    ours = [row.tolist() for row in labeler.predict(X_test)]
    equal = np.mean(np.concatenate(theirs) == np.concatenate(ours))
    loss = crf.training_log_.last_iteration["loss"]
    scores = [f1(Y_test, found, names) for found in (theirs, ours)]
    return [
        Figure(f"{features}: objective", loss, labeler.value_ / C, 1e-6, relative=True),
        Figure(f"{features}: largest gap of marginals", 0.0, float(apart), 1e-3),
        Figure(f"{features}: share of equal labels", 1.0, float(equal), 1e-4),
        Figure(f"{features}: F1 on the test part", *scores, 0.02),
    ]


if __name__ == "__main__":
    conclude("sklearn-crfsuite", compare("sparse") + compare("dense"))
