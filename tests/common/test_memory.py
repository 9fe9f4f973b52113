"""Arrays in files, and limits on memory that can be kept."""

import errno
import os
import pathlib
import tempfile

import numpy as np
import pytest

from structlearn._src.common import memory
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.memory import ArrayWriter, Store, check_limit, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("2GB", 2 * 10**9), ("1.5GiB", 3 * 2**29), ("500 MB", 5 * 10**8), ("1TB", 10**12)],
)
def test_sizes_are_read(text, size):
    assert parse_size("memory_limit", text) == size


@pytest.mark.parametrize("given", ["much", "2", "GB", "-2GB", "1..2GB", 2000, None, "2GBs"])
def test_what_is_no_size_is_refused(given):
    with pytest.raises(ArgumentError, match="memory_limit"):
        parse_size("memory_limit", given)


def test_a_limit_that_cannot_be_kept_is_refused():
    assert check_limit("512MB") == 512 * 10**6
    with pytest.raises(ArgumentError, match="at least '512MB'"):
        check_limit("100MB")


def test_arrays_keep_what_was_written_when_their_pages_are_released():
    store = Store(2**10)
    numbers = store.zeros(50_000, np.int32)
    assert (numbers == 0).all()
    numbers[:] = np.arange(50_000)
    store.release()
    np.testing.assert_array_equal(numbers, np.arange(50_000))
    assert len(store.zeros(0, np.int8)) == 0


def test_the_first_arrays_are_held_in_memory():
    store = Store(4 * 8000)
    first = store.zeros(900, np.float64)
    second = store.zeros(900, np.float64)
    assert store.held == 7200
    assert second.base is not None  # of a file
    assert first.base is None
    del first
    assert store.held == 0


def test_an_array_is_written_piece_by_piece():
    writer = ArrayWriter(Store(2**20), np.float64)
    for part in ([1, 2], [], [3.5]):
        writer.append(np.array(part))
    assert writer.finish().tolist() == [1.0, 2.0, 3.5]
    assert ArrayWriter(Store(2**20), np.int8).finish().tolist() == []


def test_files_have_no_name_and_go_with_their_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    store = Store(1000)
    kept = store.zeros(1000, np.float64)
    assert list(tmp_path.iterdir()) == []
    if pathlib.Path("/proc/self/maps").exists():
        mapped = pathlib.Path("/proc/self/maps")
        assert str(tmp_path) in mapped.read_text()
        del kept
        assert str(tmp_path) not in mapped.read_text()


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="room cannot be reserved here")
def test_too_little_room_on_the_disk_is_an_error():
    with pytest.raises(OSError, match=r"space|large|argument"):
        Store(2**20).zeros(2**58, np.float64)


def test_a_missing_folder_for_temporary_files_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    store = memory.Store(1)
    for make in (lambda: store.zeros(8, float), lambda: memory.ArrayWriter(store, float)):
        with pytest.raises(FileNotFoundError, match=r"gone: No such file.*TMPDIR"):
            make()


def test_a_full_disk_is_named(monkeypatch):
    """Also where the last piece is lost in silence: the file is then too short."""
    store = memory.Store(1)
    writer = memory.ArrayWriter(store, float)
    writer.append(np.zeros(8))
    writer.size += 1
    with pytest.raises(OSError, match=r"No space left.*TMPDIR"):
        writer.finish()

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(memory, "_reserve", full)
    with pytest.raises(OSError, match=r"No space left.*TMPDIR"):
        store.zeros(8, float)
