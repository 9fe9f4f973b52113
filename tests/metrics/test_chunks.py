"""Chunks against the rules of conlleval, pair by pair."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from structlearn._src.common.errors import ArgumentError
from structlearn._src.metrics.chunks import chunk_scores, find_chunks, has_chunks

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
