"""Scorers of structures, against scikit-learn's on flat labels and counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from structlearn import GridLabeler, SequenceLabeler
from structlearn.metrics import scorer

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(n, 2)) for n in (4, 1, 6, 3, 5, 2)]
TAGS = np.array(["B-A", "I-A", "B-B", "O"], object)
Y = [TAGS[(2 * (x[:, 0] > 0) + (x[:, 1] > 0)).astype(int)] for x in X]


class Guess:
    """Predicts what it was told."""

    def __init__(self, labels):
        self.labels = labels

    def predict(self, X):
        return self.labels


def test_flat_scores_are_those_of_scikit_learn():
    guessed = [np.roll(y, 1) for y in Y]
    hidden = [[None if i == 2 else t for i, t in enumerate(y)] for y in Y]
    pairs = [
        (t, g) for y, p in zip(hidden, guessed, strict=True) for t, g in zip(y, p, strict=True)
    ]
    true, kept = zip(*((t, g) for t, g in pairs if t is not None), strict=True)
    assert scorer("accuracy")(Guess(guessed), X, hidden) == accuracy_score(true, kept)
    wanted = f1_score(true, kept, average="macro")
    assert scorer("f1_macro")(Guess(guessed), X, hidden) == pytest.approx(wanted)
    with pytest.raises(ValueError, match="no such score"):
        scorer("no such score")


def test_chunks_are_counted():
    true = [["B-A", "I-A", "O"], ["B-B", "O"]]
    guessed = [["B-A", "O", "O"], ["B-B", "B-A"]]
    # Chunks there: A(0:2), B; found: A(0:1), B, A; one is right.
    assert scorer("chunk_f1")(Guess(guessed), None, true) == pytest.approx(2 * 1 / (2 + 3))
    assert scorer("chunk_f1")(Guess(true), None, true) == 1.0


def test_whole_sequences_are_counted():
    true = [["a", "b"], ["a", None], [None, None], ["b"]]
    guessed = [["a", "a"], ["a", "b"], ["a", "a"], ["b"]]
    assert scorer("sequence_accuracy")(Guess(guessed), None, true) == pytest.approx(2 / 3)


@pytest.mark.parametrize("scoring", ["chunk_f1", "sequence_accuracy", "accuracy", "f1_macro"])
def test_searches_take_them(scoring):
    labeler = SequenceLabeler(max_iter=5, tol=None)
    options = {"cv": 2, "scoring": scorer(scoring), "error_score": "raise"}
    scores = cross_val_score(labeler, X, Y, **options)
    assert ((scores >= 0) & (scores <= 1)).all()
    search = GridSearchCV(labeler, {"C": [0.1, 1.0]}, **options)
    assert np.isfinite(search.fit(X, Y).best_score_)


def test_flat_accuracy_is_the_score_of_labelers():
    labeler = SequenceLabeler(max_iter=5, tol=None).fit(X, Y)
    assert scorer("accuracy")(labeler, X, Y) == pytest.approx(labeler.score(X, Y))
    images = [RNG.normal(size=(3, 4)) for _ in range(3)]
    pixels = [np.where(image > 1, -1, image > 0).astype(int) for image in images]
    grid = GridLabeler(max_iter=5, tol=None, random_state=0).fit(images, pixels)
    assert scorer("accuracy")(grid, images, pixels) == pytest.approx(grid.score(images, pixels))
