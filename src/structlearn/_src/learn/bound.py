"""The convex bound of CCCP, for objectives that are a difference of two worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.learn.base import Objective, Penalty


class Halved(Objective, Protocol):
    """An objective that can be taken apart into its free and its clamped worlds."""

    def half(self, weights: Floats, clamped: bool) -> tuple[float, Floats]:
        """C times the weighted values of the free or of the clamped worlds, and the gradient."""
        ...

    def take(self, which: Ints) -> Halved:
        """Return the objective of some of the examples."""
        ...


@dataclass(frozen=True, eq=False)
class Bound:
    r"""An objective whose clamped worlds are replaced by their tangents, as CCCP wants.

    .. math:: \Omega(w) + C \sum_i c_i \Phi_i^\text{free}(w) - \langle u, w \rangle - b

    It is convex, nowhere below the objective, and equal to it where the tangents touch.
    """

    whole: Halved
    tangent: Floats
    constant: float
    convex: bool = True

    @property
    def penalty(self) -> Penalty:
        """What large weights cost."""
        return self.whole.penalty

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return self.whole.n_weights

    @property
    def n_examples(self) -> int:
        """Number of examples."""
        return self.whole.n_examples

    @property
    def scales(self) -> Any:
        """What steps are to be multiplied by."""
        return getattr(self.whole, "scales", 1.0)

    def loss_slope(self, weights: Floats, which: Ints | None = None) -> tuple[float, Floats]:
        """Return the value without the penalty, and its gradient; `which` gets its part of both."""
        whole, part = self.whole, 1.0
        if which is not None:
            whole, part = whole.take(which), len(which) / self.n_examples
        value, slope = whole.half(weights, clamped=False)
        value -= part * (self.constant + float(self.tangent @ weights))
        return value, slope - part * self.tangent

    def value(self, weights: Floats) -> float:
        """Return the objective, penalty included."""
        return self.loss_slope(weights)[0] + self.penalty.value(weights)

    def value_slope(self, weights: Floats) -> tuple[float, Floats]:
        """Return the objective and the gradient of all but the non-smooth part of the penalty."""
        value, slope = self.loss_slope(weights)
        return value + self.penalty.value(weights), slope + self.penalty.slope(weights)
