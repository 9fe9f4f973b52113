"""Long vectors of solvers, range by range, in threads: see `kernels/launch`."""

from __future__ import annotations

from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import publish, task, withdraw
from structlearn._src.kernels.team import take


@inner
def _dot(a, b, first, last):
    """Dot product of a range, in eight sums side by side: for one alone memory would wait."""
    end = last - (last - first) % 8
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
    for k in range(first, end, 8):
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
        s4 += a[k + 4] * b[k + 4]
        s5 += a[k + 5] * b[k + 5]
        s6 += a[k + 6] * b[k + 6]
        s7 += a[k + 7] * b[k + 7]
    total = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))
    for k in range(end, last):
        total += a[k] * b[k]
    return total


@inner
def dots(number, board, ranges, a, b, sums):
    """Write the dot product of every range to `sums`."""
    r = take(board, 0)
    while r < ranges.size - 1:
        sums[r] = _dot(a, b, ranges[r], ranges[r + 1])
        r = take(board, 0)


@lean
def dots_in_threads(box, helpers, *given):
    """Run `dots` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(dots, given))
    dots(0, *given)
    withdraw(box, open_)


@inner
def add_multiple(number, board, ranges, start, factor, more, out):
    """Write the sum of one vector and a multiple of another; `out` may be either of them."""
    r = take(board, 0)
    while r < ranges.size - 1:
        for k in range(ranges[r], ranges[r + 1]):
            out[k] = start[k] + factor * more[k]
        r = take(board, 0)


@lean
def add_multiple_in_threads(box, helpers, *given):
    """Run `add_multiple` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(add_multiple, given))
    add_multiple(0, *given)
    withdraw(box, open_)
