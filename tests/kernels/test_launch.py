"""Kernels that threads of the pool enter without the interpreter's lock."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import pytest
from numba import config

from structlearn._src.common import threads
from structlearn._src.kernels import launch, team  # by names: compiled functions are put there
from structlearn._src.kernels.jit import lean


class Workspace(NamedTuple):
    counts: np.ndarray  # (3,)
    rows: np.ndarray  # (2, 4)


@lean
def square(number, board, workspaces, values, out):
    """Square numbers, and add up who did how many; then everybody looks at the last one."""
    mine = launch.own(*workspaces, number)
    i = team.take(board, 0)
    while i < values.size:
        mine.counts[0] += 1
        mine.rows[1, 3] = number
        out[i] = values[i] * values[i]
        team.done(board, 0)
        i = team.take(board, 0)
    team.wait(board, 0, values.size)
    mine.rows[0, 0] = out[values.size - 1]


@lean
def square_in_threads(box, helpers, *given):
    open_ = launch.publish(box, helpers, launch.task(square, given))
    square(0, *given)
    launch.withdraw(box, open_)


def run(helpers, size=1000):
    """Return the workspaces of all threads, after work was done."""
    values, out = np.arange(float(size)), np.full(size, -1.0)
    made = []

    def make():
        made.append(Workspace(np.zeros(3), np.zeros((2, 4))))
        return made[-1]

    with threads.Workspaces(make).lend(helpers) as lent:
        given = team.make_board(1), lent, values, out
        threads.launch(square_in_threads, helpers, *given)
    np.testing.assert_array_equal(out, values * values)
    assert len(made) == helpers + 1
    return Workspace(*map(np.array, zip(*made, strict=True)))


@pytest.mark.parametrize("helpers", [0, 1, 3, 8])
def test_every_task_is_done_once_with_workspaces_of_their_own(helpers):
    for _ in range(200):
        spaces = run(helpers)
        assert spaces.counts.sum() == spaces.counts[:, 0].sum() == 1000
        there = spaces.counts[:, 0] > 0
        assert not there[helpers + 1 :].any()
        np.testing.assert_array_equal(spaces.rows[there, 1, 3], np.flatnonzero(there))
        assert spaces.rows[0, 0, 0] == 999.0**2


@pytest.mark.skipif(config.DISABLE_JIT, reason="without the compiler nobody helps")
def test_helpers_do_come():
    for _ in range(1000):
        if run(2, 100_000).counts[1:, 0].any():
            return
    pytest.fail("no helper has done anything in 1000 calls")


def test_several_callers_at_a_time():
    errors = []

    def call():
        try:
            for _ in range(200):
                run(3)
        except BaseException as error:
            errors.append(error)

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(120.0)
        assert not caller.is_alive()
    assert not errors


def test_calls_in_python_between_kernels():
    for _ in range(100):
        run(3)
        total = np.zeros(8)

        def work(first, last, total=total):
            run(2, 10)
            total[first] += 1

        threads.run(work, [(i, i + 1) for i in range(8)], 4)
        assert total.tolist() == [1.0] * 8
