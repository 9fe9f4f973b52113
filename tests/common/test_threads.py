"""Threads: how many, which ranges, and what happens to errors."""

from __future__ import annotations

import os
import pickle
import threading
import time
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structlearn._src.common import threads
from structlearn._src.common.errors import ArgumentError


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv(threads.VARIABLE, raising=False)


def test_all_cores_of_the_process_by_default():
    if hasattr(os, "sched_getaffinity"):
        assert threads.workers() == len(os.sched_getaffinity(0))
    assert threads.workers(3) == 3


def test_environment_sets_the_default_only(monkeypatch):
    monkeypatch.setenv(threads.VARIABLE, "7")
    assert threads.workers() == 7
    assert threads.workers(2) == 2


@pytest.mark.parametrize("given", ["0", "-1", "two", "1.5"])
def test_bad_environment_is_named(monkeypatch, given):
    monkeypatch.setenv(threads.VARIABLE, given)
    with pytest.raises(ArgumentError, match=f"STRUCTLEARN_N_JOBS='{given}'"):
        threads.workers()


@pytest.mark.parametrize("given", [0, -1, 1.5, True, "2"])
def test_bad_n_jobs_is_named(given):
    with pytest.raises(ArgumentError, match="n_jobs="):
        threads.workers(given)


def test_small_work_is_for_few_threads():
    found = [threads.few(8, ranges, 4) for ranges in (1, 4, 11, 12, 100)]
    assert found == [1, 1, 2, 3, 8]


@given(st.lists(st.integers(0, 20), max_size=30), st.integers(1, 12), st.integers(0, 5))
def test_split_covers_everything_and_balances(weights, parts, begin):
    offsets = begin + np.concatenate([[0], np.cumsum(weights)]).astype(np.int64)
    ranges = threads.split(offsets, parts)
    covered = [i for first, last in ranges for i in range(first, last)]
    assert covered == list(range(len(weights)))
    assert len(ranges) <= parts
    assert all(first < last for first, last in ranges)
    heaviest = max((offsets[last] - offsets[first] for first, last in ranges), default=0)
    assert heaviest <= sum(weights) / parts + max(weights, default=0)


def test_run_visits_every_range():
    for n_jobs in (1, 2, None):
        seen = np.zeros(10, int)

        def work(first, last, seen=seen):
            seen[first:last] += 1

        threads.run(work, [(0, 3), (3, 4), (4, 10)], n_jobs)
        assert (seen == 1).all()


def test_one_range_and_one_job_stay_in_the_calling_thread():
    here = []

    def work(first, last):
        here.append(threading.get_ident())

    threads.run(work, [(0, 5)], 4)
    threads.run(work, [(0, 5), (5, 6)], 1)
    assert set(here) == {threading.get_ident()}


def test_several_ranges_leave_the_calling_thread():
    both_started = threading.Barrier(2, timeout=60)

    def work(first, last):
        both_started.wait()  # passes only if two threads are here at once

    threads.run(work, [(0, 1), (1, 2)], 2)


def test_first_error_is_raised_and_the_rest_is_dropped():
    started = []

    def work(first, last):
        started.append(first)
        if first == 0:
            raise KeyError(first)
        time.sleep(0.005)  # so that the others are not over before the error is seen

    for n_jobs in (1, 2):
        started.clear()
        with pytest.raises(KeyError, match="0"):
            threads.run(work, [(i, i + 1) for i in range(1000)], n_jobs)
        assert len(started) < 1000


def test_no_ranges_is_no_work():
    threads.run(lambda first, last: pytest.fail("called"), [], 2)


def test_bad_n_jobs_is_seen_even_without_threads():
    with pytest.raises(ArgumentError):
        threads.run(lambda first, last: None, [(0, 1)], 0)


def test_arrays_of_two_workers_are_apart():
    (one, two), (other,) = threads.worker_arrays((2, 3), (5,)), threads.worker_arrays((4,))
    assert one.shape == (2, 3)
    assert two.shape == (5,)
    assert one.flags.c_contiguous
    one[:], two[:], other[:] = 1.0, 2.0, 3.0
    assert one.sum() == 6.0
    assert two.sum() == 10.0
    for mine, theirs in ((one, other), (two, other)):
        ends = [np.lib.array_utils.byte_bounds(a) for a in (mine, theirs)]
        (_, end), (start, _) = sorted(ends)
        assert start - end >= 64


def ranges_of(over, *args):
    """Ranges that a function cuts, in the order of their starts."""
    seen = []
    over(lambda first, last: seen.append((first, last)), *args)
    return sorted(seen)


