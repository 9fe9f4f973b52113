"""Several ways to an assignment, each scored by the true objective and improved; the best wins."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.watch import Ending
from structlearn._src.graph.wiring import condition
from structlearn._src.inference.base import (
    BuiltInInferer,
    Options,
    Problem,
    Result,
    exceeds,
    in_graphs,
)
from structlearn._src.inference.beliefs import best_states
from structlearn._src.inference.engine import clamp
from structlearn._src.inference.icm import climb, unary_labels
from structlearn._src.inference.junction import EliminationTree
from structlearn._src.inference.loopy import cooled
from structlearn._src.inference.messenger import Messenger
from structlearn._src.inference.names import ASKED, ASSIGNMENTS, Query
from structlearn._src.inference.order import cutset, find_order
from structlearn._src.inference.trw import covering_forests, upper_bound

_SWEEPS = 150  # for each candidate: messages that rest do so by then
_COOLED = (0.5, 0.25)  # temperatures of the sum-product runs that are rounded to an assignment
_BLOCKS = (2**10, 2**14, 2**18)  # entries of the largest table in block ascent
_BLOCK_WORK = 2**27  # entries times variables up to which a round is quick
_CERTAIN = 1e-9  # relative gap at which a bound proves an assignment optimal
_SCORE_SWEEPS = 200  # from the messages of another assignment, far more than they need to rest
_SCORE_TOL = 1e-6  # as the default of `infer`
_SCORE_DAMPING = 0.2  # keeps messages at rest where cycles are strong
_GAIN = 1e-10  # relative: less than that is rounding
_ROUNDS = 20  # over all outputs; few runs need more than three
_BLOCK_ROUNDS = 40  # of blocks; they mostly end earlier, for want of gain
_PATIENCE = 10  # rounds of blocks without gain after which the ascent ends

Candidate = tuple[str, Ints]  # where it comes from, and its labels


class Portfolio(BuiltInInferer):
    """MAP and marginal MAP on graphs too wide for elimination.

    For MAP: the best own states, tree-reweighted max-product (which also gives an upper bound),
    max-product, and sum-product at low temperatures, each rounded one variable after the other
    and improved by single flips; the best is improved further by exact maximisation over large
    blocks. For marginal MAP: mixed-product, joint MAP, and the best states of the marginals, each
    scored with the hidden variables summed out; the best is improved by coordinate ascent on that
    score.
    """

    name = "portfolio"
    queries = ASSIGNMENTS

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Try everything in turn, as far as time allows."""
        summed = query == Query.MARGINAL_MAP and problem.hidden.any()
        search = _MarginalMap(problem, options) if summed else _Map(problem, options)
        steps = search.candidates()
        ended = options.watch.repeat(lambda: search.advance(steps), search.most + 1, search.words)
        return search.result(ended)


class _Candidates:
    """Candidates of all graphs so far, the best of each kept."""

    most = 0  #: candidates there can be

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem = problem
        self.options = options
        n = problem.wiring.n_graphs
        self.labels = unary_labels(problem.wiring, problem.potentials)
        self.value = np.full(n, -np.inf)
        self.upper = np.full(n, np.inf)
        self.winner = np.full(n, "", object)
        self.tried = 0
        self.begun = time.monotonic()
        self.bounds: list[tuple[float, Floats, Floats]] = []

    def score(self, labels: Ints) -> Floats:
        """Value of every graph at `labels`."""
        return self.problem.wiring.score(self.problem.potentials, labels)

    def candidates(self) -> Iterator[Candidate]:
        """Find one candidate after the other."""
        raise NotImplementedError

    def advance(self, steps: Iterator[Candidate]) -> bool:
        """Take the next candidate; True if there is none."""
        candidate = next(steps, None)
        if candidate is not None:
            self.offer(*candidate)
        return candidate is None

    def offer(self, name: str, labels: Ints) -> None:
        """Take over the graphs where `labels` are better."""
        value = self.score(labels)
        # The first candidate always counts: an infeasible answer is better than none.
        better = (value > self.value) | (self.tried == 0)
        graphs = self.problem.wiring.variable_graphs
        self.labels = np.where(better[graphs], labels, self.labels)
        self.value = np.where(better, value, self.value)
        self.winner = np.where(better, name, self.winner)
        self.tried += 1
        upper = np.maximum(self.upper, self.value)
        self.bounds.append((time.monotonic() - self.begun, self.value, upper))

    def messenger(self, eps: tuple[float, float], **settings: object) -> Messenger:
        """Messages at other temperatures, run for a while."""
        problem = replace(self.problem, eps_output=eps[0], eps_hidden=eps[1])
        messenger = Messenger(problem, n_jobs=self.options.n_jobs, **settings)  # type: ignore[arg-type]
        messenger.run(min(_SWEEPS, self.options.max_iter), 1e-5, self.options.watch)
        return messenger

    def words(self) -> str:
        """Say how far the search is."""
        return f"{self.tried} candidates, best {self.value.sum():.6g}"

    def result(self, ended: Ending) -> Result:
        """Pack up."""
        names = ", ".join(sorted({str(w) for w in self.winner}))
        status = f"best of {self.tried} candidates, found by {names}"
        lost = self.value == -np.inf
        if lost.any():
            status = (
                f"no assignment free of forbidden combinations found{in_graphs(lost)}; {status}"
            )
        if ended.early:
            status += f"; {ended.sentence}"
        return Result(
            self.value,
            exact=False,
            lower=self.value,
            upper=np.maximum(self.upper, self.value),  # equal up to rounding where it is proved
            labels=self.labels,
            iterations=np.full(len(self.value), self.tried),
            converged=np.full(len(self.value), not ended.early),
            bounds=self.bounds,
            ended=ended,
            status=status,
        )


