"""Chains of draws: sweeps, burn-in and thinning in threads; whether chains agree.

Every chain has a random stream of its own, so that its draws do not depend on the number of
threads. A chain knows all that it needs to go on: `run` it again for more draws. R-hat tells
whether chains agree, and the effective sample size how much their draws are worth.

References
----------
A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P. Buerkner, "Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats
from structlearn._src.common.place import placed_as
from structlearn._src.common.watch import Ending, Watch

State = TypeVar("State")


class Sampler(Protocol[State]):
    """What draws the states of a chain: a pure function from one to the next."""

    def begin(self, rng: Generator) -> State:
        """Return a state to begin with."""

    def step(self, state: State, rng: Generator, sweep: int) -> tuple[State, Any]:
        """Make one sweep, counted from 0; return the next state, and a record of what it did."""


@dataclass(eq=False)
class MarkovChain(Generic[State]):
    """One chain: where it stands, what every sweep told, and the draws that were kept."""

    state: State
    rng: Generator
    trace: list[Any] = field(default_factory=list)
    draws: list[State] = field(default_factory=list)

    @property
    def sweeps(self) -> int:
        """Number of sweeps so far."""
        return len(self.trace)

    def copy(self) -> MarkovChain[State]:
        """Return a chain that goes on from here by itself."""
        return MarkovChain(self.state, deepcopy(self.rng), [*self.trace], [*self.draws])

    def advance(self, sampler: Sampler[State], kept: bool) -> None:
        """Make one sweep, or none at all: an interrupt within it leaves the chain as it was."""
        sweep = self.sweeps
        state = self.state
        n_draws = len(self.draws)
        stream = self.rng.bit_generator.state
        try:
            self.state, info = sampler.step(state, self.rng, sweep)
            if kept:
                self.draws.append(self.state)
            self.trace.append(info)  # last: only now the sweep counts
        except BaseException:
            if self.sweeps == sweep:
                self.state = state
                self.rng.bit_generator.state = stream
                del self.draws[n_draws:]
            raise


@dataclass(frozen=True)
class Schedule:
    """How many sweeps come before the first draw, how many draws, and sweeps between them."""

    burn_in: int
    n_draws: int
    thin: int = 1

    @property
    def sweeps(self) -> int:
        """Number of sweeps in all."""
        return self.burn_in + self.n_draws * self.thin

    def keeps(self, sweep: int) -> bool:
        """Whether the state after this sweep, counted from 0, is a draw."""
        return sweep >= self.burn_in and (sweep - self.burn_in) % self.thin == self.thin - 1


def streams(rng: Generator, n: int) -> list[Generator]:
    """Return independent random streams, for chains."""
    return [np.random.default_rng(seed) for seed in rng.integers(2**63, size=(n, 4))]


@placed_as("run_chains")
def run(
    sampler: Sampler[State],
    chains: Sequence[MarkovChain[State]],
    schedule: Schedule,
    *,
    n_jobs: int | None = 1,
    watch: Watch | None = None,
) -> Ending:
    """Advance chains to the end of the schedule; say how it ended. Draws made before that stay."""
    watch = Watch() if watch is None else watch

    def advance(first: int, last: int) -> None:
        for chain in chains[first:last]:
            if chain.sweeps < schedule.sweeps:
                chain.advance(sampler, schedule.keeps(chain.sweeps))

    def together() -> bool:
        threads.run(advance, [(i, i + 1) for i in range(len(chains))], n_jobs)
        return False  # all `left` sweeps are told of, the last one too

    left = schedule.sweeps - _swept(chains)
    with threads.one_blas_thread():  # once, as threads are called many times in a sweep
        ended = watch.repeat(together, left, lambda: f"sweep {_swept(chains)} of {schedule.sweeps}")
    return Ending.DONE if _swept(chains) >= schedule.sweeps else ended


def traced(chains: Sequence[MarkovChain[State]], name: str, burn_in: int) -> NDArray[Any]:
    """Return one number of the records after burn-in, (chains, sweeps); as many for each."""
    rows = [[getattr(info, name) for info in chain.trace[burn_in:]] for chain in chains]
    least = min(map(len, rows))
    return np.array([row[:least] for row in rows]).reshape(len(rows), least)


def _swept(chains: Sequence[MarkovChain[State]]) -> int:
    return min(chain.sweeps for chain in chains)


def r_hat(draws: Floats) -> float:
    """Return the R-hat of draws (chains, draws): near 1 where chains agree.

    The larger of the R-hat of ranks and of that of folded ranks, each chain cut in two. NaN below
    four draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(r_hat(rng.normal(size=(4, 500))), 1)
    1.0
    >>> r_hat(rng.normal(size=(4, 500)) + 3 * np.arange(4)[:, None]) > 2
    True
    """
    halves = _halves(np.atleast_2d(draws))
    if halves.shape[1] < 2:
        return float("nan")
    folded = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_normal_scores(halves)), _plain_r_hat(_normal_scores(folded)))


def effective_size(draws: Floats) -> float:
    """Return the effective sample size of draws (chains, draws), for estimates of their centre.

    By autocorrelations of rank-normalised half chains, up to where sums of pairs turn negative.
    """
    halves = _halves(np.atleast_2d(draws))
    if halves.shape[1] < 2:
        return float("nan")
    scores = _normal_scores(halves)
    chains, n = scores.shape
    covariances = _autocovariances(scores)
    within = covariances[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + scores.mean(1).var(ddof=1)
    if total == 0.0:
        return float(chains * n)
    correlations = 1.0 - (within - covariances.mean(0) * n / (n - 1)) / total
    correlations[0] = 1.0
    pairs = correlations[: n - n % 2].reshape(-1, 2).sum(1)
    ends = np.flatnonzero(pairs < 0.0)
    pairs = np.minimum.accumulate(pairs[: ends[0] if len(ends) else len(pairs)])
    time = max(2.0 * pairs.sum() - 1.0, 1.0 / np.log10(chains * n))
    return float(chains * n / time)


def _halves(draws: Floats) -> Floats:
    """Cut each chain in two of the same length."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def _normal_scores(draws: Floats) -> Floats:
    ranks = rankdata(draws).reshape(draws.shape)
    return np.asarray(ndtri((ranks - 0.375) / (draws.size + 0.25)))


def _plain_r_hat(draws: Floats) -> float:
    n = draws.shape[1]
    within = draws.var(1, ddof=1).mean()
    between = n * draws.mean(1).var(ddof=1)
    if within == 0.0:
        return 1.0 if between == 0.0 else float("inf")
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))


def _autocovariances(draws: Floats) -> Floats:
    """Autocovariances (chains, lags) by Fourier transform."""
    n = draws.shape[1]
    away = draws - draws.mean(1, keepdims=True)
    power = np.abs(np.fft.rfft(away, 2 * n)) ** 2
    return np.fft.irfft(power)[:, :n] / n
