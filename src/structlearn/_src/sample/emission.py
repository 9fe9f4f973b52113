"""What states emit: every emission is one factor of the density of a position given its state.

An emission is bound to data. Parameters and statistics of states are tuples of arrays whose first
axis are the states. The Gaussians of states have a conjugate prior, normal-inverse-Wishart; with
diagonal covariances it is normal-inverse-gamma for every feature.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.kernels.draw import density, moments
from structlearn._src.kernels.draw.density import (
    NO_DENSITIES,
    Densities,
    PointDensities,
    SymbolDensities,
)
from structlearn._src.sample.hdp import draw_dirichlet

Arrays = tuple[Floats, ...]

_TINY = 1e-300  # least probability of a symbol, so that its log is finite


@dataclass(frozen=True, eq=False)
class _Emission(ABC):
    """One factor of the density of every position."""

    _BY_POSITION: ClassVar[tuple[str, ...]]  #: fields with one row for every position

    @abstractmethod
    def draw_prior(self, n_states: int, rng: Generator) -> Arrays:
        """Draw parameters of new states from the prior."""

    @abstractmethod
    def densities(self, parameters: Arrays) -> Densities:
        """Return the log densities as kernels find them."""

    def add_log_densities(self, parameters: Arrays, first: int, last: int, out: Floats) -> None:
        """Add the log densities of positions `first` to `last` in every state to `out`.

        It has one row for each of these positions.
        """
        found = self.densities(parameters)
        density.add_densities(found, first, last, density.lane_workspace(found), out)

    @abstractmethod
    def refined(self, states: Ints, n_states: int, before: Arrays | None) -> Arrays:
        """Fit parameters to the positions of states, roughly: a few steps from those before."""

    def subset(self, positions: Ints) -> Self:
        """Return the same emission for some of the positions."""
        chosen: dict[str, Any] = {n: getattr(self, n).take(positions, 0) for n in self._BY_POSITION}
        return replace(self, **chosen)


class Conjugate(_Emission):
    """An emission whose parameters can be integrated out."""

    def draw_prior(self, n_states: int, rng: Generator) -> Arrays:
        """Draw parameters of new states: from the posterior given no position at all."""
        return self.draw_posterior(self.statistics(np.empty(0, np.int64), n_states, 0, 0), rng)

    def refined(self, states: Ints, n_states: int, before: Arrays | None) -> Arrays:
        """Return the posterior mean, whatever the parameters before."""
        return self.posterior_mean(self.statistics(states, n_states))

    @abstractmethod
    def statistics(
        self, states: Ints, n_states: int, first: int = 0, last: int | None = None
    ) -> Arrays:
        """Sum up positions `first` to `last` by state; the statistics of a union are a sum."""

    @abstractmethod
    def statistics_at(self, positions: Ints) -> Arrays:
        """Sum up some positions, as those of one state."""

    @abstractmethod
    def draw_posterior(self, statistics: Arrays, rng: Generator) -> Arrays:
        """Draw parameters given the statistics of every state."""

    @abstractmethod
    def log_evidence(self, statistics: Arrays) -> Floats:
        """Log marginal likelihood of the positions of every state."""

    @abstractmethod
    def posterior_mean(self, statistics: Arrays) -> Arrays:
        """Return the posterior mean of parameters, or parameters at posterior means of moments."""


class NonConjugate(_Emission):
    """An emission whose parameters are proposed, as they cannot be integrated out.

    They are proposed for one state that has all positions, by a path that begins with a draw from
    a density that these positions alone determine. The log weight of a path is a log importance
    weight: the log density of the reversed path, which begins with the unnormalised posterior, less
    that of the path as it is proposed. The mean of these weights is the evidence.
    """

    @abstractmethod
    def blank(self, n_states: int) -> Arrays:
        """Return parameters that tell no states apart."""

    @abstractmethod
    def draw(
        self, states: Ints, parameters: Arrays, rng: Generator, n_jobs: int | None = 1
    ) -> Arrays:
        """Draw parameters given the state of every position and the parameters so far.

        In threads, whose number changes no draw.
        """

    @abstractmethod
    def propose(self, rng: Generator) -> tuple[Arrays, float]:
        """Draw parameters of one state that has all positions; also return their log weight."""

    @abstractmethod
    def log_weight_of(self, parameters: Arrays, rng: Generator) -> float:
        """Draw a reversed path that begins with these parameters, and return its log weight."""


Emission = Conjugate | NonConjugate


# ---- Gaussians and their prior -----------------------------------------------------------


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
        # Upper factors U of the scale, U U': with them the product is triangular as it is.
        upper = np.linalg.cholesky(self.scale[..., ::-1, ::-1])[..., ::-1, ::-1]
        roots = np.swapaxes(np.linalg.solve(np.swapaxes(upper, -1, -2), bartlett), -1, -2)
        noise = rng.standard_normal(self.mean.shape) / np.sqrt(self.strength)[..., None]
        return self.mean + np.linalg.solve(roots, noise[..., None])[..., 0], roots


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


@dataclass(frozen=True, eq=False)
class Gaussian(Conjugate):
    """Points with a Gaussian density in every state.

    Parameters are the means (states, features), the bands of the roots of the inverse covariances
    (states, features, features), or of diagonal ones (states, features, 1), and the log normalising
    constants (states,), as they are added to log densities.
    """

    data: Floats  #: (positions, features) zeros where a position is not seen
    seen: Bools  #: (positions,)
    prior: NormalWishart | NormalGamma

    _BY_POSITION = ("data", "seen")

    @cached_property
    def _columns(self) -> Floats:
        return np.ascontiguousarray(self.data.T)

    def draw_posterior(self, statistics: Arrays, rng: Generator) -> Arrays:
        """Draw parameters given the statistics of every state."""
        return self._packed(*self.prior.posterior(Moments(*statistics)).draw(rng))

    def densities(self, parameters: Arrays) -> Densities:
        """Return the log densities as kernels find them."""
        return NO_DENSITIES._replace(points=PointDensities(self._columns, self.seen, *parameters))

    def statistics(
        self, states: Ints, n_states: int, first: int = 0, last: int | None = None
    ) -> Arrays:
        """Numbers, sums and products of the points of every state."""
        D = self.data.shape[1]
        counts = np.zeros(n_states)
        sums = np.zeros((n_states, D))
        outers = np.zeros((n_states, D, D if self.full else 1))
        last = len(states) if last is None else last
        density.add_moments(self.data, self.seen, states, first, last, counts, sums, outers)
        return counts, sums, (outers if self.full else outers[:, :, 0])

    def statistics_at(self, positions: Ints) -> Arrays:
        """Numbers, sums and products of some points."""
        D = self.data.shape[1]
        found = moments.moment_sums(1, 1, 1, D, self.full)
        workspace = moments.moment_workspace(D, self.full)
        moments.add_up_some(self.data, self.seen, positions, self.full, found, workspace)
        return found.counts, found.sums, (found.outers if self.full else found.outers[:, :, 0])

    def log_evidence(self, statistics: Arrays) -> Floats:
        """Log marginal likelihood of the points of every state."""
        return self.prior.log_evidence(Moments(*statistics))

    def posterior_mean(self, statistics: Arrays) -> Arrays:
        """Posterior mean of the means, and covariances at the mean of their inverses."""
        after = self.prior.posterior(Moments(*statistics))
        degrees = np.asarray(after.degrees)[:, None]
        if isinstance(after, NormalGamma):
            return self._packed(after.mean, np.sqrt(degrees / after.scale))
        lower = np.linalg.cholesky(np.linalg.inv(after.scale) * degrees[..., None])
        return self._packed(after.mean, np.swapaxes(lower, -1, -2))

    @property
    def full(self) -> bool:
        """Whether features depend on each other."""
        return isinstance(self.prior, NormalWishart)

    def _packed(self, means: Floats, roots: Floats) -> Arrays:
        """Return parameters as kernels take them."""
        diagonal = np.diagonal(roots, axis1=-2, axis2=-1) if self.full else roots
        logs = np.log(diagonal).sum(-1) - 0.5 * means.shape[1] * np.log(2.0 * np.pi)
        bands = _bands(roots) if self.full else np.ascontiguousarray(roots[:, :, None])
        return means, bands, logs


@dataclass(frozen=True, eq=False)
class Categorical(Conjugate):
    """Symbols with probabilities of their own in every state.

    Parameters are log probabilities (states, symbols), whose prior is a Dirichlet distribution.
    """

    data: Ints  #: (positions,) symbols from 0 on, -1 where missing
    prior: Floats  #: (symbols,) counts before any symbol is seen

    _BY_POSITION = ("data",)

    def draw_posterior(self, statistics: Arrays, rng: Generator) -> Arrays:
        """Draw parameters given the statistics of every state."""
        shares = draw_dirichlet(self.prior + statistics[0], rng)
        return (np.log(np.maximum(shares, _TINY)),)

    def densities(self, parameters: Arrays) -> Densities:
        """Return the log probabilities as kernels find them."""
        return NO_DENSITIES._replace(symbols=SymbolDensities(self.data, *parameters))

    def statistics(
        self, states: Ints, n_states: int, first: int = 0, last: int | None = None
    ) -> Arrays:
        """How often every state has every symbol."""
        data = self.data[first:last]
        shape = n_states, len(self.prior)
        cells = (states[first:last] * shape[1] + data)[data >= 0]
        counts = np.bincount(cells, minlength=shape[0] * shape[1])
        return (counts.reshape(shape).astype(float),)

    def statistics_at(self, positions: Ints) -> Arrays:
        """How often some positions have every symbol."""
        data = self.data[positions]
        return (np.bincount(data[data >= 0], minlength=len(self.prior)).astype(float)[None],)

    def log_evidence(self, statistics: Arrays) -> Floats:
        """Log marginal likelihood of the symbols of every state."""
        (counts,) = statistics
        cells = (gammaln(self.prior + counts) - gammaln(self.prior)).sum(-1)
        total = self.prior.sum()
        return cells + gammaln(total) - gammaln(total + counts.sum(-1))

    def posterior_mean(self, statistics: Arrays) -> Arrays:
        """Expected probabilities."""
        mass = self.prior + statistics[0]
        return (np.log(mass / mass.sum(-1, keepdims=True)),)


def covariances(parameters: Arrays) -> Floats:
    """Return the covariances (states, features, features) of the parameters of Gaussians."""
    _, bands, _ = parameters
    if bands.shape[2] < bands.shape[1]:
        return bands[:, :, 0, None] ** -2.0 * np.eye(bands.shape[1])
    roots = np.triu(_unpacked(bands))
    return np.asarray(np.linalg.inv(np.swapaxes(roots, -1, -2) @ roots), float)


def _bands(upper: Floats) -> Floats:
    """Return the bands of upper triangles (n, D, D), zeros beyond their ends."""
    D = upper.shape[-1]
    found = np.zeros(upper.shape)
    for i in range(D):
        found[:, i, : D - i] = upper[:, i, i:]
    return found


def _unpacked(bands: Floats) -> Floats:
    """Return the symmetric matrices (n, D, D) whose upper triangles have these bands."""
    rows, columns = np.indices(bands.shape[1:])
    low = np.minimum(rows, columns)
    return bands[:, low, np.maximum(rows, columns) - low]