class _Map(_Candidates):
    """Joint MAP over all variables."""

    most = 3 + len(_COOLED) + len(_BLOCKS)

    def candidates(self) -> Iterator[Candidate]:
        yield self._improved("own states", self.labels)
        wiring = self.problem.wiring
        forests = covering_forests(wiring, self.options.rng, self.options.n_jobs)
        trw = self.messenger((0.0, 0.0), appearance=forests.mean(axis=0), damping=0.1)
        if not self.options.watch.expired:
            self.upper = upper_bound(trw, forests)
        yield self._improved("tree-reweighted max-product", trw.decode())
        if self.proved():
            return
        yield self._improved("max-product", self.messenger((0.0, 0.0), damping=0.3).decode())
        for eps in _COOLED:
            cold = self.messenger((eps, eps), damping=0.3)
            yield self._improved(f"sum-product at {eps}", cold.decode())
        for limit in _BLOCKS:
            if limit * wiring.n_variables <= _BLOCK_WORK and not self.proved():
                better = ascend_by_blocks(self.problem, self.labels, limit, self.options)
                yield "block ascent", better

    def _improved(self, name: str, labels: Ints) -> Candidate:
        problem = self.problem
        end = climb(
            problem.wiring, problem.potentials, labels,
            n_jobs=self.options.n_jobs, watch=self.options.watch,
        )  # fmt: skip
        return name, end.labels

    def proved(self) -> bool:
        """Whether the bound meets the score in every graph."""
        return not exceeds(self.upper, self.value, _CERTAIN).any()

    def result(self, ended: Ending) -> Result:
        out = super().result(ended)
        if self.proved():
            out.exact = True
            out.status += "; proved optimal by the tree-reweighted bound"
        return out


class _MarginalMap(_Candidates):
    """Outputs maximised, hidden variables summed out."""

    most = 6

    def __init__(self, problem: Problem, options: Options) -> None:
        super().__init__(problem, options)
        self.summed_out = OutputScore(problem, options)

    def score(self, labels: Ints) -> Floats:
        return self.summed_out.value(labels)

    def candidates(self) -> Iterator[Candidate]:
        warm = self.problem.eps_hidden
        mixed = self.messenger((0.0, warm), damping=0.3, start=cooled(self.problem, self.options))
        yield "mixed-product", self._best(mixed)
        yield "mixed-product, rounded", mixed.decode()
        yield "joint MAP", self._joint_map()
        summed = self.messenger((warm, warm), damping=0.3)
        yield "sum-product", self._best(summed)
        between = self.messenger((0.5 * warm, warm), damping=0.3)
        yield "half-way sum-product", self._best(between)
        if self.summed_out.exact:
            climbed = ascend(self.problem, self.summed_out, self.labels, self.options)
            yield "coordinate ascent", climbed

    def _joint_map(self) -> Ints:
        joint = replace(self.problem, eps_output=0.0, eps_hidden=0.0)
        return Portfolio().run(joint, Query.MAP, self.options).labels

    def _best(self, messenger: Messenger) -> Ints:
        return best_states(self.problem.wiring, messenger.beliefs()[0])

    def result(self, ended: Ending) -> Result:
        out = super().result(ended)
        out.labels = np.where(self.problem.hidden, -1, out.labels)
        if not self.summed_out.exact:
            out.lower = np.full_like(out.value, -np.inf)
            out.bounds = []
            out.status += "; hidden variables summed by the Bethe approximation"
        return out


