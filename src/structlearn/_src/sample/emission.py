"""What states emit: every emission is one factor of the density of a position given its state.

An emission is bound to data. Parameters and statistics of states are tuples of arrays whose first
axis are the states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cache
from typing import Self

import numpy as np
from scipy.special import gammaln

from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.kernels.draw import density
from structlearn._src.sample.hdp import draw_dirichlet
from structlearn._src.sample.normal_wishart import Moments, NormalGamma, NormalWishart

Arrays = tuple[Floats, ...]

_TINY = 1e-300  # least probability of a symbol, so that its log is finite


class _Emission(ABC):
    """One factor of the density of every position."""

    @abstractmethod
    def draw_prior(self, n_states: int, rng: np.random.Generator) -> Arrays:
        """Draw parameters of new states from the prior."""

    @abstractmethod
    def add_log_densities(self, parameters: Arrays, first: int, last: int, out: Floats) -> None:
        """Add the log densities of positions `first` to `last` in every state to `out`.

        It has one row for each of these positions.
        """

    @abstractmethod
    def subset(self, positions: Ints) -> Self:
        """Return the same emission for some of the positions."""


class Conjugate(_Emission):
    """An emission whose parameters can be integrated out."""

    @abstractmethod
    def statistics(
        self, states: Ints, n_states: int, first: int = 0, last: int | None = None
    ) -> Arrays:
        """Sum up positions `first` to `last` by state; the statistics of a union are a sum."""

    @abstractmethod
    def draw_posterior(self, statistics: Arrays, rng: np.random.Generator) -> Arrays:
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
    the prior. The log weight of a path is the log of the density of paths back from the posterior,
    not normalised, less that of paths that are proposed: an importance weight, whose mean is the
    evidence.
    """

    @abstractmethod
    def draw(
        self, states: Ints, parameters: Arrays, rng: np.random.Generator, n_jobs: int | None = 1
    ) -> Arrays:
        """Draw parameters given the state of every position and the parameters so far.

        In threads, whose number changes no draw.
        """

    @abstractmethod
    def refined(self, states: Ints, n_states: int, before: Arrays | None) -> Arrays:
        """Fit parameters to the positions of states, roughly: a few steps from those before."""

    @abstractmethod
    def propose(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Draw parameters of one state that has all positions; also return their log weight."""

    @abstractmethod
    def log_weight_of(self, parameters: Arrays, rng: np.random.Generator) -> float:
        """Draw a path back from parameters, and return its log weight."""


Emission = Conjugate | NonConjugate


@dataclass(frozen=True, eq=False)
class Gaussian(Conjugate):
    """Points with a Gaussian density in every state.

    Parameters are the means (states, features), the bands of the roots of the inverse covariances
    (states, features, features), or of diagonal ones (states, features, 1), and the log of what
    the densities are divided by, negative, (states,).
    """

    data: Floats  #: (positions, features) zeros where a position is not seen
    seen: Bools  #: (positions,)
    prior: NormalWishart | NormalGamma

    def __post_init__(self) -> None:
        object.__setattr__(self, "_columns", np.ascontiguousarray(self.data.T))

    def draw_prior(self, n_states: int, rng: np.random.Generator) -> Arrays:
        """Draw parameters of new states from the prior."""
        D = self.data.shape[1]
        shape = (n_states, D, D) if self._full else (n_states, D)
        nothing = Moments(np.zeros(n_states), np.zeros((n_states, D)), np.zeros(shape))
        return self._packed(*self.prior.posterior(nothing).draw(rng))

    def draw_posterior(self, statistics: Arrays, rng: np.random.Generator) -> Arrays:
        """Draw parameters given the statistics of every state."""
        return self._packed(*self.prior.posterior(Moments(*statistics)).draw(rng))

    def add_log_densities(self, parameters: Arrays, first: int, last: int, out: Floats) -> None:
        """Add the log densities of positions `first` to `last` in every state to `out`."""
        columns: Floats = self._columns  # type: ignore[attr-defined]
        density.add_gaussians(columns, self.seen, *parameters, first, last, out)

    def subset(self, positions: Ints) -> Gaussian:
        """Return the same emission for some of the positions."""
        return replace(self, data=self.data[positions], seen=self.seen[positions])

    def statistics(
        self, states: Ints, n_states: int, first: int = 0, last: int | None = None
    ) -> Arrays:
        """Numbers, sums and products of the points of every state."""
        D = self.data.shape[1]
        counts = np.zeros(n_states)
        sums = np.zeros((n_states, D))
        bands = np.zeros((n_states, D, D if self._full else 1))
        rows = slice(first, last)
        density.add_moments(self.data[rows], self.seen[rows], states[rows], counts, sums, bands)
        return counts, sums, (_unpacked(bands) if self._full else bands[:, :, 0])

    def log_evidence(self, statistics: Arrays) -> Floats:
        """Log marginal likelihood of the points of every state."""
        return self.prior.log_evidence(Moments(*statistics))

    def posterior_mean(self, statistics: Arrays) -> Arrays:
        """Posterior mean of the means, and covariances at the mean of their inverses."""
        after = self.prior.posterior(Moments(*statistics))
        if isinstance(after, NormalGamma):
            return self._packed(after.mean, np.sqrt(_column(after.degrees) / after.scale))
        inverse = np.linalg.inv(after.scale) * _column(after.degrees)[..., None]
        lower = np.linalg.cholesky(inverse)
        return self._packed(after.mean, np.swapaxes(lower, -1, -2))

    @property
    def _full(self) -> bool:
        return isinstance(self.prior, NormalWishart)

    def _packed(self, means: Floats, roots: Floats) -> Arrays:
        """Return parameters as kernels take them."""
        diagonal = np.diagonal(roots, axis1=-2, axis2=-1) if self._full else roots
        logs = np.log(diagonal).sum(-1) - 0.5 * means.shape[1] * np.log(2.0 * np.pi)
        bands = _bands(roots) if self._full else np.ascontiguousarray(roots[:, :, None])
        return means, bands, logs


@dataclass(frozen=True, eq=False)
class Categorical(Conjugate):
    """Symbols with probabilities of their own in every state.

    Parameters are log probabilities (states, symbols), whose prior is a Dirichlet distribution.
    """

    data: Ints  #: (positions,) symbols from 0 on, -1 where missing
    prior: Floats  #: (symbols,) counts before any symbol is seen

    def draw_prior(self, n_states: int, rng: np.random.Generator) -> Arrays:
        """Draw parameters of new states from the prior."""
        return (_log_dirichlet(np.tile(self.prior, (n_states, 1)), rng),)

    def draw_posterior(self, statistics: Arrays, rng: np.random.Generator) -> Arrays:
        """Draw parameters given the statistics of every state."""
        return (_log_dirichlet(self.prior + statistics[0], rng),)

    def add_log_densities(self, parameters: Arrays, first: int, last: int, out: Floats) -> None:
        """Add the log probabilities of positions `first` to `last` in every state to `out`."""
        symbols = self.data[first:last]
        logs = np.vstack([parameters[0].T, np.zeros(len(parameters[0]))])  # the last is for -1
        out += logs[symbols]

    def subset(self, positions: Ints) -> Categorical:
        """Return the same emission for some of the positions."""
        return replace(self, data=self.data[positions])

    def statistics(
        self, states: Ints, n_states: int, first: int = 0, last: int | None = None
    ) -> Arrays:
        """How often every state has every symbol."""
        data = self.data[first:last]
        shape = n_states, len(self.prior)
        cells = (states[first:last] * shape[1] + data)[data >= 0]
        counts = np.bincount(cells, minlength=shape[0] * shape[1])
        return (counts.reshape(shape).astype(float),)

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


def _column(values: Floats | float) -> Floats:
    return np.asarray(values)[..., None]


def _log_dirichlet(parameters: Floats, rng: np.random.Generator) -> Floats:
    return np.log(np.maximum(draw_dirichlet(parameters, rng), _TINY))


def _bands(upper: Floats) -> Floats:
    """Return the bands of upper triangles (n, D, D), zeros beyond their ends."""
    rows, columns, inside, _, _ = _places(upper.shape[-1])
    found = np.where(inside, upper[:, rows, columns], 0.0)
    return np.ascontiguousarray(found)  # fancy indices turn the axes, and kernels know one order


def _unpacked(bands: Floats) -> Floats:
    """Return the symmetric matrices (n, D, D) whose upper triangles have these bands."""
    *_, low, away = _places(bands.shape[-1])
    return bands[:, low, away]


@cache
def _places(D: int) -> tuple[Ints, Ints, Bools, Ints, Ints]:
    """Where entries of bands are in triangles and which exist; and of matrices, in bands."""
    rows, columns = np.arange(D)[:, None], np.arange(D)
    across = rows + columns
    low = np.minimum(rows, columns)
    return rows, np.minimum(across, D - 1), across < D, low, np.maximum(rows, columns) - low
