"""A tagger for strings says what its labeler says, whatever form tokens have."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from structlearn import MulticlassClassifier, SequenceLabeler, Tagger, save
from structlearn._src.text.columns import parse_columns
from structlearn.errors import ArgumentError

X = [[["the"], ["cat"]], [["a"], ["dog"], ["sleeps"]]]
Y = [["D", "N"], ["D", "N", "V"]]
TEXT = b"the DT\ncat NN\n\na DT\ndog NN\nsleeps VB\n"


@pytest.fixture(scope="module")
def labeler():
    return SequenceLabeler(C=10.0).fit(X, Y)


@pytest.fixture(scope="module")
def by_columns():
    template = "U0:%x[0,0]\nU1:%x[0,1]\nB"
    return SequenceLabeler(C=10.0, template=template).fit(parse_columns(TEXT), Y)


def test_it_tags_as_the_labeler_predicts(labeler):
    tagger = Tagger(labeler)
    assert tagger.labels == ["D", "N", "V"]
    for tokens in (["a", "cat"], [["a"], ["cat"]]):
        assert tagger.tag(tokens) == labeler.predict([[["a"], ["cat"]]])[0].tolist()
    assert tagger.tag([{"dog": 1.0}]) == labeler.predict([[{"dog": 1.0}]])[0].tolist()


def test_probabilities_are_the_marginals(labeler):
    found = Tagger(labeler).probabilities(["a", "dog"])
    (wanted,) = labeler.predict_marginals([[["a"], ["dog"]]])
    np.testing.assert_array_equal([list(row.values()) for row in found], wanted)
    assert list(found[0]) == ["D", "N", "V"]


def test_probabilities_of_all_labellings_add_up(labeler):
    tagger = Tagger(labeler)
    tokens = ["a", "dog"]
    every = {
        labels: tagger.probability(tokens, labels)
        for labels in itertools.product(tagger.labels, repeat=2)
    }
    assert sum(every.values()) == pytest.approx(1.0, abs=1e-12)
    assert max(every, key=every.get) == tuple(tagger.tag(tokens))
    first = sum(p for labels, p in every.items() if labels[0] == "D")
    assert first == pytest.approx(tagger.probabilities(tokens)[0]["D"], abs=1e-12)


def test_columns(by_columns):
    tagger = Tagger(by_columns)
    tokens = [("the", "DT"), ("bird", "NN")]
    wanted = by_columns.predict(parse_columns(b"the DT\nbird NN\n"))[0].tolist()
    assert tagger.tag(tokens) == wanted == ["D", "N"]
    with pytest.raises(ArgumentError, match=r"1 cells, .* reads 2 columns; give .* a tuple of 2"):
        tagger.tag(["the", "bird"])
    with pytest.raises(ArgumentError, match=r"'a b'.*without spaces"):
        tagger.tag([("a b", "DT")])


def test_one_column_takes_plain_strings():
    words = parse_columns(b"the\ncat\n\na\ndog\nsleeps\n")
    model = SequenceLabeler(C=10.0, template="U0:%x[0,0]\nB").fit(words, Y)
    assert Tagger(model).tag(["the", "dog"]) == ["D", "N"]
    assert Tagger(model).probability(["the", "dog"], ["D", "N"]) > 0.5


def test_arrays():
    rng = np.random.default_rng(0)
    data = [rng.normal(size=(4, 2)) for _ in range(10)]
    model = SequenceLabeler().fit(data, [(x[:, 0] > 0).astype(int) for x in data])
    assert Tagger(model).tag(data[0]) == model.predict(data[:1])[0].tolist()


def test_files_and_empty_sentences(labeler, tmp_path):
    save(labeler, tmp_path / "m.model")
    for path in (tmp_path / "m.model", str(tmp_path / "m.model")):
        assert Tagger(path).tag(["the", "dog"]) == ["D", "N"]
    tagger = Tagger(labeler)
    assert (tagger.tag([]), tagger.probabilities([]), tagger.probability([], [])) == ([], [], 1.0)


def test_what_it_refuses(labeler, tmp_path):
    tagger = Tagger(labeler)
    with pytest.raises(ArgumentError, match="2 tokens and 1 labels"):
        tagger.probability(["the", "dog"], ["D"])
    with pytest.raises(ArgumentError, match="no label 'X'; choose from 'D', 'N', 'V'"):
        tagger.probability(["the"], ["X"])
    with pytest.raises(NotFittedError):
        Tagger(SequenceLabeler())
    save(MulticlassClassifier().fit([[0.0], [1.0]], [0, 1]), tmp_path / "other.model")
    with pytest.raises(ArgumentError, match=r"other\.model is of type MulticlassClassifier"):
        Tagger(tmp_path / "other.model")
