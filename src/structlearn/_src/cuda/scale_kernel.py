"""The gradient of a batch of chains, finished when it is asked for (Triton)."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n", "programs"])
def scale_gradient(
    by_scores, parts, factor, by_edges, by_starts, by_ends, n, programs, K: tl.constexpr,
    COLUMNS: tl.constexpr, ROWS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """Multiply by one factor: n numbers in place, if it is not 1, and the sums of all parts."""
    block = tl.program_id(0)
    times = tl.load(factor)
    WIDTH: tl.constexpr = (K + 2) * K
    first: tl.constexpr = (WIDTH + COLUMNS - 1) // COLUMNS  # programs that add up columns
    if block < first:
        k = block * COLUMNS + tl.arange(0, COLUMNS)
        total = tl.zeros((COLUMNS,), tl.float64)
        for begin in range(0, programs, ROWS):
            row = begin + tl.arange(0, ROWS)
            inside = (row < programs)[:, None] & (k < WIDTH)[None, :]
            place = row.to(tl.int64)[:, None] * WIDTH + k[None, :]
            total += tl.sum(tl.load(parts + place, mask=inside, other=0.0).to(tl.float64), 0)
        total *= times
        tl.store(by_edges + k, total, mask=k < K * K)
        tl.store(by_starts + k - K * K, total, mask=(k >= K * K) & (k < WIDTH - K))
        tl.store(by_ends + k - (WIDTH - K), total, mask=(k >= WIDTH - K) & (k < WIDTH))
    elif times != 1.0:
        i = (block - first).to(tl.int64) * SIZE + tl.arange(0, SIZE)
        here = i < n
        tl.store(by_scores + i, tl.load(by_scores + i, mask=here, other=0.0) * times, mask=here)
