r"""Steps of dual coordinate ascent for smooth losses, one sequence at a time.

Every sequence remembers its errors :math:`m_i`: expected counts of labels and transitions less the
true ones, of some time ago. The weights are always :math:`w = -\sum_i b_i \langle m_i, \phi_i
\rangle`. A visit moves :math:`m_i` a share of the way to the errors of the present weights. Where
nothing moves, the gradient is 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.atomic import claim
from structlearn._src.kernels.chain.sequence import ChainErrors, loss_and_errors
from structlearn._src.kernels.chain.split import (
    add_rows,
    add_singles,
    load_potentials,
    pull_split,
)
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import done, take, unfinished, wait

_LINE = 2**3  # numbers on a cache line


class Memory(NamedTuple):
    r"""What sequences remember; each moves by its share of the way.

    With its bound :math:`c_i`, of the same mixture of old tangents as its errors,
    :math:`\ell_i(v) \ge c_i + \langle m_i, v \rangle` for all weights :math:`v`.
    """

    nodes: np.ndarray  #: (positions, states) errors of labels, in single precision
    steps: np.ndarray  #: (sequences, states, states) of transitions; empty if these have no weights
    bounds: np.ndarray  #: (sequences,)


class Changes(NamedTuple):
    """By how much the sequences of a batch change the weights."""

    nodes: np.ndarray  #: (batch, longest, states)
    flat: np.ndarray  #: (batch, longest * states) the same
    steps: np.ndarray  #: (batch, states, states)


@inner
def _move(memory, errors, share, factor):
    """Move a row of a memory towards the errors, which become the change of the weights."""
    for s in range(errors.size):
        old = np.float64(memory[s])
        memory[s] = old + share * (errors[s] - old)
        # As stored, so that weights and memory never drift apart, whatever its precision.
        errors[s] = factor * (old - np.float64(memory[s]))


@inner
def _product(n, errors):
    """Product of the errors of a sequence with the scores that they are the gradient by."""
    K = errors.edges.shape[0]
    total = 0.0
    for t in range(n):
        for s in range(K):
            total += errors.nodes[t, s] * errors.scores[t, s]
    for r in range(K if n > 1 else 0):
        for s in range(K):
            if errors.steps[r, s] != 0.0:  # else the score may be infinite
                total += errors.steps[r, s] * errors.edges[r, s]
    return total


@inner
def _visit(c, data, layout, parts, loss_weights, share, primal, memory, errors, work):
    """Move the memory of one sequence; its errors become the change of the weights."""
    first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
    load_potentials(data, layout, first, n, primal, errors)
    loss = loss_and_errors(data, c, parts, errors, work)
    memory.bounds[c] += share * (loss - _product(n, errors) - memory.bounds[c])
    for t in range(n):
        _move(memory.nodes[first + t], errors.nodes[t], share, loss_weights[c])
    for r in range(errors.steps.shape[0] if n > 1 and memory.steps.shape[0] > 0 else 0):
        _move(memory.steps[c, r], errors.steps[r], share, loss_weights[c])


@inner
def _add_steps(c, data, memory, changes, table):
    """Add the change of a sequence to the weights of transitions."""
    K = table.shape[0]
    n = data.offsets[c + 1] - data.offsets[c]
    for r in range(K if n > 1 and memory.steps.shape[0] > 0 else 0):
        for s in range(K):
            if data.learnt[r, s]:
                table[r, s] += changes[r, s]


@lean
def ascend(order, data, layout, parts, loss_weights, shares, primal, memory, errors, work):
    """Visit every sequence in `order`, each from the weights that the last one left."""
    for i in range(order.size):
        c = order[i]
        if loss_weights[c] == 0.0:
            continue
        given = data, layout, parts, loss_weights, shares[c], primal, memory, errors, work
        _visit(c, *given)
        for t in range(data.offsets[c], data.offsets[c + 1]):
            pull_split(layout, t, errors.nodes[t - data.offsets[c]], primal)
        _add_steps(c, data, memory, errors.steps, primal.table)


@inner
def ascend_batches(
    number, board, order, batches, data, layout, parts, loss_weights, shares, primal, memory, wide,
    singles, changes, all_errors, workspaces,
):  # fmt: skip
    """As `ascend`, where all sequences of a batch start from the same weights.

    Batch ``b`` is ``order[batches[b] : batches[b + 1]]``. In the first phase of a batch threads
    compute its changes and in the second they add them, each task to its range of weights, in the
    order of sequences: so the number of threads and ranges makes no difference to the result. The
    weights of a range are in the caches of other threads: who has to wait for the first phase to
    end prefetches them.
    """
    errors = own(*all_errors, number)
    work = own(*workspaces, number)
    ranges = (wide.starts.size - 1) // (data.offsets.size - 1)
    for b in range(batches.size - 1):
        members = order[batches[b] : batches[b + 1]]
        i = take(board, 2 * b)
        while i < members.size:
            c = members[i]
            if loss_weights[c] != 0.0:
                mine = ChainErrors(
                    errors.scores, errors.edges, changes.nodes[i], changes.steps[i], errors.labels
                )
                given = data, layout, parts, loss_weights, shares[c], primal, memory, mine, work
                _visit(c, *given)
            done(board, 2 * b)
            i = take(board, 2 * b)

        i = take(board, 2 * b + 1)
        if i < ranges and unfinished(board, 2 * b, members.size):
            _claim_range(i, ranges, members, wide, singles, primal)
        wait(board, 2 * b, members.size)
        while i < ranges:
            for j in range(members.size):
                c = members[j]
                if loss_weights[c] != 0.0:
                    add_rows(wide, c * ranges + i, changes.flat[j], layout.kept, primal.wide)
                    add_singles(singles, c * ranges + i, changes.flat[j], primal.singles)
            for r in range(i, primal.table.shape[0] if memory.steps.shape[0] > 0 else 0, ranges):
                _add_pairs(r, members, data, loss_weights, changes.steps, primal.table)
            done(board, 2 * b + 1)
            i = take(board, 2 * b + 1)
        wait(board, 2 * b + 1, ranges)


@inner
def _claim_range(i, ranges, members, wide, singles, primal):
    """Ask for the lines of the weights in one range that a batch changes."""
    K = primal.wide.shape[1]
    for j in range(members.size):
        at = members[j] * ranges + i
        for e in range(wide.starts[at], wide.starts[at + 1]):
            row = wide.numbers[e] * K
            for s in range(0, K, _LINE):
                claim(primal.wide, row + s)
        for e in range(singles.starts[at], singles.starts[at + 1]):
            claim(primal.singles, singles.numbers[e])


@inner
def _add_pairs(r, members, data, loss_weights, changes, table):
    """Add the changes of a batch to the weights of the transitions from one state."""
    for s in range(table.shape[1]):
        if data.learnt[r, s]:
            total = table[r, s]
            for j in range(members.size):
                c = members[j]
                if loss_weights[c] != 0.0 and data.offsets[c + 1] - data.offsets[c] > 1:
                    total += changes[j, r, s]
            table[r, s] = total


@lean
def ascend_in_threads(box, helpers, *given):
    """Run `ascend_batches` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(ascend_batches, given))
    ascend_batches(0, *given)
    withdraw(box, open_)
