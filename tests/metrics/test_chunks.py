"""Chunks against the rules of conlleval, pair by pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, cross_val_score

import naive
from structlearn import GridLabeler, SequenceLabeler
from structlearn._src.common.errors import ArgumentError
from structlearn._src.metrics.chunks import chunk_scores, find_chunks, has_chunks
from structlearn.metrics import scorer

TYPED = ["B-X", "I-X", "O", "B-Y", "I-Y", "I-Y-Z"]
BARE = ["I", "O", "B"]
ENDS = ["O", *(f"{tag}-{kind}" for tag in "BIES" for kind in "XY")]


def chunk_set(chunks, begin=0):
    return {
        (int(s) - begin, int(e) - begin, chunks.kinds[t])
        for s, e, t in zip(chunks.starts, chunks.ends, chunks.types, strict=True)
    }


@pytest.mark.parametrize("names", [TYPED, BARE])
def test_every_short_sequence(names):
    for labels in itertools.product(range(len(names)), repeat=4):
        found = find_chunks(labels, np.array([0, 4]), names)
        assert chunk_set(found) == naive.chunks([names[i] for i in labels])


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("names", [TYPED, BARE, ENDS])
def test_random_sequences(seed, names):
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(rng.integers(0, 9, size=6)))
    labels = rng.integers(0, len(names), size=offsets[-1])
    predicted = np.where(rng.random(len(labels)) < 0.7, labels, rng.permutation(labels))
    hidden = rng.random(len(labels)) < 0.1 * (seed % 2)
    scores = chunk_scores(np.where(hidden, -1, labels), predicted, offsets, names)
    true, found = [
        {
            (s, *chunk)
            for s, (a, b) in enumerate(itertools.pairwise(offsets))
            for chunk in naive.chunks(["O" if hidden[i] else names[given[i]] for i in range(a, b)])
        }
        for given in (labels, predicted)
    ]
    assert list(scores.kinds) == sorted({chunk[-1] for chunk in true | found})
    for counts, chunks in (
        (scores.n_true, true),
        (scores.n_found, found),
        (scores.n_correct, true & found),
    ):
        assert counts.tolist() == [sum(c[-1] == kind for c in chunks) for kind in scores.kinds]
    assert scores.n_tokens == np.sum(~hidden)
    assert scores.n_right == np.sum((labels == predicted)[~hidden])
    precision, recall = (len(true & found) / max(len(part), 1) for part in (found, true))
    assert scores.precision == pytest.approx(precision)
    assert scores.recall == pytest.approx(recall)
    assert scores.f1 == pytest.approx(2 * precision * recall / max(precision + recall, 1e-9))


def test_report_has_the_form_of_conlleval():
    names = ["B-NP", "I-NP", "O", "B-VP"]
    labels = [0, 1, 2, 3, 0, 0, 1]
    predicted = [0, 1, 3, 3, 0, 1, 1]
    scores = chunk_scores(labels, predicted, np.array([0, 4, 7]), names)
    assert scores.report() == (
        "processed 7 tokens with 4 phrases; found: 4 phrases; correct: 2.\n"
        "accuracy:  71.43%; precision:  50.00%; recall:  50.00%; FB1:  50.00\n"
        "               NP: precision:  50.00%; recall:  33.33%; FB1:  40.00  2\n"
        "               VP: precision:  50.00%; recall: 100.00%; FB1:  66.67  2\n"
    )
    assert scores.only("VP").recall == 1.0
    bare = chunk_scores([0, 1], [0, 1], np.array([0, 2]), ["B", "I"])
    assert bare.report().count("\n") == 2


def test_nothing_to_find():
    for labels in ([], [0, 0]):
        scores = chunk_scores(labels, labels, np.array([0, len(labels)]), ["O"])
        assert scores.kinds == ()
        assert scores.f1 == scores.precision == scores.recall == 0.0


def test_labels_that_look_like_chunks():
    assert has_chunks(TYPED)
    assert has_chunks(BARE)
    assert has_chunks(["B-X", "S-X"])
    assert not has_chunks(["O"])
    assert not has_chunks(["NN", "O", "B-X"])
    assert not has_chunks([0, 1])
    assert find_chunks([0, 1], np.array([0, 2]), ["NN", "X"]).starts.size == 0


def test_every_token_needs_a_prediction():
    for predicted in ([0], [0, -1]):
        with pytest.raises(ArgumentError, match="every token needs one"):
            chunk_scores([0, 0], predicted, np.array([0, 2]), ["O"])


# ---- scorers -----------------------------------------------------------------------------

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
