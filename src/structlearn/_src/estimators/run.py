"""What only concerns how a fit runs: threads and callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structlearn._src.common import checks
from structlearn._src.common.errors import ArgumentError

if TYPE_CHECKING:
    from structlearn._src.solve.loop import Callback


def threads(n_jobs: Any) -> int | None:
    """Return the number of threads as other layers take it: None, not -1, for all cores."""
    everything = n_jobs is None or (checks.integer("n_jobs", n_jobs, low=-1) == -1)
    return None if everything else checks.integer("n_jobs", n_jobs, low=1)


def callbacks(given: Any) -> tuple[Callback, ...]:
    """Return the functions to call after every iteration."""
    if not isinstance(given, list | tuple) or not all(map(callable, given)):
        raise ArgumentError(f"callbacks={given!r} must be a list of functions of one event")
    return tuple(given)
