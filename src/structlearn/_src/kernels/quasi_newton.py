r"""Directions and memory of quasi-Newton steps, by threads that meet inside the kernels.

Steps :math:`s_i` and changes of the gradient :math:`y_i` are the rows of two matrices that are far
larger than any cache, so what counts is how often they are read. Weights are cut into ranges, and
these into blocks that stay in the cache of one core with all their rows. Sums are kept by range and
added up in their order, so that the number of threads makes no difference to the result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import publish, task, withdraw
from structlearn._src.kernels.team import done, take, wait

_BLOCK = 8192  # weights: with ten rows 640 kilobytes, which the second-level cache of a core holds


class Pairs(NamedTuple):
    """The last pairs, in a ring."""

    steps: np.ndarray  #: (memory, weights)
    changes: np.ndarray  #: (memory, weights)
    dots: np.ndarray  #: (memory, memory) products of steps and changes that are no older


class Ends(NamedTuple):
    """Where a step begins and ends: weights and gradient of both."""

    weights: np.ndarray
    gradient: np.ndarray
    next_weights: np.ndarray
    next_gradient: np.ndarray


@inner
def _dots(a, b, vector):
    """Products of two rows with a vector: for one alone memory is slower; in sums side by side."""
    n = vector.size - vector.size % 4
    s0 = s1 = s2 = s3 = 0.0
    t0 = t1 = t2 = t3 = 0.0
    for k in range(0, n, 4):
        s0 += a[k] * vector[k]
        s1 += a[k + 1] * vector[k + 1]
        s2 += a[k + 2] * vector[k + 2]
        s3 += a[k + 3] * vector[k + 3]
        t0 += b[k] * vector[k]
        t1 += b[k + 1] * vector[k + 1]
        t2 += b[k + 2] * vector[k + 2]
        t3 += b[k + 3] * vector[k + 3]
    s, t = (s0 + s1) + (s2 + s3), (t0 + t1) + (t2 + t3)
    for k in range(n, vector.size):
        s += a[k] * vector[k]
        t += b[k] * vector[k]
    return s, t


@inner
def _add_products(rows, n, first, last, vector, sums):
    """Add products of rows with a vector."""
    for i in range(0, n, 2):
        j = min(i + 1, n - 1)
        one, other = _dots(rows[i, first:last], rows[j, first:last], vector)
        sums[i] += one
        if j > i:
            sums[j] += other


@inner
def _subtract_rows(rows, factors, first, last, out):
    """Subtract multiples of rows."""
    n = factors.size
    for i in range(0, n, 2):
        j = min(i + 1, n - 1)
        a, b = rows[i, first:last], rows[j, first:last]
        x, y = factors[i], factors[j] if j > i else 0.0
        for k in range(out.size):
            out[k] -= x * a[k] + y * b[k]


@inner
def _add_up(sums, out):
    """Sums over all ranges, in their order."""
    for i in range(out.size):
        out[i] = 0.0
    for r in range(sums.shape[0]):
        for i in range(out.size):
            out[i] += sums[r, i]


@inner
def _project(pairs, n, newest, gradient, inverse, low, high, sums):
    """Products of the steps with the gradient; the last sum is the newest change in its scale."""
    sums[:] = 0.0
    for first in range(low, high, _BLOCK):
        last = min(first + _BLOCK, high)
        own = gradient[first:last]
        _add_products(pairs.steps, n, first, last, own, sums)
        change = pairs.changes[newest, first:last]
        if inverse.size == 0:
            sums[-1] += _dots(change, change, change)[0]
        else:
            sums[-1] += _weighted_square(change, inverse[first:last])


@inner
def _weighted_square(vector, scales):
    total = 0.0
    for k in range(vector.size):
        total += scales[k] * vector[k] * vector[k]
    return total


@inner
def _turn(pairs, back, gradient, scale, inverse, low, high, sums, out):
    """Apply what `back` leaves and the first inverse Hessian; products of the changes with that."""
    sums[:] = 0.0
    for first in range(low, high, _BLOCK):
        last = min(first + _BLOCK, high)
        own, given = out[first:last], gradient[first:last]
        for k in range(own.size):
            own[k] = given[k]
        _subtract_rows(pairs.changes, back, first, last, own)
        _scale(scale, inverse, first, last, own)
        _add_products(pairs.changes, back.size, first, last, own, sums)


@inner
def _scale(scale, inverse, first, last, out):
    if inverse.size == 0:
        for k in range(out.size):
            out[k] *= scale
    else:
        own = inverse[first:last]
        for k in range(out.size):
            out[k] *= scale * own[k]


@inner
def _finish(pairs, forth, low, high, out):
    """Add the steps, and turn round."""
    for first in range(low, high, _BLOCK):
        last = min(first + _BLOCK, high)
        own = out[first:last]
        for k in range(own.size):
            own[k] = -own[k]
        _subtract_rows(pairs.steps, forth, first, last, own)


@inner
def _newest_first(along, dots, count, back):
    """How much of each change is taken off the gradient."""
    n = back.size
    for i in range(n):
        back[i] = 0.0
    for j in range(n):
        i = (count - 1 - j) % n
        total = along[i]
        for m in range(n):
            total -= dots[i, m] * back[m]
        back[i] = total / dots[i, i]


@inner
def _oldest_first(along, dots, count, back, forth):
    """How much of each step is added."""
    n = back.size
    for i in range(n):
        forth[i] = 0.0
    for j in range(n):
        i = (count + j) % n
        total = along[i]
        for m in range(n):
            total += forth[m] * dots[m, i]
        forth[i] = back[i] - total / dots[i, i]


@inner
def find_direction(number, board, count, pairs, gradient, inverse, sums, out, spaces):
    r"""Write :math:`-H g` for the inverse Hessian :math:`H` that fits the last pairs.

    `count` is the number of pairs so far, and `inverse` the diagonal of the first inverse Hessian
    up to a factor, empty for the identity. Workspace of all are `sums` (2, ranges, n), of each its
    row of `spaces` (threads, 3 or more, n), where n is at least 3 and above the memory. Steps are
    read twice and changes once: their products are taken while their block is in the cache.
    """
    work = spaces[number]
    memory, size = pairs.steps.shape
    n = min(count, memory)
    newest = (count - 1) % memory
    ranges = sums.shape[1]
    along, back, forth = work[0], work[1, :n], work[2, :n]
    r = take(board, 0)
    while r < ranges:
        part = size * r // ranges, size * (r + 1) // ranges
        _project(pairs, n, newest, gradient, inverse, *part, sums[0, r])
        done(board, 0)
        r = take(board, 0)
    wait(board, 0, ranges)

    _add_up(sums[0], along)
    _newest_first(along, pairs.dots, count, back)
    scale = pairs.dots[newest, newest] / along[-1]
    r = take(board, 1)
    while r < ranges:
        part = size * r // ranges, size * (r + 1) // ranges
        _turn(pairs, back, gradient, scale, inverse, *part, sums[1, r], out)
        done(board, 1)
        r = take(board, 1)
    wait(board, 1, ranges)

    _add_up(sums[1], along)
    _oldest_first(along, pairs.dots, count, back, forth)
    r = take(board, 2)
    while r < ranges:
        _finish(pairs, forth, size * r // ranges, size * (r + 1) // ranges, out)
        done(board, 2)
        r = take(board, 2)


@lean
def find_direction_in_threads(box, helpers, *given):
    """Run `find_direction` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(find_direction, given))
    find_direction(0, *given)
    withdraw(box, open_)


