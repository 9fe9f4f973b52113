"""What states emit: each part of an emission is one factor of the density of a position.

A part is bound to data. Parameters and statistics of states are tuples of arrays whose first axis
are the states.
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
from structlearn._src.sample.normal_gamma import NormalGamma
from structlearn._src.sample.normal_wishart import Moments, NormalWishart

Arrays = tuple[Floats, ...]


class _Part(ABC):
    """One factor of the density of every position."""

    @abstractmethod
    def prior(self, n_states: int, rng: np.random.Generator) -> Arrays:
        """Draw parameters of states that nothing is known of."""

    @abstractmethod
    def add_logs(self, parameters: Arrays, first: int, last: int, out: Floats) -> None:
        """Add the log densities of positions `first` to `last` in every state to `out`.

        It has one row for each of these positions.
        """

    @abstractmethod
    def at(self, positions: Ints) -> Self:
        """Return the same part for some of the positions."""


class Conjugate(_Part):
    """A part whose parameters can be integrated out."""

    @abstractmethod
    def statistics(
        self, states: Ints, n_states: int, first: int = 0, last: int | None = None
    ) -> Arrays:
        """Sum up positions `first` to `last` by state; the statistics of a union are a sum."""

    @abstractmethod
    def draw_given(self, statistics: Arrays, rng: np.random.Generator) -> Arrays:
        """Draw parameters given the statistics of every state."""

    @abstractmethod
    def log_evidence(self, statistics: Arrays) -> Floats:
        """Log marginal likelihood of the positions of every state."""

    @abstractmethod
    def typical(self, statistics: Arrays) -> Arrays:
        """Return parameters in the middle of what is known of them."""


class Proposing(_Part):
    """A part whose parameters cannot be integrated out, but proposed for positions in one state.

    The worth of parameters is the log of their prior times the density of all positions, less that
    of the density they are proposed with.
    """

    @abstractmethod
    def draw(
        self,
        states: Ints,
        n_states: int,
        parameters: Arrays,
        rng: np.random.Generator,
        n_jobs: int | None = 1,
    ) -> Arrays:
        """Draw parameters given the state of every position and the parameters so far.

        In threads, whose number changes no draw.
        """

    @abstractmethod
    def propose(self, rng: np.random.Generator) -> tuple[Arrays, float]:
        """Draw parameters of one state that has all positions; also return their worth."""

    @abstractmethod
    def appraise(self, parameters: Arrays) -> float:
        """Return the worth of parameters, had they been proposed."""

    @abstractmethod
    def fitted(self) -> tuple[Arrays, float]:
        """Return parameters that fit all positions, without chance, and their worth."""


Part = Conjugate | Proposing


@dataclass(frozen=True, eq=False)
class Gaussian(Conjugate):
    """Points with a Gaussian density in every state.

    Parameters are the means (states, features), the bands of the roots of the inverse covariances
    (states, features, features), or of diagonal ones (states, features, 1), and the log of what
    the densities are divided by, negative, (states,).

    Parameters
    ----------
    data : array (positions, features)
        Zeros where a position is not seen.
    seen : array (positions,)
        Which positions are not missing.
    known
        Distribution of means and covariances.
    """

    data: Floats
    seen: Bools
    known: NormalWishart | NormalGamma

    def __post_init__(self) -> None:
        object.__setattr__(self, "_columns", np.ascontiguousarray(self.data.T))

    def prior(self, n_states: int, rng: np.random.Generator) -> Arrays:
        """Draw parameters of states that nothing is known of."""
        D = self.data.shape[1]
        shape = (n_states, D, D) if self._full else (n_states, D)
        nothing = Moments(np.zeros(n_states), np.zeros((n_states, D)), np.zeros(shape))
        return self._packed(*self.known.posterior(nothing).draw(rng))

    def draw_given(self, statistics: Arrays, rng: np.random.Generator) -> Arrays:
        """Draw parameters given the statistics of every state."""
        return self._packed(*self.known.posterior(Moments(*statistics)).draw(rng))

    def add_logs(self, parameters: Arrays, first: int, last: int, out: Floats) -> None:
        """Add the log densities of positions `first` to `last` in every state to `out`."""
        columns: Floats = self._columns  # type: ignore[attr-defined]
        density.add_gaussians(columns, self.seen, *parameters, first, last, out)

    def at(self, positions: Ints) -> Gaussian:
        """Return the same part for some of the positions."""
        return replace(self, data=self.data[positions], seen=self.seen[positions])

    def statistics(
        self, states: Ints, n_states: int, first: int = 0, last: int | None = None
    ) -> Arrays:
        """Numbers, sums and products of the points of every state."""
        D = self.data.shape[1]
        counts, sums = np.zeros(n_states), np.zeros((n_states, D))
        bands = np.zeros((n_states, D, D if self._full else 1))
        rows = slice(first, last)
        given = self.data[rows], self.seen[rows], states[rows]
        density.add_moments(*given, counts, sums, bands)
        return counts, sums, (_unpacked(bands) if self._full else bands[:, :, 0])

    def log_evidence(self, statistics: Arrays) -> Floats:
        """Log marginal likelihood of the points of every state."""
        return self.known.log_evidence(Moments(*statistics))

    def typical(self, statistics: Arrays) -> Arrays:
        """Mean and covariance in the middle of what is known of them."""
        after = self.known.posterior(Moments(*statistics))
        if isinstance(after, NormalGamma):
            return self._packed(after.mean, np.sqrt(_column(after.degrees) / after.scale))
        inverse = np.linalg.inv(after.scale) * _column(after.degrees)[..., None]
        lower = np.linalg.cholesky(inverse)
        return self._packed(after.mean, np.swapaxes(lower, -1, -2))

    @property
    def _full(self) -> bool:
        return isinstance(self.known, NormalWishart)

    def _packed(self, means: Floats, roots: Floats) -> Arrays:
        """Return parameters as kernels take them."""
        diagonal = np.diagonal(roots, axis1=-2, axis2=-1) if self._full else roots
        logs = np.log(diagonal).sum(-1) - 0.5 * means.shape[1] * np.log(2.0 * np.pi)
        bands = _bands(roots) if self._full else np.ascontiguousarray(roots[:, :, None])
        return means, bands, logs


@dataclass(frozen=True, eq=False)
class Categorical(Conjugate):
    """Symbols with probabilities of their own in every state.

    Parameters are log probabilities (states, symbols).

    Parameters
    ----------
    data : array (positions,)
        Symbols from 0 on, -1 where missing.
    known : array (symbols,)
        Parameters of the Dirichlet distribution of probabilities: counts before any is seen.
    """

    data: Ints
    known: Floats

    def prior(self, n_states: int, rng: np.random.Generator) -> Arrays:
        """Draw parameters of states that nothing is known of."""
        return (_log_dirichlet(np.tile(self.known, (n_states, 1)), rng),)

    def draw_given(self, statistics: Arrays, rng: np.random.Generator) -> Arrays:
        """Draw parameters given the statistics of every state."""
        return (_log_dirichlet(self.known + statistics[0], rng),)

    def add_logs(self, parameters: Arrays, first: int, last: int, out: Floats) -> None:
        """Add the log probabilities of positions `first` to `last` in every state to `out`."""
        symbols = self.data[first:last]
        logs = np.vstack([parameters[0].T, np.zeros(len(parameters[0]))])  # the last is for -1
        out += logs[symbols]

    def at(self, positions: Ints) -> Categorical:
        """Return the same part for some of the positions."""
        return replace(self, data=self.data[positions])

    def statistics(
        self, states: Ints, n_states: int, first: int = 0, last: int | None = None
    ) -> Arrays:
        """How often every state has every symbol."""
        data, own, symbols = self.data[first:last], states[first:last], len(self.known)
        cells = (own * symbols + data)[data >= 0]
        counts = np.bincount(cells, minlength=n_states * symbols)
        return (counts.reshape(n_states, symbols).astype(float),)

    def log_evidence(self, statistics: Arrays) -> Floats:
        """Log marginal likelihood of the symbols of every state."""
        (counts,) = statistics
        cells = (gammaln(self.known + counts) - gammaln(self.known)).sum(-1)
        total = self.known.sum()
        return cells + gammaln(total) - gammaln(total + counts.sum(-1))

    def typical(self, statistics: Arrays) -> Arrays:
        """Expected probabilities."""
        mass = self.known + statistics[0]
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
    return np.log(np.maximum(draw_dirichlet(parameters, rng), 1e-300))


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
    across, low = rows + columns, np.minimum(rows, columns)
    return rows, np.minimum(across, D - 1), across < D, low, np.maximum(rows, columns) - low
