"""Threads that meet inside a kernel: every task once, no phase before the last one is done."""

from __future__ import annotations

import numpy as np
import pytest
from numba import config

from side_by_side import together
from structlearn._src.kernels import atomic  # by its name: compiled functions are put there
from structlearn._src.kernels.jit import lean
from structlearn._src.kernels.team import done, make_board, take, wait


@lean
def count(counter, times):
    """Raise a counter many times, by one."""
    for _ in range(times):
        atomic.fetch_add(counter, 1, 1)
    return atomic.load(counter, 1)


@lean
def relay(board, phases, tasks, values, takers, me):
    """Every task doubles and shifts what all tasks of the last phase left: order matters."""
    for phase in range(phases):
        i = take(board, phase)
        while i < tasks:
            total = 0
            for j in range(tasks):
                total += values[phase, j]
            values[phase + 1, i] = (2 * total + i) % 1000003
            takers[phase, i] = me
            done(board, phase)
            i = take(board, phase)
        wait(board, phase, tasks)


def slow_relay(phases, tasks):
    values = np.zeros((phases + 1, tasks), np.int64)
    for phase in range(phases):
        values[phase + 1] = (2 * values[phase].sum() + np.arange(tasks)) % 1000003
    return values


def test_no_count_is_lost_between_threads():
    counter = np.zeros(3, np.int64)
    times = 300 if config.DISABLE_JIT else 100_000
    together(lambda _: count(counter, times), 4)
    assert counter.tolist() == [0, 4 * times, 0]
    assert count(counter, 1) == 4 * times + 1


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_phases_come_one_after_the_other(threads):
    phases, tasks = (20 if config.DISABLE_JIT else 500), 7
    board = make_board(phases)
    values = np.zeros((phases + 1, tasks), np.int64)
    takers = np.full((phases, tasks), -1)
    together(lambda me: relay(board, phases, tasks, values, takers, me), threads)
    np.testing.assert_array_equal(values, slow_relay(phases, tasks))
    assert takers.min() >= 0


def test_a_thread_that_comes_late_finds_all_done():
    board = make_board(10)
    values, takers = np.zeros((11, 4), np.int64), np.zeros((10, 4), np.int64)
    relay(board, 10, 4, values, takers, 1)
    before = values.copy()
    relay(board, 10, 4, values, takers, 2)
    np.testing.assert_array_equal(values, before)
    assert (takers == 1).all()
