"""Sums over the positions of every state, by threads that meet: what they emit and all it takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from threading import Lock

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.draw import moments
from structlearn._src.kernels.draw.moments import Members
from structlearn._src.sample.emission import Arrays, Categorical, Emission, Gaussian

TALLY_PHASES = 2  # of a board, for each
_PART = 2**12  # positions whose moments are added up together: some hundredths of a millisecond
_PARTS = 2**8  # of these at most, beside one for each state


class Tally(ABC):
    """Sums of one emission, which all threads add to."""

    @abstractmethod
    def add_up(self, board: Ints, phase: int, members: Members) -> None:
        """Add what this thread finds to do in the phases of the board from one on."""

    @abstractmethod
    def total(self) -> Arrays:
        """Return the statistics, when all threads are through."""


class _NoTally(Tally):
    """Of an emission that has no statistics."""

    def add_up(self, board: Ints, phase: int, members: Members) -> None:
        """Do nothing."""

    def total(self) -> Arrays:
        """Return none."""
        return ()


class _MomentTally(Tally):
    """Moments of points."""

    def __init__(self, emission: Gaussian, n_states: int, n_positions: int) -> None:
        self._emission = emission
        size = max(_PART, -(-n_positions // _PARTS))
        parts = n_positions // size + n_states
        width = emission.data.shape[1]
        self._sums = moments.moment_sums(parts, size, n_states, width, emission.full)

    def add_up(self, board: Ints, phase: int, members: Members) -> None:
        """Add up the parts that this thread takes."""
        data, seen, full = self._emission.data, self._emission.seen, self._emission.full
        workspace = moments.moment_workspace(data.shape[1], full)
        moments.add_up_all(board, phase, data, seen, members, full, self._sums, workspace)

    def total(self) -> Arrays:
        """Return numbers, sums and products."""
        _, _, counts, sums, outers = self._sums
        return counts, sums, (outers if self._emission.full else outers[:, :, 0])


class _SymbolTally(Tally):
    """Counts of symbols: whole numbers, which can be added in any order."""

    def __init__(self, emission: Categorical, n_states: int) -> None:
        self._data = emission.data
        self._counts = np.zeros((n_states, len(emission.prior)))
        self._lock = Lock()

    def add_up(self, board: Ints, phase: int, members: Members) -> None:
        """Count the symbols of the positions that this thread takes."""
        own = np.zeros_like(self._counts)
        moments.count_symbols(board, phase, self._data, members, _PART, own)
        with self._lock:
            self._counts += own

    def total(self) -> Arrays:
        """Return how often every state has every symbol."""
        return (self._counts,)


def tally(emission: Emission, n_states: int, n_positions: int) -> Tally:
    """Return sums of an emission that are 0."""
    if isinstance(emission, Gaussian):
        return _MomentTally(emission, n_states, n_positions)
    if isinstance(emission, Categorical):
        return _SymbolTally(emission, n_states)
    return _NoTally()
