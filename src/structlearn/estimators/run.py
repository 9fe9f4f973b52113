"""What only concerns how a fit runs: its parameters, checked."""

from __future__ import annotations

import os
from typing import Any

from structlearn.common import checks
from structlearn.common.errors import ArgumentError
from structlearn.solve.checkpoint import Checkpoint
from structlearn.solve.loop import Callback


def threads(n_jobs: Any) -> int | None:
    """Return the number of threads as other layers take it: None, not -1, for all cores."""
    everything = n_jobs is None or (checks.whole("n_jobs", n_jobs, low=-1) == -1)
    return None if everything else checks.whole("n_jobs", n_jobs, low=1)


def callbacks(given: Any) -> tuple[Callback, ...]:
    """Return the functions to call after every iteration."""
    if not isinstance(given, list | tuple) or not all(map(callable, given)):
        raise ArgumentError(f"callbacks={given!r} must be a list of functions of one event")
    return tuple(given)


def check_run(solver: Any, called: Any, progress: Any, checkpoint: Any) -> None:
    """Refuse what would fail only after the input was read."""
    callbacks(called)
    if isinstance(solver, type):
        raise ArgumentError(
            f"solver={solver.__name__} is a class; give a solver, such as {solver.__name__}()"
        )
    if progress is not None and not callable(progress):
        raise ArgumentError(
            f"progress={progress!r} must be a function of the fraction done and a few words"
        )
    if checkpoint is not None and not isinstance(checkpoint, str | os.PathLike | Checkpoint):
        raise ArgumentError(
            f"checkpoint={checkpoint!r} must be the path of a file, or a Checkpoint"
        )
