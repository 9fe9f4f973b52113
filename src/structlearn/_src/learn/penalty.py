"""What large weights cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats


@dataclass(frozen=True)
class ElasticNet:
    r"""Squares and absolute values of the weights.

    .. math:: \Omega(w) = \tfrac{1}{2} (1 - r) \|w\|_2^2 + r \|w\|_1

    with :math:`r` the `l1_ratio`: 0 is the ridge of support vector machines and CRFs, 1 the lasso.
    All is multiplied by `strength`.
    """

    l1_ratio: float = 0.0
    strength: float = 1.0

    def __post_init__(self) -> None:
        checks.number("l1_ratio", self.l1_ratio, low=0.0, high=1.0)
        checks.number("strength", self.strength, low=0.0)

    @property
    def smooth(self) -> bool:
        """Whether `gradient` tells everything."""
        return self.lasso == 0.0

    @property
    def ridge(self) -> float:
        """Factor of half the sum of squares."""
        return self.strength * (1.0 - self.l1_ratio)

    @property
    def lasso(self) -> float:
        """Factor of the sum of absolute values."""
        return self.strength * self.l1_ratio

    def value(self, weights: Floats) -> float:
        """Return the whole penalty."""
        squares = 0.5 * self.ridge * float(weights @ weights)
        return squares + (0.0 if self.smooth else self.lasso * float(np.abs(weights).sum()))

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient of the squares."""
        return self.ridge * weights

    def prox(self, weights: Floats, step: float | Floats) -> Floats:
        """Pull every weight towards 0 by ``step * lasso``, no further than 0."""
        return np.sign(weights) * np.maximum(np.abs(weights) - step * self.lasso, 0.0)


@dataclass(frozen=True)
class NonNegative(ElasticNet):
    """The same for weights that must not fall below 0: `prox` projects them."""

    @property
    def smooth(self) -> bool:
        """Whether `gradient` tells everything: never, as there is a border."""
        return False

    def prox(self, weights: Floats, step: float | Floats) -> Floats:
        """Pull every weight down by ``step * lasso``, no further than 0."""
        return np.maximum(weights - step * self.lasso, 0.0)
