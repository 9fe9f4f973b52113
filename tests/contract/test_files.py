"""Every file the library writes: whole or not at all, whatever happens on the way."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from structlearn import HingeField, RuleModel, SequenceLabeler, chain, load, save, write_uai
from structlearn.uai import UaiAnswer, write_answer, write_evidence

LABELER = SequenceLabeler(max_iter=1, tol=1e9).fit([np.eye(2)], [[0, 1]])
GRAPH = chain(np.zeros((3, 2)), np.eye(2))
FIELD = HingeField([[1.0]], [0.0])
WRITERS = {
    "model": lambda path: save(LABELER, path),
    "rules": lambda path: RuleModel("1: P(A) -> Q(A)").save(path),
    "graph": lambda path: write_uai(GRAPH, path),
    "evidence": lambda path: write_evidence(dict.fromkeys(range(9), 1), path),
    "answer": lambda path: write_answer(UaiAnswer("MAP", assignment=range(9)), path),
}
if hasattr(FIELD, "save"):
    WRITERS["field"] = FIELD.save
writers = pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)


@contextmanager
def full_disk():
    """No file may have more than eight bytes."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@writers
def test_a_full_disk_loses_nothing(write, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"what was there before")
    with full_disk(), pytest.raises(OSError, match="too large") as caught:
        write(path)
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"what was there before"
    assert list(tmp_path.iterdir()) == [path]


@writers
def test_a_missing_folder_is_named(write, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "gone" / "file")
    assert caught.value.filename == str(tmp_path / "gone")


@writers
def test_a_folder_is_no_file(write, tmp_path):
    with pytest.raises(IsADirectoryError) as caught:
        write(tmp_path)
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


@writers
def test_a_link_leads_to_the_new_file(write, tmp_path):
    write(tmp_path / "plain")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == (tmp_path / "plain").read_bytes()


@writers
def test_the_disk_has_it_before_it_takes_its_place(write, tmp_path, monkeypatch):
    """Else a machine that dies may leave an empty file."""
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *a, name=name, real=real: (done.append(name), real(*a))
        )
    write(tmp_path / "file")
    assert done[:2] == ["fsync", "replace"]


KILLED = """
import os, signal, sys
import numpy as np
from structlearn import load, save
model = load(sys.argv[1])
count = 0
def sync(_):
    global count
    count += 1
    if count == 5:
        os.kill(os.getpid(), signal.SIGKILL)
os.fsync = sync
while True:
    model.weights_ = model.weights_ + 1.0
    save(model, sys.argv[2])
"""


def test_a_kill_leaves_the_last_whole_file_and_later_nothing_else(tmp_path):
    path = tmp_path / "run" / "model"
    path.parent.mkdir()
    save(LABELER, tmp_path / "first")
    command = [sys.executable, "-c", KILLED, tmp_path / "first", path]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    grown = load(path).weights_ - LABELER.weights_
    assert grown.tolist() == [2.0] * len(grown)  # two fsyncs each, of the file and of its folder
    (left,) = set(path.parent.iterdir()) - {path}
    os.utime(left, (0, 0))
    save(LABELER, path)
    assert list(path.parent.iterdir()) == [path]


WRITING = """
import sys
from structlearn import load, save
model = load(sys.argv[1])
for _ in range(100):
    save(model, sys.argv[2])
"""


def test_two_processes_write_one_file_and_a_third_reads_it(tmp_path):
    path = tmp_path / "shared"
    wanted = []
    for number in range(2):
        model = SequenceLabeler(max_iter=1 + number, tol=1e-9, C=9.0**number)
        with pytest.warns(match="max_iter"):
            model.fit([np.eye(2), np.ones((3, 2))], [[0, 1], [1, 1, 0]])
        save(model, tmp_path / f"model{number}")
        wanted.append(model.weights_.tolist())
    save(model, path)
    command = [sys.executable, "-c", WRITING]
    running = [
        subprocess.Popen([*command, tmp_path / f"model{number}", path]) for number in range(2)
    ]
    while any(process.poll() is None for process in running):
        assert load(path).weights_.tolist() in wanted
    assert [process.returncode for process in running] == [0, 0]
    assert sorted(os.listdir(tmp_path)) == ["model0", "model1", "shared"]
