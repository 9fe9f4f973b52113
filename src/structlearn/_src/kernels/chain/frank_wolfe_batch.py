"""Frank-Wolfe steps on the sequences of batches, by threads that meet inside the kernel."""

from __future__ import annotations

from structlearn._src.kernels.chain.flow_steps import go, plan
from structlearn._src.kernels.jit import lean
from structlearn._src.kernels.team import done, take, wait


@lean
def take_steps_in_batches(
    order, batches, rooms, board, pairwise, reach, data, loss_weights, weights, edges, dual, steps,
    work,
):  # fmt: skip
    """As `take_steps`, where the steps of a batch are found for the same weights, then taken.

    Batch ``b`` is ``order[batches[b] : batches[b + 1]]``. All threads of a team call this with the
    same arrays but for `work`. In the first phase of a batch they find its steps. In the second,
    one thread takes them, one after the other: their directions are old, but their lengths are not,
    so that every step raises the dual, whatever the size of the batch. The weights of a step take
    the room from ``rooms[i]`` to ``rooms[i + 1]``, for sequence ``order[i]``.
    """
    for b in range(batches.size - 1):
        start, stop = batches[b], batches[b + 1]
        i = take(board, 2 * b)
        while i < stop - start:
            c, base = order[start + i], rooms[start + i] - rooms[start]
            plan(
                c, i, base, pairwise, reach, False, data, loss_weights, weights, edges, dual,
                steps, work,
            )  # fmt: skip
            done(board, 2 * b)
            i = take(board, 2 * b)
        wait(board, 2 * b, stop - start)
        if take(board, 2 * b + 1) == 0:
            for i in range(stop - start):
                if steps.counts[i] > 0:
                    c = order[start + i]
                    go(c, i, reach, data, loss_weights, weights, edges, dual, steps)
            done(board, 2 * b + 1)
        wait(board, 2 * b + 1, 1)
