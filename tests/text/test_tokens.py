"""Token features against a plain dictionary."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter, UserDict

import numpy as np
import pytest

from structlearn._src.common import threads
from structlearn._src.common.errors import ArgumentError
from structlearn._src.text.tokens import Vocabulary

WORDS = ["a", "b", "=", "x=y", "é", "漢", "two words", "new\nline", ""]


def random_token(rng, kind):
    if kind == "dict" or (kind == "mixed" and rng.random() < 0.5):
        values = [*WORDS, 1.0, 2, -0.5, True, False, 0, np.float32(3.5), np.int8(4), np.True_]
        names = rng.choice(["p", "q", "r", "ß"], size=rng.integers(0, 4), replace=False)
        return {str(name): values[rng.integers(len(values))] for name in names}
    return [WORDS[i] for i in rng.integers(0, len(WORDS), size=rng.integers(0, 5))]


def attributes(token):
    """Value of every attribute of a token, without zeros."""
    if not isinstance(token, dict):
        return dict(Counter(token))
    named = {
        f"{name}={v}" if isinstance(v, str) else name: 1.0 if isinstance(v, str) else float(v)
        for name, v in token.items()
    }
    return {name: value for name, value in named.items() if value}


def read(rows, names):
    """Value of every attribute of every row."""
    out = []
    values = rows.values if len(rows.values) else np.ones(len(rows.columns))
    for a, b in itertools.pairwise(rows.offsets):
        total = Counter()
        for c, value in zip(rows.columns[a:b], values[a:b], strict=True):
            total[names[c]] += value
        out.append(dict(total))
    return out


def learned(sentences, min_count=1):
    vocabulary = Vocabulary()
    vocabulary.fit_transform(sentences, min_count)
    return vocabulary


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("kind", ["list", "dict", "mixed"])
def test_random_tokens(seed, kind):
    rng = np.random.default_rng(seed)
    train, test = (
        [[random_token(rng, kind) for _ in range(rng.integers(0, 5))] for _ in range(3)]
        for _ in range(2)
    )
    vocabulary = Vocabulary()
    rows = vocabulary.fit_transform(train)
    names = vocabulary.names
    assert len(set(names)) == len(names) == len(vocabulary) == rows.n_columns
    expected = [attributes(token) for sentence in train for token in sentence]
    assert set(names) >= {name for token in expected for name in token}
    assert read(rows, names) == expected
    known = [
        {name: value for name, value in attributes(token).items() if name in names}
        for sentence in test
        for token in sentence
    ]
    found = vocabulary.transform(test)
    assert read(found, names) == known
    assert [a.dtype for a in found[:3]] == [np.int64, np.int32, np.float64]
    again = Vocabulary.from_state(vocabulary.state())
    copied = pickle.loads(pickle.dumps(vocabulary))
    assert read(again.transform(test), again.names) == read(copied.transform(test), names) == known


@pytest.mark.parametrize("kind", ["list", "dict", "mixed"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_blocks_of_tokens_make_the_same_rows(kind, n_jobs, monkeypatch):
    rng = np.random.default_rng(5)
    sentences = [[random_token(rng, kind) for _ in range(n)] for n in (7, 0, 1, 30)]
    vocabulary = learned(sentences[:1])
    whole = vocabulary.transform(sentences)
    monkeypatch.setitem(threads.GRAIN, "tokens", 4)
    for one, other in zip(whole, vocabulary.transform(sentences, n_jobs), strict=True):
        assert np.array_equal(one, other)


def test_plain_attributes_have_no_values():
    for token in (["a", "b"], {"a": "b", "c": 1.0}):
        vocabulary = Vocabulary()
        assert vocabulary.fit_transform([[token]]).values.size == 0
        assert vocabulary.transform([[token]]).values.size == 0
    assert vocabulary.transform([]).offsets.tolist() == [0]


def test_rare_attributes_are_left_out():
    vocabulary = Vocabulary()
    rows = vocabulary.fit_transform([[["a", "b"], ["b", "c"]], [["c", "b", "d"]]], min_count=2)
    assert vocabulary.names == ["b", "c"]
    assert rows.offsets.tolist() == [0, 1, 3, 5]
    assert rows.columns.tolist() == [0, 0, 1, 1, 0]
    assert learned([[["z"]]]).names == ["z"]


@pytest.mark.parametrize(
    "token", [("a", "b"), {"a", "b"}, frozenset("ab"), iter("ab"), np.array(["a", "b"])]
)
def test_any_iterable_of_strings_is_a_token(token):
    vocabulary = Vocabulary()
    assert vocabulary.fit_transform([[token]]).columns.tolist() == [0, 1]
    assert sorted(vocabulary.names) == ["a", "b"]


def test_any_mapping_is_a_token():
    vocabulary = learned([[UserDict(a="b", c=2)]])
    assert vocabulary.names == ["a=b", "c"]


@pytest.mark.parametrize(
    ("token", "words"),
    [
        ("word", "'word' must be a dictionary or a list"),
        (b"word", "b'word' must be a dictionary or a list"),
        (3, "3 must be a dictionary or a list"),
        (["a", 1], "the attribute 1 must be a string"),
        (["a", ["b"]], r"the attribute \['b'\] must be a string"),
        ({1: 2.0}, "the attribute 1 must be a string"),
        ({1: "a"}, "the attribute 1 must be a string"),
        ({"a": None}, "a is None, but must be a string, a number"),
        ({"a": [1.0, 2.0]}, "a is .1.0, 2.0."),
        ({"a": [1.0]}, "a is .1.0."),
        ({"a": np.nan}, "a is nan"),
        ({"a": 1e101}, r"a is 1e\+101"),
        ({"b": 1.0, "a": -np.inf}, "a is -inf"),
        ({"a": 10**400}, "a is 1000"),
        ({"a": 1j}, "a is 1j"),
        (None, "None must be a dictionary or a list"),
        (["a", "b\udc80"], "'b.udc80' has half a character"),
        ({"a": "\udc80"}, "'.udc80' has half a character"),
    ],
)
def test_wrong_tokens_are_named(token, words):
    good = {"a": "x"} if isinstance(token, dict) else ["a"]
    vocabulary = learned([[good]])
    for call in (vocabulary.transform, Vocabulary().fit_transform):
        with pytest.raises(ArgumentError, match=f"token 1 of sentence 2: {words}"):
            call([[good], [], [good, token]])


def test_wrong_sentences_are_named():
    for bad in ("a sentence", 5, np.array("x")):
        with pytest.raises(ArgumentError, match=r"sentence 1 is .*list of tokens"):
            learned([[["a"]], bad])
    with pytest.raises(ArgumentError, match="min_count"):
        learned([], min_count=0)
    with pytest.raises(KeyError, match="text"):
        Vocabulary.from_state({})
