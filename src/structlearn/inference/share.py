"""Divide the graphs of a wiring among threads."""

from __future__ import annotations

from collections.abc import Callable

from structlearn.graph.wiring import Wiring
from structlearn.spread import threads

_WORTH = 20_000  # table entries below which a thread costs more than it brings


def over_graphs(work: Callable[[int, int], None], wiring: Wiring, n_jobs: int | None) -> None:
    """Call ``work(first, last)`` on ranges of graphs that cover them all."""
    entries = wiring.table_offsets[wiring.graph_factors]
    # Several ranges per worker even out graphs that need different numbers of sweeps.
    parts = 1
    if wiring.n_graphs > 1 and entries[-1] > _WORTH:
        count = threads.workers(n_jobs)
        parts = min(count * 8, wiring.n_graphs) if count > 1 else 1
    threads.run(work, threads.split(entries, parts), n_jobs)
