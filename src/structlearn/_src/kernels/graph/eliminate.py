r"""Bucket elimination at any temperature per variable, forward and back, on flat arrays.

Bucket b eliminates one variable v. Its table is the sum of its inputs (factors whose first
eliminated variable is v, and messages of earlier buckets), over the axes (separator..., v);
separators are sorted by elimination position, latest first, so v is the fastest axis and the
message

.. math:: m_b(s) = \epsilon_v \log \sum_{x_v} \exp \frac{t_b(s, x_v)}{\epsilon_v}

is a reduction of neighbouring entries. Going back, the belief of a bucket is that of its
separator times :math:`\exp((t_b - m_b) / \epsilon_v)`, and beliefs of inputs are sums of it: the
gradient of the value. Tables are never stored: they are summed up block by block.

Factor tables and messages lie in one array, the *store*; beliefs lie in a second of the same
layout.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.graph.readout import choose
from structlearn._src.kernels.jit import inner, lean

BLOCK = 4096  # entries of a table held at a time: 32 kB, what the first cache holds
_LINE = 16  # numbers that keep two arrays on different cache lines


class EliminationPlan(NamedTuple):
    """Which tables are summed where."""

    variables: np.ndarray  #: variable of every bucket
    axis_offsets: np.ndarray  #: (buckets + 1) into axes
    axes: np.ndarray  #: variables of every bucket, its own last
    message_offsets: np.ndarray  #: (buckets + 1) into the store
    parents: np.ndarray  #: bucket that takes the message, -1 at the end
    input_offsets: np.ndarray  #: (buckets + 1) into inputs
    inputs: np.ndarray  #: where every input begins in the store
    stride_offsets: np.ndarray  #: (inputs + 1) into strides
    strides: np.ndarray  #: step of every input along every axis of its bucket, 0 if absent
    graph_buckets: np.ndarray  #: (graphs + 1) into buckets


@lean
def assign_inputs(wiring, used, plan, owners):
    """Fill plan.inputs and plan.strides.

    `owners` holds the bucket of each factor, `used` where each bucket's next input goes.
    """
    for f in range(owners.size):
        b = owners[f]
        i = used[b]
        used[b] += 1
        plan.inputs[i] = wiring.table_offsets[f]
        for a in range(plan.axis_offsets[b], plan.axis_offsets[b + 1]):
            step = 0
            for s in range(wiring.scope_offsets[f], wiring.scope_offsets[f + 1]):
                if wiring.scopes[s] == plan.axes[a]:
                    step = wiring.strides[s]
            plan.strides[plan.stride_offsets[i] + a - plan.axis_offsets[b]] = step
    for c in range(plan.variables.size):
        b = plan.parents[c]
        if b < 0:
            continue
        i = used[b]
        used[b] += 1
        plan.inputs[i] = plan.message_offsets[c]
        # Both axis lists are sorted the same way, so one walk from the back matches them.
        k = plan.axis_offsets[c + 1] - 2
        step = 1
        for a in range(plan.axis_offsets[b + 1] - 1, plan.axis_offsets[b] - 1, -1):
            at = plan.stride_offsets[i] + a - plan.axis_offsets[b]
            plan.strides[at] = 0
            if k >= plan.axis_offsets[c] and plan.axes[k] == plan.axes[a]:
                plan.strides[at] = step
                step *= wiring.cards[plan.axes[k]]
                k -= 1


class BucketWorkspace(NamedTuple):
    """Scratch space: one block of a bucket's table and where its inputs lie."""

    split: np.ndarray  #: [first inner axis, inner size, outer size, number of moving inputs]
    digits: np.ndarray
    moving: np.ndarray  #: inputs that change from block to block
    bases: np.ndarray  #: where each moving input's block begins
    places: np.ndarray  #: (inputs, block) offsets inside a block
    still: np.ndarray  #: sum of the inputs that are the same in every block
    table: np.ndarray
    total: np.ndarray  #: sum of all blocks


def make_workspace(most_axes: int, most_inputs: int, most_states: int) -> BucketWorkspace:
    """Scratch space for the largest bucket."""
    size = max(BLOCK, most_states)
    # Together and padded, so that no two workers write to the same cache line.
    small = np.zeros(_LINE + 4 + most_axes + 2 * most_inputs + _LINE, np.int64)[_LINE:-_LINE]
    return BucketWorkspace(
        *np.split(small, np.cumsum([4, most_axes, most_inputs])),
        np.zeros((most_inputs, size), np.int32),
        np.zeros(size),
        np.zeros(size),
        np.zeros(size),
    )


