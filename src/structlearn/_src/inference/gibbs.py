"""Gibbs sampling: two chains, and a plain word on whether they agree."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.common.watch import Ending
from structlearn._src.inference.base import BuiltInInferer, Options, Problem, Result, in_graphs
from structlearn._src.inference.beliefs import belief_distance, normalise
from structlearn._src.inference.icm import climb, unary_labels
from structlearn._src.inference.names import Query
from structlearn._src.kernels.graph import local

_APART = 0.1  # difference of marginals above which two chains count as not mixed
_TRIES = 10  # random starts tried before a forbidden start is accepted
_BATCH = 2**17  # variables drawn between two looks at the clock
_LOOKS = 50  # looks at the clock for small graphs


class Gibbs(BuiltInInferer):
    r"""Gibbs sampling at one temperature, for marginals or samples.

    Each sweep draws every variable in order from its conditional

    .. math:: p(x_v \mid x_{\setminus v}) \propto
              \exp \frac{1}{\epsilon} \sum_{f \ni v} \theta_f(x_{S(f)}).

    Two chains run: one from the end of ICM on the unary guess, one from the end of ICM on a
    random state. `burn_in` sweeps of each are dropped, then `n_samples` are kept, half from
    each chain. Marginals are averages of conditionals, not of states (Rao-Blackwell); factor
    marginals are frequencies. `residual` is the largest difference between the marginals of the
    two chains.

    Sampling does not estimate the value (log Z). `value` and `lower` are the best score seen,
    which is a true lower bound of it; `upper` is infinite.

    References
    ----------
    S. Geman, D. Geman, "Stochastic relaxation, Gibbs distributions, and the Bayesian
    restoration of images", PAMI 6, 1984.
    A. Gelfand, A. Smith, "Sampling-based approaches to calculating marginal densities",
    JASA 85, 1990.
    """

    name = "gibbs"
    queries = (Query.MARGINALS, Query.SAMPLES)
    one_temperature = True

    def objection(self, problem: Problem, query: Query, options: Options) -> str:
        """Refuse what is maximised."""
        return "" if problem.temperature > 0 else "Gibbs sampling needs a temperature above 0"

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Run both chains and pool them."""
        chains = _TwoChains(problem, query, options)
        ended = options.watch.repeat(chains.step, chains.steps, chains.words)
        if not chains.kept:
            chains.sweep(1, keep=True)
        return chains.result(ended)