# ---- ascents -----------------------------------------------------------------------------


class OutputScore:
    r"""Scores assignments to the outputs by the true objective.

    .. math:: V(y) = \epsilon_h \log \sum_h \exp \frac{\theta(y, h)}{\epsilon_h}

    by elimination where the hidden variables alone are narrow enough, else by the Bethe
    approximation of a sum-product run. The structure is compiled once; each further assignment
    only slices tables.
    """

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem = problem
        fixed = np.where(problem.hidden, -1, 0)
        settings = replace(options, damping=_SCORE_DAMPING)
        self.clamped = clamp(
            problem.wiring, fixed, problem.eps_hidden, "auto", settings, times=ASKED
        )
        self.exact = self.clamped.exact
        self._memory = self.clamped.begin()

    def value(self, labels: Ints) -> Floats:
        """Value of every graph at the outputs in `labels`; messages go on from the last call's."""
        engine = self.clamped.at(np.where(self.problem.hidden, -1, labels))
        found = engine.solve(
            self.problem.potentials, self._memory, _SCORE_SWEEPS, _SCORE_TOL, beliefs=False
        )
        self._memory = found.memory
        return found.values


def ascend(problem: Problem, score: OutputScore, labels: Ints, options: Options) -> Ints:
    """Change one output at a time while that raises the true objective.

    All graphs of the wiring move together, each by itself: step j tries the j-th output of
    every graph.
    """
    wiring = problem.wiring
    best = labels.copy()
    value = score.value(best)
    turns = _turns(problem)

    def sweep() -> bool:
        nonlocal value
        before = value.copy()
        for chosen in turns:
            for state in range(int(wiring.cards[chosen].max())):
                if options.watch.expired:
                    return True
                trial = best.copy()
                trial[chosen] = np.minimum(state, wiring.cards[chosen] - 1)
                new = score.value(trial)
                better = exceeds(new, value, _GAIN)
                value = np.where(better, new, value)
                moved = chosen[better[wiring.variable_graphs[chosen]]]
                best[moved] = trial[moved]
        return not (value > before).any()

    options.watch.repeat(sweep, _ROUNDS, lambda: f"coordinate ascent at {value.sum():.6g}")
    return best


def _turns(problem: Problem) -> list[Ints]:
    """The j-th outputs of all graphs, for j = 0, 1, ..."""
    outputs = np.flatnonzero(~problem.hidden)
    graphs = problem.wiring.variable_graphs[outputs]
    first = np.searchsorted(graphs, graphs)
    turn = np.arange(len(outputs)) - first
    return [outputs[turn == j] for j in range(int(turn.max(initial=-1)) + 1)]


def ascend_by_blocks(problem: Problem, labels: Ints, max_table: int, options: Options) -> Ints:
    """Raise the score of an assignment by exact maximisation over large blocks.

    Each round cuts a random set of variables so that the rest can be eliminated with small
    tables, keeps the cut ones as they are and maximises over all others at once: the score
    never falls, and a block reaches across barriers that single flips cannot pass.
    """
    wiring = problem.wiring
    best = labels
    value = wiring.score(problem.potentials, best)
    idle = 0

    def step() -> bool:
        nonlocal best, value, idle
        fixed = np.where(cutset(wiring, max_table, options.rng), best, -1)
        small = condition(wiring, problem.potentials, fixed)
        free = np.zeros(len(small.variables), np.bool_)
        block = Problem(small.wiring, small.potentials, 0.0, 0.0)
        tree = EliminationTree(block, find_order(small.wiring, free))
        store = tree.stores.take()
        tree.forward(small.potentials, store)
        trial = best.copy()
        trial[small.variables] = tree.decode(store)
        new = wiring.score(problem.potentials, trial)
        better = exceeds(new, value, 1e-12)
        best = np.where(better[wiring.variable_graphs], trial, best)
        value = np.where(better, new, value)
        idle = 0 if better.any() else idle + 1
        return idle >= _PATIENCE

    words = f"blocks of {max_table} entries"
    options.watch.repeat(step, _BLOCK_ROUNDS, lambda: f"{words}, {value.sum():.6g}")
    return best