@inner
def _places(i, b, cards, plan, first_axis, inner, out):
    """Offsets of input `i` along the inner axes of bucket `b`, in C order."""
    out[0] = 0
    filled = 1
    low = plan.axis_offsets[b]
    for a in range(plan.axis_offsets[b + 1] - 1, first_axis - 1, -1):
        step = plan.strides[plan.stride_offsets[i] + a - low]
        # Slower axes repeat the faster ones' pattern, shifted.
        for x in range(1, cards[plan.axes[a]]):
            for k in range(filled):
                out[x * filled + k] = out[k] + x * step
        filled *= cards[plan.axes[a]]


@inner
def open_bucket(b, cards, plan, store, block):
    """Split the axes of bucket `b` into outer and inner, and sum up the still inputs."""
    low = plan.axis_offsets[b]
    axis = plan.axis_offsets[b + 1]
    inner = 1
    while axis > low and (inner == 1 or inner * cards[plan.axes[axis - 1]] <= BLOCK):
        axis -= 1
        inner *= cards[plan.axes[axis]]
    outer = 1
    for a in range(low, axis):
        outer *= cards[plan.axes[a]]
        block.digits[a - low] = 0
    block.still[:inner] = 0.0
    moving = 0
    for i in range(plan.input_offsets[b], plan.input_offsets[b + 1]):
        row = i - plan.input_offsets[b]
        _places(i, b, cards, plan, axis, inner, block.places[row])
        still = True
        for a in range(low, axis):
            still = still and plan.strides[plan.stride_offsets[i] + a - low] == 0
        if still:
            for k in range(inner):
                block.still[k] += store[plan.inputs[i] + block.places[row, k]]
        else:
            block.moving[moving] = row
            block.bases[moving] = plan.inputs[i]
            moving += 1
    block.split[0] = axis
    block.split[1] = inner
    block.split[2] = outer
    block.split[3] = moving


@inner
def load(store, block):
    """Sum the inputs of the current block into block.table."""
    inner = block.split[1]
    moving = block.split[3]
    for k in range(inner):
        block.table[k] = block.still[k]
    for j in range(moving):
        row, base = block.moving[j], block.bases[j]
        for k in range(inner):
            block.table[k] += store[base + block.places[row, k]]


@inner
def move_on(b, cards, plan, block):
    """Move every moving input on to the next block."""
    low = plan.axis_offsets[b]
    a = block.split[0] - 1
    while a >= low:
        block.digits[a - low] += 1
        turned = block.digits[a - low] == cards[plan.axes[a]]
        back = block.digits[a - low] - 1 if turned else -1
        for j in range(block.split[3]):
            i = plan.input_offsets[b] + block.moving[j]
            step = plan.strides[plan.stride_offsets[i] + a - low]
            block.bases[j] -= step * back
        if not turned:
            return
        block.digits[a - low] = 0
        a -= 1


@inner
def _soft_max(table, k, states, eps):
    """Soft maximum of `states` neighbouring entries."""
    if states == 2 and eps > 0.0:
        a, b = table[k], table[k + 1]
        top, gap = (a, b - a) if a >= b else (b, a - b)
        if top == -np.inf:
            return top
        return top + eps * np.log1p(np.exp(gap / eps))
    top = table[k]
    for x in range(1, states):
        top = max(top, table[k + x])
    if eps == 0.0 or top == -np.inf:
        return top
    total = 0.0
    for x in range(states):
        total += np.exp((table[k + x] - top) / eps)
    return top + eps * np.log(total)


@lean
def forward(cards, eps, plan, tables, potentials, store, block, first, last, value):
    """Eliminate the buckets of the graphs first..last-1; messages go to the store.

    There the potentials go first; those of every graph begin at `tables`.
    """
    for k in range(tables[first], tables[last]):
        store[k] = potentials[k]
    for g in range(first, last):
        value[g] = 0.0
        for b in range(plan.graph_buckets[g], plan.graph_buckets[g + 1]):
            v = plan.variables[b]
            states = cards[v]
            open_bucket(b, cards, plan, store, block)
            out = plan.message_offsets[b]
            for _ in range(block.split[2]):
                load(store, block)
                for k in range(0, block.split[1], states):
                    store[out] = _soft_max(block.table, k, states, eps[v])
                    out += 1
                move_on(b, cards, plan, block)
            if plan.parents[b] < 0:
                value[g] += store[plan.message_offsets[b]]


