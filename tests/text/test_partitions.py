"""Column files in partitions: the same sequences, whatever their size."""

import gzip

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError, DataNotFoundError, FormatError
from structlearn._src.text.columns import read_columns
from structlearn._src.text.partitions import ColumnFiles, store_columns


def text(n=900, seed=0):
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        words = rng.integers(400, size=rng.integers(1, 30)).tolist()
        lines += [f"w{word} t{word % 7} L{word % 3}" for word in words] + [""]
    return "\n".join(lines) + "\n"


def small(paths, size=2**16):
    files = ColumnFiles(paths, memory_limit="1GB")
    files.store.limit = 64 * size
    return files


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "train.txt"
    made.write_text(text())
    return made


def sentences(columns):
    rows = list(zip(*(columns.text(c) for c in range(columns.width)), strict=True))
    return [rows[a:b] for a, b in zip(columns.offsets, columns.offsets[1:], strict=False)]


@pytest.mark.parametrize(("ending", "blank"), [("\n", ""), ("\r\n", ""), ("\n", " \t ")])
@pytest.mark.parametrize("packed", [False, True])
def test_partitions_have_the_sequences_of_the_file(path, packed, ending, blank):
    data = path.read_text().replace("\n\n", f"\n{blank}\n").replace("\n", ending).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    parts = list(small(path))
    assert len(parts) > 1
    assert [s for part in parts for s in sentences(part)] == sentences(read_columns(path))


def test_sequences_that_are_longer_than_a_partition_stay_whole(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text("a A\n" * 60_000 + "\nb B\n")
    parts = list(small(path))
    assert [len(s) for part in parts for s in sentences(part)] == [60_000, 1]


def test_several_files_are_numbered_together(path, tmp_path):
    other = tmp_path / "more.txt"
    other.write_text(text(300, seed=1) + "\n\n")
    stored = store_columns(small([path, other]))
    expected = sentences(read_columns(path)) + sentences(read_columns(other))
    first, last = 500, len(expected)
    assert sentences(stored.part(first, last)) == expected[first:last]
    assert sentences(stored.part(0, 3)) == expected[:3]
    for strings in stored.vocabularies:
        assert len(set(strings.list())) == len(strings)


def test_words_of_conllu_files_are_read(tmp_path):
    path = tmp_path / "ud.conllu"
    line = "{}\tdog\tdog\tNOUN\tNN\t_\t0\troot\t_\t_\n"
    sentence = (
        "# text = dog dog\n1-2\t" + "\t".join("_" * 9) + "\n" + line.format(1) + line.format(2)
    )
    path.write_text((sentence + "\n") * 1500)
    parts = list(small(path))
    assert len(parts) > 1
    assert sum(len(part.offsets) - 1 for part in parts) == 1500
    assert sum(len(part.ids) for part in parts) == 3000


def test_bad_files_and_limits_are_named(path, tmp_path):
    with pytest.raises(DataNotFoundError, match=r"no\.txt"):
        ColumnFiles([path, tmp_path / "no.txt"], memory_limit="1GB")
    with pytest.raises(ArgumentError, match="memory_limit='2'"):
        ColumnFiles(path, memory_limit="2")
    with pytest.raises(ArgumentError, match="at least"):
        ColumnFiles(path, memory_limit="1MB")
    with pytest.raises(ArgumentError, match="paths is empty"):
        ColumnFiles([], memory_limit="1GB")
    wide = tmp_path / "wide.txt"
    wide.write_text("a b\n")
    with pytest.raises(FormatError, match=r"wide\.txt: 2 columns were found, but .* 3"):
        store_columns(small([path, wide]))
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    with pytest.raises(FormatError, match="no token"):
        store_columns(small([empty]))
    bad = tmp_path / "bad.txt"
    bad.write_text(path.read_text() + "one\n")
    with pytest.raises(FormatError, match=r"bad\.txt, from line"):
        list(small(bad))
