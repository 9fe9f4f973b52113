"""Chains of draws: sweeps, burn-in and thinning, several chains in threads.

Every chain has a random stream of its own, so that its draws do not depend on the number of
threads. A chain knows all that it needs to go on: `run` it again for more draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import threads
from structlearn._src.common.watch import Ending, Watch

State = TypeVar("State")


class Sampler(Protocol[State]):
    """What draws the states of a chain: a pure function from one to the next."""

    def begin(self, rng: np.random.Generator) -> State:
        """Return a state to begin with."""

    def step(self, state: State, rng: np.random.Generator, sweep: int) -> tuple[State, Any]:
        """Make one sweep, counted from 0; return the next state, and a record of what it did."""


@dataclass(eq=False)
class MarkovChain(Generic[State]):
    """One chain: where it stands, what every sweep told, and the draws that were kept."""

    state: State
    rng: np.random.Generator
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


def streams(rng: np.random.Generator, n: int) -> list[np.random.Generator]:
    """Return independent random streams, for chains."""
    return [np.random.default_rng(seed) for seed in rng.integers(2**63, size=(n, 4))]


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
    ended = watch.repeat(together, left, lambda: f"sweep {_swept(chains)} of {schedule.sweeps}")
    return Ending.DONE if _swept(chains) >= schedule.sweeps else ended


def traced(chains: Sequence[MarkovChain[State]], name: str, burn_in: int) -> NDArray[Any]:
    """Return one number of the records after burn-in, (chains, sweeps); as many for each."""
    rows = [[getattr(info, name) for info in chain.trace[burn_in:]] for chain in chains]
    least = min(map(len, rows))
    return np.array([row[:least] for row in rows]).reshape(len(rows), least)


def _swept(chains: Sequence[MarkovChain[State]]) -> int:
    return min(chain.sweeps for chain in chains)
