r"""Gaussians with a diagonal covariance: one normal-inverse-gamma distribution for each feature.

.. math:: 1 / \sigma^2 \sim \mathrm{Gamma}(\mathrm{degrees} / 2, s / 2), \qquad
          \mu \mid \sigma \sim N(m, \sigma^2 / \mathrm{strength}) .

With one feature this is the normal-inverse-Wishart distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import gammaln

from structlearn._src.common.arrays import Floats
from structlearn._src.sample.normal_wishart import Moments


@dataclass(frozen=True, eq=False)
class NormalGamma:
    """One distribution of means and variances, or a stack of them.

    Parameters
    ----------
    mean, scale
        (..., features) Expected mean; the expected variance is ``scale / (degrees - 2)``.
    strength, degrees
        (...,) How many points expected mean and variance count for.
    """

    mean: Floats
    strength: Floats | float
    degrees: Floats | float
    scale: Floats

    def posterior(self, moments: Moments) -> NormalGamma:
        """Return the distributions given the points of every state, as a stack."""
        counts = np.asarray(moments.counts, float)
        strength = self.strength + counts
        mean = (np.asarray(self.strength) * self.mean + moments.sums) / strength[:, None]
        pulled = np.asarray(self.strength) * self.mean**2 - strength[:, None] * mean**2
        scale = self.scale + moments.outers + pulled
        return NormalGamma(mean, strength, self.degrees + counts, scale)

    @cached_property
    def log_normaliser(self) -> Floats:
        """Log of what the density is divided by, up to a constant of the number of features."""
        D = self.mean.shape[-1]
        half = 0.5 * np.asarray(self.degrees, float)
        logs = np.log(self.scale).sum(-1)
        return D * (gammaln(half) - 0.5 * np.log(self.strength)) - half * logs

    def log_evidence(self, moments: Moments) -> Floats:
        """Log marginal likelihood of the points of every state, (states,)."""
        after = self.posterior(moments).log_normaliser
        constant = 0.5 * self.mean.shape[-1] * np.log(np.pi)
        return after - self.log_normaliser - constant * np.asarray(moments.counts)

    def draw(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw the means (..., features) and inverse standard deviations (..., features)."""
        half = 0.5 * np.asarray(self.degrees, float)[..., None]
        roots = np.sqrt(2.0 * rng.standard_gamma(half, self.mean.shape) / self.scale)
        noise = rng.standard_normal(self.mean.shape) / np.sqrt(self.strength)[..., None]
        return self.mean + noise / roots, roots
