"""Work that ends by itself, at a limit, by the clock or by a person."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.watch import Ending, Watch, heed_time


def words():
    return "going on"


def test_every_ending_has_a_sentence():
    assert all(ending.sentence for ending in Ending)
    assert Ending("time") is Ending.TIME
    assert str(Ending.LIMIT) == "limit"
    assert [ending for ending in Ending if ending.early] == [Ending.TIME, Ending.INTERRUPTED]


def test_done_and_limit():
    steps = iter([False, False, True])
    assert Watch().repeat(lambda: next(steps), 10, words) is Ending.DONE
    assert Watch().repeat(lambda: False, 3, words) is Ending.LIMIT
    assert Watch().repeat(lambda: True, 0, words) is Ending.LIMIT


def test_the_clock_ends_after_one_step():
    taken = []
    watch = Watch(time_limit=0.0)
    assert watch.expired
    assert watch.left == 0.0
    assert watch.repeat(lambda: taken.append(1), 10, words) is Ending.TIME
    assert taken == [1]


@pytest.mark.parametrize("progress", [1, "x", {}, set()])
def test_whom_to_tell_must_be_callable(progress):
    with pytest.raises(ArgumentError, match="progress="):
        Watch(progress=progress)


def test_without_a_limit_there_is_always_time():
    watch = Watch()
    assert not watch.expired
    assert watch.left == math.inf


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_the_precision_of_a_limit_is_not_that_of_the_clock(kind):
    assert 59000.0 < Watch(kind(59008.0)).left <= 59008.0


def test_an_interrupt_ends_the_work_around_it_too():
    watch = Watch()

    def stopped():
        raise KeyboardInterrupt

    def around():
        assert watch.repeat(stopped, 5, words) is Ending.INTERRUPTED
        return True  # as if all were well

    assert watch.repeat(around, 5, words) is Ending.INTERRUPTED
    assert watch.expired


def test_other_errors_pass():
    with pytest.raises(ZeroDivisionError):
        Watch().repeat(lambda: 1 / 0, 5, words)


def test_progress_is_told_after_each_step_but_the_last():
    told = []
    watch = Watch(progress=lambda fraction, text: told.append((fraction, text)))
    steps = iter([False, False, True])
    watch.repeat(lambda: next(steps), 4, words)
    assert told == [(0.25, "going on"), (0.5, "going on")]
    watch.tell(0.75, "by hand")
    assert told[-1] == (0.75, "by hand")


def test_the_first_step_of_work_is_finished_with_the_loops_inside_it():
    """Time that is up must not end an inner loop before the outer one has anything to keep."""
    rounds = []

    def inner():
        heed_time()
        return False

    def outer():
        rounds.append(Watch().repeat(inner, 3, str))
        return False

    assert Watch(time_limit=0.0).repeat(outer, 5, str) is Ending.TIME
    assert rounds == [Ending.LIMIT]


def test_time_ends_inner_loops_of_later_steps_and_of_their_own():
    def heeding():
        heed_time()
        return False

    def outer():
        if len(steps) == 1:
            time.sleep(0.02)  # beyond the limit: the loop inside must not go on
        steps.append(Watch().repeat(heeding, 3, str))
        return False

    steps = []
    assert Watch(time_limit=0.01).repeat(outer, 5, str) is Ending.TIME
    assert steps == [Ending.LIMIT]
    own = Watch(time_limit=0.0)
    assert Watch().repeat(lambda: own.repeat(heeding, 3, str) is None, 1, str) is Ending.LIMIT
