r"""A world: one inference problem whose potentials follow the weights.

Every learner compares two of them. In the *free* world outputs and hidden variables may take any
value, often pushed towards mistakes by a task cost; in the *clamped* world outputs are fixed to
the labels. A world answers with the value of every example and the expected tables of every group
of factors, that is the gradient of the values by the tables.
"""

from __future__ import annotations

from typing import Protocol

from structlearn._src.common.arrays import Floats
from structlearn._src.inference.messenger import Messenger
from structlearn._src.model.model import Tables


class World(Protocol):
    """One inference problem over a batch of examples, with what it remembers between calls."""

    @property
    def messengers(self) -> tuple[Messenger, ...]:
        """Whatever passes messages here, and keeps them between calls; none in exact worlds."""
        ...

    def solve(self, tables: Tables, weights: Floats) -> tuple[Floats, Tables]:
        """Values of the examples, and the expected tables times the examples' weights.

        The arrays are new, so that the caller may change them.
        """
        ...

    def subtract(self, tables: Tables, weights: Floats, out: Tables) -> Floats:
        """Values of the examples; subtracts the weighted expected tables from `out`."""
        ...


class Subtracting:
    """A world that subtracts what it solves for."""

    def solve(self, tables: Tables, weights: Floats) -> tuple[Floats, Tables]:
        """Values of the examples, and the weighted expected tables."""
        raise NotImplementedError

    def subtract(self, tables: Tables, weights: Floats, out: Tables) -> Floats:
        """Values of the examples; subtracts the weighted expected tables from `out`."""
        values, expected = self.solve(tables, weights)
        for mine, theirs in zip(out, expected, strict=True):
            mine -= theirs
        return values