class _TwoChains:
    """Two chains side by side; the first axis of every array is the chain."""

    def __init__(self, problem: Problem, query: Query, options: Options) -> None:
        wiring = self.wiring = problem.wiring
        self.potentials = problem.potentials
        self.eps = problem.temperature
        self.options = options
        self.rng = options.rng
        self.rows = (options.n_samples + 1) // 2
        self.burnt = self.kept = 0
        sweeps = options.burn_in + self.rows
        self.batch = max(1, min(_BATCH // max(wiring.n_variables, 1), -(-sweeps // _LOOKS)))
        entries = wiring.table_offsets[-1] if options.factor_marginals else 0
        self.stored = query == Query.SAMPLES
        self.beliefs = np.zeros((2, wiring.belief_offsets[-1]))
        self.factor_beliefs = np.zeros((2, entries))
        self.draws = np.zeros((2, self.rows * self.stored, wiring.n_variables), np.int64)
        self.labels = self._starts()
        self.best = np.stack([wiring.score(self.potentials, labels) for labels in self.labels])
        self.feasible = self._rescue()
        self.ranges = self._ranges()

    def _ranges(self) -> list[tuple[int, int]]:
        """Both chains as one line of graphs, so that a single large graph gets two threads."""
        entries = self.wiring.graph_tables
        line = np.concatenate([entries, entries[-1] + entries[1:]])
        worth = line[-1] * self.batch > threads.GRAIN["graphs"]
        return threads.split(line, threads.workers(self.options.n_jobs) if worth else 1)

    @property
    def steps(self) -> int:
        """Number of batches of sweeps."""
        return -(-self.options.burn_in // self.batch) + -(-self.rows // self.batch)

    def words(self) -> str:
        """Say how far the sampler is."""
        if self.kept:
            return f"{2 * self.kept} of {2 * self.rows} sweeps kept"
        return f"{self.burnt} of {self.options.burn_in} sweeps of burn-in"

    def step(self) -> bool:
        """Run one batch of sweeps."""
        burning = self.options.burn_in - self.burnt
        if burning > 0:
            self.sweep(min(self.batch, burning), keep=False)
        else:
            self.sweep(min(self.batch, self.rows - self.kept), keep=True)
        return False

    def sweep(self, count: int, keep: bool) -> None:
        """Run `count` sweeps of both chains."""
        if keep and not self.kept:
            self.feasible = self._rescue()
        # Drawn here and not in the threads, so that their number changes nothing.
        uniforms = self.rng.random((2, count, self.wiring.n_variables))
        n = self.wiring.n_graphs

        def work(first: int, last: int) -> None:
            for chain in (0, 1):
                a, b = max(first - chain * n, 0), min(last - chain * n, n)
                self._part(chain, a, max(a, b), uniforms[chain], keep)

        threads.run(work, self.ranges, self.options.n_jobs)
        if keep:
            self.kept += count
        else:
            self.burnt += count

    def _part(self, chain: int, first: int, last: int, uniforms: Floats, keep: bool) -> None:
        """Run one chain on a range of graphs, which may be empty."""
        stop = self.kept + len(uniforms) if keep else self.kept
        sums = (self.beliefs[chain], self.factor_beliefs[chain]) if keep else [np.empty(0)] * 2
        local.gibbs(
            self.wiring, self.potentials, self.eps, self.labels[chain], uniforms, first, last,
            *sums, self.draws[chain, self.kept : stop], self.best[chain],
        )  # fmt: skip

    def _starts(self) -> Ints:
        """Ends of ICM from the unary guess and from a random state, feasible where one is found."""
        w = self.wiring
        p = self.potentials
        n_jobs = self.options.n_jobs
        starts = unary_labels(w, p), self.rng.integers(w.cards)
        labels = np.stack([climb(w, p, start, n_jobs=n_jobs).labels for start in starts])
        for chain in (0, 1):
            for _ in range(_TRIES):
                bad = np.isneginf(w.score(p, labels[chain]))
                if not bad.any():
                    break
                fresh = climb(w, p, self.rng.integers(w.cards), n_jobs=n_jobs).labels
                labels[chain] = np.where(bad[w.variable_graphs], fresh, labels[chain])
        return labels

    def _rescue(self) -> Bools:
        """Let a chain in a forbidden state copy a feasible one; say which graphs are feasible."""
        scores = [self.wiring.score(self.potentials, labels) for labels in self.labels]
        good = np.isfinite(scores)
        for chain in (0, 1):
            take = (~good[chain] & good[1 - chain])[self.wiring.variable_graphs]
            self.labels[chain][take] = self.labels[1 - chain][take]
        return np.asarray(good.any(axis=0))

    def result(self, ended: Ending) -> Result:
        """Pool the chains."""
        w = self.wiring
        beliefs = [normalise(each, w.belief_offsets) for each in self.beliefs]
        one, other = beliefs
        residual = belief_distance(w, one, other)
        value = self.best.max(axis=0)
        converged = self.feasible & (residual <= _APART)
        draws = np.concatenate(list(self.draws[:, : self.kept]))[: self.options.n_samples]
        return Result(
            value=value,
            exact=False,
            lower=value,
            beliefs=normalise(self.beliefs.sum(axis=0), w.belief_offsets),
            factor_beliefs=normalise(self.factor_beliefs.sum(axis=0), w.table_offsets),
            draws=draws,
            converged=converged,
            iterations=np.full(w.n_graphs, self.burnt + self.kept),
            residual=residual,
            ended=ended if ended.early else Ending.DONE,
            status="; ".join(self._report(float(residual.max(initial=0.0)), ended)),
        )

    def _report(self, apart: float, ended: Ending) -> Iterable[str]:
        """Say how it went, part by part."""
        if not self.feasible.all():
            yield (
                f"no state free of forbidden combinations found{in_graphs(~self.feasible)}, "
                f"so the marginals there mean nothing"
            )
        verdict = ": not mixed, or too few sweeps" if apart > _APART else ""
        yield f"two chains of {self.kept} sweeps differ by {apart:.2g}{verdict}"
        if ended.early:
            yield ended.sentence
        yield "the value is the best score seen, a lower bound"
