"""Whole files in, whole files out."""

from __future__ import annotations

import gzip
import os
import resource
import signal
import subprocess
import sys

import pytest

from structlearn._src.common.errors import ArgumentError, FormatError
from structlearn._src.common.paths import is_stream, read_bytes, replacing, write_bytes


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


def test_links_stay_links_and_permissions_stay(tmp_path):
    (tmp_path / "folder").mkdir()
    path, link = tmp_path / "folder" / "file", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_link_to_nothing_yet_stays_a_link(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    write_bytes(link, b"new")
    assert link.is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["x" * 255, "\N{GREEK SMALL LETTER ALPHA}" * 127])
def test_names_may_be_as_long_as_the_system_allows(tmp_path, name):
    write_bytes(tmp_path / name, b"new")
    write_bytes(tmp_path / name, b"newer")
    assert (tmp_path / name).read_bytes() == b"newer"
    assert os.listdir(tmp_path) == [name]


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_bytes(tmp_path / "gone" / "file", b"new")
    assert caught.value.filename == str(tmp_path / "gone")


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    limit, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, most))  # as good as a full disk
    try:
        with pytest.raises(OSError, match="file") as caught:
            write_bytes(path, b"new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, most))
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", ["a\0b", b"file", None, 1, ["file"]])
def test_what_is_no_path_is_named(path):
    for work in (read_bytes, is_stream, lambda given: write_bytes(given, b"new")):
        with pytest.raises(ArgumentError, match="is no path"):
            work(path)


def test_a_link_to_itself_is_no_file(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.symlink_to(two)
    two.symlink_to(one)
    with pytest.raises(OSError, match="symbolic links") as caught:
        write_bytes(one, b"new")
    assert caught.value.filename == str(one)
    assert one.is_symlink()


def test_errors_about_other_files_keep_their_names(tmp_path):
    def fail():
        with replacing(tmp_path / "file") as file:
            file.write((tmp_path / "gone").read_bytes())

    with pytest.raises(FileNotFoundError) as caught:
        fail()
    assert caught.value.filename == str(tmp_path / "gone")


def test_what_a_killed_process_left_is_removed(tmp_path):
    """Its lock ended with it; a part that is being written to is locked, and stays."""
    path = tmp_path / "a[1]file"
    code = (
        "import os, signal, sys; from structlearn._src.common.paths import replacing\n"
        "with replacing(sys.argv[1]) as file:\n"
        "    file.write(b'new'); file.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob("*.part")
    assert path.read_bytes() == b"old"
    write_bytes(path, b"newer")
    assert left.exists()  # it might be new
    os.utime(left, (0, 0))
    with replacing(path) as file:
        (mine,) = set(tmp_path.glob("*.part")) - {left}
        os.utime(mine, (0, 0))
        write_bytes(path, b"newest")
        assert not left.exists()
        assert mine.exists()
        file.write(b"last")
    assert path.read_bytes() == b"last"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1"])
@pytest.mark.parametrize("piped", [True, False])
def test_streams_by_their_names_are_written_to(tmp_path, name, piped):
    """They look like links, to a pipe or to a file that somebody else has opened."""
    code = "import sys; from structlearn._src.common.paths import write_bytes as w; "
    code += "w(sys.argv[1], b'text')"
    with open(tmp_path / "out", "wb") as file:
        done = subprocess.run(
            [sys.executable, "-c", code, name],
            stdout=subprocess.PIPE if piped else file,
            check=True,
        )
    assert (done.stdout if piped else (tmp_path / "out").read_bytes()) == b"text"
    assert os.path.islink("/dev/stdout")
    assert os.listdir(tmp_path) == ["out"]


def test_a_pipe_with_a_name_stays_one(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_bytes(tmp_path / "pipe", b"text")
    assert os.read(reader, 9) == b"text"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_memory_that_looks_like_a_device_holds_files(tmp_path):
    if not os.path.isdir("/dev/shm"):
        pytest.skip("there is no /dev/shm")
    assert not is_stream("/dev/shm/some.model")
    assert is_stream("/dev/null")
    assert not is_stream(tmp_path / "new")
    assert is_stream(tmp_path)
