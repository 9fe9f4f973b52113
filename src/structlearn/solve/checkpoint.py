"""All of a run in one file, so that a killed one goes on as if nothing had happened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structlearn.common import checks
from structlearn.common.checks import Floats
from structlearn.common.errors import ArgumentError
from structlearn.data import store
from structlearn.data.files import PathLike
from structlearn.objective.base import Objective
from structlearn.solve.base import Report, Solver, State, messages_of, parameters, recall
from structlearn.solve.history import History

SCHEMA = "structlearn.checkpoint/1"


@dataclass(frozen=True)
class Checkpoint:
    """Where and when a run is saved.

    Parameters
    ----------
    path
        The file. If it exists, the run goes on from it.
    seconds
        Time between two saves.
    iterations
        Save every so many iterations instead.
    problem
        Facts that tell this problem from others, for example the loss and C. A file with other
        facts, another solver or other sizes is refused.
    """

    path: PathLike
    seconds: float = 60.0
    iterations: int | None = None
    problem: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.number("seconds", self.seconds, low=0.0)
        if self.iterations is not None:
            checks.whole("iterations", self.iterations, low=1)
        folder = Path(self.path).absolute().parent
        if not folder.is_dir():
            raise ArgumentError(f"{self.path}: there is no folder {folder}; make it first")

    def due(self, iteration: int, seconds: float) -> bool:
        """Tell whether to save, `seconds` after the last time."""
        if self.iterations is not None:
            return iteration % self.iterations == 0
        return seconds >= self.seconds


class Snapshot(NamedTuple):
    """All of a run between two steps."""

    state: State
    best: Floats
    value: float
    report: Report
    history: History
    iteration: int


def save(
    checkpoint: Checkpoint,
    solver: Solver,
    objective: Objective,
    snapshot: Snapshot,
    rng: np.random.Generator,
) -> None:
    """Write everything to the file at once."""
    state = snapshot.state
    arrays = {f"state.{key}": x for key, x in state.items() if isinstance(x, np.ndarray)}
    meta = {
        "fingerprint": _fingerprint(checkpoint, solver, objective),
        "state": {key: x for key, x in state.items() if not isinstance(x, np.ndarray)},
        "value": snapshot.value,
        "report": snapshot.report._asdict(),
        "iteration": snapshot.iteration,
        "rng": rng.bit_generator.state,
    }
    arrays |= {"best": snapshot.best, "history": snapshot.history.table, **messages_of(objective)}
    store.write(checkpoint.path, arrays, meta, SCHEMA)


def load(
    checkpoint: Checkpoint, solver: Solver, objective: Objective, rng: np.random.Generator
) -> Snapshot | None:
    """Return what the file holds, None if there is none; `rng` goes on from where it stood."""
    if not Path(checkpoint.path).exists():
        return None
    arrays, meta = store.read(checkpoint.path, SCHEMA)
    _compare(checkpoint, meta["fingerprint"], _fingerprint(checkpoint, solver, objective))
    rng.bit_generator.state = meta["rng"]
    recall(objective, arrays)
    best, table = arrays["best"], arrays["history"]
    state = {key[6:]: array for key, array in arrays.items() if key.startswith("state.")}
    return Snapshot(
        state | meta["state"],
        best,
        meta["value"],
        Report(**meta["report"]),
        History(table),
        meta["iteration"],
    )


def _fingerprint(checkpoint: Checkpoint, solver: Solver, objective: Objective) -> dict[str, Any]:
    """Facts that must agree between the run that saved and the run that goes on."""
    facts = {
        "n_weights": objective.n_weights,
        "n_examples": objective.n_examples,
        "solver": parameters(solver),
        **checkpoint.problem,
    }
    plain: dict[str, Any] = json.loads(json.dumps(facts, default=repr))
    return plain


def _compare(checkpoint: Checkpoint, saved: dict[str, Any], now: dict[str, Any]) -> None:
    names = [name for name in now | saved if now.get(name) != saved.get(name)]
    if names:
        name = names[0]
        raise ArgumentError(
            f"{checkpoint.path}: the checkpoint was saved with {name}={saved.get(name)!r}, but "
            f"this run has {name}={now.get(name)!r}; give another file, or remove this one to "
            f"start anew"
        )
