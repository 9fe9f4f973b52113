"""Threads that stay alive: nested calls, forks, interrupts, time limits, and BLAS beside them."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import nullcontext, suppress
from contextvars import Context, ContextVar
from functools import partialmethod

import numpy as np
import pytest
import threadpoolctl

from side_by_side import together
from structlearn._src.common import pool, threads


def singles(count):
    return [(i, i + 1) for i in range(count)]


def test_threads_stay_alive_and_only_grow(monkeypatch):
    fresh = pool.Pool()
    monkeypatch.setattr(threads, "POOL", fresh)
    seen = set()
    meet = threading.Barrier(3, timeout=60)

    def work(first, last):
        seen.add(threading.get_ident())
        meet.wait()

    for _ in range(5):
        threads.run(work, singles(3), 3)
    assert len(seen) == 3  # the caller and the same two
    assert fresh.size == 2
    threads.run(lambda first, last: None, singles(20), 6)
    assert fresh.size == 5
    threads.run(lambda first, last: None, singles(20), 2)
    assert fresh.size == 5


def test_work_is_done_where_no_thread_can_be_started(monkeypatch):
    """As where the number of processes is limited, and when Python ends."""

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "POOL", pool.Pool())
    monkeypatch.setattr(threading.Thread, "start", refuse)
    seen = []
    threads.run(lambda first, last: seen.append(first), singles(5), 4)
    assert seen == list(range(5))


def test_all_threads_come_back_for_the_next_call():
    meet = threading.Barrier(4, timeout=60)
    for _ in range(200):
        threads.run(lambda first, last: meet.wait(), singles(4), 4)


def test_calls_within_calls_do_not_block():
    total = np.zeros(6 * 7 * 5, int)

    def outer(first, _):
        def middle(second, _):
            def inner(third, _):
                total[(first * 7 + second) * 5 + third] += 1

            threads.run(inner, singles(5), 3)

        threads.run(middle, singles(7), 4)

    for n_jobs in (1, 2, 3):
        total[:] = 0
        threads.run(outer, singles(6), n_jobs)
        assert (total == 1).all()


def test_calls_from_several_threads_at_once():
    counts = np.zeros((4, 50), int)

    def caller(row):
        for _ in range(20):

            def work(first, last):
                counts[row, first] += 1

            threads.run(work, singles(50), 3)

    together(caller, 4)
    assert (counts == 20).all()


def test_the_first_error_in_order_wins():
    def work(first, last):
        time.sleep(0.02 * (3 - first))  # the last range fails first
        raise KeyError(first)

    with pytest.raises(KeyError, match="0"):
        threads.run(work, singles(3), 3)
    threads.run(lambda first, last: None, singles(9), 3)  # the pool has survived


def test_an_interrupt_waits_for_what_runs_and_drops_the_rest():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a background job lacks
    begun, over = [], []

    def work(first, last):
        begun.append(first)
        if threading.current_thread() is threading.main_thread():
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        over.append(first)

    with pytest.raises(KeyboardInterrupt):
        threads.run(work, singles(1000), 3)
    assert len(begun) < 20
    assert len(over) == len(begun) - 1  # all but the one that was interrupted
    threads.run(work_nothing, singles(5), 3)


def work_nothing(first, last):
    pass


class Interrupted:
    """A queue whose first entry is lost to an interrupt."""

    def __init__(self, queue):
        self.queue = queue
        self.calls = 0
        self.waited_for = threading.Event()

    def put(self, entry):
        self.queue.put(entry)

    def get(self):
        self.waited_for.set()
        self.queue.get()
        self.calls += 1
        if self.calls == 1:
            raise KeyboardInterrupt


def test_an_interrupt_at_the_end_of_a_wait_loses_no_helper():
    job = pool.Job(work_nothing, singles(2))
    job._left = Interrupted(job._left)
    job.open(1)
    assert job.enter() is not None
    raised = []

    def wait():
        try:
            job.wait()
        except KeyboardInterrupt:
            raised.append(True)

    caller = threading.Thread(target=wait, daemon=True)
    caller.start()
    assert job._left.waited_for.wait(10)
    job.leave()
    caller.join(10)
    assert raised


def test_helpers_see_the_context_of_the_caller():
    here = ContextVar("here", default=0)
    here.set(7)
    found = []
    meet = threading.Barrier(2, timeout=60)

    def work(first, last):
        meet.wait()
        found.append(here.get())

    threads.run(work, singles(2), 2)
    assert found == [7, 7]


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_makes_its_own_threads():
    threads.run(work_nothing, singles(8), 4)
    child = os.fork()
    if child == 0:
        meet = threading.Barrier(2, timeout=60)
        threads.run(lambda first, last: meet.wait(), singles(2), 2)
        os._exit(0 if pool.POOL.size == 1 else 1)
    for _ in range(200):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0


def blas_threads():
    return {
        lib["num_threads"] for lib in threadpoolctl.threadpool_info() if "blas" in lib["user_api"]
    }


def test_blas_has_one_thread_while_ours_run():
    before = blas_threads()
    inside = []
    threads.run(lambda first, last: inside.append(blas_threads()), singles(2), 2)
    with threads.one_blas_thread():
        inside.append(blas_threads())
        threads.run(work_nothing, singles(2), 2)
        inside.append(blas_threads())
    assert inside == [{1}] * 4
    assert blas_threads() == before


def test_dispatch_is_cheap():
    best = np.inf
    for _ in range(200):
        began = time.perf_counter()
        threads.run(work_nothing, singles(16), 4)
        best = min(best, time.perf_counter() - began)
    assert best < 1e-3  # 30 microseconds on an idle machine


def test_calls_without_any_context():
    def work():
        for _ in range(20):
            meet = threading.Barrier(2, timeout=60)
            threads.run(lambda first, last, meet=meet: meet.wait(), singles(2), 2)
        done.append(True)

    done = []
    caller = threading.Thread(target=lambda: Context().run(work), daemon=True)
    caller.start()
    caller.join(60)
    assert done


@pytest.mark.parametrize("call", range(8))
def test_blas_has_its_threads_again_after_an_interrupt(call, monkeypatch):
    """The interrupt comes when a library is held, or when it is let go."""
    before = blas_threads()
    threads.run(work_nothing, singles(2), 2)
    libraries = threadpoolctl.ThreadpoolController().lib_controllers
    left = [call]

    def interrupted(library, count, set_threads):
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt
        set_threads(library, count)

    for kind in {type(each) for each in libraries if each.user_api == "blas"}:
        given = partialmethod(interrupted, set_threads=kind.set_num_threads)
        monkeypatch.setattr(kind, "set_num_threads", given)
    with suppress(KeyboardInterrupt):
        threads.run(work_nothing, singles(2), 2)
    left[0] = -1
    assert blas_threads() == before
    inside = []
    threads.run(lambda first, last: inside.append(blas_threads()), singles(2), 2)
    assert inside == [{1}] * 2
    assert blas_threads() == before


def test_an_interrupt_at_the_end_of_a_call_leaves_no_helper_behind(monkeypatch):
    """It comes just before the caller lets no more helpers in, and waits for the others."""
    monkeypatch.setattr(threads, "POOL", pool.Pool())
    meet = threading.Barrier(2, timeout=60)
    over, calls = [], []
    close = pool.Job.close

    def interrupted(job):
        calls.append(job)
        if len(calls) == 1:
            raise KeyboardInterrupt
        close(job)

    def work(first, last):
        meet.wait()
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.2)
        over.append(first)

    monkeypatch.setattr(pool.Job, "close", interrupted)
    with pytest.raises(KeyboardInterrupt):
        threads.run(work, singles(2), 2)
    assert len(over) == 2
    assert not threads.POOL._jobs


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("here", [False, True])
def test_a_forked_process_has_all_threads_of_blas(here):
    """Though a thread that it does not have holds them; its own still does."""
    before = blas_threads()
    held, end = threading.Event(), threading.Event()

    def hold():
        with threads.one_blas_thread():
            held.set()
            end.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert held.wait(60)
    with threads.one_blas_thread() if here else nullcontext():
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            seen = [blas_threads()]
            threads.run(lambda first, last: seen.append(blas_threads()), singles(2), 2)
            seen.append(blas_threads())
            usual = {1} if here else before
            os._exit(0 if seen == [usual, {1}, {1}, usual] else 1)
        status = os.waitpid(child, 0)[1]
    end.set()
    holder.join()
    assert os.waitstatus_to_exitcode(status) == 0
    assert blas_threads() == before


class Looks:
    """Stands for compiled code: notes when a helper looks for kernels, and lets it wait."""

    def __init__(self, hold=0):
        self.seen = 0
        self.hold = hold  # after which look a helper waits until it is let go
        self.held, self.go = threading.Event(), threading.Event()
        self.again = threading.Event()

    def serve(self, box, calls, looks):
        if looks:
            self.seen += 1
            if self.seen == self.hold:
                self.held.set()
                self.go.wait(60)
            elif self.seen > self.hold:
                self.again.set()
        return 0

    def pool(self):
        compiled = pool.Compiled(
            lambda *given: 0, self.serve, lambda: np.zeros(2, np.int64), calls=0, begun=1
        )
        fresh = pool.Pool()
        fresh.use(compiled)
        return fresh


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_who_is_called_after_the_last_look_looks_again():
    looks = Looks(hold=1)
    fresh = looks.pool()
    fresh.summon(1)
    fresh.box[1] += 1  # the kernel begins
    fresh.dismiss()
    assert looks.held.wait(60)  # the helper has looked for the last time, and comes back
    fresh.summon(1)
    fresh.box[1] += 1
    looks.go.set()
    assert looks.again.wait(60)
    fresh.dismiss()
    wait_for(lambda: fresh._asleep == 1)


def test_nobody_sleeps_before_the_kernel_begins_that_they_are_woken_for():
    looks = Looks()
    fresh = looks.pool()
    fresh.summon(1)
    wait_for(lambda: looks.seen > 20)
    assert fresh._asleep == 0
    fresh.box[1] += 1
    wait_for(lambda: fresh._asleep == 1)  # a kernel that goes on does not keep others awake
    fresh.dismiss()


def test_a_kernel_that_takes_long_to_begin_keeps_nobody_busy():
    """As one that is compiled first."""
    looks = Looks()
    fresh = looks.pool()
    fresh.summon(1)
    wait_for(lambda: looks.seen > pool._ROUNDS)
    before = looks.seen
    time.sleep(40 * pool._DOZE)
    assert looks.seen < before + 60
    assert fresh._asleep == 0
    fresh.box[1] += 1
    wait_for(lambda: fresh._asleep == 1)
    fresh.dismiss()


def test_a_kernel_that_cannot_begin_keeps_nobody_awake(monkeypatch):
    looks = Looks()
    fresh = looks.pool()
    monkeypatch.setattr(threads, "POOL", fresh)

    def fails(box, helpers):
        raise TypeError("no such types")

    with pytest.raises(TypeError, match="no such"):
        threads.launch(fails, 1)
    wait_for(lambda: fresh._asleep == 1)
    assert fresh._summons == fresh.box[1]
