"""A short slice of the campaign: every check once, and a runner that finds what is wrong."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from campaign import guided, parsers, runner
from campaign.__main__ import main
from campaign.base import Check, at_most, expect
from campaign.catalogue import CHECKS
from campaign.record import Record, report
from structlearn._src.common import threads

ROOT = pathlib.Path(__file__).parents[1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHECKS)
def test_a_slice_of_every_check(name):
    CHECKS[name].run(np.random.default_rng(4))


_INTERRUPTED = """
import os, signal, time
from campaign.children import Child

signal.signal(signal.SIGINT, signal.default_int_handler)
parent = os.getpid()
try:
    for _ in range(100):
        child = Child(lambda: time.sleep(60))
        child.kill(signal.SIGINT)
        end = child.ended()
        assert end.code == 1 and "KeyboardInterrupt" in end.error, end
finally:
    if os.getpid() != parent:
        print("a child went on as its parent", flush=True)
        os._exit(0)
print("done")
"""


def test_children_that_are_interrupted_at_once_do_not_go_on_as_their_parent():
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "done\n", done.stderr


# ---- the runner: checks that fail in each way ------------------------------------------------


def _wrong(rng):
    expect(rng.random() < 0.0, "no number is below 0")


def _error(rng):
    raise KeyError("rng")


def _hang(rng):
    with at_most(0.05):
        while True:
            rng.random()


def _greedy(rng):
    np.ones(2**31)  # 16 GiB


def _silent(rng):
    time.sleep(60.0)


def _busy(rng):
    while True:
        rng.random()


def _crash(rng):
    os.kill(os.getpid(), signal.SIGKILL)


def _crowded(rng):
    done = threading.Event()  # so that their stacks and heaps are there at once
    try:
        for _ in range(40):
            threading.Thread(target=done.wait).start()
    finally:
        done.set()


def _fine(rng):
    rng.random()


@pytest.mark.parametrize(
    ("run", "kind", "words"),
    [
        (_wrong, "wrong", "no number is below 0"),
        (_error, "error", "KeyError"),
        (_hang, "hang", "not done after"),
        (_greedy, "error", "MemoryError"),
        (_fine, "", ""),
    ],
)
def test_what_fails_is_a_record(monkeypatch, run, kind, words):
    monkeypatch.setitem(runner.CHECKS, "mine", Check(run, 3, 10))
    found = runner.attempt("mine", 7)
    assert found.kind == kind
    assert words in found.error
    assert found.command == "python -m campaign --only mine --seed 7 --rounds 1"


@pytest.mark.parametrize(
    ("run", "kind"), [(_silent, "hang"), (_busy, "hang"), (_crash, "crash"), (_fine, "")]
)
def test_processes_that_hang_or_crash_are_records_too(monkeypatch, run, kind):
    monkeypatch.setitem(runner.CHECKS, "mine", Check(run, 3, 10, seconds=0.1))
    worker = runner.Worker("fork")
    for seed in (7, 8):  # after a failure there is a new process
        worker.ask("mine", seed)
        while (found := worker.answer()) is None:
            time.sleep(0.01)
        assert (found.kind, found.seed) == (kind, seed)
    worker.stop()


def _answer(worker):
    worker.ask("mine", 7)
    while (found := worker.answer()) is None:
        time.sleep(0.01)
    worker.stop()
    return found


def test_threads_that_write_to_little_are_within_the_limit(monkeypatch):
    monkeypatch.setitem(runner.CHECKS, "mine", Check(_crowded, 3, 10, memory=0.5))
    assert _answer(runner.Worker("fork")).error == ""


def _asks(rng):
    expect(threads.workers() == 1, threads.workers())


def test_processes_have_one_thread_each(monkeypatch):
    monkeypatch.setenv("STRUCTLEARN_N_JOBS", "7")
    monkeypatch.setitem(runner.CHECKS, "mine", Check(_asks, 3, 10))
    assert _answer(runner.Worker("fork")).error == ""
    assert os.environ["STRUCTLEARN_N_JOBS"] == "7"


def test_runs_add_up(tmp_path, capsys):
    for _ in range(2):
        given = ["--only", "answers", "--rounds", "2", "--seed", "5", "--out", str(tmp_path)]
        assert main(given) == 0
    assert main(["--report", "--out", str(tmp_path)]) == 0
    (line,) = [row for row in report(tmp_path).splitlines() if row.startswith("answers")]
    assert line.split()[1] == f"{4 * CHECKS['answers'].cases:,}"
    assert line in capsys.readouterr().out


def test_failures_are_kept_and_counted(tmp_path):
    record = Record(tmp_path, 5)
    record.fail(runner.Outcome("graphs", 9, 0.5, "wrong", "because"))
    tally = runner.Tally()
    tally.add(runner.Outcome("graphs", 9, 0.5, "wrong", "because"), CHECKS["graphs"])
    record.write({"graphs": tally})
    record.write({"graphs": tally})  # nothing new
    (line,) = [row for row in report(tmp_path).splitlines() if row.startswith("graphs")]
    assert line.split()[1:] == [str(CHECKS["graphs"].cases), "20,000", "0", "1"]
    assert "--only graphs --seed 9" in record.path.read_text()


def test_what_is_guided_by_coverage_is_in_the_catalogue(tmp_path):
    (tmp_path / "a.psl").write_text("1: Knows(A, B) -> Likes(A, B)")
    assert set(guided.NAMES) <= set(CHECKS)
    assert len(parsers.readers(tmp_path)) == len(guided.NAMES)


def test_unknown_checks_are_named(capsys):
    with pytest.raises(SystemExit):
        main(["--only", "grafs"])
    assert "grafs" in capsys.readouterr().err
