r"""Dual steps in shards that work at once.

The dual of a penalised sum of losses has one block of variables for every example, and the weights
:math:`w` are a linear function of all of them. A *round* cuts the examples into shards. From the
same weights every shard :math:`k` takes steps on its own examples, with a copy of the weights that
moves :math:`\sigma` times as far as its variables say, as if the others moved likewise; what its
variables say is its :math:`\Delta_k`. Then all are added: :math:`w := w + \sum_k \Delta_k`.

Steps of a shard raise its part of the dual, in which squares count :math:`\sigma` times. So the
round raises the dual by at least as much as all of them together where

.. math:: \Bigl\|\sum_k \Delta_k\Bigr\|^2 \le \sigma \sum_k \|\Delta_k\|^2

which always holds for :math:`\sigma` equal to the number of shards: that round is a step of CoCoA+,
and converges on any data. Less is enough where shards have little in common. The left side over
the right sum is known after a round and is what the next one begins with; a round after which the
dual is lower is taken back, and made again with twice the :math:`\sigma`.

`merge` needs nothing but the weights and one :math:`\Delta_k` per shard: shards may as well lie in
other processes, which get the weights and :math:`\sigma`, and return their :math:`\Delta_k` and by
how much the rest of their dual has changed.

References
----------
C. Ma, V. Smith, M. Jaggi, M. Jordan, P. Richtarik, M. Takac, "Adding vs. averaging in distributed
primal-dual optimization", 2015, algorithm 1 and lemma 4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.common.vectors import summed

_SAFE = 1.1  # times the coupling that the last round would have needed
_SLOWLY = 0.7  # the least factor by which it changes from round to round


class Merged(NamedTuple):
    """What a merge tells."""

    along: float  #: product of the weights before with the change
    square: float  #: squared length of the change
    needed: float  #: coupling with which the shards would have known it


def merge(weights: Floats, copies: Floats, coupling: float, n_jobs: int | None) -> Merged:
    """Add what all shards have done, in their order, to the weights.

    `copies` (shards, weights) are where the shards ended.
    """

    def work(part: slice) -> Floats:
        before = weights[part].copy()
        total = np.zeros_like(before)
        squares = 0.0
        for copy in copies:
            own = (copy[part] - before) / coupling
            squares += own @ own
            total += own
        weights[part] += total
        return np.array([before @ total, total @ total, squares])

    along, square, squares = summed(work, len(weights), n_jobs).tolist()
    return Merged(along, square, square / squares if squares > 0.0 else 1.0)


def next_coupling(coupling: float, needed: float, shards: int) -> float:
    """Return the coupling of the next round."""
    return min(max(_SAFE * needed, _SLOWLY * coupling, 1.0), float(shards))
