"""Frank-Wolfe steps on the sequences of batches, by threads that meet inside the kernel.

The steps of a batch are found for the same weights, then taken one after the other: their
directions are old, but their lengths are not, so that every step raises the dual, whatever the size
of the batch. One thread alone takes them, on a copy of the weights that nobody else reads and that
its cache holds. Meanwhile the others find the steps of the next batch, for weights that lack those
which are being taken; then all threads make up for these.
"""

from __future__ import annotations

from structlearn._src.kernels.atomic import claim
from structlearn._src.kernels.chain.flow_steps import go, plan, settle
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import done, take, wait

PHASES = 2  # of a batch: its steps are found while those before it are taken, then these are shared
_TAKER = 0  # the thread that takes all steps: the caller, which is always there
_SHARES = 2**3  # of the weights, for a thread each: of more, every thread spends its time looking
_LINE = 2**3  # numbers on a cache line
_AHEAD = 2  # sequences whose weights are found out in time to ask for those of the next one


@inner
def take_batches(
    number, board, order, batches, rooms, pairwise, reach, data, loss_weights, weights, edges,
    dual, both, ahead, workspaces,
):  # fmt: skip
    """As `take_steps`, where the steps of a batch are found for the same weights, then taken.

    Batch ``b`` is ``order[batches[b] : batches[b + 1]]``. The weights of a step take the room from
    ``rooms[i]`` to ``rooms[i + 1]``, for sequence ``order[i]``. There are two records of steps, for
    a batch and the next one. What is `ahead` are copies of the weights and scores of pairs. A
    thread that comes late finds no tasks, and looks at no steps.
    """
    work = own(*workspaces, number)
    for b in range(batches.size):
        steps, past = both if b % 2 == 0 else (both[1], both[0])
        phase = PHASES * b
        start = batches[b]
        before = batches[b - 1] if b > 0 else start
        size = batches[b + 1] - start if b + 1 < batches.size else 0
        if number == _TAKER:
            _go_all(order[before:start], reach, loss_weights, *ahead, past)
            done(board, phase)
        i = take(board, phase)
        while i < size:
            base = rooms[start + i] - rooms[start]
            plan(
                order[start + i], i, base, pairwise, reach, False, data, loss_weights, weights,
                edges, dual, steps, work,
            )  # fmt: skip
            done(board, phase)
            i = take(board, phase)
        wait(board, phase, size + 1)
        _share(board, phase + 1, order[before:start], loss_weights, weights, edges, dual, past)


@inner
def _go_all(batch, reach, loss_weights, weights, edges, steps):
    """Take the steps of a batch, one sequence after the other.

    Other threads have written them, so that much of the time would be spent waiting for their
    caches: lines are asked for some steps ahead.
    """
    for i in range(-_AHEAD, batch.size):
        if i + _AHEAD < batch.size:
            _claim_steps(i + _AHEAD, steps)
        if 0 <= i + 1 < batch.size:
            for e in range(steps.firsts[i + 1, 0], steps.firsts[i + 1, steps.counts[i + 1]]):
                claim(weights, steps.numbers[e])
        for j in range(steps.counts[i] if i >= 0 else 0):
            go(batch[i], i, j, reach, loss_weights, weights, edges, steps)


@inner
def _claim_steps(i, steps):
    """Ask for the lines that hold the steps of a sequence."""
    for e in range(steps.firsts[i, 0], steps.firsts[i, steps.counts[i]], _LINE):
        claim(steps.numbers, e)
        claim(steps.values, e)


@inner
def _share(board, phase, batch, loss_weights, weights, edges, dual, steps):
    """Move weights and shares as far as the steps of a batch went."""
    tasks = _SHARES + batch.size if batch.size > 0 else 0
    i = take(board, phase)
    while i < tasks:
        if i < _SHARES:
            _change(i, batch, loss_weights, weights, edges, steps)
        else:
            i -= _SHARES
            for j in range(steps.counts[i]):
                settle(batch[i], i, j, loss_weights, dual, steps)
        done(board, phase)
        i = take(board, phase)
    wait(board, phase, tasks)


@inner
def _change(share, batch, loss_weights, weights, edges, steps):
    """Change a share of the weights: whole cache lines, which no other share touches."""
    K = edges.shape[1]
    table = weights.size - K * K
    for i in range(batch.size):
        for j in range(steps.counts[i]):
            x = steps.lengths[i, j] * loss_weights[batch[i]]
            for e in range(steps.firsts[i, j], steps.firsts[i, j + 1]):
                k = steps.numbers[e]
                if k // _LINE & _SHARES - 1 == share:
                    y = x * steps.values[e]
                    weights[k] += y
                    if k >= table:
                        edges[0, (k - table) // K, (k - table) % K] += y


@lean
def take_batches_in_threads(box, helpers, *given):
    """Run `take_batches` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(take_batches, given))
    take_batches(0, *given)
    withdraw(box, open_)
