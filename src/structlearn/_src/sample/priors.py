"""Conjugate priors of Gaussians: what their posteriors need of points, and draws.

The prior is normal-inverse-Wishart; with diagonal covariances it is normal-inverse-gamma for every
feature.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln

from structlearn._src.common.arrays import Floats
from structlearn._src.kernels.draw import density


class Moments(NamedTuple):
    """What a Gaussian needs to know of the points of every state; those of unions are sums."""

    counts: Floats  #: (states,)
    sums: Floats  #: (states, features)
    outers: Floats  #: (states, features, features), or (states, features) of the diagonal alone


@dataclass(frozen=True, eq=False)
class _NormalPrior(ABC):
    """One distribution of Gaussians, or a stack of them."""

    mean: Floats  #: (..., features)
    strength: Floats | float  #: (...,) how many points the expected mean counts for
    degrees: Floats | float  #: (...,) of freedom: how many the expected variances count for
    scale: Floats  #: (..., features, features), or (..., features) of the diagonal alone

    @property
    def width(self) -> int:
        """Number of features."""
        return self.mean.shape[-1]

    @abstractmethod
    def _products(self, rows: Floats) -> Floats:
        """Products of features, as `scale` has them."""

    @abstractmethod
    def _log_normaliser(self) -> Floats:
        """Log normalising constant, up to a term in the number of features alone."""

    def repeated(self, n: int) -> Self:
        """Return a stack of one distribution, `n` times."""
        numbers = np.full(n, self.strength), np.full(n, self.degrees)
        mean, scale = (np.broadcast_to(a, (n, *a.shape)) for a in (self.mean, self.scale))
        return type(self)(mean, numbers[0], numbers[1], scale)

    def posterior(self, moments: Moments) -> Self:
        """Return the distributions given the points of every state, as a stack."""
        counts = np.asarray(moments.counts, float)
        strength = self.strength + counts
        mean = (np.asarray(self.strength) * self.mean + moments.sums) / strength[:, None]
        before = np.asarray(self.strength) * self._products(self.mean)
        after = strength.reshape(-1, *(1,) * self.scale.ndim) * self._products(mean)
        scale = self.scale + moments.outers + before - after
        return type(self)(mean, strength, self.degrees + counts, scale)

    def log_evidence(self, moments: Moments) -> Floats:
        """Log marginal likelihood of the points of every state, (states,)."""
        after = self.posterior(moments)._log_normaliser()
        constant = 0.5 * self.width * np.log(np.pi)
        return after - self._normaliser - constant * np.asarray(moments.counts)

    @cached_property
    def _normaliser(self) -> Floats:
        return self._log_normaliser()


class NormalWishart(_NormalPrior):
    r"""One distribution of means and covariances, or a stack of them.

    .. math:: \Sigma \sim \mathrm{IW}(\mathrm{degrees}, S), \qquad
              \mu \mid \Sigma \sim N(m, \Sigma / \mathrm{strength}) .

    The expected covariance is ``scale / (degrees - features - 1)``; degrees are above ``features -
    1``.
    """

    def _products(self, rows: Floats) -> Floats:
        return rows[..., :, None] * rows[..., None, :]

    def _log_normaliser(self) -> Floats:
        D = self.width
        half = 0.5 * np.asarray(self.degrees, float)
        volume = np.linalg.slogdet(self.scale)[1]
        gammas = gammaln(half[..., None] - 0.5 * np.arange(D)).sum(-1)
        return gammas - half * volume - 0.5 * D * np.log(self.strength)

    def log_evidence(self, moments: Moments) -> Floats:
        """Log marginal likelihood of the points of every state, (states,)."""
        D = self.width
        values = np.empty(len(moments.counts))
        given = self.mean, self.scale, float(self.strength), float(self.degrees)
        density.log_evidences(*moments, *given, np.empty((D, D)), np.empty(D), values)
        return values - self._normaliser

    def log_predictive(self, points: Floats) -> Floats:
        """Log density of one more point: (..., n) for points (n, features); Student's t."""
        D = self.width
        df = np.asarray(self.degrees, float) - D + 1.0
        grow = (np.asarray(self.strength) + 1.0) / (np.asarray(self.strength) * df)
        root = np.linalg.cholesky(self.scale * grow[..., None, None])
        away = np.swapaxes(points - self.mean[..., None, :], -1, -2)
        squares = (np.linalg.solve(root, away) ** 2).sum(-2)
        volume = np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(-1)
        constant = gammaln(0.5 * (df + D)) - gammaln(0.5 * df) - 0.5 * D * np.log(df * np.pi)
        tail = 0.5 * (df + D)[..., None] * np.log1p(squares / df[..., None])
        return (constant - volume)[..., None] - tail

    def draw(self, rng: Generator) -> tuple[Floats, Floats]:
        """Draw the means (..., features), and roots ``R`` (..., features, features).

        The inverse covariance is ``R' R``, with ``R`` upper triangular and its diagonal positive.
        """
        D = self.width
        degrees = np.asarray(self.degrees, float)
        chi = np.sqrt(rng.chisquare(degrees[..., None] - np.arange(D)))
        bartlett = np.tril(rng.standard_normal(self.scale.shape), -1)
        bartlett[..., np.arange(D), np.arange(D)] = chi
        noise = rng.standard_normal(self.mean.shape) / np.sqrt(self.strength)[..., None]
        means = np.array(self.mean, order="C")
        return means, self._roots(bartlett, noise, means)

    def expected(self) -> tuple[Floats, Floats]:
        """Return the expected means, and such roots of the expected inverse covariances."""
        degrees = np.sqrt(np.asarray(self.degrees, float))[..., None, None]
        nothing = np.zeros(self.mean.shape)
        means = np.array(self.mean, order="C")
        return means, self._roots(degrees * np.eye(self.width), nothing, means)

    def _roots(self, lower: Floats, noise: Floats, means: Floats) -> Floats:
        """Return roots of inverse covariances, of what is between those of the scale matrices.

        Adds noise by these covariances to the means.
        """
        D = self.width
        found = np.empty(self.scale.shape)
        flat = (a.reshape(-1, D, D) for a in (np.ascontiguousarray(self.scale), lower))
        rows = (a.reshape(-1, D) for a in (noise, means))
        given = (*flat, next(rows), np.empty((D, D)), found.reshape(-1, D, D), next(rows))
        density.precision_roots(*given)
        return found


