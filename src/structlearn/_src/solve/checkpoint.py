"""All of a run in one file, so that a killed one goes on as if nothing had happened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.common.errors import ArgumentError, FormatError, StructlearnError
from structlearn._src.common.history import History
from structlearn._src.common.names import RUN_ONLY
from structlearn._src.common.paths import PathLike
from structlearn._src.files import store
from structlearn._src.learn.objective import Objective
from structlearn._src.learn.world import Elsewhere, fill, leaves
from structlearn._src.solve.base import Report, Solver, State, parameters

SCHEMA = "structlearn.checkpoint/1"

#: Parameters that a restart may change too: how far to go. The solver is compared as it was chosen.
_FREE = RUN_ONLY | {"max_iter", "solver", "tol"}


@dataclass(frozen=True)
class Checkpoint:
    """Where and when a run is saved.

    Parameters
    ----------
    path
        The file. If it exists, the run resumes from it.
    seconds
        Time between two saves.
    iterations
        Number of iterations between two saves, instead of a time.
    problem
        Values that identify this problem, for example the loss and C. A file with other
        values, other examples, another solver or other sizes is rejected. Estimators add their
        parameters, except those that concern only the run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from structlearn import Checkpoint, SequenceLabeler
    >>> X, Y = [[["the"], ["cat"]]], [["D", "N"]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Checkpoint(Path(folder) / "fit.ckpt", iterations=1)
    ...     _ = SequenceLabeler(checkpoint=place, max_iter=2, tol=None).fit(X, Y)  # is killed here
    ...     SequenceLabeler(checkpoint=place, max_iter=4, tol=None).fit(X, Y).n_iter_
    4
    """

    path: PathLike
    seconds: float = 60.0
    iterations: int | None = None
    problem: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.number("seconds", self.seconds, low=0.0)
        if self.iterations is not None:
            checks.integer("iterations", self.iterations, low=1)
        if Path(self.path).is_dir():
            raise ArgumentError(f"{self.path}: the checkpoint is a folder; give a file in it")
        folder = Path(self.path).absolute().parent
        if not folder.is_dir():
            raise ArgumentError(f"{self.path}: there is no folder {folder}; make it first")

    @classmethod
    def of(cls, place: Checkpoint | PathLike, parameters: Mapping[str, Any]) -> Checkpoint:
        """Return where a run is saved, with the parameters that a restart must share.

        Parameters
        ----------
        place
            A checkpoint, or the path of a file.
        parameters
            Parameters of the run by name; those that a restart may change are left out.

        Returns
        -------
        Checkpoint
            The same place, with `problem` filled in.

        Examples
        --------
        >>> Checkpoint.of("fit.ckpt", {"C": 2.0, "max_iter": 100}).problem
        {'C': 2.0}
        """
        mine = place if isinstance(place, Checkpoint) else cls(place)
        facts = {name: x for name, x in parameters.items() if name not in _FREE}
        return replace(mine, problem=facts | dict(mine.problem))

    def due(self, iteration: int, seconds: float) -> bool:
        """Tell whether to save now.

        Parameters
        ----------
        iteration
            Number of the iteration.
        seconds
            Time since the last save.

        Returns
        -------
        bool
            Whether the run is to be saved.

        Examples
        --------
        >>> Checkpoint("fit.ckpt", seconds=60.0).due(iteration=7, seconds=61.0)
        True
        """
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
    facts: dict[str, Any],
    snapshot: Snapshot,
    rng: np.random.Generator,
) -> None:
    """Write everything to the file at once; `facts` are the fingerprint of the run."""
    state = {key: x for key, x in snapshot.state.items() if not key.startswith("_")}
    remembers = "memory" in state
    arrays = dict(leaves(state.pop("memory", None)))
    for key in [key for key, x in state.items() if isinstance(x, Elsewhere)]:
        arrays |= dict(leaves(state.pop(key), f"state.{key}"))
    arrays |= {f"state.{key}": x for key, x in state.items() if isinstance(x, np.ndarray)}
    meta = {
        "fingerprint": facts,
        "state": {key: x for key, x in state.items() if not isinstance(x, np.ndarray)},
        "value": snapshot.value,
        "report": snapshot.report._asdict(),
        "iteration": snapshot.iteration,
        "remembers": remembers,
        "rng": rng.bit_generator.state,
    }
    arrays |= {"best": snapshot.best, "history": snapshot.history.table}
    store.write(checkpoint.path, arrays, meta, SCHEMA)


def load(
    checkpoint: Checkpoint, facts: dict[str, Any], objective: Objective, rng: np.random.Generator
) -> Snapshot | None:
    """Return what the file holds, None if there is none; `rng` goes on from where it stood."""
    if not Path(checkpoint.path).exists():
        return None
    arrays, meta = store.read(checkpoint.path, SCHEMA)
    try:
        if "remembers" not in meta:
            _bring_up_to_date(arrays, meta, objective)
        _compare(checkpoint, meta["fingerprint"], facts)
        rng.bit_generator.state = meta["rng"]
        return _snapshot(arrays, meta, objective)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as reason:
        if isinstance(reason, StructlearnError):
            raise
        raise FormatError(
            f"{checkpoint.path}: the checkpoint in the file is damaged ({reason!r}); remove it to "
            f"start again"
        ) from None


def _snapshot(arrays: store.Arrays, meta: dict[str, Any], objective: Objective) -> Snapshot:
    state = {key[6:]: array for key, array in arrays.items() if key.startswith("state.")}
    if meta["remembers"]:
        state["memory"] = objective.begin()
        fill(state["memory"], arrays)
    return Snapshot(
        state | meta["state"],
        arrays["best"],
        meta["value"],
        Report(**{name: x for name, x in meta["report"].items() if name in Report._fields}),
        History(arrays["history"]),
        meta["iteration"],
    )


def _bring_up_to_date(arrays: store.Arrays, meta: dict[str, Any], objective: Objective) -> None:
    """Rename what the first files called otherwise; inference begins anew where it had messages."""
    if "state.slope" in arrays:
        arrays["state.gradient"] = arrays.pop("state.slope")
    arrays.pop("state.messages", None)
    arrays.update(leaves(objective.begin()))
    meta["report"]["gradient"] = meta["report"].pop("slope")
    meta["remembers"] = True


def fingerprint(checkpoint: Checkpoint, solver: Solver, objective: Objective) -> dict[str, Any]:
    """Facts that must agree between the run that saved and the run that goes on."""
    facts = {
        "n_weights": objective.n_weights,
        "n_examples": objective.n_examples,
        "solver": parameters(solver),
        **checkpoint.problem,
        "data": _digest(objective.data),
    }
    plain: dict[str, Any] = _plain(facts)
    return plain


def _plain(value: Any) -> Any:
    """Return what JSON can say of a fact, the same in every process."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(x) for key, x in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(repr, map(_plain, value)))
    if isinstance(value, list | tuple):
        return [_plain(x) for x in value]
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return type(value).__name__  # the file holds the state that counts
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


def _digest(examples: object) -> str | None:
    """Return the SHA-256 of structure, inputs, labels and weights."""
    if examples is None:
        return None
    found = hashlib.sha256()
    for piece in _pieces(examples):
        found.update(piece)
    return found.hexdigest()


#: What classes of examples were called in the first files, whose digests hold these names.
_FORMER = {"Forbidden": "Bars"}


def _pieces(value: Any) -> Iterator[Any]:
    """Yield all bytes of arrays in records and tuples, each after its type and shape."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}".encode()
        yield np.ascontiguousarray(value).reshape(-1).view(np.uint8)
    elif isinstance(value, tuple) or is_dataclass(value):
        parts = value if isinstance(value, tuple) else _fields(value)
        name = type(value).__name__
        yield f"{_FORMER.get(name, name)}{len(parts)}".encode()
        for part in parts:
            yield from _pieces(part)
    else:
        yield repr(value).encode()


def _fields(record: Any) -> tuple[Any, ...]:
    return tuple(getattr(record, part.name) for part in fields(record))


def _compare(checkpoint: Checkpoint, saved: dict[str, Any], now: dict[str, Any]) -> None:
    names = [name for name in now | saved if now.get(name) != saved.get(name)]
    if names:
        name = names[0]
        raise ArgumentError(
            f"{checkpoint.path}: the checkpoint was saved with {name}={saved.get(name)!r}, but "
            f"this run has {name}={now.get(name)!r}; give another file, or remove this one to "
            f"start again"
        )