def test_items_are_cut_by_the_grain_of_their_kind(monkeypatch):
    offsets = np.arange(0, 41, 4)
    assert ranges_of(threads.over_items, offsets, "arrays", 1) == [(0, 10)]
    monkeypatch.setitem(threads.GRAIN, "arrays", 10)
    cut = ranges_of(threads.over_items, offsets, "arrays", 1)
    assert cut == ranges_of(threads.over_items, offsets, "arrays", 3)
    assert cut == threads.split(offsets, 5)
    # What items weigh beside their offsets counts as well.
    assert len(ranges_of(threads.over_items, offsets, "arrays", 1, 9)) == 1
    assert len(ranges_of(threads.over_items, offsets, "arrays", 1, 99)) == 10


def test_graphs_are_cut_for_the_workers_there_are(monkeypatch):
    offsets = np.arange(0, 101)
    assert ranges_of(threads.over_graphs, offsets, 2) == [(0, 100)]  # too little work
    monkeypatch.setitem(threads.GRAIN, "graphs", 50)
    assert ranges_of(threads.over_graphs, offsets, 1) == [(0, 100)]
    cut = ranges_of(threads.over_graphs, offsets, 2)
    assert len(cut) == 16
    assert [first for first, _ in cut] == [0, *(last for _, last in cut[:-1])]
    assert ranges_of(threads.over_graphs, np.array([0, 1000]), 2) == [(0, 1)]
    assert ranges_of(threads.over_graphs, np.zeros(1, np.int64), 2) == []
    # However few the threads are, no range may be so long that an interrupt waits for it.
    monkeypatch.setitem(threads.GRAIN, "arrays", 4)
    assert len(ranges_of(threads.over_graphs, offsets, 1)) == 26
    assert len(ranges_of(threads.over_graphs, offsets, 2)) == 26


def test_calls_of_kernels_are_shorter_where_they_solve_graphs(monkeypatch):
    offsets = np.arange(10_001)
    for kind, most in (("few graphs", 2**13), ("whole graphs", 2**9)):
        monkeypatch.setitem(threads.GRAIN, kind, 1)
        calls = threads.calls_of(offsets, kind)
        assert max(map(len, calls)) == most + 1
        assert [call[0] for call in calls[1:]] == [call[-1] for call in calls[:-1]]
        assert (calls[0][0], calls[-1][-1]) == (0, 10_000)


def test_scratch_is_lent_to_one_at_a_time():
    scratch = threads.Scratch(3)
    with scratch.lend() as one, scratch.lend() as two:
        assert one is not two
        assert one.shape == two.shape == (3,)
    with scratch.lend() as again:
        assert again is one or again is two
    with pytest.raises(KeyError), scratch.lend() as lost:
        raise KeyError
    assert scratch.take() is lost


def test_scratch_is_not_saved():
    scratch = threads.Scratch(1000)
    scratch.give(scratch.take())
    text = pickle.dumps(scratch)
    assert len(text) < 200
    assert pickle.loads(text).size == 1000


def test_workspaces_lie_apart_and_share_what_they_shared():
    class Record(NamedTuple):
        whole: np.ndarray
        part: np.ndarray
        other: np.ndarray
        whole_numbers: np.ndarray
        empty: np.ndarray

    whole = np.arange(12.0).reshape(3, 4)
    given = Record(whole, whole[1:, 2], np.arange(3.0), whole.reshape(-1).view(np.int64), whole[:0])
    found = threads.apart(given)
    for old, new in zip(given, found, strict=True):
        assert new.dtype == old.dtype
        assert new.strides == old.strides
        np.testing.assert_array_equal(new, old)
        assert not np.shares_memory(old, new)
    found.whole[1, 2] = -1.0
    assert found.part[0] == -1.0
    assert found.whole_numbers[6] == np.float64(-1.0).view(np.int64)
    starts = sorted(array.ctypes.data for array in (found.whole, found.other))
    assert starts[0] % 128 == starts[1] % 128 == 0


def test_threads_get_workspaces_of_their_own():
    class Record(NamedTuple):
        small: np.ndarray

    spaces = threads.Workspaces(lambda: Record(np.zeros(1)))
    with spaces.lend(3) as (first, places), spaces.lend(1) as (other, more):
        assert places.shape == (4, 1)
        assert more.shape == (2, 1)
        both = sorted([*places.ravel(), *more.ravel()])
        assert min(np.diff(both)) >= 128
        assert places[0, 0] == first.small.ctypes.data != other.small.ctypes.data
    with spaces.lend(3) as (_, again):
        assert again.shape[0] >= 4


def test_workspaces_that_lie_alone_are_not_copied():
    class Record(NamedTuple):
        some: np.ndarray
        others: np.ndarray

    made = []

    def make():
        made.append(Record(*threads.worker_arrays((3,), (2, 2))))
        return made[-1]

    with threads.Workspaces(make, alone=True).lend(2) as (first, places):
        assert first is made[0]
        assert places.tolist() == [[a.ctypes.data for a in record] for record in made]
