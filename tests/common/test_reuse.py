"""Memory that is used again: never by two arrays at once, and not kept without limit."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from side_by_side import together
from structlearn._src.common import reuse

LARGE = 2**17  # numbers: a megabyte


@pytest.fixture
def reserve(monkeypatch):
    fresh = reuse.Reserve(most=10 * 8 * LARGE)
    monkeypatch.setattr(reuse, "_reserve", fresh)
    return fresh


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("shape", [0, 5, (3, 0), LARGE, (LARGE, 4), (2, LARGE)])
@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.bool_, "int64"])
def test_arrays_are_as_those_of_numpy(shape, dtype):
    array, like = reuse.empty(shape, dtype), np.empty(shape, dtype)
    assert type(array) is np.ndarray
    assert (array.shape, array.dtype) == (like.shape, like.dtype)
    for flag in ("C_CONTIGUOUS", "WRITEABLE", "ALIGNED"):
        assert array.flags[flag]
    array[...] = 1
    assert (array == 1).all()


def test_memory_is_lent_again_when_nothing_refers_to_it(reserve):
    first = reuse.empty(LARGE)
    where = address(first)
    view = first[10:20].reshape(2, 5).T  # views count, and what they are views of
    del first
    assert reserve.kept == 0
    second = reuse.empty(LARGE)
    assert address(second) != where
    del view
    assert reserve.kept >= 8 * LARGE
    third = reuse.empty(LARGE)
    assert address(third) == where
    assert reserve.kept == 0


def test_a_block_much_larger_than_needed_stays_where_it_is(reserve):
    del (large := [reuse.empty(4 * LARGE)])[0]
    assert not large
    kept = reserve.kept
    small = reuse.empty(LARGE)
    assert reserve.kept == kept
    near = reuse.empty(3 * LARGE)  # takes it
    assert reserve.kept == 0
    assert len(small) + len(near) == 4 * LARGE


def test_no_more_than_the_limit_is_kept(reserve):
    arrays = [reuse.empty((k + 1) * LARGE // 2) for k in range(12)]
    last = address(arrays[-1])
    while arrays:
        arrays.pop(0)  # the smallest first
        assert reserve.kept <= reserve.most
    assert address(reuse.empty(6 * LARGE)) == last  # what was used last is kept


def test_cycles_give_memory_back_while_others_ask_for_it(reserve):
    """The collector may run inside `take`, which finds blocks that are free by then."""
    for _ in range(50):
        cycle = [reuse.empty(LARGE)]
        cycle.append(cycle)
        del cycle
        reuse.empty(LARGE)
    gc.collect()
    assert 0 < reserve.kept <= reserve.most


def test_the_collector_may_run_at_every_step(monkeypatch):
    reserve = reuse.Reserve()
    monkeypatch.setattr(reuse, "_reserve", reserve)
    least = reuse._LEAST // 8
    held = [reuse.empty(least + 100 * k) for k in range(300)]
    del held
    tuples = []
    for k in range(30):
        cycle = [reuse.empty(least + 100 * k)]
        # Memory of old tuples is used up, and the collector counts new ones: it runs in `take`.
        tuples.append([(j, k) for j in range(4000 + 137 * k)])
        cycle.append(cycle)
        del cycle
        reuse.empty(least + 100 * k)


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40)), max_size=60))
def test_no_two_arrays_share_memory(steps):
    live = {}
    for number, (make, size) in enumerate(steps):
        if make or not live:
            live[number] = reuse.empty(size * LARGE // 8, np.int64)
            live[number].fill(number)
        else:
            live.pop(list(live)[size % len(live)])
        assert all((array == key).all() for key, array in live.items())


def test_threads_get_memory_of_their_own(reserve):
    def work(me):
        for _ in range(200):
            array = reuse.empty(LARGE // 4 + 1000 * me)
            array.fill(me)
            assert (array == me).all()

    together(work, 4)


def test_nothing_is_said_at_the_end_of_python():
    code = "from structlearn._src.common.reuse import empty; held = [empty(2**20)] * 2"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
