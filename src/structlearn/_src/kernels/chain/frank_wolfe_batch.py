"""Frank-Wolfe steps on the sequences of batches, by threads that meet inside the kernel."""

from __future__ import annotations

from structlearn._src.kernels.atomic import claim
from structlearn._src.kernels.chain.flow_steps import go, plan, settle
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import done, take, wait

_LINE = 8  # numbers on a cache line
_AHEAD = 2  # sequences whose weights are found out in time to ask for those of the next one


@inner
def take_batches(
    number, board, order, batches, rooms, pairwise, reach, data, loss_weights, weights, edges,
    dual, steps, workspaces,
):  # fmt: skip
    """As `take_steps`, where the steps of a batch are found for the same weights, then taken.

    Batch ``b`` is ``order[batches[b] : batches[b + 1]]``. In the first phase of a batch threads
    find its steps. In the second, one thread takes them, one after the other: their directions are
    old, but their lengths are not, so that every step raises the dual, whatever the size of the
    batch. As the others wait for it, it moves weights alone; shares are moved by whoever finds the
    steps of the next batch in the same place. The weights of a step take the room from ``rooms[i]``
    to ``rooms[i + 1]``, for sequence ``order[i]``.
    """
    work = own(*workspaces, number)
    before = 0  # sequences of the batch before this one
    for b in range(batches.size):
        start = batches[b]
        size = batches[b + 1] - start if b + 1 < batches.size else 0
        i = take(board, 2 * b)
        while i < max(size, before):
            for j in range(steps.counts[i] if i < before else 0):
                settle(order[start - before + i], i, j, loss_weights, dual, steps)
            if i < size:
                base = rooms[start + i] - rooms[start]
                plan(
                    order[start + i], i, base, pairwise, reach, False, data, loss_weights, weights,
                    edges, dual, steps, work,
                )  # fmt: skip
            done(board, 2 * b)
            i = take(board, 2 * b)
        wait(board, 2 * b, max(size, before))
        if take(board, 2 * b + 1) == 0:
            _go_all(start, size, order, reach, loss_weights, weights, edges, steps)
            done(board, 2 * b + 1)
        wait(board, 2 * b + 1, 1)
        before = size


@inner
def _go_all(start, size, order, reach, loss_weights, weights, edges, steps):
    """Take the steps of a batch, one sequence after the other.

    Other threads have written the steps and read the weights, so that most of the time would be
    spent waiting for their caches: lines are asked for some steps ahead.
    """
    for i in range(-_AHEAD, size):
        if i + _AHEAD < size:
            _claim_steps(i + _AHEAD, steps)
        if 0 <= i + 1 < size:
            for e in range(steps.firsts[i + 1, 0], steps.firsts[i + 1, steps.counts[i + 1]]):
                claim(weights, steps.numbers[e])
        for j in range(steps.counts[i] if i >= 0 else 0):
            go(order[start + i], i, j, reach, loss_weights, weights, edges, steps)


@inner
def _claim_steps(i, steps):
    """Ask for the lines that hold the steps of a sequence."""
    for e in range(steps.firsts[i, 0], steps.firsts[i, steps.counts[i]], _LINE):
        claim(steps.numbers, e)
        claim(steps.values, e)


@lean
def take_batches_in_threads(box, helpers, *given):
    """Run `take_batches` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(take_batches, given))
    take_batches(0, *given)
    withdraw(box, open_)
