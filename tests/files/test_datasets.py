"""Data sets: read from a folder, fetched once, refused when they are wrong."""

from __future__ import annotations

import gzip
import hashlib

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError, DataNotFoundError, FormatError
from structlearn._src.files.datasets import load_basenp, load_conll2000, load_ocr
from structlearn._src.files.fetch import ORIGINS

LOADERS = {"conll2000/{}.txt": load_conll2000, "basenp/{}.data": load_basenp}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    data, cache = tmp_path / "data", tmp_path / "cache"
    monkeypatch.setenv("STRUCTLEARN_DATA", str(data))
    monkeypatch.setenv("STRUCTLEARN_CACHE", str(cache))
    return data, cache


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("part", ["train", "test"])
def test_column_sets_are_read_or_fetched(folders, monkeypatch, tmp_path, name, part):
    load, path = LOADERS[name], name.format(part)
    body = b"a X B\nb Y I\n"
    origin = tmp_path / "origin"
    origin.write_bytes(body)
    checksum = hashlib.sha256(body).hexdigest()
    changed = ORIGINS[path]._replace(address=origin.as_uri(), checksum=checksum)
    monkeypatch.setitem(ORIGINS, path, changed)
    assert load(part).text(1) == ["X", "Y"]
    origin.unlink()
    assert load(part).text(2) == ["B", "I"]  # from the cache
    local = folders[0] / path
    local.parent.mkdir(parents=True)
    local.write_bytes(b"c Z O\n")
    assert load(part).text(0) == ["c"]


@pytest.mark.parametrize("name", LOADERS)
def test_a_set_that_is_nowhere_and_a_part_that_does_not_exist(folders, monkeypatch, tmp_path, name):
    load, path = LOADERS[name], name.format("train")
    gone = ORIGINS[path]._replace(address=(tmp_path / "gone").as_uri())
    monkeypatch.setitem(ORIGINS, path, gone)
    with pytest.raises(DataNotFoundError, match="STRUCTLEARN_DATA"):
        load()
    with pytest.raises(ArgumentError, match="choose one of 'train', 'test'"):
        load("dev")


def letter(character, word, fold, pixels, end=""):
    cells = ["1", character, "-1", str(word), "1", str(fold), *map(str, pixels)]
    return "\t".join(cells) + end


def test_letters(tmp_path):
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 2, size=(4, 128))
    heads = [("a", 5, 0), ("z", 5, 0), ("c", 6, 9), ("b", 5, 1)]
    lines = [letter(*head, row, "\t") for head, row in zip(heads, pixels, strict=True)]
    path = tmp_path / "letter.data.gz"
    path.write_bytes(gzip.compress("\r\n".join(lines).encode()))
    letters = load_ocr(path)
    assert [y.tolist() for y in letters.labels] == [[0, 25], [2], [1]]
    assert letters.folds.tolist() == [0, 9, 1]
    assert [len(x) for x in letters.images] == [2, 1, 1]
    np.testing.assert_array_equal(np.concatenate(letters.images), pixels)


@pytest.mark.parametrize(
    "bad",
    [
        letter("A", 1, 0, [0] * 128),
        letter("a", "x", 0, [0] * 128),
        letter("a", 1, 0, [0] * 127),
        letter("a", 1, 0, [*[0] * 127, 2]),
        "",
    ],
)
def test_wrong_letters_are_named(tmp_path, bad):
    path = tmp_path / "letter.data"
    path.write_text("\n".join([letter("a", 1, 0, [0] * 128), bad, "x"]))
    with pytest.raises(FormatError, match=r"letter.data, line 2"):
        load_ocr(path)
    path.write_text("")
    with pytest.raises(FormatError, match=r"letter.data: the file is empty"):
        load_ocr(path)


def test_letters_that_are_nowhere(folders):
    with pytest.raises(DataNotFoundError, match="STRUCTLEARN_DATA"):
        load_ocr()


@pytest.mark.data
def test_stored_sets_are_the_known_ones(data_folder):
    assert [len(load_conll2000(part).offsets) - 1 for part in ("train", "test")] == [8936, 2012]
    assert [len(load_basenp(part).offsets) - 1 for part in ("train", "test")] == [77, 823]
    letters = load_ocr()
    assert len(letters.images) == 6877
    assert sum(map(len, letters.labels)) == 52152
    assert np.bincount(letters.folds).tolist()[:2] == [626, 704]
