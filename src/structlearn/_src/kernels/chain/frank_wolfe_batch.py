"""Frank-Wolfe steps on the sequences of small batches, by threads that meet inside the kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.frank_wolfe import TINY, plan, store
from structlearn._src.kernels.chain.sequence import find, unit_cost
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.team import done, take, wait


class StepBatch(NamedTuple):
    """The steps of the sequences of a batch."""

    counts: np.ndarray  #: (batch,) number of nodes that move
    firsts: np.ndarray  #: (batch, longest + 1) where among them those of every position begin
    states: np.ndarray  #: (batch, longest * states) the state of each
    moves: np.ndarray  #: (batch, longest * states) by how much the weights of each change
    turns: np.ndarray  #: (batch, states, states) the change of the weights of transitions


@inner
def _record(data, first, n, length, factor, batch, i, work):
    """Move the flow of a sequence, and note the step; return by how much its cost rises."""
    K = work.nodes.shape[1]
    moves = work.delta
    cost = 0.0
    count = 0
    batch.turns[i] = 0.0
    for t in range(n):
        batch.firsts[i, t] = count
        for m in range(work.borders[t], work.borders[t + 1]):
            s, r = work.states[m], work.befores[m]
            work.shares[m] -= length * work.moves[m]
            if t > 0 and work.turns[r, s] != 0.0:
                batch.turns[i, r, s] = length * factor * work.turns[r, s]
                work.turns[r, s] = 0.0
        for s in range(K):
            if abs(moves[t, s]) > TINY:
                cost -= moves[t, s] * data.costs[data.labels[first + t], s]
                batch.states[i, count] = s
                batch.moves[i, count] = length * factor * moves[t, s]
                count += 1
                _clear_node(data, first + t, s, work.pulled, K)
    batch.firsts[i, n] = count
    batch.counts[i] = count
    return cost * length * unit_cost(data, n)


@inner
def _clear_node(data, t, s, pulled, K):
    """Set the weights of a node to 0."""
    for e in range(data.rows[t], data.rows[t + 1]):
        k = find(data, data.columns[e], s, K)
        if k >= 0:
            pulled[k] = 0.0


@inner
def _add_range(data, dealt, at, batch, i, past, primal):
    """Add the step of a sequence to the weights of its features in one range, `at`."""
    K = primal.edges.shape[1]
    ones = dealt.values.size == 0
    for e in range(dealt.starts[at], dealt.starts[at + 1]):
        t = dealt.nodes[e]
        for q in range(batch.firsts[i, t], batch.firsts[i, t + 1]):
            k = find(data, dealt.numbers[e], batch.states[i, q], K)
            if k >= 0:
                y = batch.moves[i, q] if ones else batch.moves[i, q] * dealt.values[e]
                primal.weights[k] += y
                primal.lag[k] += past * y


@inner
def _add_turns(batch, i, past, primal):
    """Add the step of a sequence to the weights of transitions."""
    K = primal.edges.shape[1]
    for r in range(K):
        for s in range(K):
            y = batch.turns[i, r, s]
            if y != 0.0:
                primal.edges[0, r, s] += y
                primal.edge_lag[r, s] += past * y


@lean
def frank_wolfe_in_batches(
    order, batches, board, data, loss_weights, primal, dual, dealt, batch, work, steps, pairwise,
    coupling,
):  # fmt: skip
    """As `frank_wolfe`, where all sequences of a batch start from the same weights.

    Batch ``b`` is ``order[batches[b] : batches[b + 1]]``. All threads of a team call this with the
    same arrays but for `work`. In the first phase of a batch they find its steps, in the second
    they add them, each task to its range of features, in the order of sequences: so the number of
    threads and ranges makes no difference to the result. Squares count `coupling` times: the size
    of a batch makes every batch raise the dual.
    """
    ranges = (dealt.starts.size - 1) // (data.offsets.size - 1)
    for b in range(batches.size - 1):
        members = order[batches[b] : batches[b + 1]]
        i = take(board, 2 * b)
        while i < members.size:
            c = members[i]
            first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
            batch.counts[i] = -1
            length = plan(c, data, loss_weights, primal, dual, work, pairwise, coupling)
            if length > 0.0:
                given = data, first, n, length, loss_weights[c], batch, i, work
                dual.losses[c] += loss_weights[c] * _record(*given)
                store(c, n, dual, work)
            done(board, 2 * b)
            i = take(board, 2 * b)
        wait(board, 2 * b, members.size)

        # The weights after the batch count as those after each of its steps.
        before = steps + batches[b]
        past = 0.5 * before * (before + 1.0)
        i = take(board, 2 * b + 1)
        while i <= ranges:  # the last task is the transitions
            for j in range(members.size):
                if batch.counts[j] < 0:
                    continue
                if i == ranges:
                    _add_turns(batch, j, past, primal)
                else:
                    _add_range(data, dealt, members[j] * ranges + i, batch, j, past, primal)
            done(board, 2 * b + 1)
            i = take(board, 2 * b + 1)
        wait(board, 2 * b + 1, ranges + 1)
