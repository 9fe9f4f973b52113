"""Troubles with the folder of compiled code are warnings, and the work goes on."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

MODULE = """
from structlearn._src.kernels import jit

@jit.kernel
def double(x):
    return 2 * x

@jit.kernel
def half(x):
    return x / 2
"""

CODE = """
import logging, resource, sys, warnings
sys.path.insert(0, sys.argv[1])
import tiny
if "full" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(message)s")
logging.getLogger("numba").setLevel(logging.ERROR)
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(tiny.double(3), tiny.half(3.0), sum(tiny.double.stats.cache_hits.values()))
print(*(f"{w.category.__name__}: {w.message}" for w in told), sep="\\n")
"""


@pytest.fixture
def use(tmp_path):
    """A function that calls two kernels in a fresh process and returns the lines it prints."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        pytest.skip("nothing is compiled: NUMBA_DISABLE_JIT is set")
    (tmp_path / "tiny.py").write_text(MODULE)
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def run(*options):
        command = [sys.executable, "-c", CODE, tmp_path, *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")

    return run


def test_the_first_compilation_is_told_once_and_the_next_process_is_silent(use):
    told, answer, *warnings = use()
    assert told.startswith("compiling (first run only")
    assert answer == "6 1.5 0"
    assert use() == ["6 1.5 1", *warnings] == ["6 1.5 1", "", ""]


def test_a_full_disk_is_one_warning_that_names_the_folder(use, tmp_path):
    _, answer, warning, *rest = use("full")
    assert answer == "6 1.5 0"
    assert warning.startswith(f"CacheWarning: compiled code cannot be kept in {tmp_path}/cache")
    assert "NUMBA_CACHE_DIR" in warning
    assert rest == [""]


@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
@pytest.mark.parametrize("left", [0, 0.5])
def test_damaged_files_are_one_warning_and_made_anew(use, tmp_path, pattern, left):
    use()
    files = list((tmp_path / "cache").rglob(pattern))
    assert len(files) == 2
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole[: int(left * len(whole))])
    _, answer, warning, *rest = use()
    assert answer == "6 1.5 0"
    assert warning.startswith(f"CacheWarning: compiled code in {tmp_path}/cache")
    assert rest == [""]
    assert use() == ["6 1.5 1", "", ""]


def test_whoever_sits_at_a_terminal_is_told_why_it_takes_so_long(use, tmp_path):
    """In Python too, where nobody listens to the log."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); import tiny; tiny.double(3)"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "other")}
    command = [sys.executable, "-c", code, tmp_path]
    told = []
    for _ in range(2):
        master, terminal = pty.openpty()
        subprocess.run(command, stderr=terminal, check=True, env=environment)
        os.write(terminal, b"end")
        told.append(os.read(master, 10_000).decode())
        os.close(terminal)
        os.close(master)
    assert told[0].startswith("structlearn: compiling (first run only")
    assert told[1] == "end"
    piped = subprocess.run(
        command, capture_output=True, check=True,
        env=environment | {"NUMBA_CACHE_DIR": str(tmp_path / "third")},
    )  # fmt: skip
    assert piped.stderr == b""
