"""Iterated conditional modes: change one variable at a time while that helps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices
from structlearn._src.common.watch import Ending, Watch
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import (
    STEEPEST,
    BuiltInInferer,
    Options,
    Problem,
    Result,
    in_graphs,
)
from structlearn._src.inference.beliefs import best_states
from structlearn._src.inference.names import ASSIGNMENTS, Query
from structlearn._src.kernels.graph import local

_BATCH = 2**17  # variables visited, or flips, between two looks at the clock
_SWEEPS = 1000  # limit of a search, which mostly ends after a few


class Climb(NamedTuple):
    """Where a search ended: labels, and per graph the steps taken and whether it was done."""

    labels: Ints
    steps: Ints
    done: Bools


def climb(
    wiring: Wiring, potentials: Floats, labels: Ints, *, steepest: bool = False,
    limit: int = _SWEEPS, n_jobs: int | None = 1, watch: Watch | None = None,
) -> Climb:  # fmt: skip
    """Search from `labels` for some that no change of a single variable improves.

    Never worse than `labels`: fewer broken factors (log potential -inf), or as many and a score
    at least as high. Ends after `limit` sweeps, or as many flips as they would try, and when the
    time of the `watch` is over.
    """
    out = Climb(
        np.array(labels, np.int64),
        np.zeros(wiring.n_graphs, np.int64),
        np.zeros(wiring.n_graphs, np.bool_),
    )
    search = local.steepest if steepest else local.sweeps
    n = max(wiring.n_variables, 1)
    most = limit * n if steepest else limit
    watch = watch or Watch()
    few = most if watch.left == np.inf else max(1, _BATCH // (1 if steepest else n))
    for taken in range(0, most, few):
        _search(search, wiring, potentials, out, min(few, most - taken), n_jobs)
        if out.done.all() or watch.expired:
            break
    return out


def _search(
    search: Any, wiring: Wiring, potentials: Floats, out: Climb, most: int, n_jobs: int | None
) -> None:
    """Go on from where a search stands."""
    steps = np.zeros_like(out.steps)

    def work(first: int, last: int) -> None:
        search(wiring, potentials, out.labels, most, first, last, steps, out.done)

    threads.over_graphs(work, wiring.graph_tables, n_jobs)
    out.steps[:] += steps


def unary_labels(wiring: Wiring, potentials: Floats) -> Ints:
    """Best state of every variable of a `wiring` by the `potentials` of its unary factors alone."""
    unary = np.flatnonzero(wiring.arities == 1)
    entries = block_indices(wiring.table_offsets, unary)
    states = block_indices(wiring.belief_offsets, wiring.scopes[wiring.scope_offsets[unary]])
    scores = np.bincount(states, potentials[entries], wiring.belief_offsets[-1])
    return best_states(wiring, scores.astype(np.float64))


class ICM(BuiltInInferer):
    r"""Iterated conditional modes from several starts.

    Each step moves to

    .. math:: y' = \operatorname{argmax}_{y'} \theta(y'), \qquad
              y' \text{ differs from } y \text{ in at most one variable}

    where that variable is the next in order, or with ``schedule="steepest"`` the one of all
    variables that gains most. The first start is every variable's best state by its own unary
    factors; `restarts` random ones follow, and the best end counts. States that break hard
    constraints are compared by the number of broken factors first.

    References
    ----------
    J. Besag, "On the statistical analysis of dirty pictures", JRSS B 48, 1986.
    """

    name = "icm"
    queries = ASSIGNMENTS

    def objection(self, problem: Problem, query: Query, options: Options) -> str:
        """Refuse what is not a maximum over all variables."""
        if query == Query.MARGINAL_MAP and problem.hidden.any():
            return "ICM cannot sum over hidden variables"
        if problem.eps.any():
            return "ICM maximises over all variables; their temperature must be 0"
        return ""

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Search from all starts and return the best end."""
        search = _Starts(problem, options)
        ended = options.watch.repeat(search.step, options.restarts + 1, search.words)
        value = problem.wiring.score(problem.potentials, search.labels)
        return Result(
            value=value,
            exact=False,
            lower=value,
            labels=search.labels,
            converged=search.done,
            iterations=search.steps,
            ended=ended if ended.early else Ending.DONE if search.done.all() else Ending.LIMIT,
            status="; ".join(search.report(value, ended)),
        )


class _Starts:
    """The best end of every graph so far."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self.wiring = problem.wiring
        self.potentials = problem.potentials
        self.options = options
        self.starts = 0
        n = self.wiring.n_graphs
        self.labels = unary_labels(self.wiring, self.potentials)
        self.score = np.full(n, -np.inf)
        self.broken = np.full(n, np.iinfo(np.int64).max)
        self.done = np.zeros(n, np.bool_)
        self.steps = np.zeros(n, np.int64)

    def step(self) -> bool:
        """Search from one more start."""
        options = self.options
        start = options.rng.integers(self.wiring.cards) if self.starts else self.labels
        end = climb(
            self.wiring, self.potentials, start, steepest=options.schedule == STEEPEST,
            limit=options.max_iter, n_jobs=options.n_jobs, watch=options.watch,
        )  # fmt: skip
        self.keep(end)
        self.starts += 1
        return False

    def keep(self, end: Climb) -> None:
        """Take over the graphs that came out better."""
        score, broken = self.wiring.energy(self.potentials, end.labels)
        level = (broken == self.broken) & (score > self.score)
        better = (broken < self.broken) | level
        self.labels = np.where(better[self.wiring.variable_graphs], end.labels, self.labels)
        for mine, new in (
            (self.score, score), (self.broken, broken), (self.done, end.done),
            (self.steps, end.steps),
        ):  # fmt: skip
            mine[better] = new[better]

    def words(self) -> str:
        """Say how far the search is."""
        return f"{self.starts} of {self.options.restarts + 1} starts"

    def report(self, value: Floats, ended: Ending) -> Iterable[str]:
        """Say how it went, part by part."""
        starts = f"best of {self.starts} starts" if self.starts != 1 else "one start"
        if not np.isfinite(value).all():
            yield f"no assignment free of forbidden combinations found{in_graphs(value == -np.inf)}"
        if self.done.all():
            yield f"local optimum under single flips, {starts}"
        else:
            yield f"stopped short of a local optimum{in_graphs(~self.done)}, {starts}"
        if ended.early:
            yield ended.sentence