@inner
def _share(table, k, states, eps, message, belief):
    """Turn `states` entries of a table into beliefs: conditional times separator belief."""
    if belief == 0.0 or message == -np.inf:
        for x in range(states):
            table[k + x] = 0.0
        return
    if eps > 0.0:
        for x in range(states):
            table[k + x] = belief * np.exp((table[k + x] - message) / eps)
        return
    best = k
    for x in range(1, states):
        if table[k + x] > table[best]:
            best = k + x
    for x in range(states):
        table[k + x] = belief if k + x == best else 0.0


@lean
def backward(
    cards, eps, plan, tables, store, beliefs, belief_offsets, block, first, last, marginals
):
    """Beliefs of all factors, in the layout of the store, and marginals of all variables."""
    low, high = plan.graph_buckets[first], plan.graph_buckets[last]
    beliefs[tables[first] : tables[last]] = 0.0
    beliefs[plan.message_offsets[low] : plan.message_offsets[high]] = 0.0
    marginals[belief_offsets[low] : belief_offsets[high]] = 0.0
    total = block.total
    for g in range(first, last):
        for b in range(plan.graph_buckets[g + 1] - 1, plan.graph_buckets[g] - 1, -1):
            v = plan.variables[b]
            states = cards[v]
            message = plan.message_offsets[b]
            if plan.parents[b] < 0:
                beliefs[message] = 1.0
            open_bucket(b, cards, plan, store, block)
            inner = block.split[1]
            total[:inner] = 0.0
            for _ in range(block.split[2]):
                load(store, block)
                for k in range(0, inner, states):
                    _share(block.table, k, states, eps[v], store[message], beliefs[message])
                    message += 1
                spread_moving(block, beliefs)
                move_on(b, cards, plan, block)
            spread_still(b, plan, block, beliefs)
            for k in range(inner):
                marginals[belief_offsets[v] + k % states] += total[k]


@inner
def spread_moving(block, beliefs):
    """Add a block to the total, and give the inputs that change with it their beliefs."""
    for k in range(block.split[1]):
        block.total[k] += block.table[k]
    for j in range(block.split[3]):
        row, base = block.moving[j], block.bases[j]
        for k in range(block.split[1]):
            beliefs[base + block.places[row, k]] += block.table[k]


@inner
def spread_still(b, plan, block, beliefs):
    """Give the inputs that are the same in every block their beliefs, once per bucket."""
    at = 0
    for row in range(plan.input_offsets[b + 1] - plan.input_offsets[b]):
        if at < block.split[3] and block.moving[at] == row:
            at += 1
            continue
        base = plan.inputs[plan.input_offsets[b] + row]
        for k in range(block.split[1]):
            beliefs[base + block.places[row, k]] += block.total[k]


@lean
def decode(cards, eps, plan, store, uniforms, scores, labels):
    """Walk back and give every variable its best state, or one drawn with `uniforms`."""
    for b in range(plan.variables.size - 1, -1, -1):
        v = plan.variables[b]
        _score(b, cards, plan, store, labels, scores)
        labels[v] = choose(scores, cards[v], eps[v], uniforms[v])


@inner
def _score(b, cards, plan, store, labels, scores):
    """Best value of what is left for every state of the variable of bucket `b`, given the rest."""
    low, high = plan.axis_offsets[b], plan.axis_offsets[b + 1]
    states = cards[plan.variables[b]]
    for x in range(states):
        scores[x] = 0.0
    for i in range(plan.input_offsets[b], plan.input_offsets[b + 1]):
        place = plan.inputs[i]
        steps = plan.stride_offsets[i]
        for a in range(low, high - 1):
            place += plan.strides[steps + a - low] * labels[plan.axes[a]]
        step = plan.strides[steps + high - 1 - low]
        for x in range(states):
            scores[x] += store[place + x * step]


@lean
def branch(cards, plan, store, first, stop, scores, labels, losses):
    """Walk back over the buckets stop-1..first at temperature 0, where those behind are labelled.

    What every other state of a variable would cost, with the best of all that follows, goes to the
    row of its bucket in `losses` (buckets, states); the state that is taken gets infinity.
    """
    for b in range(stop - 1, first - 1, -1):
        v = plan.variables[b]
        _score(b, cards, plan, store, labels, scores)
        best = choose(scores, cards[v], 0.0, -1.0)
        labels[v] = best
        for x in range(losses.shape[1]):
            losses[b - first, x] = np.inf
            if x < cards[v] and x != best and scores[x] > -np.inf:
                losses[b - first, x] = scores[best] - scores[x]
