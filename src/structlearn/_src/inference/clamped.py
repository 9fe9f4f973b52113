"""Graphs with some variables fixed: conditioned once, solved for any states and potentials."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.condition import places
from structlearn._src.graph.wiring import Wiring

#: What a later call goes on from: log messages, one array per run of messages; empty if exact.
Memory = tuple[Floats, ...]


class Solution(NamedTuple):
    """What an engine found for one set of potentials."""

    values: Floats  #: soft maximum of every graph
    beliefs: Floats  #: of all factors, in the layout of the potentials; empty if not asked for
    memory: Memory  #: what the next call goes on from
    sweeps: int  #: over messages, the most that a graph needed; 0 if exact


class Engine(Protocol):
    """Solves one problem for any potentials; all that changes is what it takes and returns.

    Several threads may use one engine at a time.
    """

    @property
    def exact(self) -> bool:
        """Whether no messages are passed."""
        ...

    def begin(self) -> Memory:
        """Return what the first call goes on from."""
        ...

    def solve(
        self, potentials: Floats, memory: Memory, sweeps: int, tol: float, beliefs: bool = True
    ) -> Solution:
        """Values of all graphs, and on request beliefs; `memory` is not written to.

        Messages stop after so many sweeps, or when they move by at most `tol`.
        """
        ...


class Clamped(NamedTuple):
    """Some variables of a wiring are fixed: the same tables, read at the fixed states only."""

    wiring: Wiring
    gone_graphs: Ints  #: graph of every factor all of whose variables are fixed
    engine: Engine | None  #: solves the rest, if there is any
    kept: Ints  #: entries of the potentials that agree with the states, of factors with a free one
    gone: Ints  #: of factors without, one entry each

    @property
    def exact(self) -> bool:
        """Whether no messages are passed."""
        return self.engine is None or self.engine.exact

    def at(self, labels: Ints) -> Clamped:
        """Return the same with the fixed variables in these states; -1 for all that are free."""
        where, kept = places(self.wiring, labels)
        return self._replace(kept=where[kept], gone=where[~kept])

    def begin(self) -> Memory:
        """Return what the first call goes on from."""
        return () if self.engine is None else self.engine.begin()

    def solve(
        self, potentials: Floats, memory: Memory, sweeps: int, tol: float, beliefs: bool = True
    ) -> Solution:
        """Values of all graphs, and on request beliefs: point masses where all is fixed."""
        known = np.bincount(self.gone_graphs, potentials[self.gone], self.wiring.n_graphs)
        values = known.astype(np.float64)
        out = np.zeros(len(potentials) if beliefs else 0)
        if beliefs:
            out[self.gone] = 1.0
        if self.engine is None:
            return Solution(values, out, (), 0)
        rest = self.engine.solve(potentials[self.kept], memory, sweeps, tol, beliefs)
        if beliefs:
            out[self.kept] = rest.beliefs
        return Solution(values + rest.values, out, rest.memory, rest.sweeps)
