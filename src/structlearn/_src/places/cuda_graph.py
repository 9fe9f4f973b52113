"""Message passing on a graphics card: what `Cuda` takes over from the layer `inference`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from structlearn._src.inference.base import Problem
from structlearn._src.inference.messenger import Messenger


class GraphsOnCard:
    """Sweeps over pairwise graphs with cycles on the card; others stay in threads."""

    device: str
    at_once: ClassVar[bool] = True

    def make_messenger(
        self, on_host: Callable[..., Messenger], problem: Problem, **options: Any
    ) -> Messenger:
        """Return who passes messages."""
        from structlearn._src.cuda.card_messenger import CardMessenger, suits

        if not suits(problem, options.get("schedule", "sequential")):
            return on_host(problem, **options)
        return CardMessenger(problem, device=self.device, **options)
