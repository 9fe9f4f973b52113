"""Data sets: read from a folder, fetched once, refused when they are wrong."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import threading

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError, DataNotFoundError, FormatError
from structlearn._src.files import datasets
from structlearn._src.files.datasets import (
    ORIGINS,
    data_path,
    download,
    fetch_uai,
    load_basenp,
    load_conll2000,
    load_ocr,
)
from structlearn._src.files.uai import read_uai
from structlearn._src.files.uai_evidence import read_evidence

LOADERS = {"conll2000/{}.txt": load_conll2000, "basenp/{}.data": load_basenp}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """A data folder and a cache folder, both empty."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    data.mkdir()
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


# ---- finding and fetching ----------------------------------------------------------------

CONTENT = b"some bytes\n" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


@pytest.fixture
def server():
    """A web server on this machine: what it serves, what was asked of it, and its address."""
    pages = {}
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            status, body, length = pages.get(self.path, (404, b"", 0))
            self.send_response(status)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield pages, asked, f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


# ---- finding -----------------------------------------------------------------------------


def test_data_folder_comes_before_the_cache(folders):
    data, cache = folders
    (cache / "set").mkdir(parents=True)
    (cache / "set" / "a.txt").write_text("cache")
    assert data_path("set", "a.txt") == cache / "set" / "a.txt"
    (data / "set").mkdir()
    (data / "set" / "a.txt").write_text("data")
    assert data_path("set", "a.txt") == data / "set" / "a.txt"
    assert data_path("set") == data / "set"


@pytest.mark.parametrize("part", [None, 3, b"set", "a\0b"])
def test_what_is_no_path_of_data_is_refused(part):
    with pytest.raises(ArgumentError, match="is no path"):
        data_path("set", part)


def test_missing_data_says_what_to_set(folders, monkeypatch):
    with pytest.raises(DataNotFoundError, match="set STRUCTLEARN_DATA") as caught:
        data_path("set", "b.txt")
    assert all(str(folder / "set" / "b.txt") in str(caught.value) for folder in folders)
    monkeypatch.delenv("STRUCTLEARN_DATA")
    with pytest.raises(FileNotFoundError):
        data_path("set", "b.txt")


def test_cache_is_in_the_home_folder_unless_told_otherwise(folders, monkeypatch, tmp_path):
    monkeypatch.delenv("STRUCTLEARN_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert datasets.cache_folder() == tmp_path / ".cache" / "structlearn"


# ---- fetching ----------------------------------------------------------------------------


@pytest.mark.parametrize("checksum", [SHA256, MD5.upper()])
def test_download_over_http(server, tmp_path, checksum):
    pages, asked, address = server
    pages["/x"] = (200, CONTENT, len(CONTENT))
    target = tmp_path / "new" / "folder" / "x.gz"
    for _ in range(2):  # the second time it is there already
        assert download(f"{address}/x", target, checksum) == target
        assert target.read_bytes() == CONTENT
        assert asked == ["/x"]
    assert list(target.parent.iterdir()) == [target]


def test_download_of_a_local_file_replaces_a_wrong_one(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(CONTENT)
    target.write_bytes(b"old")
    download(source.as_uri(), target, SHA256)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ((404, b"", 0), "404"),
        ((500, b"", 0), "500"),
        ((200, b"other", 5), "was expected"),
        ((200, CONTENT[:-1], len(CONTENT) - 1), "was expected"),
        ((200, CONTENT[:99], len(CONTENT)), "could not be fetched|was expected"),
    ],
)
def test_failed_download_leaves_the_old_file_and_nothing_else(server, tmp_path, page, words):
    pages, _, address = server
    pages["/x"] = page
    target = tmp_path / "x"
    target.write_bytes(b"old")
    with pytest.raises(DataNotFoundError, match=words) as caught:
        download(f"{address}/x", target, MD5)
    assert f"{address}/x" in str(caught.value)
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_nobody_there(tmp_path):
    for url in ("http://127.0.0.1:9/x", (tmp_path / "nothing").as_uri()):
        with pytest.raises(DataNotFoundError, match="could not be fetched"):
            download(url, tmp_path / "x", MD5)
    assert list(tmp_path.iterdir()) == []


def test_a_checksum_and_a_known_kind_of_address_are_needed(tmp_path):
    with pytest.raises(ArgumentError, match="checksum"):
        download("http://127.0.0.1:9/x", tmp_path / "x", "abc")
    with pytest.raises(ArgumentError, match="ftp://x/y"):
        download("ftp://x/y", tmp_path / "x", MD5)


# ---- the UAI models ----------------------------------------------------------------------


def test_uai_model_is_fetched_once_with_its_evidence(folders, server, monkeypatch):
    _, cache = folders
    pages, asked, address = server
    body = b"MARKOV 1 2 1 1 0 2 1 2"
    pages["/MAR/Promedus_24.uai"] = (200, body, len(body))
    digest = hashlib.md5(body, usedforsecurity=False).hexdigest()
    model = ORIGINS["uai/mar/Promedus_24.uai"]
    changed = model._replace(address=f"{address}/MAR/Promedus_24.uai", checksum=digest)
    monkeypatch.setitem(ORIGINS, model.path, changed)
    for _ in range(2):
        path = fetch_uai("mar/Promedus_24")
        assert path == cache / "uai" / "mar" / "Promedus_24.uai"
        assert path.read_bytes() == body
        assert asked == ["/MAR/Promedus_24.uai"]
    assert read_evidence(f"{path}.evid") == {25: 1, 44: 1, 63: 1, 66: 1}


def test_uai_model_that_cannot_be_fetched(folders, server, monkeypatch):
    _, cache = folders
    model = ORIGINS["uai/mar/Grids_11.uai"]
    monkeypatch.setitem(ORIGINS, model.path, model._replace(address=f"{server[2]}/gone"))
    with pytest.raises(DataNotFoundError, match="404"):
        fetch_uai("mar/Grids_11")
    assert not list(cache.glob("**/*.uai"))
    with pytest.raises(ArgumentError, match="mar/Grids_11"):
        fetch_uai("mar/Grids_10")


def test_the_table_of_origins_is_consistent():
    for path, file in ORIGINS.items():
        assert file.path == path
        assert file.address.startswith("https://")
        assert len(file.checksum) in (32, 64)
        assert int(file.checksum, 16)
        numbers = [int(word) for word in file.evidence.split()]
        assert len(numbers) == 1 + 2 * numbers[0]


@pytest.mark.data
def test_the_table_of_origins_matches_the_stored_files(data_folder):
    if not (data_folder / "uai").is_dir():
        pytest.skip("the UAI models are not in the data folder")
    for file in ORIGINS.values():
        kind = "md5" if len(file.checksum) == 32 else "sha256"
        stored = (data_folder / file.path).read_bytes()
        assert hashlib.new(kind, stored, usedforsecurity=False).hexdigest() == file.checksum
        if file.path.startswith("uai/"):
            assert fetch_uai(file.path[4:-4]) == data_folder / file.path
            numbers = [int(word) for word in file.evidence.split()][1:]
            evidence = dict(zip(numbers[::2], numbers[1::2], strict=True))
            assert read_evidence(data_folder / f"{file.path}.evid") == evidence
    small = fetch_uai("mar/Promedus_24")
    assert read_uai(small, f"{small}.evid").n_variables > 0
