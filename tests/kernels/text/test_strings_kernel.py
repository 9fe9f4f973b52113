"""Tables of strings and columns of cells, against Python's own strings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from structlearn._src.kernels.text import strings as kernels
from structlearn._src.text.strings import Strings, empty_table, grown

WORDS = st.lists(st.text(alphabet="ab é", max_size=5), min_size=1, max_size=12)
CELLS = st.text(alphabet="ab \t\r\n-", max_size=40)


def numbered(words):
    index = {}
    return index, [index.setdefault(word, len(index)) for word in words]


def number(words, capacity):
    """Number words in a table that may be too small at first."""
    packed = Strings.of(words)
    table = empty_table(packed.text, capacity)
    state, out = np.zeros(2, np.int64), np.empty(len(words), np.int32)
    kernels.number(table, packed.offsets, state, out)
    times = 1
    while state[0] < len(words):
        assert state[1] == len(table.keys)  # it stops only where the table is full
        table = grown(table, int(state[1]))
        kernels.number(table, packed.offsets, state, out)
        times += 1
    return table, state, out, times


@settings(deadline=None)
@given(WORDS, st.integers(1, 4))
def test_strings_are_numbered_in_order_of_appearance_however_small_the_table(words, capacity):
    index, numbers = numbered(words)
    table, state, out, times = number(words, capacity)
    assert out.tolist() == numbers
    assert state.tolist() == [len(words), len(index)]
    assert times <= 1 + len(index)
    texts = [word.encode() for word in index]
    keys = table.keys[: len(index)]
    found = [
        table.base[start : start + size].tobytes()
        for start, size in keys[:, [kernels.START, kernels.LENGTH]]
    ]
    assert found == texts
    assert sorted(table.slots[table.slots > 0].tolist()) == list(range(1, len(index) + 1))


@settings(deadline=None)
@given(WORDS, WORDS)
def test_strings_of_another_text_are_found_or_not(words, others):
    index, _ = numbered(words)
    table = number(words, 16)[0]
    packed = Strings.of(others)
    out, hashes = np.full(len(others), 9, np.int32), np.empty(len(others), np.int64)
    kernels.find(table, packed.text, packed.offsets, 1, len(others), hashes, out)
    assert out[0] == 9
    assert out[1:].tolist() == [index.get(word, -1) for word in others[1:]]


@settings(deadline=None)
@given(WORDS, WORDS)
def test_lines_of_a_text_are_found_at_once(words, others):
    index, _ = numbered(words)
    table = number(words, 16)[0]
    text = np.frombuffer("".join(word + "\n" for word in others).encode(), np.uint8)
    n = len(others)
    for promised in (n, n + 1):
        out = np.empty(promised, np.int32)
        room = np.zeros(promised + 2, np.int64), np.empty(promised, np.int64)
        assert kernels.find_lines(table, text, *room, out) == (promised == n)
        if promised == n:
            assert out.tolist() == [index.get(word, -1) for word in others]


@settings(deadline=None)
@given(WORDS)
def test_borders_are_where_lines_end(words):
    text = np.frombuffer("".join(word + "\n" for word in words).encode(), np.uint8)
    offsets = np.zeros(len(words) + 2, np.int64)
    kernels.borders(text, offsets)
    expected = np.cumsum([0] + [len(word.encode()) + 1 for word in words])
    assert offsets[:-1].tolist() == expected.tolist()


@settings(deadline=None)
@given(WORDS, st.data())
def test_gathered_strings_follow_each_other_with_newlines(words, data):
    packed = Strings.of(words)
    which = np.array(data.draw(st.lists(st.integers(0, len(words) - 1), max_size=6)), np.int64)
    starts, lengths = packed.offsets[:-1][which], np.diff(packed.offsets)[which] - 1
    out = np.empty(int(lengths.sum()) + len(which), np.uint8)
    offsets = np.zeros(len(which) + 1, np.int64)
    kernels.gather(packed.text, starts, lengths, out, offsets)
    assert out.tobytes().decode() == "".join(words[i] + "\n" for i in which)
    assert offsets[-1] == len(out)


# ---- columns -----------------------------------------------------------------------------


def scan(data, width, capacity=64):
    """Why it came back, its state, numbers of cells, sizes of columns and borders of sentences."""
    text = np.frombuffer(data, np.uint8)
    most = data.count(b"\n") + 1
    state, sizes = np.zeros(kernels.STATE, np.int64), np.zeros(width, np.int64)
    ids, ends = np.empty((most, width), np.int32), np.empty(most, np.int64)
    offsets = np.zeros(most + 1, np.int64)
    table, local = empty_table(text, capacity), np.zeros((capacity, width), np.int32)
    why = kernels.scan(text, state, table, local, sizes, ids, ends, offsets)
    while why == kernels.FULL:
        table = grown(table, int(state[kernels.STRINGS]))
        local = np.concatenate([local, np.zeros((3 * len(local), width), np.int32)])
        why = kernels.scan(text, state, table, local, sizes, ids, ends, offsets)
    n = state[kernels.TOKENS]
    return why, state, ids[:n], sizes, offsets[: state[kernels.SENTENCES] + 1], ends[:n]


@settings(deadline=None)
@given(CELLS, st.integers(1, 3))
def test_cells_are_numbered_by_column(text, width):
    data = text.encode()
    sentences = naive.column_lines(data)
    why, _, ids, sizes, offsets, _ = scan(data, width, capacity=width)
    if any(len(row) != width for sentence in sentences for row in sentence):
        assert why == kernels.WIDTH
        return
    assert why == kernels.DONE
    assert np.diff(offsets).tolist() == [len(sentence) for sentence in sentences]
    rows = [row for sentence in sentences for row in sentence]
    for column in range(width):
        index, numbers = numbered([row[column] for row in rows])
        assert ids[:, column].tolist() == numbers
        assert sizes[column] == len(index)


def test_a_line_with_other_columns_is_told_with_its_number():
    why, state, *_ = scan(b"a b\n\na b\nc\n", 2)
    assert why == kernels.WIDTH
    assert state[kernels.LINE] == 4
    assert state[kernels.FOUND] == 1


def test_marks_of_documents_are_no_tokens():
    why, _, ids, _, offsets, _ = scan(b"-DOCSTART- -X- O\n\na b\n-DOCSTART-x b\n", 2)
    assert why == kernels.DONE
    assert offsets.tolist() == [0, 2]
    assert ids.tolist() == [[0, 0], [1, 0]]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b" \n"])
def test_cells_are_inserted_where_lines_end(end):
    data = b"the DT" + end + end + b"end NN" + end
    _, _, _, _, _, ends = scan(data, 2)
    names = Strings.of(["I", "Begin"])
    cells = np.array([1, 0])
    out = np.empty(len(data) + 20, np.uint8)
    text = np.frombuffer(data, np.uint8)
    given_ = text, ends, cells, names.text, names.offsets, ord(" ")
    size = kernels.insert(*given_, out)
    expected = b"the DT Begin" + end + end + b"end NN I" + end
    assert out[:size].tobytes() == expected
