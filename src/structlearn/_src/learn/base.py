"""What a solver may ask of an objective, and what a penalty must know."""

from __future__ import annotations

from typing import Protocol

from structlearn._src.common.arrays import Floats, Ints


class Penalty(Protocol):
    """What large weights cost: a smooth part, and a part that only `prox` can handle."""

    @property
    def smooth(self) -> bool:
        """Whether `slope` tells everything, so that no `prox` is needed."""
        ...

    def value(self, weights: Floats) -> float:
        """Return the whole penalty."""
        ...

    def slope(self, weights: Floats) -> Floats:
        """Return the gradient of the smooth part."""
        ...

    def prox(self, weights: Floats, step: float | Floats) -> Floats:
        r"""Return :math:`\arg\min_v \frac{1}{2 s} \|v - w\|^2` plus the other part at ``v``."""
        ...


class Objective(Protocol):
    r"""Penalty plus C times the summed losses of the examples.

    .. math:: F(w) = \Omega(w) + C \sum_i c_i \ell_i(w)
    """

    @property
    def penalty(self) -> Penalty:
        """What large weights cost."""
        ...

    @property
    def convex(self) -> bool:
        """Whether every minimum is a global one."""
        ...

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        ...

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        ...

    def loss_slope(self, weights: Floats, which: Ints | None = None) -> tuple[float, Floats]:
        """C times the weighted losses of all examples, or of those in `which`, and the gradient."""
        ...

    def value(self, weights: Floats) -> float:
        """Return the objective, penalty included."""
        ...

    def value_slope(self, weights: Floats) -> tuple[float, Floats]:
        """Return the objective and the gradient of all but the non-smooth part of the penalty."""
        ...
