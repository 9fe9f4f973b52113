"""Batches of sequences whose dual steps are taken at once, by the threads of a team.

A solver that visits sequences one after the other makes steps of some 20 microseconds each. Here
those of a small batch are computed from the same weights, each by another thread, and then added.
Such a batch must be a small part of all data: its sequences overshoot together where they have
features in common, and the more of them the more. `CoCoA+` in `shards` is for parts that are far
apart, and cannot meet as often. Frank-Wolfe takes what the threads have found one after the other
instead, which is a small part of its work.

References
----------
Y.-X. Wang, V. Sadhanala, W. Dai, W. Neiswanger, S. Sra and E. Xing, "Parallel and distributed
block-coordinate Frank-Wolfe algorithms", 2016.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.team import make_board
from structlearn._src.learn.objective import Objective
from structlearn._src.learn.structured_objective import over_chains
from structlearn._src.model.term import Sparse

_BATCH = 16  # sequences: batches of 32 need shorter steps on CoNLL-2000, and gain nothing
_MANY = 50  # batches in a pass from which on each is a small part of it
_LEAST = 4  # threads: with two, on two cores, fits took 0.9 to 1.1 times as long as with one
_WINDOW = 8  # batches whose sequences are dealt to them by length
_PHASES = 2  # of a batch: changes are computed, then made


def suited_batch(given: int | None, objective: Objective, usual: int = _BATCH) -> int:
    """Return the number of sequences in a batch; by default more than one only for some threads.

    And only for sparse features: dense ones are common to all sequences, which then overshoot so
    much together that a few times as many passes are needed.
    """
    if given is not None:
        return min(given, max(objective.n_examples, 1))
    sparse = isinstance(over_chains(objective).examples.inputs[0][0], Sparse)
    suited = sparse and threads.workers(objective.n_jobs) >= _LEAST
    return usual if suited and objective.n_examples >= _MANY * usual else 1


@dataclass(frozen=True, eq=False)
class Team:
    """Who works on one pass, and on what."""

    threads: int
    order: Ints  #: of sequences
    batches: Ints  #: where in it every batch begins, and the end
    board: Ints  #: on which threads meet

    @classmethod
    def of(cls, order: Ints, size: int, costs: Ints, n_jobs: int | None) -> Team:
        """Deal sequences to batches, given what each costs: its length, or its links.

        A batch takes as long as its dearest sequence. So those of some batches in a row are sorted,
        the dearest first, before they are dealt: sequences of a batch cost about the same, and
        batches still come in random order.
        """
        windows = np.arange(len(order)) // (_WINDOW * size)
        order = order[np.lexsort((-costs[order], windows))]
        batches = np.append(np.arange(0, len(order), size), len(order))
        workers = min(threads.workers(n_jobs), size)
        return cls(workers, order, batches, make_board(_PHASES * (len(batches) - 1)))
