"""Coding of labels, lengths of sequences, coding schemes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from structlearn._src.common.arrays import cut, offsets_of
from structlearn._src.common.errors import ArgumentError
from structlearn._src.text.labels import LabelCoder, forbidden_transitions


@pytest.mark.parametrize("kind", ["text", "numbers", "lists of numbers", "mixed", "small"])
def test_labels_there_and_back(kind):
    rng = np.random.default_rng(0)
    pool = {
        "text": ["b", "a", "c"],
        "mixed": ["b", 3, ("x", 1), None, True],
        "small": [True, False],
    }.get(kind, [7, 3, 5, 0])
    sequences = [[pool[i] for i in rng.integers(0, len(pool), size=n)] for n in (1, 4, 9, 0, 3)]
    given = sequences
    if kind == "numbers":
        given = [np.array(y, np.int16) for y in sequences]
    coder = LabelCoder().fit(given)
    numbers = coder.transform(given)
    assert numbers.dtype == np.int64
    assert coder.names.tolist() == LabelCoder(coder.names.tolist()).names.tolist()
    flat = list(itertools.chain.from_iterable(sequences))
    assert [-1 if y is None else coder.names.tolist().index(y) for y in flat] == numbers.tolist()
    if kind != "mixed":
        assert coder.names.tolist() == sorted(set(pool))
        back = cut(coder.names[numbers], offsets_of(map(len, sequences)))
        assert [y.tolist() for y in back] == sequences


def test_integer_names_are_an_integer_array_and_others_plain_objects():
    assert LabelCoder().fit([[3, 1]]).names.dtype == np.int64
    assert type(LabelCoder().fit([["b", "a"]]).names[0]) is str
    assert type(LabelCoder().fit([np.array(["b", "a"])]).names[0]) is str
    assert LabelCoder().fit([[("a", 1), ("b", 2)]]).names.tolist() == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("hidden", [[0, -1, 2], np.array([0, -1, 2]), [0, None, 2]])
def test_hidden_labels(hidden):
    coder = LabelCoder().fit([hidden, [2]])
    assert coder.names.tolist() == [0, 2]
    assert coder.transform([hidden]).tolist() == [0, -1, 1]
    assert LabelCoder().fit([["a", None]]).transform([[None], ["a"]]).tolist() == [-1, 0]


@pytest.mark.parametrize(
    "given",
    [
        np.array([2.0, -1.0, 0.0]),
        np.array([2.0, -1.0, 0.0], np.float32),
        [2.0, None, 0],
        [np.float32(2), -1.0, 0.0],
        np.array([2, None, 0.0], object),
        np.ma.masked_array([2, 7, 0], [False, True, False]),
        np.ma.masked_array([2.0, np.nan, 0.0], [False, True, False]),
    ],
)
def test_whole_floats_are_whole_numbers_and_masked_labels_hidden(given):
    coder = LabelCoder().fit([given])
    assert coder.names.dtype == np.int64
    assert coder.names.tolist() == [0, 2]
    assert coder.transform([given]).tolist() == [1, -1, 0]
    assert coder.transform([[2, -1, 0]]).tolist() == [1, -1, 0]


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        (np.nan, np.array),
        (np.nan, list),
        (np.inf, list),
        (-2, np.array),
        (-2, list),
        (-3.0, list),
        (0.5, np.array),
        (-2.5, list),
    ],
)
def test_numbers_that_are_no_labels(bad, kind):
    words = f"token 1 in sequence 1 has the label {bad:g}; .* None or -1"
    with pytest.raises(ArgumentError, match=words):
        LabelCoder().fit([kind([0, 1, -1]), kind([1, bad])])


def test_grids_of_labels_are_read_row_by_row():
    coder = LabelCoder().fit([np.array([[5, 3], [3, -1]])])
    assert coder.transform([np.array([[5, 3], [3, -1]])]).tolist() == [1, 0, 0, -1]


@pytest.mark.parametrize(
    ("seen", "new"),
    [
        (["a", "b"], ["b", "c"]),
        ([1, 2], [2, 3]),
        ([1, 2], [2, "x"]),
        (["a"], [0]),
        ([None], ["a"]),
        ([-1], [4]),
    ],
)
def test_unknown_labels_are_named_with_their_place(seen, new):
    coder = LabelCoder().fit([seen])
    known = [y for y in new if y in seen]
    place = len(known)
    with pytest.raises(ArgumentError, match=f"label {new[-1]!r} of token {place} in sequence 1"):
        coder.transform([known, new])
    with pytest.raises(ArgumentError, match="and 10 more"):
        LabelCoder().fit([range(30)]).transform([[99]])


def test_what_cannot_be_labels():
    with pytest.raises(ArgumentError, match=r"\[1\] cannot be a label"):
        LabelCoder().fit([["a", [1]]])
    with pytest.raises(ArgumentError, match="entry 1 of Y is 4"):
        LabelCoder().fit([["a"], 4])


# ---- schemes -----------------------------------------------------------------------------


def encoded(chunks, length, scheme):
    """Tags of a sequence with chunks (start, end, type), by the definition of the scheme."""
    tags = ["O"] * length
    ends = {}
    for start, end, kind in sorted(chunks):
        tags[start:end] = [f"I-{kind}"] * (end - start)
        touches = ends.get(start) == kind
        if scheme != "IOB1" or touches:
            tags[start] = f"B-{kind}"
        if scheme == "BIOES":
            tags[end - 1] = f"E-{kind}" if end - start > 1 else f"S-{kind}"
        ends[end] = kind
    return tuple(tags)


def every_chunking(length):
    """All sets of chunks of a sequence, with two types."""
    if length == 0:
        return [set()]
    out = [*every_chunking(length - 1)]
    for size in range(1, length + 1):
        for rest in every_chunking(length - size):
            out += [rest | {(length - size, length, kind)} for kind in "XY"]
    return out


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "IOB1"])
def test_schemes_allow_exactly_the_codes_of_chunkings(scheme):
    letters = sorted(set(scheme) - set("O1"))
    names = ["O", *(f"{letter}-{kind}" for letter in letters for kind in "XY")]
    forbidden = forbidden_transitions(names, scheme)
    length = 4 if scheme == "BIOES" else 5
    allowed = {
        tuple(names[i] for i in tags)
        for tags in itertools.product(range(len(names)), repeat=length)
        if not forbidden.first[tags[0]]
        and not forbidden.last[tags[-1]]
        and not any(forbidden.pairs[pair] for pair in itertools.pairwise(tags))
    }
    assert allowed == {encoded(chunks, length, scheme) for chunks in every_chunking(length)}
    assert all(naive.chunks(encoded(c, length, scheme)) == c for c in every_chunking(length))


def test_bare_tags_have_one_type():
    forbidden = forbidden_transitions(["O", "B", "I"], "BIO")
    assert np.argwhere(forbidden.pairs).tolist() == [[0, 2]]
    assert forbidden.first.tolist() == [False, False, True]
    assert not forbidden.last.any()


def test_pairs_by_name():
    forbidden = forbidden_transitions(["a", "b", 3], [("a", "b"), (3, 3)])
    assert np.argwhere(forbidden.pairs).tolist() == [[0, 1], [2, 2]]
    assert not forbidden.first.any()
    assert not forbidden.last.any()


def test_pairs_that_name_other_labels_rule_out_nothing():
    forbidden = forbidden_transitions(["a", "b"], [("a", "c"), ("c", "b"), ("b", "a")])
    assert np.argwhere(forbidden.pairs).tolist() == [[1, 0]]


@pytest.mark.parametrize(
    ("names", "rule", "words"),
    [
        (["O", "B-X"], "IOB2", "choose one of 'BIO', 'BIOES', 'IOB1'"),
        (["O", "E-X"], "BIO", "label 'E-X' does not fit the scheme BIO.*B-TYPE, I-TYPE"),
        (["O", "NN"], "BIOES", "label 'NN'"),
        (["O-X"], "BIO", "label 'O-X'"),
        (["O", "B"], ["O", "B"], "'O' is not a pair"),
        (["O", "B"], 3, "forbidden=3 must be one of 'BIO'"),
        (["O", "B"], iter([("O", "B")]), "a list of pairs"),
    ],
)
def test_wrong_rules(names, rule, words):
    with pytest.raises(ArgumentError, match=words):
        forbidden_transitions(names, rule)
