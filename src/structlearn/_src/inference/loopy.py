"""Belief propagation: exact on forests, approximate elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.common.watch import Ending
from structlearn._src.inference.base import (
    BuiltInInferer,
    Options,
    Problem,
    Result,
    exceeds,
    in_graphs,
    read_exactly,
)
from structlearn._src.inference.beliefs import belief_distance, best_states
from structlearn._src.inference.messenger import Messenger, make_messenger
from structlearn._src.inference.names import ASSIGNMENTS, Query

#: Queries that messages answer: all but samples.
BY_MESSAGES = (Query.PARTITION, Query.MARGINALS, *ASSIGNMENTS)
APART = 1e-3  # difference of beliefs above which two runs count as different answers
_AT_REST = 1e-9  # change below which messages in a forest are exact
_COOLING = (1.0, 0.3, 0.1)  # temperatures of the outputs on the way to 0, per hidden one
_COOLING_SWEEPS = 10  # at each of them: a start need not be at rest
_NORMALS = 2**18  # random numbers that one thread draws: some milliseconds
_PATIENCE = 30  # undamped sweeps before damping sets in


class TreeInference(BuiltInInferer):
    """Two passes over a forest: exact for any arity, at one temperature."""

    name = "tree"
    one_temperature = True

    def objection(self, problem: Problem, query: Query, options: Options) -> str:
        """Refuse graphs with cycles."""
        return "" if problem.wiring.forests().all() else "the graph has a cycle"

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Answer exactly."""
        messenger = Messenger(problem, n_jobs=options.n_jobs)
        messenger.run(1, np.inf)
        if problem.temperature == 0:  # all is about the one assignment found
            _, value, beliefs, factors = messenger.best()
        else:
            value, beliefs, factors = messenger.value(options.factor_marginals)
        found = read_exactly(problem, query, options, lambda: (beliefs, factors), messenger.decode)
        return Result.exactly(value, "exact on a forest", **found)


