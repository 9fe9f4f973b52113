"""Memory of draws of paths, which is used again: fresh pages cost as much as the work in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.chain.beam import BeamWorkspace, beam_workspace
from structlearn._src.kernels.draw.density import Densities, LaneWorkspace, lane_workspace

_STATES = 32  # whose number memory is kept for, or a power of 2 times that: it changes by sweeps
_MOST = 2**20  # states of all positions that a thread keeps memory for: 25 megabytes

#: Workspaces as kernels take them.
Spaces: TypeAlias = tuple[tuple[BeamWorkspace, Ints], tuple[LaneWorkspace, Ints]]


class PathMemory:
    """Memory of the draws of paths of some sequences, which pieces have together."""

    def __init__(self, offsets: Ints, borders: Ints) -> None:
        self._given = offsets, borders
        self._beams: dict[int, threads.Workspaces[BeamWorkspace]] = {}
        self._lanes: threads.Workspaces[LaneWorkspace] | None = None
        self.slices = threads.Scratch(int(offsets[-1]))

    def __reduce__(self) -> tuple[type[PathMemory], tuple[Ints, Ints]]:
        return PathMemory, self._given  # what is in it is worth nothing to others

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Positions of the longest sequence, and of the largest piece."""
        offsets, borders = self._given
        return int(np.diff(offsets).max()), int(np.diff(offsets[borders]).max())

    @contextmanager
    def lend(self, helpers: int, n_states: int, densities: Densities) -> Iterator[Spaces]:
        """Lend workspaces of a thread and so many helpers, for so many states."""
        if self._lanes is None:
            self._lanes = threads.Workspaces(partial(lane_workspace, densities))
        with self._of(n_states).lend(helpers) as beams, self._lanes.lend(helpers) as lanes:
            yield beams, lanes

    def _of(self, n_states: int) -> threads.Workspaces[BeamWorkspace]:
        """Return workspaces for so many states or more."""
        n = _STATES
        while n < n_states:
            n *= 2
        made = threads.Workspaces(partial(beam_workspace, *self._sizes, n), alone=True)
        return self._beams.setdefault(n, made) if self._sizes[0] * n <= _MOST else made
