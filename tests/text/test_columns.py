"""Column files against a line by line reader."""

from __future__ import annotations

import gzip
import itertools

import numpy as np
import pytest

import naive
from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.text.columns import add_column, parse_columns, read_columns

WORDS = [
    "a",
    "b",
    "the",
    "_B-1",
    "-DOCSTART-x",
    "-DOCSTART-",
    "x/y",
    "naïve",
    "漢字",
    "a\x0bb",
    "\xa0",
    "#",
]


def random_file(rng, end="\n"):
    """Bytes of a file with everything that is allowed in one."""
    width = int(rng.integers(1, 4))
    lines = []
    for _ in range(rng.integers(1, 12)):
        kind = rng.random()
        if kind < 0.2:
            lines.append(rng.choice(["", " ", "\t "]))
        elif kind < 0.3:
            lines.append(rng.choice(["-DOCSTART-", "-DOCSTART- -X- O", " -DOCSTART-\tO"]))
        else:
            blank = rng.choice([" ", "\t", "  ", " \t"])
            cells = blank.join(rng.choice(WORDS, size=width))
            lines.append(rng.choice(["", " "]) + cells + rng.choice(["", " ", "\t"]))
    lines.append(" ".join(["last"] * width))
    return (end.join(lines) + rng.choice(["", end, end + end])).encode()


def assert_same(columns, sentences):
    rows = list(itertools.chain.from_iterable(sentences))
    assert columns.ids.shape == (len(rows), len(rows[0]))
    assert columns.offsets.tolist() == [0, *itertools.accumulate(map(len, sentences))]
    for c in range(columns.width):
        cells = [row[c] for row in rows]
        assert columns.text(c) == cells
        assert columns.vocabularies[c].list() == list(dict.fromkeys(cells))
        assert sorted(set(columns.ids[:, c])) == list(range(len(set(cells))))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_random_files(seed, end):
    data = random_file(np.random.default_rng(seed), end)
    if seed % 2:
        data = b"\xef\xbb\xbf" + data
    assert_same(parse_columns(data), naive.column_lines(data))


def test_many_strings_make_the_table_grow():
    sentences = [
        [[str(i), str(i % 7), str(2 * i)] for i in range(k, k + 50)] for k in range(30000)[::50]
    ]
    data = "\n\n".join("\n".join(" ".join(row) for row in s) for s in sentences).encode()
    assert_same(parse_columns(data), sentences)


def test_files_may_be_packed(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(gzip.compress(b"a X\nb Y\n"))
    assert read_columns(path).text(1) == ["X", "Y"]


# ---- given vocabularies --------------------------------------------------------------------


def test_columns_numbered_by_another_file():
    first = parse_columns(b"a X\nb Y\nc X\n")
    second = parse_columns(b"b Z 1\nd X 2\n\na Y 3\n")
    known = second.known_by(first.vocabularies)
    assert known.ids.tolist() == [[1, -1, 0], [-1, 0, 1], [0, 1, 2]]
    assert known.text(0) == ["b", "", "a"]
    assert second.text(0) == ["b", "d", "a"]
    again = known.known_by([second.vocabularies[0], None])
    assert again.ids[:, 0].tolist() == [0, -1, 2]
    with pytest.raises(FormatError, match="2 columns, but 3"):
        first.known_by(second.vocabularies)


# ---- one more column -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_one_more_column(seed, end):
    rng = np.random.default_rng(seed)
    data = random_file(rng, end)
    columns = parse_columns(data)
    names = ["O", "B-größer", "I"]
    cells = rng.integers(0, 3, size=len(columns.ids))
    new = add_column(data, columns, cells, names)
    rows = itertools.chain.from_iterable(naive.column_lines(data))
    wider = [[*row, names[i]] for row, i in zip(rows, cells, strict=True)]
    assert list(itertools.chain.from_iterable(naive.column_lines(new))) == wider
    assert new.count(b"\n") == data.count(b"\n")
    assert new.count(b"\r") == data.count(b"\r")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a X\n\nb Y", b"a X 1\n\nb Y 0"),
        (b"a\tX \r\n", b"a\tX\t1 \r\n"),
        (b"-DOCSTART- O\n\n a\n", b"-DOCSTART- O\n\n a\t1\n"),
    ],
)
def test_new_cells_stand_apart_as_the_others_do(before, after):
    columns = parse_columns(before)
    assert add_column(before, columns, [1, 0][: len(columns.ids)], ["0", "1"]) == after


def test_new_cells_must_fit():
    data = b"a\nb\n"
    columns = parse_columns(data)
    with pytest.raises(ArgumentError, match="1 cells were given for 2 tokens"):
        add_column(data, columns, [0], ["X"])
    for bad in (1, -1):
        with pytest.raises(ArgumentError, match="1 strings"):
            add_column(data, columns, [0, bad], ["X"])


# ---- files that are wrong ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "name.txt: no token"),
        (b"\n \r\n-DOCSTART- O\n", "name.txt: no token"),
        (b"a X\n\nb Y Z\n", "name.txt, line 3: 3 columns were found, but the lines before have 2"),
        (b"\n-DOCSTART-\na X\n\n\r\nb\n", "name.txt, line 6: 1 columns.*have 2"),
        (b"a X\n\nb \xff\nc Z\n", "name.txt, line 3: byte 0xff is not UTF-8"),
        (b"a " * 5000 + b"\n", "name.txt: the first token has 5000 columns"),
        (b"a\n\xc3\n\xa9\n", "name.txt, line 2: byte 0xc3 is not UTF-8"),
    ],
)
def test_wrong_files_are_named(tmp_path, data, words):
    path = tmp_path / "name.txt"
    path.write_bytes(data)
    with pytest.raises(FormatError, match=words):
        read_columns(path)


@pytest.mark.data
def test_conll2000_is_read_as_line_by_line(data_folder):
    data = (data_folder / "conll2000" / "test.txt").read_bytes()
    assert_same(parse_columns(data), naive.column_lines(data))


CONLLU = b"""\
# sent_id = 1
# text = Vamonos al mar
1-2\tVamonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta el\ta\tADP\t_\t_\t5\tcase\t_\tSpaceAfter=No
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
4.1\tgran\t_\t_\t_\t_\t_\t_\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl\t_\t_

# sent_id = 2
1\t#\t#\tSYM\t_\t_\t0\troot\t_\t_
"""


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("front", [b"", b"\xef\xbb\xbf"])
def test_conllu_is_read_without_what_is_no_word(tmp_path, end, front):
    data = front + CONLLU.replace(b"\n", end)
    (tmp_path / "a.conllu").write_bytes(data)
    columns = read_columns(tmp_path / "a.conllu")
    assert columns.width == 10
    assert columns.text(1) == ["Vamos", "nos", "a\u00a0el", "el", "mar", "#"]
    assert [y.tolist() for y in columns.labels(3)] == [
        ["VERB", "PRON", "ADP", "DET", "NOUN"],
        ["SYM"],
    ]
    with pytest.raises(FormatError, match="CoNLL-U"):
        parse_columns(data)


def test_signs_of_comments_are_words_elsewhere():
    assert parse_columns(b"# NN\n1 CD\n").text(0) == ["#", "1"]


def test_labels_are_the_last_column_by_sentence():
    columns = parse_columns(b"he PRP B\nruns VBZ O\n\nshe PRP B\n")
    assert [y.tolist() for y in columns.labels()] == [["B", "O"], ["B"]]
    assert [y.tolist() for y in columns.labels(0)] == [["he", "runs"], ["she"]]
