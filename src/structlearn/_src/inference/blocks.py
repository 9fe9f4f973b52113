"""Block ascent for MAP: fix a random few variables, solve for all others exactly, repeat."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.condition import condition
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Problem, exceeds
from structlearn._src.inference.junction import EliminationTree
from structlearn._src.inference.order import cutset, find_order

_PATIENCE = 10  # rounds without gain after which the ascent ends


class BlockAscent:
    """Raise the score of an assignment by exact maximisation over large blocks.

    Each round cuts a random set of variables so that the rest can be eliminated with small
    tables, keeps the cut ones as they are and maximises over all others at once: the score
    never falls, and a block reaches across barriers that single flips cannot pass.
    """

    def __init__(
        self,
        wiring: Wiring,
        potentials: Floats,
        labels: Ints,
        max_table: int,
        rng: np.random.Generator,
    ) -> None:
        self.wiring = wiring
        self.potentials = potentials
        self.rng = rng
        self.labels = labels.copy()
        self.max_table = max_table
        self.value = wiring.score(potentials, labels)
        self._idle = 0

    def step(self) -> bool:
        """One round; True once several in a row gained nothing."""
        fixed = np.where(cutset(self.wiring, self.max_table, self.rng), self.labels, -1)
        small = condition(self.wiring, self.potentials, fixed)
        free = np.zeros(len(small.variables), np.bool_)
        problem = Problem(small.wiring, small.potentials, 0.0, 0.0)
        tree = EliminationTree(problem, find_order(small.wiring, free))
        store = tree.stores.take()
        tree.forward(small.potentials, store)
        labels = self.labels.copy()
        labels[small.variables] = tree.decode(store)
        value = self.wiring.score(self.potentials, labels)
        better = exceeds(value, self.value, 1e-12)
        self.labels = np.where(better[self.wiring.variable_graphs], labels, self.labels)
        self.value = np.where(better, value, self.value)
        self._idle = 0 if better.any() else self._idle + 1
        return self._idle >= _PATIENCE