class BeliefPropagation(BuiltInInferer):
    r"""Loopy belief propagation at any temperatures.

    Sum-product for "partition" and "marginals", max-product for "map", mixed-product for
    "marginal_map" (outputs at temperature 0, hidden variables at 1). The value is the Bethe
    approximation

    .. math:: \langle\theta,\tau\rangle + \sum_i \epsilon_i H(\tau_i) - \sum_f w_f I(\tau_f).

    Where outputs are maximised over sums, the first run begins with the messages of warmer
    outputs, cooled step by step: that leads to far better fixed points than any other start.
    Runs from `restarts` random messages follow the first; if they end elsewhere, the status
    says so and the converged run of largest value counts.

    References
    ----------
    Q. Liu and A. Ihler, "Variational algorithms for marginal MAP", JMLR 14, 2013.
    """

    name = "bp"
    queries = BY_MESSAGES

    def objection(self, problem: Problem, query: Query, options: Options) -> str:
        """Refuse marginals that the messages do not determine."""
        if query == Query.MARGINALS and not problem.uniform and problem.eps_hidden == 0.0:
            # A maximiser for every output state: its spread is lost in the limit.
            return (
                "messages at temperature 0 of the hidden variables do not tell their marginals "
                "when the outputs are warmer; use a small temperature such as 0.01 instead"
            )
        return ""

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Pass messages until they rest."""
        run = MessageRuns(problem, options, appearance=None, restarts=options.restarts)
        result = run.result(query)
        # Damped messages may look at rest, as probabilities near 0 or 1, while they still move.
        resting = run.messenger.residual.max(initial=0.0) <= _AT_REST
        result.exact = run.exact and run.messenger.damping == 0.0 and bool(resting)
        if result.exact and problem.temperature == 0:
            _, result.value, result.beliefs, result.factor_beliefs = run.messenger.best()
        if result.exact:
            result.lower = result.upper = result.value
        return result


def cooled(problem: Problem, options: Options, appearance: Floats | None = None) -> Floats | None:
    """Messages to begin with: those of warmer outputs if these are (nearly) maximised over sums."""
    start: Floats | None = None
    if problem.uniform or problem.eps_output >= _COOLING[-1] * problem.eps_hidden:
        return start
    for share in _COOLING:
        warm = replace(problem, eps_output=share * problem.eps_hidden)
        messenger = make_messenger(
            warm, appearance=appearance, damping=0.3, start=start, n_jobs=options.n_jobs
        )
        messenger.run(min(_COOLING_SWEEPS, options.max_iter), 1e-3, options.watch)
        start = messenger.messages
        if options.watch.expired:
            break
    return start


def normals(
    rng: np.random.Generator, count: int, n_jobs: int | None, deviation: float = 1.0
) -> Floats:
    """Draw many normal numbers around 0, in ranges that have generators of their own."""
    if count <= _NORMALS:
        return rng.standard_normal(count) * deviation
    out = np.empty(count)
    seeds = rng.integers(2**63, size=1 + count // _NORMALS)

    def work(first: int, last: int) -> None:
        for i in range(first, last):
            part = out[i * _NORMALS : (i + 1) * _NORMALS]
            np.random.default_rng(seeds[i]).standard_normal(out=part)
            part *= deviation

    threads.run(work, [(i, i + 1) for i in range(len(seeds))], n_jobs)
    return out


class MessageRuns:
    """A first run of messages, and for comparison runs from random ones."""

    def __init__(
        self, problem: Problem, options: Options, appearance: Floats | None, restarts: int
    ) -> None:
        self.problem = problem
        self.options = options
        self.apart = np.zeros(problem.wiring.n_graphs)
        self.others = 0
        start = cooled(problem, options, appearance) if options.start is None else options.start
        make = partial(
            make_messenger, problem, appearance=appearance, schedule=options.schedule,
            n_jobs=options.n_jobs,
        )  # fmt: skip
        self.messenger = make(start=start)
        #: Whether messages that rest are the answer.
        self.exact = bool(problem.uniform and self.messenger.plan.forests.all())
        self.ended = self._settle(self.messenger)
        for _ in range(0 if self.exact else restarts):
            if self.ended.early:
                break
            size = max(problem.eps.max(initial=0.0), 0.1)
            count = len(self.messenger.messages)
            noise = normals(options.rng, count, options.n_jobs, size)
            other = make(start=noise, plan=self.messenger.plan)
            self.ended = self._settle(other)
            self._compare(other)
        if not self.ended.early:  # of the runs that count
            self.ended = Ending.DONE if self.messenger.done.all() else Ending.LIMIT

    def _settle(self, messenger: Messenger) -> Ending:
        """Run with more and more damping, unless the user chose one."""
        ended = Ending.LIMIT
        for sweeps, damping in self._stages():
            messenger.damping = damping
            ended = messenger.run(sweeps, self.options.tol, self.options.watch)
            if ended != Ending.LIMIT:
                break
        messenger.close()  # the next run may use its memory
        return ended

    def _stages(self) -> Iterator[tuple[int, float]]:
        left = self.options.max_iter
        options = self.options
        if options.damping is not None:
            yield left, options.damping
            return
        first = 0.5 if options.schedule == "flooding" else 0.0
        if (self.problem.eps == 0).any():
            first = max(first, 0.3)
        if self.exact:
            first = 0.0  # messages rest by themselves
        for sweeps, damping in ((_PATIENCE, first), (200, max(first, 0.3)), (left, 0.6)):
            if left > 0:
                yield min(sweeps, left), damping
                left -= sweeps

    def _compare(self, other: Messenger) -> None:
        """Note how far two runs ended apart; keep the better one of each graph."""
        mine = self.messenger
        value, beliefs, _ = mine.value(self.options.factor_marginals)
        other_value, other_beliefs, _ = other.value()
        distance = belief_distance(self.problem.wiring, beliefs, other_beliefs, self.options.n_jobs)
        self.apart = np.maximum(self.apart, distance)
        self.others += 1
        self._take(other, other.done & (~mine.done | exceeds(other_value, value, 1e-9)))

    def _take(self, other: Messenger, better: Bools) -> None:
        if not better.any():
            return
        self.messenger.found = None
        wiring = self.problem.wiring
        starts = wiring.message_offsets[wiring.scope_offsets[wiring.graph_factors]]
        mine = self.messenger.messages

        def work(first: int, last: int) -> None:
            part = slice(starts[first], starts[last])
            chosen = np.repeat(better[first:last], np.diff(starts[first : last + 1]))
            np.copyto(mine[part], other.messages[part], where=chosen)

        if better.all():
            self.messenger.messages = other.messages
        else:
            threads.over_graphs(work, starts, self.options.n_jobs)
        for name in ("residual", "iterations", "done"):
            ours, theirs = getattr(self.messenger, name), getattr(other, name)
            setattr(self.messenger, name, np.where(better, theirs, ours))

    def report(self) -> Iterator[str]:
        """Say how it went, part by part."""
        messenger = self.messenger
        if messenger.done.all():
            yield f"messages converged in {messenger.iterations.max(initial=0)} sweeps"
        else:
            yield (
                f"messages did not converge{in_graphs(~messenger.done)}: after "
                f"{messenger.iterations.max()} sweeps the largest change is "
                f"{messenger.residual.max():.2g}"
            )
        if self.others and self.apart.max() > APART:
            yield (
                f"runs from different starts disagree by {self.apart.max():.2g} in a marginal: "
                f"there are several fixed points"
            )
        if self.ended.early:
            yield self.ended.sentence

    def result(self, query: Query) -> Result:
        """Read the answer off the messages, with the assignment that a query asks for."""
        messenger = self.messenger
        problem = self.problem
        value, beliefs, factors = messenger.value(self.options.factor_marginals)
        result = Result(
            value,
            exact=False,
            beliefs=beliefs,
            factor_beliefs=factors,
            converged=messenger.done,
            apart=self.apart,
            iterations=messenger.iterations,
            residual=messenger.residual,
            messages=messenger.messages,
            ended=self.ended,
            status="; ".join(self.report()),
        )
        if query == Query.MAP:
            result.labels = messenger.decode()
            result.value = problem.wiring.score(problem.potentials, result.labels)
            result.lower = result.value
        elif query == Query.MARGINAL_MAP:
            result.labels = np.where(problem.hidden, -1, best_states(problem.wiring, beliefs))
        return result
