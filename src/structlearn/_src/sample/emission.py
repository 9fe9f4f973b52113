"""What states emit: every emission is one factor of the density of a position given its state.

An emission is bound to data. Parameters and statistics of states are tuples of arrays whose first
axis are the states.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator
from scipy.special import gammaln

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints
from structlearn._src.kernels.draw import density, moments
from structlearn._src.kernels.draw.density import (
    NO_DENSITIES,
    Densities,
    PointDensities,
    SymbolDensities,
)
from structlearn._src.sample.hdp import draw_dirichlet
from structlearn._src.sample.priors import Moments, NormalGamma, NormalWishart

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

    @cached_property
    def workspaces(self) -> threads.Workspaces[moments.MomentWorkspace]:
        """Workspaces of threads that add up points."""
        return threads.Workspaces(partial(moments.moment_workspace, self.data.shape[1], self.full))

    def draw_posterior(self, statistics: Arrays, rng: Generator) -> Arrays:
        """Draw parameters given the statistics of every state."""
        return self._packed(*self.prior.posterior(Moments(*statistics)).draw(rng))

    def draw_prior(self, n_states: int, rng: Generator) -> Arrays:
        """Draw parameters of new states."""
        return self._packed(*self.prior.repeated(n_states).draw(rng))

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
        return self._packed(*after.expected())

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
    bands = np.zeros(upper.shape)
    for i in range(D):
        bands[:, i, : D - i] = upper[:, i, i:]
    return bands


def _unpacked(bands: Floats) -> Floats:
    """Return the symmetric matrices (n, D, D) whose upper triangles have these bands."""
    rows, columns = np.indices(bands.shape[1:])
    low = np.minimum(rows, columns)
    return bands[:, low, np.maximum(rows, columns) - low]
