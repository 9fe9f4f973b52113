"""Independent work on a cluster: parts of examples, graphs, and chains of samplers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from structlearn._src.common.checks import generator
from structlearn._src.common.place import Place
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.inference.front import infer_many
from structlearn._src.sample import runner

_PARTS = 4  # for each worker: they even out parts that take longer than others
#: Parameters of estimators that need not travel, or cannot.
_LOCAL = {"callbacks": (), "progress": None, "checkpoint": None, "n_jobs": None}


class PartsPlace(Place, ABC):
    """A place that calls functions on items elsewhere: `map` is all that it must have."""

    @abstractmethod
    def workers(self) -> list[str]:
        """Return who can work."""

    @abstractmethod
    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Call a function on every item, elsewhere; in the order of the items."""

    def _ranges(self, n: int) -> list[tuple[int, int]]:
        """Cut items into parts; none where there are too few to be worth sending."""
        workers = len(self.workers())
        if n < 2 * workers:
            return []
        borders = np.linspace(0, n, min(_PARTS * workers, n) + 1).astype(int).tolist()
        return list(pairwise(borders))

    def over_examples(
        self, function: Callable[..., Any], estimator: Any, X: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Let workers answer for parts of the examples."""
        ranges = self._ranges(len(X)) if isinstance(X, list | tuple | np.ndarray) else []
        if not ranges:
            return function(estimator, X, *args, **kwargs)
        lean = copy(estimator)
        vars(lean).update({name: x for name, x in _LOCAL.items() if hasattr(lean, name)})
        asked = _Method(lean, function.__name__, args, kwargs)
        return _joined(self.map(asked, [X[first:last] for first, last in ranges]))

    def infer_many(
        self,
        function: Callable[..., Any],
        graphs: Any,
        query: str = "marginals",
        *,
        evidence: Any = None,
        **options: Any,
    ) -> Any:
        """Let workers answer for parts of the graphs; each part has a method of its own."""
        whole = isinstance(graphs, list | tuple) and options.get("start") is None
        ranges = self._ranges(len(graphs)) if whole else []
        if not ranges or not (evidence is None or len(evidence) == len(graphs)):
            return function(graphs, query, evidence=evidence, **options)
        options.update({"progress": None, "n_jobs": None})
        given = [None] * len(graphs) if evidence is None else evidence
        parts = [(graphs[i:j], given[i:j]) for i, j in ranges]
        seeds = _seeds(options.pop("random_state", None), len(parts))
        items = [(*part, seed) for part, seed in zip(parts, seeds, strict=True)]
        return _joined(self.map(_Query(query, options), items))

    def run_chains(
        self,
        function: Callable[..., Any],
        sampler: Any,
        chains: Sequence[Any],
        schedule: Any,
        *,
        n_jobs: int | None = 1,
        watch: Watch | None = None,
    ) -> Ending:
        """Let workers advance whole chains; an interrupt leaves them as they were."""
        if len(chains) == 1:
            ended: Ending = function(sampler, chains, schedule, n_jobs=n_jobs, watch=watch)
            return ended
        clock = Watch() if watch is None else watch
        try:
            found = self.map(_Chain(sampler, schedule, clock), chains)
        except KeyboardInterrupt:
            return Ending.INTERRUPTED
        for chain, (after, _) in zip(chains, found, strict=True):
            vars(chain).update(vars(after))
        clock.tell(1.0, f"sweep {schedule.sweeps} of {schedule.sweeps}")
        return next((ended for _, ended in found if ended != Ending.DONE), Ending.DONE)


# ---- what is called there ------------------------------------------------------------------


@dataclass(frozen=True)
class _Method:
    """A method of an estimator, by its name."""

    estimator: Any
    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __call__(self, X: Any) -> Any:
        return getattr(self.estimator, self.name)(X, *self.args, **self.kwargs)


@dataclass(frozen=True)
class _Query:
    """A query about some graphs."""

    query: str
    options: dict[str, Any]

    def __call__(self, item: tuple[Any, Any, Any]) -> Any:
        graphs, evidence, seed = item
        options = self.options | {"random_state": seed}
        return infer_many(graphs, self.query, evidence=evidence, **options)


@dataclass(frozen=True)
class _Chain:
    """All sweeps of one chain."""

    sampler: Any
    schedule: Any
    watch: Watch

    def __call__(self, chain: Any) -> tuple[Any, Ending]:
        ended = runner.run(self.sampler, [chain], self.schedule, n_jobs=None, watch=self.watch)
        return chain, ended


def _seeds(given: Any, n: int) -> list[Any]:
    """Return a seed for each part: with the same one, parts would draw the same numbers."""
    return [None] * n if given is None else generator(given).integers(2**63, size=n).tolist()


def _joined(parts: list[Any]) -> Any:
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    return [answer for part in parts for answer in part]
