"""Sums over the positions of every state, by threads: what they emit."""

from __future__ import annotations

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats
from structlearn._src.kernels.draw import moments
from structlearn._src.kernels.draw.moments import Members
from structlearn._src.kernels.team import make_board
from structlearn._src.sample.emission import Arrays, Categorical, Emission, Gaussian

_PART = 2**12  # positions that are added up together: some hundredths of a millisecond
_PARTS = 2**8  # of points at most, beside one for each state


def tally(emission: Emission, members: Members, n_jobs: int | None) -> Arrays:
    """Return the statistics of an emission, given the positions of every state."""
    if isinstance(emission, Gaussian):
        return _moments(emission, members, n_jobs)
    if isinstance(emission, Categorical):
        return (_symbols(emission, members, n_jobs),)
    return ()


def _moments(emission: Gaussian, members: Members, n_jobs: int | None) -> Arrays:
    """Return numbers, sums and products of points."""
    n, n_states = len(members.positions), len(members.starts) - 1
    size = max(_PART, -(-n // _PARTS))
    given = emission.data, emission.seen, members, emission.full
    width = emission.data.shape[1]
    found = moments.moment_sums(n // size + n_states, size, n_states, width, emission.full)
    helpers = threads.helpers(n_jobs, n // size)
    with emission.workspaces.lend(helpers) as spaces:
        board = make_board(moments.PHASES)
        threads.launch(moments.add_up_in_threads, helpers, board, *given, found, spaces)
    outers = found.outers if emission.full else found.outers[:, :, 0]
    return found.counts, found.sums, outers


def _symbols(emission: Categorical, members: Members, n_jobs: int | None) -> Floats:
    """Return how often every state has every symbol: whole numbers, added in any order."""
    helpers = threads.helpers(n_jobs, len(members.positions) // _PART)
    counts = np.zeros((helpers + 1, len(members.starts) - 1, len(emission.prior)))
    given = make_board(1), emission.data, members, _PART, counts
    threads.launch(moments.count_in_threads, helpers, *given)
    total: Floats = counts.sum(0)
    return total
