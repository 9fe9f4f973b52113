"""Sequences on a graphics card: what `Cuda` takes over from the layer `learn`."""

from __future__ import annotations

from typing import Any


class ChainsOnCard:
    """Objectives of sequences with their examples on the card; solvers stay with the host."""

    device: str

    def objective(self, objective: Any) -> Any:
        """Return an objective on the card where there is one, else what was given."""
        try:
            from structlearn._src.cuda import chain_objective
        except ImportError:  # PyTorch without Triton
            return objective
        if chain_objective.objection(objective):
            return objective
        return chain_objective.CardObjective.of(objective, self.device)
