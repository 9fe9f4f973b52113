"""Graphs with some variables fixed: conditioned once, solved for any states and potentials."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.condition import Conditioned, places
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


class Places(NamedTuple):
    """Where the entries that agree with the fixed states lie in the potentials."""

    kept: Ints  #: of factors with a free variable
    gone: Ints  #: of factors without, one entry each


class Clamped:
    """Some variables of a wiring are fixed: the same tables, read at the fixed states only.

    Parameters
    ----------
    wiring
        All graphs.
    small
        The same without the fixed variables.
    engine
        Solves what is left; None if nothing is.
    """

    def __init__(self, wiring: Wiring, small: Conditioned, engine: Engine | None) -> None:
        self.wiring = wiring
        self.engine = engine
        self.exact = engine is None or engine.exact
        gone = np.ones(wiring.n_factors, np.bool_)
        gone[small.factors] = False
        graphs = np.repeat(np.arange(wiring.n_graphs), np.diff(wiring.graph_factors))
        self._gone_graphs = graphs[gone]

    def fix(self, labels: Ints) -> Places:
        """Read the tables at other states of the fixed variables; -1 for all that are free."""
        where, kept = places(self.wiring, labels)
        return Places(where[kept], where[~kept])

    def at(self, labels: Ints) -> ClampedAt:
        """Return the engine with the fixed variables in these states."""
        return ClampedAt(self, self.fix(labels), self.exact)

    def begin(self) -> Memory:
        """Return what the first call goes on from."""
        return () if self.engine is None else self.engine.begin()

    def solve(
        self,
        potentials: Floats,
        fixed: Places,
        memory: Memory,
        sweeps: int,
        tol: float,
        beliefs: bool = True,
    ) -> Solution:
        """Values of all graphs, and on request beliefs: point masses where all is fixed."""
        known = np.bincount(self._gone_graphs, potentials[fixed.gone], self.wiring.n_graphs)
        values = known.astype(np.float64)
        out = np.zeros(len(potentials) if beliefs else 0)
        if beliefs:
            out[fixed.gone] = 1.0
        if self.engine is None:
            return Solution(values, out, (), 0)
        rest = self.engine.solve(potentials[fixed.kept], memory, sweeps, tol, beliefs)
        if beliefs:
            out[fixed.kept] = rest.beliefs
        return Solution(values + rest.values, out, rest.memory, rest.sweeps)


class ClampedAt(NamedTuple):
    """An engine whose fixed variables have states that stay."""

    clamped: Clamped
    fixed: Places
    exact: bool

    def begin(self) -> Memory:
        """Return what the first call goes on from."""
        return self.clamped.begin()

    def solve(
        self, potentials: Floats, memory: Memory, sweeps: int, tol: float, beliefs: bool = True
    ) -> Solution:
        """Values of all graphs, and on request beliefs."""
        return self.clamped.solve(potentials, self.fixed, memory, sweeps, tol, beliefs)