@inner
def _measure(ends, low, high, sums):
    """Products of a step and the change of the gradient with each other and themselves."""
    bend = step = change = 0.0
    for k in range(low, high):
        s = ends.next_weights[k] - ends.weights[k]
        y = ends.next_gradient[k] - ends.gradient[k]
        bend += s * y
        step += s * s
        change += y * y
    sums[0] = bend
    sums[1] = step
    sums[2] = change


@inner
def _store(pairs, n, place, ends, low, high, sums):
    """Store a step and a change; products of all steps with the change."""
    sums[:] = 0.0
    for first in range(low, high, _BLOCK):
        last = min(first + _BLOCK, high)
        step, change = pairs.steps[place, first:last], pairs.changes[place, first:last]
        _subtract(ends.next_weights[first:last], ends.weights[first:last], step)
        _subtract(ends.next_gradient[first:last], ends.gradient[first:last], change)
        _add_products(pairs.steps, n, first, last, change, sums)


@inner
def _subtract(a, b, out):
    """Write the difference of two vectors."""
    for k in range(out.size):
        out[k] = a[k] - b[k]


@inner
def remember(number, board, count, pairs, ends, flat, sums, spaces):
    """Put a step in the place of the oldest one, unless it shows no positive curvature.

    Workspaces are as above; returns whether the step was stored. Then ``sums[1]`` has its products
    with all steps, by range.
    """
    work = spaces[number]
    memory, size = pairs.steps.shape
    ranges = sums.shape[1]
    r = take(board, 0)
    while r < ranges:
        _measure(ends, size * r // ranges, size * (r + 1) // ranges, sums[0, r])
        done(board, 0)
        r = take(board, 0)
    wait(board, 0, ranges)

    totals = work[0, :3]
    _add_up(sums[0], totals)
    if not totals[0] > flat * np.sqrt(totals[1]) * np.sqrt(totals[2]):
        return False
    n, place = min(count + 1, memory), count % memory
    r = take(board, 1)
    while r < ranges:
        part = size * r // ranges, size * (r + 1) // ranges
        _store(pairs, n, place, ends, *part, sums[1, r])
        done(board, 1)
        r = take(board, 1)
    return True


@lean
def remember_in_threads(box, helpers, *given):
    """Run `remember` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(remember, given))
    stored = remember(0, *given)
    withdraw(box, open_)
    return stored
