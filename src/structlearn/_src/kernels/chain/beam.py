"""Forward filtering and backward sampling where slices leave few transitions (Van Gael, 2008).

``rows[0]`` are the probabilities to begin in a state, ``rows[1 + j]`` those to follow state ``j``;
a last column, of states not yet seen, is not read. A transition may happen at ``t`` if its
probability is above ``slices[t]``, and then has weight 1: the density of the slice, one over the
probability, cancels it. (The weight that eq. 25 of Zhang, Zhu and Zhang gives it is wrong.)
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.common.threads import worker_arrays
from structlearn._src.kernels.draw.density import load, weigh
from structlearn._src.kernels.jit import inline, inner, lean
from structlearn._src.kernels.lanes import LANES, lowest

_SHIFT = 5  # marks are kept as the bits of numbers, 2 to the power of this in each
_LAST = 2**_SHIFT - 1  # of these bits


class Transitions(NamedTuple):
    """Probabilities, and the states that follow each row: the likeliest comes first."""

    rows: np.ndarray  #: (states + 1, states + 1)
    order: np.ndarray  #: (states + 1, states)
    sorted: np.ndarray  #: (states + 1, states) probabilities in this order


class BeamWorkspace(NamedTuple):
    """Scratch space for the longest sequence: the states of every position that can be reached."""

    starts: np.ndarray  #: (positions + 1,) where those of every position begin
    reached: np.ndarray  #: (positions * states,) in their order
    weights: np.ndarray  #: (positions * states,)
    logs: np.ndarray  #: (positions * states,) log densities
    now: np.ndarray  #: (states,) weights of the states of one position
    marks: np.ndarray  #: (states / 32, rounded up) a bit for each state that is reached
    block: np.ndarray  #: (states,) the positions whose densities are known begin here
    known: np.ndarray  #: (states, LANES)
    uniforms: np.ndarray  #: (positions of sequences that are drawn together,)


def sorted_transitions(rows: Floats) -> Transitions:
    """Return transitions with these probabilities."""
    order = np.ascontiguousarray(np.argsort(rows[:, :-1], axis=1)[:, ::-1])
    return Transitions(rows, order, np.take_along_axis(rows, order, axis=1))


def beam_workspace(longest: int, largest: int, states: int) -> BeamWorkspace:
    """Return workspace for sequences of up to `longest` positions, and `largest` together.

    It lies apart from all else; what is never written to takes no memory.
    """
    size = longest * states
    starts, reached, weights, logs, now, marks, block, known, uniforms = worker_arrays(
        (longest + 1,), (size,), (size,), (size,), (states,), ((states + _LAST) >> _SHIFT,),
        (states,), (states, LANES), (largest,),
    )  # fmt: skip
    return BeamWorkspace(
        starts.view(np.int64), reached.view(np.int64), weights, logs, now, marks.view(np.int64),
        block.view(np.int64), known, uniforms,
    )  # fmt: skip


@inline
def _reach(transitions, row, limit, weight, in_logs, workspace):
    """Add a weight to all states behind open transitions, and mark these."""
    now = workspace.now
    marks = workspace.marks
    likeliest = transitions.sorted[row]
    order = transitions.order[row]
    for i in range(order.size):
        if not likeliest[i] > limit:
            break
        k = order[i]
        marks[k >> _SHIFT] |= 1 << (k & _LAST)
        if not in_logs:
            now[k] += weight
        else:
            high, low = max(now[k], weight), min(now[k], weight)
            now[k] = high + np.log1p(np.exp(low - high))


@inline
def _step(transitions, limit, t, in_logs, workspace):
    """Find weights of the states that are reached at position `t`: in `now`, and `marks`."""
    if t == 0:
        _reach(transitions, 0, limit, 0.0 if in_logs else 1.0, in_logs, workspace)
        return
    nothing = -np.inf if in_logs else 0.0
    for e in range(workspace.starts[t - 1], workspace.starts[t]):
        weight = workspace.weights[e]
        if weight > nothing:
            _reach(transitions, workspace.reached[e] + 1, limit, weight, in_logs, workspace)


@inline
def _list(begin, workspace):
    """List the states that are marked, and unmark them; return the end of the list."""
    stop = begin
    for i in range(workspace.marks.size):
        bits = workspace.marks[i]
        workspace.marks[i] = 0
        while bits != 0:
            workspace.reached[stop] = (i << _SHIFT) + lowest(bits)
            bits &= bits - 1
            stop += 1
    return stop


@inline
def _weigh(begin, stop, top, workspace):
    """Multiply by the densities and normalise; False if nothing is left."""
    weights = workspace.weights[begin:stop]
    total = 0.0
    for e in range(weights.size):
        k = workspace.reached[begin + e]
        weights[e] = workspace.now[k] * np.exp(workspace.logs[begin + e] - top)
        total += weights[e]
        workspace.now[k] = 0.0
    if not total > 0.0:
        return False
    for e in range(weights.size):
        weights[e] /= total
    return True


@inline
def _weigh_in_logs(begin, stop, workspace):
    top = -np.inf
    for e in range(begin, stop):
        k = workspace.reached[e]
        workspace.weights[e] = workspace.now[k] + workspace.logs[e]
        workspace.now[k] = -np.inf
        top = max(top, workspace.weights[e])
    for e in range(begin, stop):
        workspace.weights[e] -= top


@inner
def _forward(densities, transitions, slices, start, in_logs, workspace, lanes):
    """Filter one sequence, from position `start` on; False if weights vanished on the way.

    Densities of a state are found for the positions of a block when the first of them is reached.
    """
    workspace.marks[:] = 0
    workspace.now[:] = -np.inf if in_logs else 0.0
    workspace.starts[0] = 0
    for t in range(slices.size):
        b = t % LANES
        first = start + t - b
        if b == 0:
            n = min(LANES, slices.size - t)
            load(densities, first, n, lanes)
        begin = workspace.starts[t]
        _step(transitions, slices[t], t, in_logs, workspace)
        stop = _list(begin, workspace)
        workspace.starts[t + 1] = stop
        top = -np.inf
        for e in range(begin, stop):
            k = workspace.reached[e]
            if workspace.block[k] != first:
                workspace.block[k] = first
                weigh(densities, first, n, k, lanes, workspace.known[k])
            log = workspace.known[k, b]
            workspace.logs[e] = log
            top = log if log > top else top
        if in_logs:
            _weigh_in_logs(begin, stop, workspace)
        elif not _weigh(begin, stop, top, workspace):
            return False
    return True


@inner
def _draw(weights, uniform):
    """Draw an index by weights that need not sum to 1."""
    total = 0.0
    for k in range(weights.size):
        total += weights[k]
    left = uniform * total
    chosen = 0
    for k in range(weights.size):
        if weights[k] > 0.0:
            chosen = k
            left -= weights[k]
            if left < 0.0:
                break
    return chosen


@inner
def _backward(rows, slices, uniforms, in_logs, workspace, states):
    """Draw the states of a sequence from its last to its first; return their log densities."""
    found = 0.0
    for t in range(states.size - 1, -1, -1):
        begin = workspace.starts[t]
        reached = workspace.reached[begin : workspace.starts[t + 1]]
        weights = workspace.weights[begin : workspace.starts[t + 1]]
        if t < states.size - 1:
            after = states[t + 1]
            for e in range(reached.size):
                if not rows[reached[e] + 1, after] > slices[t + 1]:
                    weights[e] = -np.inf if in_logs else 0.0
        if in_logs:
            top = -np.inf
            for e in range(reached.size):
                top = max(top, weights[e])
            for e in range(reached.size):
                weights[e] = np.exp(weights[e] - top)
        chosen = _draw(weights, uniforms[t])
        states[t] = reached[chosen]
        found += workspace.logs[begin + chosen]
    return found


@inner
def draw_paths(
    densities, transitions, slices, uniforms, offsets, first, last, workspace, lanes, states, counts
):
    """Draw the states of the sequences from `first` to `last` given their slices.

    `uniforms` (positions,) are random numbers of the positions of these sequences alone. Adds to
    `counts` how often each state follows each row; returns the sum of log densities along paths.
    """
    total = 0.0
    low = offsets[first]
    workspace.block[:] = -1
    for c in range(first, last):
        start, stop = offsets[c], offsets[c + 1]
        limits = slices[start:stop]
        vanished = not _forward(densities, transitions, limits, start, False, workspace, lanes)
        if vanished:  # rare: logs cost several times as much
            _forward(densities, transitions, limits, start, True, workspace, lanes)
        own = uniforms[start - low : stop - low]
        path = states[start:stop]
        total += _backward(transitions.rows, limits, own, vanished, workspace, path)
    count(states, offsets, first, last, counts)
    return total


@inner
def cut(states, offsets, rows, first, last, least, out):
    """Multiply ``out[t]``, at least `least`, by the probability of the transition into position t.

    Of the sequences from `first` to `last`; returns the smallest product.
    """
    smallest = np.inf
    for c in range(first, last):
        row = 0
        for t in range(offsets[c], offsets[c + 1]):
            out[t] = max(out[t], least) * rows[row, states[t]]
            smallest = min(smallest, out[t])
            row = states[t] + 1
    return smallest


@lean
def count(states, offsets, first, last, counts):
    """Add how often each state follows each row, in the sequences from `first` to `last`."""
    for c in range(first, last):
        row = 0
        for t in range(offsets[c], offsets[c + 1]):
            counts[row, states[t]] += 1
            row = states[t] + 1


@inline
def _log_cell(mass, count):
    """Log probability of so many customers of one dish, but for a factor of the restaurant."""
    return math.lgamma(mass + count) - math.lgamma(mass) if count > 0 else 0.0


@lean
def log_urns(counts, masses, alpha, states):
    """Log probability of the transitions from and to some states, probabilities integrated out."""
    total = 0.0
    for row in range(counts.shape[0]):
        own = False
        for m in range(states.size):
            own = own or states[m] == row - 1
        if own:
            visits = 0
            for k in range(masses.size):
                visits += counts[row, k]
                total += _log_cell(masses[k], counts[row, k])
            total += math.lgamma(alpha) - math.lgamma(alpha + visits)
        else:
            for m in range(states.size):
                total += _log_cell(masses[states[m]], counts[row, states[m]])
    return total


@lean
def draw_tables(masses, counts, uniforms, place, tables):
    """Draw how many tables the customers of every cell open; `counts` says how many these are.

    Customer ``i`` of a cell opens a table with probability mass / (mass + i), with `masses`
    (states,) of the columns. After each that might, those are skipped at once that would not even
    with the probability of the next one. Goes on from a `place`, cell and customer, and writes it
    down; returns whether the random numbers were enough.
    """
    used = 0
    i = place[1]
    for cell in range(place[0], counts.size):
        mass = masses[cell % masses.size]
        if i == 0 and counts[cell] > 0:
            tables[cell] += 1
            i = 1
        while i < counts[cell]:
            if used + 2 > uniforms.size:
                place[0] = cell
                place[1] = i
                return False
            most = mass + i
            skipped = np.log(uniforms[used]) / np.log1p(-mass / most)
            used += 2
            if not skipped < counts[cell] - i:
                break
            i += int(skipped)
            if uniforms[used - 1] * (mass + i) < most:
                tables[cell] += 1
            i += 1
        i = 0
    return True
