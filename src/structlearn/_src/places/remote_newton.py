"""Newton steps over forms on workers: slopes and rows stay there, directions are found here."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common.arrays import Bools, Floats
from structlearn._src.field.newton import Polish
from structlearn._src.kernels.field import newton
from structlearn._src.places import form_shard
from structlearn._src.places.form_shard import own
from structlearn._src.places.remote_consensus import RemoteConsensus

_NONE = np.empty(0)


class RemotePolish(Polish):
    """Newton steps from where a state with forms on workers stands."""

    consensus: RemoteConsensus

    def _allocate(self) -> None:
        n = self.consensus.hinges.n_variables
        blocks = self.consensus.blocks
        self._system: Any = RemoteSystem(self.consensus)
        self._slopes = self.consensus.slopes
        self._gradient = np.empty(n)
        self._free = np.empty(n, np.bool_)
        self._found = np.empty((blocks.n_variable_blocks, 2))
        self._most = np.empty(blocks.n_variable_blocks)
        self._spare = np.empty(n)

    def _evaluate(self, point: Floats) -> float:
        """Return the augmented energy without its last term; its gradient comes with it."""
        soft = self._softness, self._softness
        bases: Any = self._bases
        given = bases.number, self.weights, soft, point
        value, pull = self.consensus.ask(form_shard.evaluate, *given)
        self._pull = own(pull)
        return float(value)

    def _descend(self) -> float:
        """Keep the gradient, and which variables no bound holds back."""
        blocks = self.consensus.blocks
        self._gradient[:] = self._pull
        blocks.over_variables(
            newton.descend, blocks.columns, self.consensus.bounds, _NONE, self._point,
            self._anchor, self._prox, self.scale, self._gradient, self._free, self._most, True,
        )  # fmt: skip
        return float(self._most.max())


class RemoteSystem:
    r"""Linear systems :math:`(H + \delta I) x = -g` whose rows are on workers.

    Conjugate gradients, preconditioned as in `NewtonSystem`: a product with :math:`H` is one
    question to all workers.
    """

    def __init__(self, consensus: RemoteConsensus) -> None:
        self.consensus = consensus
        self.solution = np.zeros(consensus.hinges.n_variables)

    def gather(
        self, weights: Floats, softness: tuple[float, float], slopes: Any, free: Bools, prox: float
    ) -> None:
        """Take :math:`H` where forms have these slopes, which are with the workers."""
        (found,) = self.consensus.ask(form_shard.gather, weights, softness, free)
        self._free = free
        self._prox = prox
        self._diagonal = found.diagonal + prox
        self._owned = np.flatnonzero(found.owners >= 0)
        self._owners = found.owners[self._owned]
        self._entries = found.owned[self._owned]
        self._scaled = self._entries / self._diagonal[self._owned]
        self._sizes = 1.0 + np.bincount(self._owners, self._entries * self._scaled, found.n_rows)

    def _precondition(self, left: Floats) -> Floats:
        """Divide by the diagonal plus the own part of every stiff row (Sherman and Morrison)."""
        out: Floats = left / self._diagonal
        product = np.bincount(self._owners, self._scaled * left[self._owned], len(self._sizes))
        out[self._owned] -= self._scaled * (product / self._sizes)[self._owners]
        return out

    def solve(self, gradient: Floats, tol: float, max_iter: int) -> int:
        """Write the solution; return the number of steps."""
        left = np.where(self._free, -gradient, 0.0)
        self.solution[:] = 0.0
        along = np.zeros_like(left)
        old = np.inf
        enough = 0.0
        for n in range(max_iter):
            scaled = self._precondition(left)
            size = float(left @ scaled)
            enough = enough if n else size * tol * tol
            if size <= enough and (n > 0 or size == 0.0):
                return n
            along *= size / old
            along += scaled
            old = size
            image, missing = self.consensus.ask(form_shard.multiply, along)
            image = image + self._prox * along
            curved = float(along @ image)
            if missing or not 0.0 < curved < np.inf:
                return n  # the direction so far has to do
            length = size / curved
            self.solution += length * along
            left -= length * image
        return max_iter
