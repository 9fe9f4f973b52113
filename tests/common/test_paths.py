"""Whole files in, whole files out."""

from __future__ import annotations

import gzip
import os

import pytest

from structlearn._src.common.errors import FormatError
from structlearn._src.common.paths import read_bytes, replacing, write_bytes


def test_gzip_is_seen_by_content_when_read_and_by_name_when_written(tmp_path):
    packed, odd = tmp_path / "a.gz", tmp_path / "b.txt"
    write_bytes(packed, b"text")
    assert gzip.decompress(packed.read_bytes()) == b"text"
    odd.write_bytes(packed.read_bytes())
    assert read_bytes(odd) == read_bytes(packed) == b"text"


def test_equal_texts_make_equal_files(tmp_path):
    for name in ("a.gz", "b.gz"):
        write_bytes(tmp_path / name, b"text")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_damaged_files_are_named(tmp_path):
    path = tmp_path / "cut.gz"
    path.write_bytes(gzip.compress(b"text" * 100)[:-9])
    with pytest.raises(FormatError, match=r"cut\.gz"):
        read_bytes(path)


def test_after_an_error_all_is_as_before(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(b"old")

    def fail():
        with replacing(path) as file:
            file.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_others_see_the_old_file_until_the_end(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


def test_devices_are_written_to_as_they_are():
    write_bytes(os.devnull, b"text")
    assert not os.path.isfile(os.devnull)
