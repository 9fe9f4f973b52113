"""Hinge-loss fields on a graphics card: what `Cuda` takes over from the layer `field`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from structlearn._src.field.consensus import Consensus
from structlearn._src.field.hinges import Hinges


class FieldsOnCard:
    """ADMM and Newton steps on the card, so that `solve_map` and all that uses it run there."""

    device: str

    def make_consensus(
        self, _: Callable[..., Consensus], hinges: Hinges, **options: Any
    ) -> Consensus:
        """Return ADMM on the card, whatever the number of threads."""
        from structlearn._src.cuda.card_consensus import CardConsensus

        return CardConsensus(hinges, device=self.device, **options)
