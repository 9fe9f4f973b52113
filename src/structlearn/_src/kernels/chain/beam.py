"""Forward filtering and backward sampling where slices leave few transitions (Van Gael, 2008).

``rows[0]`` are the probabilities to begin in a state, ``rows[1 + j]`` those to follow state ``j``;
a last column, of states not yet seen, is not read. A transition may happen at ``t`` if its
probability is above ``slices[t]``, and then has weight 1: the density of the slice, one over the
probability, cancels it. (The weight that eq. 25 of Zhang, Zhu and Zhang gives it is wrong.)
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner, lean


@inner
def _reach(rows, limit, before, now):
    """now[k] = sum over ``j`` with an open transition to ``k`` of ``before[j]``."""
    K = now.size
    for k in range(K):
        now[k] = 0.0
    for j in range(K):
        f = before[j]
        if f > 0.0:
            for k in range(K):
                now[k] += f if rows[j + 1, k] > limit else 0.0


@inner
def _reach_in_logs(rows, limit, before, now):
    """As `_reach`, of logs: for weights so far apart that the small ones vanish."""
    K = now.size
    for k in range(K):
        now[k] = -np.inf
    for j in range(K):
        f = before[j]
        if f == -np.inf:
            continue
        for k in range(K):
            if rows[j + 1, k] > limit:
                high, low = max(now[k], f), min(now[k], f)
                now[k] = high + np.log1p(np.exp(low - high))


@inner
def _begin(rows, limit, now):
    for k in range(now.size):
        now[k] = 1.0 if rows[0, k] > limit else 0.0


@inner
def _weigh(logs, now):
    """Multiply by the densities and normalise; False if nothing is left."""
    top = -np.inf
    for k in range(now.size):
        if now[k] > 0.0:
            top = max(top, logs[k])
    total = 0.0
    for k in range(now.size):
        if now[k] > 0.0:
            now[k] *= np.exp(logs[k] - top)
            total += now[k]
    if not total > 0.0:
        return False
    for k in range(now.size):
        now[k] /= total
    return True


@inner
def _forward(logs, rows, slices, filtered):
    """Filter one sequence; False if weights vanished on the way."""
    for t in range(slices.size):
        if t == 0:
            _begin(rows, slices[t], filtered[t])
        else:
            _reach(rows, slices[t], filtered[t - 1], filtered[t])
        if not _weigh(logs[t], filtered[t]):
            return False
    return True


@inner
def _forward_in_logs(logs, rows, slices, filtered):
    K = filtered.shape[1]
    for t in range(slices.size):
        now = filtered[t]
        if t == 0:
            for k in range(K):
                now[k] = 0.0 if rows[0, k] > slices[t] else -np.inf
        else:
            _reach_in_logs(rows, slices[t], filtered[t - 1], now)
        top = -np.inf
        for k in range(K):
            now[k] += logs[t, k]
            top = max(top, now[k])
        for k in range(K):
            now[k] -= top


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
def _backward(rows, slices, uniforms, filtered, in_logs, states):
    """Draw the states of a sequence from its last to its first; uses `filtered` up."""
    T, K = filtered.shape
    for t in range(T - 1, -1, -1):
        now = filtered[t]
        closed = -np.inf if in_logs else 0.0
        if t < T - 1:
            after = states[t + 1]
            for k in range(K):
                now[k] = now[k] if rows[k + 1, after] > slices[t + 1] else closed
        if in_logs:
            top = -np.inf
            for k in range(K):
                top = max(top, now[k])
            for k in range(K):
                now[k] = np.exp(now[k] - top)
        states[t] = _draw(now, uniforms[t])


@lean
def draw_paths(logs, rows, slices, uniforms, offsets, first, last, filtered, states):
    """Draw the states of the sequences from `first` to `last` given their slices.

    `logs` (positions, states) are log densities and `uniforms` (positions,) random numbers of the
    positions of these sequences alone; `filtered`, of the shape of `logs`, is a workspace. Returns
    the sum of the log densities along the paths.
    """
    total = 0.0
    low = offsets[first]
    for c in range(first, last):
        start, stop = offsets[c], offsets[c + 1]
        own = logs[start - low : stop - low]
        forward = filtered[start - low : stop - low]
        limits = slices[start:stop]
        path = states[start:stop]
        vanished = not _forward(own, rows, limits, forward)
        if vanished:  # rare: logs cost several times as much
            _forward_in_logs(own, rows, limits, forward)
        _backward(rows, limits, uniforms[start - low : stop - low], forward, vanished, path)
        for t in range(path.size):
            total += own[t, path[t]]
    return total


@lean
def multiply_by_path(states, offsets, rows, first, last, out):
    """Multiply ``out[t]`` by the probability of the transition into position ``t``.

    Of the sequences from `first` to `last`.
    """
    for c in range(first, last):
        row = 0
        for t in range(offsets[c], offsets[c + 1]):
            out[t] *= rows[row, states[t]]
            row = states[t] + 1


@lean
def count(states, offsets, first, last, counts):
    """Add how often each state follows each row, in the sequences from `first` to `last`."""
    for c in range(first, last):
        row = 0
        for t in range(offsets[c], offsets[c + 1]):
            counts[row, states[t]] += 1
            row = states[t] + 1


@lean
def draw_tables(masses, offsets, uniforms, first, tables):
    """Draw how many tables are opened by as many customers as there are `uniforms`.

    The customers of all restaurants and dishes are numbered through, those of a cell from
    ``offsets[cell]`` on, and `first` is the first of them here. Customer ``i`` of a cell opens a
    table with probability mass / (mass + i), with `masses` (cells,).
    """
    last = first + uniforms.size
    for cell in range(masses.size):
        begin = max(offsets[cell], first)
        mass = masses[cell]
        for i in range(begin, min(offsets[cell + 1], last)):
            if uniforms[i - first] * (mass + (i - offsets[cell])) < mass:
                tables[cell] += 1
