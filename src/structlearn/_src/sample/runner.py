"""Chains of draws: sweeps, burn-in and thinning, several chains in threads.

Every chain has a random stream of its own, so that its draws do not depend on the number of
threads. A chain knows all that it needs to go on: `run` it again for more draws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from structlearn._src.common import threads
from structlearn._src.common.watch import Ending, Watch

State = TypeVar("State")

#: One sweep: from state, random stream and number of the sweep to the next state, and a record.
Step = Callable[[State, np.random.Generator, int], tuple[State, Any]]


@dataclass(eq=False)
class Chain(Generic[State]):
    """One chain: where it stands, what every sweep told, and the draws that were kept."""

    state: State
    rng: np.random.Generator
    trace: list[Any] = field(default_factory=list)
    draws: list[State] = field(default_factory=list)

    @property
    def sweeps(self) -> int:
        """Number of sweeps so far."""
        return len(self.trace)

    def copy(self) -> Chain[State]:
        """Return a chain that goes on from here by itself."""
        return Chain(self.state, deepcopy(self.rng), [*self.trace], [*self.draws])

    def advance(self, step: Step[State], kept: bool) -> None:
        """Make one sweep, or none at all: an interrupt within it leaves the chain as it was."""
        sweep, state, n_draws = self.sweeps, self.state, len(self.draws)
        stream = self.rng.bit_generator.state
        try:
            self.state, info = step(state, self.rng, sweep)
            if kept:
                self.draws.append(self.state)
            self.trace.append(info)  # last: only now the sweep counts
        except BaseException:
            if self.sweeps == sweep:
                self.state, self.rng.bit_generator.state = state, stream
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
    step: Step[State],
    chains: Sequence[Chain[State]],
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
                chain.advance(step, schedule.keeps(chain.sweeps))

    def together() -> bool:
        threads.run(advance, [(i, i + 1) for i in range(len(chains))], n_jobs)
        return False  # all `left` sweeps are told of, the last one too

    left = schedule.sweeps - _swept(chains)
    ended = watch.repeat(together, left, lambda: f"sweep {_swept(chains)} of {schedule.sweeps}")
    return Ending.DONE if _swept(chains) >= schedule.sweeps else ended


def traced(chains: Sequence[Chain[State]], name: str, burn_in: int) -> NDArray[Any]:
    """Return one number of the records after burn-in, (chains, sweeps); as many for each."""
    rows = [[getattr(info, name) for info in chain.trace[burn_in:]] for chain in chains]
    least = min(map(len, rows))
    return np.array([row[:least] for row in rows]).reshape(len(rows), least)


def _swept(chains: Sequence[Chain[State]]) -> int:
    return min(chain.sweeps for chain in chains)