class NormalGamma(_NormalPrior):
    r"""One distribution of means and variances of independent features, or a stack of them.

    .. math:: 1 / \sigma^2 \sim \mathrm{Gamma}(\mathrm{degrees} / 2, s / 2), \qquad
              \mu \mid \sigma \sim N(m, \sigma^2 / \mathrm{strength}) .

    With one feature this is the normal-inverse-Wishart distribution. The expected variance is
    ``scale / (degrees - 2)``.
    """

    def _products(self, rows: Floats) -> Floats:
        return rows**2

    def _log_normaliser(self) -> Floats:
        D = self.width
        half = 0.5 * np.asarray(self.degrees, float)
        logs = np.log(self.scale).sum(-1)
        return D * (gammaln(half) - 0.5 * np.log(self.strength)) - half * logs

    def draw(self, rng: Generator) -> tuple[Floats, Floats]:
        """Draw the means (..., features) and inverse standard deviations (..., features)."""
        half = 0.5 * np.asarray(self.degrees, float)[..., None]
        roots = np.sqrt(2.0 * rng.standard_gamma(half, self.mean.shape) / self.scale)
        noise = rng.standard_normal(self.mean.shape) / np.sqrt(self.strength)[..., None]
        return self.mean + noise / roots, roots

    def expected(self) -> tuple[Floats, Floats]:
        """Return the expected means, and the roots of the expected inverse variances."""
        return self.mean, np.sqrt(np.asarray(self.degrees)[..., None] / self.scale)
