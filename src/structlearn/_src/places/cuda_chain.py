"""Sequences on a graphics card: what `Cuda` takes over from the layer `learn`."""

from __future__ import annotations

from typing import Any


class ChainsOnCard:
    """Objectives of sequences with their examples on the card, and steps of L-BFGS there."""

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

    def solver(self, solver: Any, objective: Any, saved: bool = False) -> Any:
        """Return a solver whose vectors stay on the card where there is one; saved ones do not."""
        if saved:
            return solver
        try:
            from structlearn._src.cuda import card_lbfgs
        except ImportError:  # PyTorch without Triton
            return solver
        if not card_lbfgs.suits(solver, objective):
            return solver
        return card_lbfgs.CardLbfgs.of(solver)
