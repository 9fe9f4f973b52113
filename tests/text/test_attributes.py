"""The template expander against strings."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.text import attributes as module
from structlearn._src.text.attributes import Attributes, Digits, KeyTable, Sheet, fit_transform
from structlearn._src.text.columns import parse_columns
from structlearn._src.text.strings import Strings
from structlearn._src.text.template import parse_template


def learn(*given, **more):
    """What is learnt, without the rows."""
    return fit_transform(*given, **more)[0]


def random_data(rng, width, words):
    sentences = [
        [list(rng.choice(words, size=width)) for _ in range(rng.integers(1, 6))]
        for _ in range(rng.integers(1, 6))
    ]
    return "\n\n".join("\n".join(" ".join(row) for row in s) for s in sentences).encode()


def random_template(rng, width, fronts=("U0:", "U1:", "U2:", "U3:", "B1:", "B2:")):
    """Rows with up to four macros; some begin alike, and so share their attributes."""
    lines = []
    for k in range(rng.integers(1, 7)):
        front = rng.choice(fronts)
        if rng.random() < 0.5:
            front = f"{front[0]}{k}x:"
        macros = [
            f"%x[{rng.integers(-3, 4)},{rng.integers(0, width)}]" for _ in range(rng.integers(0, 5))
        ]
        lines.append(front + "|".join(macros))
    return "\n".join(lines)


def names_of(rows, names):
    return [sorted(names[c] for c in part) for part in np.split(rows.columns, rows.offsets[1:-1])]


def expected(text, data, known=None):
    """Attributes of every token as sorted strings, for one label and for two."""
    out = [], []
    for sentence in naive.column_lines(data):
        for side, tokens in zip(out, naive.expand(text, sentence), strict=True):
            side.extend(
                sorted(a for a in attributes if known is None or a in known)
                for attributes in tokens
            )
    return out


def check(text, train, test, min_count=1):
    template = parse_template(text)
    attributes, rows = fit_transform(parse_columns(train), template, min_count)
    found = attributes.transform(parse_columns(test))
    for k, space in enumerate((attributes.unigram, attributes.bigram)):
        names = space.names()
        assert (
            len(set(names)) == len(names) == len(space) == rows[k].n_columns == found[k].n_columns
        )
        everything = list(itertools.chain.from_iterable(expected(text, train)[k]))
        assert set(names) == {a for a in everything if everything.count(a) >= min_count}
        assert names_of(rows[k], names) == expected(text, train, set(names))[k]
        assert names_of(found[k], names) == expected(text, test, set(names))[k]
        assert rows[k].values.size == found[k].values.size == 0
        which = np.arange(len(names))[::-3]
        assert space.names(which) == [names[i] for i in which]
    return attributes


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("min_count", [1, 2])
def test_random_templates(seed, min_count):
    rng = np.random.default_rng(seed)
    text = random_template(rng, 1)
    train, test = (random_data(rng, 1, ["a", "b", "cc", "d", "é"]) for _ in range(2))
    check(text, train, test, min_count)


@pytest.mark.parametrize("seed", range(30))
def test_random_templates_over_columns(seed):
    rng = np.random.default_rng(seed)
    lines = random_template(rng, 3).split("\n")
    text = "\n".join(f"{line[0]}{k}{line[1:]}" for k, line in enumerate(lines))
    train, test = (random_data(rng, 4, ["a", "b", "cc"]) for _ in range(2))
    check(text, train, test)


@pytest.mark.parametrize("seed", range(30))
def test_keys_that_do_not_fit_are_built_in_stages(seed, monkeypatch):
    monkeypatch.setattr(module, "_KEY_BITS", 6)
    monkeypatch.setattr(module, "_NUMBER_BITS", 3)
    rng = np.random.default_rng(seed)
    text = "U1:%x[-1,0]|%x[0,0]|%x[1,0]|%x[2,0]\nU1:%x[0,0]|%x[0,0]|%x[1,0]|%x[1,0]\n"
    text += "B1:%x[0,0]|%x[-1,1]|%x[0,1]"
    train, test = (random_data(rng, 2, ["a", "b", "cc", "d"]) for _ in range(2))
    attributes = check(text, train, test)
    assert len(attributes.unigram.tables) > 1
    assert len(attributes.bigram.tables) > 1
    check(text, train, test, min_count=2)


def test_keys_of_many_large_columns_stay_exact():
    rng = np.random.default_rng(0)
    rows = [" ".join(f"w{x}" for x in rng.integers(0, 3000, size=6)) for _ in range(4000)]
    data = "\n".join([*rows, *rows[:50]]).encode()
    text = "U:" + "/".join(f"%x[0,{c}]" for c in range(6))  # 6 digits of about 11.5 bits
    attributes = learn(parse_columns(data), parse_template(text))
    assert len(attributes.unigram.tables) == 2
    assert len(attributes.unigram) == 4000
    assert attributes.unigram.names([0, 3999]) == [
        "U:" + rows[i].replace(" ", "/") for i in (0, 3999)
    ]


@pytest.mark.parametrize("seed", range(10))
def test_saved_attributes_are_the_same(seed):
    rng = np.random.default_rng(seed)
    text = random_template(rng, 2)
    train, test = (parse_columns(random_data(rng, 3, ["a", "b", "é", "d"])) for _ in range(2))
    first = learn(train, parse_template(text), min_count=1 + seed % 2)
    second = Attributes.from_state({k: v.copy() for k, v in first.state().items()})
    assert second.template == first.template
    for one, two in zip(first.transform(test), second.transform(test, n_jobs=1), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert first.unigram.names() == second.unigram.names()
    assert first.bigram.names() == second.bigram.names()


def test_states_that_do_not_fit_together_are_refused():
    good = learn(parse_columns(b"a X\nb Y\n"), parse_template()).state()
    for name in good:
        with pytest.raises(KeyError, match=name):
            Attributes.from_state({k: v for k, v in good.items() if k != name})
        if name != "template":
            with pytest.raises(FormatError):
                Attributes.from_state({**good, name: good[name][:-1]})


def test_columns_that_are_not_named_do_not_matter():
    columns = parse_columns(b"a X 1\nb Y 2\n\na Y 3\n")
    attributes = learn(columns, parse_template("U1:%x[0,1]"))
    assert [len(v) for v in attributes.vocabularies] == [0, 2]
    other = parse_columns(b"q Y\nr Z\n")
    assert attributes.transform(other).unigram.offsets.tolist() == [0, 1, 1]
    with pytest.raises(FormatError, match="has 1 columns"):
        attributes.transform(parse_columns(b"q\n"))


def test_bad_arguments():
    columns = parse_columns(b"a\n")
    with pytest.raises(FormatError, match="names column 1"):
        learn(columns, parse_template())
    with pytest.raises(ArgumentError, match="min_count"):
        learn(columns, parse_template("U"), min_count=0)
    attributes = learn(columns, parse_template("U"))
    assert attributes.unigram.names() == ["U"]


@pytest.mark.data
def test_conll2000_has_its_known_attributes(data_folder):
    data = (data_folder / "conll2000" / "train.txt").read_bytes()
    attributes, rows = fit_transform(parse_columns(data), parse_template())
    assert len(attributes.unigram) == 338551
    assert len(rows.unigram.columns) == 19 * 211727
    assert rows.bigram.n_columns == 0


# ---- keys of template rows and their numbers ---------------------------------------------

KEYS = st.lists(st.integers(-1, 9) | st.integers(0, 2**62 - 1), max_size=30)


def numbered(keys):
    index = {}
    return index, [index.setdefault(k, len(index)) if k >= 0 else -1 for k in keys]


def numbers(table, keys, learn):
    out = np.empty(len(keys), np.int32)
    table.number(np.array(keys, np.int64), out, learn=learn)
    return out.tolist()


@settings(deadline=None)
@given(KEYS, KEYS)
def test_keys_are_numbered_in_order_of_appearance_and_found_again(first, second):
    table = KeyTable()
    index, expected = numbered(first)
    assert numbers(table, first, learn=True) == expected
    assert table.keys.tolist() == list(index)
    assert numbers(table, second, learn=False) == [index.get(k, -1) for k in second]
    assert table.keys.tolist() == list(index)


def test_a_table_grows_and_forgets_nothing():
    keys = np.random.default_rng(0).integers(0, 2**62, 10_000).tolist()
    table = KeyTable()
    index, expected = numbered(keys + keys[::-1])
    assert numbers(table, keys + keys[::-1], learn=True) == expected
    assert table.keys.tolist() == list(index)
    again = KeyTable()
    again.learn(table.keys)
    assert again.keys.tolist() == list(index)


def row_of(columns):
    (row,) = parse_template(
        "U0:" + "/".join(f"%x[{i - 2},{c}]" for i, c in enumerate(columns))
    ).rows
    return row


@pytest.mark.parametrize("sizes", [[10, 10], [2**20, 3], [2**30, 2**31 - 9]])
@pytest.mark.parametrize("columns", [[0], [0, 1], [1, 1, 0, 0, 1, 0], [0] * 9])
def test_no_stage_needs_more_bits_than_a_key_has(sizes, columns):
    digits, row = Digits(2, sizes), row_of(columns)
    stages = digits.stages(row)
    assert [macro for stage in stages for macro in stage] == list(row.macros)
    for i, stage in enumerate(stages):
        most = 2**62 if i == 0 else 2**31  # a later stage begins with the number of a key
        radices = [digits.radix(column) for _, column in stage]
        assert math.prod(radices) <= most
        if i:
            before = [digits.radix(column) for _, column in stages[i - 1]]
            assert math.prod(before) * radices[0] > (2**62 if i == 1 else 2**31)


def test_digits_outside_a_sentence_are_spelt_as_by_crf():
    digits = Digits(2, [2])
    strings = Strings.of(["new", "york"])
    assert digits.radix(0) == 6
    found = digits.text(0, np.arange(6), strings)
    assert found == ["new", "york", "_B-1", "_B-2", "_B+2", "_B+1"]


def test_first_tokens_have_no_pair_to_start_from():
    sheet = Sheet([np.zeros(5, np.int32)], np.array([0, 2, 5]))
    assert sheet.every.tolist() == [0] * 5
    assert sheet.not_first.tolist() == [-1, 0, -1, 0, 0]
