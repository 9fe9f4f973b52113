"""Units in processes: order, failures, limits, kills, and going on after all of these."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from papers_toys import EXPERIMENTS, make

from papers.base import Settings
from papers.pool import Task, run
from papers.units import Store

HERE = Path(__file__).parent
TOYS = "papers_toys"


def tasks_of(name, n=4, pause=0.0):
    experiment = EXPERIMENTS[name]
    return [Task(experiment, g | {"pause": pause}) for g in experiment.units(Settings(trials=n))]


@pytest.mark.parametrize("jobs", [1, 3])
def test_all_units_are_done_and_kept(jobs, tmp_path):
    store = Store(tmp_path)
    tasks = tasks_of("toy", 5)
    ended = list(run(tasks, store, jobs, catalogue=TOYS))
    assert {id(each.task) for each in ended} == {id(task) for task in tasks}
    for task, unit, failure in ended:
        assert failure == ""
        assert unit == store.find(task.experiment, task.given)
        assert unit.found["value"] == pytest.approx(task.given["seed"][1] / 3.0, rel=1e-5)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_failure_is_told_and_others_go_on(jobs, tmp_path):
    tasks = tasks_of("toy", 3)
    tasks[1].given["pause"] = -1.0
    ended = list(run(tasks, Store(tmp_path), jobs, catalogue=TOYS))
    failed = [each for each in ended if each.unit is None]
    assert [each.task for each in failed] == [tasks[1]]
    assert "pause" in failed[0].failure
    assert len(ended) == 3


def test_a_process_that_is_killed_costs_its_unit_alone(tmp_path):
    ended = list(run(tasks_of("vanishing", 4), Store(tmp_path), 2, catalogue=TOYS))
    assert [each.task.given["seed"] for each in ended if each.unit is None] == [[0, 1]]
    assert len(ended) == 4
    assert "-9" in next(each.failure for each in ended if each.unit is None)


def test_after_the_time_limit_the_rest_is_left(tmp_path):
    store = Store(tmp_path)
    tasks = [*tasks_of("toy", 1), *(Task(make("toy"), {"seed": [9, 9], "pause": 600.0}),)]
    ended = list(run(tasks, store, 2, time_limit=5.0, catalogue=TOYS))
    assert [each.task for each in ended] in ([], tasks[:1])  # as far as it came
    assert store.find(tasks[1].experiment, tasks[1].given) is None


_SCRIPT = """
import sys
sys.path.insert(0, {here!r})
if __name__ == "__main__":
    from pathlib import Path
    from test_pool import tasks_of, TOYS
    from papers.pool import run
    from papers.units import Store
    tasks = tasks_of("toy", 3) + tasks_of("toy", 4, pause=600.0)[3:]
    for ended in run(tasks, Store(Path({folder!r})), {jobs}, catalogue=TOYS):
        print(ended.task.given["seed"][1], flush=True)
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_is_killed_goes_on_where_it_stopped(jobs, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT.format(here=str(HERE), folder=str(tmp_path / "units"), jobs=jobs))
    with subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True
    ) as first:
        said = sorted(int(first.stdout.readline()) for _ in range(3))
        first.send_signal(signal.SIGKILL)
    assert said == [0, 1, 2]
    assert first.returncode == -signal.SIGKILL
    store = Store(tmp_path / "units")
    tasks = tasks_of("toy", 4)
    left = [task for task in tasks if store.find(task.experiment, task.given) is None]
    assert [task.given["seed"] for task in left] == [[0, 3]]
    began = time.monotonic()
    (ended,) = run(left, store)
    assert ended.unit.found == {"value": 1.0}
    assert time.monotonic() - began < 60.0
