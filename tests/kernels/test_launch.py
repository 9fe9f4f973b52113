"""Kernels that threads of the pool enter without the interpreter's lock."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba import config

from side_by_side import together
from structlearn._src.common import threads
from structlearn._src.kernels import launch, team  # by names: compiled functions are put there
from structlearn._src.kernels.jit import lean


class Workspace(NamedTuple):
    counts: np.ndarray  # (3,)
    rows: np.ndarray  # (2, 4)


@lean
def square(number, board, workspaces, values, out, totals):
    """Square numbers, and count in workspaces who did how many; all look at the last one."""
    mine = launch.own(*workspaces, number)
    mine.counts[0] = 0.0
    mine.rows[1, 3] = number
    i = team.take(board, 0)
    while i < values.size:
        mine.counts[0] += 1.0
        out[i] = values[i] * values[i]
        team.done(board, 0)
        i = team.take(board, 0)
    team.wait(board, 0, values.size)
    totals[number, 0] = mine.counts[0]
    totals[number, 1] = mine.rows[1, 3]
    totals[number, 2] = out[values.size - 1]


@lean
def square_in_threads(box, helpers, *given):
    open_ = launch.publish(box, helpers, launch.task(square, given))
    square(0, *given)
    launch.withdraw(box, open_)


SPACES = threads.Workspaces(lambda: Workspace(np.zeros(3), np.zeros((2, 4))))


def run(helpers, size=1000):
    """Return how many numbers every thread has squared."""
    values, out = np.arange(float(size)), np.full(size, -1.0)
    totals = np.full((helpers + 1, 3), -1.0)  # those of threads that did not come stay
    with SPACES.lend(helpers) as spaces:
        given = team.make_board(1), spaces, values, out, totals
        threads.launch(square_in_threads, helpers, *given)
    np.testing.assert_array_equal(out, values * values)
    came = totals[:, 0] >= 0.0
    np.testing.assert_array_equal(totals[came, 1], np.flatnonzero(came))
    np.testing.assert_array_equal(totals[came, 2], out[-1])
    assert totals[came, 0].sum() == size
    return totals[:, 0]


@pytest.mark.parametrize("helpers", [0, 1, 3, 8])
def test_every_task_is_done_once_with_workspaces_of_their_own(helpers):
    for _ in range(200):
        assert run(helpers)[0] >= 0.0  # the caller always comes


@pytest.mark.skipif(config.DISABLE_JIT, reason="without the compiler nobody helps")
def test_helpers_do_come():
    for _ in range(1000):
        if (run(2, 100_000)[1:] > 0.0).any():
            return
    pytest.fail("no helper has done anything in 1000 calls")


def test_several_callers_at_a_time():
    together(lambda me: [run(3) for _ in range(200)], 4)


def test_calls_in_python_between_kernels():
    for _ in range(100):
        run(3)
        total = np.zeros(8)

        def work(first, last, total=total):
            run(2, 10)
            total[first] += 1

        threads.run(work, [(i, i + 1) for i in range(8)], 4)
        assert total.tolist() == [1.0] * 8


ALONE = """
import numpy as np
from structlearn import chain, infer_many

graphs = [chain(np.ones((5, 3)), np.eye(3)) for _ in range(200)]
few = infer_many(graphs, method="bp", n_jobs=1)
many = infer_many(graphs, method="bp", n_jobs=4)
assert [a.value for a in few] == [a.value for a in many]
"""


def test_without_the_compiler_the_caller_works_alone():
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-c", ALONE], check=True, timeout=120, env=environment)
