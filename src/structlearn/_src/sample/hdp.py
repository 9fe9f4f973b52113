r"""Transitions between states without a limit on their number: a hierarchical Dirichlet process.

.. math:: \beta \sim \mathrm{GEM}(\gamma), \qquad \pi_j \sim \mathrm{DP}(\alpha, \beta),
          \qquad z_t \sim \pi_{z_{t-1}} .

Only states that occur are represented; what is left of :math:`\beta` and of every row is their last
entry. Row 0 is of starts, row :math:`1 + j` of state :math:`j`.

References
----------
Y. W. Teh, M. Jordan, M. Beal and D. Blei, "Hierarchical Dirichlet processes", JASA 2006.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import gammaln

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.kernels.chain import beam

_FEW = 4  # sequences below which transitions are counted one after the other
_SEATED = 2**13  # random numbers for tables that are drawn at a time
_BROKEN = 16  # sticks that are broken at a time, or a quarter of all
_MOST = 4000  # states: tables of transitions of twice as many take half a gigabyte
_TINY = 1e-290  # least parameter of a gamma or beta draw, which must not be 0
_LEAST = 1e-10  # least concentration: its logs and inverses must stay finite
_ROUNDS = 3  # draws of alpha in a sweep: it mixes slowly, and a draw costs little


class Gamma(NamedTuple):
    """Prior of a concentration."""

    shape: float
    rate: float


#: A concentration that is given, or its prior.
Concentration = float | Gamma


class Process(NamedTuple):
    """State of the process: concentrations, sticks and transitions."""

    alpha: float
    gamma: float
    sticks: Floats  #: (states + 1,)
    rows: Floats  #: (states + 1, states + 1)

    @property
    def n_states(self) -> int:
        """Number of states that are represented."""
        return len(self.sticks) - 1

    @property
    def masses(self) -> Floats:
        """(states,) What every row has of each state before any transition is seen."""
        return self.alpha * np.maximum(self.sticks[:-1], _TINY)

    def split(self, k: int, share: float) -> Process:
        """Break the stick of state `k`; what it loses is that of a new state, the last one."""
        sticks = np.append(self.sticks, self.sticks[-1])
        sticks[-2] = (1.0 - share) * sticks[k]
        sticks[k] *= share
        return self._with(sticks)

    def merge(self, one: int, two: int) -> Process:
        """Give the stick of the second state to the first."""
        return self._with(add_up(self.sticks, one, two))

    def _with(self, sticks: Floats) -> Process:
        """Return other sticks, with rows that are to be drawn: NaN, so that nobody reads them."""
        return self._replace(sticks=sticks, rows=np.full((len(sticks), len(sticks)), np.nan))

    def log_size(self, k: int) -> float:
        """Log of the length that a split of state `k` shares out evenly."""
        return float(np.log(self.sticks[k]))

    def log_probability(self, counts: Ints) -> float:
        """Log probability of the states given concentration and sticks, rows integrated out."""
        masses = self.masses
        cells = gammaln(masses + counts) - gammaln(masses)
        rows = gammaln(self.alpha) - gammaln(self.alpha + counts.sum(1))
        return float(rows.sum() + cells.sum())

    def log_density_at(self, counts: Ints, states: Sequence[int]) -> float:
        """The same of transitions from and to some states, with the density of all sticks.

        All that differs between processes where other states and what follows them are the same.
        """
        cells = beam.log_urns(counts, self.masses, self.alpha, np.array(states))
        return float(cells) + log_sticks(self.gamma, self.sticks)


class Restaurant(NamedTuple):
    """State of a Dirichlet process without transitions: every position begins a sequence."""

    alpha: float
    n_states: int

    def split(self, k: int, share: float) -> Restaurant:
        """Return one with one state more."""
        return self._replace(n_states=self.n_states + 1)

    def merge(self, one: int, two: int) -> Restaurant:
        """Return one with one state less."""
        return self._replace(n_states=self.n_states - 1)

    def log_size(self, k: int) -> float:
        """There are no sticks that splits would share out."""
        return 0.0

    def log_probability(self, counts: Ints) -> float:
        r"""Log of :math:`\alpha^K \prod_k \Gamma(n_k)`, the probability up to a constant."""
        return float(self.n_states * np.log(self.alpha) + gammaln(counts[0]).sum())

    def log_density_at(self, counts: Ints, states: Sequence[int]) -> float:
        """The same, of all states: there are no sticks."""
        return self.log_probability(counts)


def add_up(array: NDArray[Any], one: int, two: int) -> NDArray[Any]:
    """Add an entry along the first axis to another, and leave it out."""
    joined = np.concatenate([array[:two], array[two + 1 :]])  # much quicker than `np.delete`
    joined[one - (two < one)] += array[two]
    return joined


def first_value(concentration: Concentration) -> float:
    """Return the concentration that a chain begins with: the given one, or the prior mean."""
    if isinstance(concentration, Gamma):
        return concentration.shape / concentration.rate
    return float(concentration)


def count_transitions(states: Ints, offsets: Ints, n_states: int, n_jobs: int | None = 1) -> Ints:
    """Return how often each state follows each row, (states + 1, states)."""
    pieces: list[Ints] = []

    def work(first: int, last: int) -> None:
        pieces.append(count_some(states, offsets, first, last, n_states))

    grains = 1 + len(states) // threads.GRAIN["arrays"] if len(offsets) > _FEW else 1
    threads.run(work, threads.split(offsets, 4 * grains), n_jobs)
    counts: Ints = np.sum(pieces, axis=0)  # whole numbers, whose order does not matter
    return counts


def count_some(states: Ints, offsets: Ints, first: int, last: int, n_states: int) -> Ints:
    """The same for the sequences from `first` to `last`."""
    counts = np.zeros((n_states + 1, n_states), np.int64)
    beam.count(states, offsets, first, last, counts)
    return counts


def draw_tables(counts: Ints, alpha: float, sticks: Floats, rng: Generator) -> Ints:
    """Draw the number of tables of every cell of `counts`, (states + 1, states)."""
    masses = np.maximum(alpha * sticks[:-1], _TINY)
    cells = np.ascontiguousarray(counts)
    tables = np.zeros_like(cells)
    place = np.zeros(2, np.int64)
    while not beam.draw_tables(masses, cells.ravel(), rng.random(_SEATED), place, tables.ravel()):
        pass  # more random numbers are needed
    return tables


def draw_alpha(
    prior: Concentration, alpha: float, visits: Ints, tables: int, rng: Generator
) -> float:
    """Draw the concentration of the rows, given how often each was left and how many tables are."""
    if not isinstance(prior, Gamma):
        return alpha
    left = visits[visits > 0].astype(float)
    for _ in range(_ROUNDS):
        logs = np.log(np.maximum(rng.beta(alpha + 1.0, left), _TINY)).sum()
        odd = (rng.random(len(left)) * (left + alpha) < left).sum()
        alpha = _draw_gamma(prior.shape + tables - odd, prior.rate - logs, rng)
    return alpha


def draw_gamma(
    prior: Concentration, gamma: float, n_groups: int, n_items: int, rng: Generator
) -> float:
    """Draw the concentration of a Dirichlet process with so many items in so many groups.

    Escobar and West (1995). Here items are tables and groups are states.
    """
    if not isinstance(prior, Gamma):
        return gamma
    log = np.log(max(rng.beta(gamma + 1.0, n_items), _TINY))
    rate = prior.rate - log
    more = prior.shape + n_groups - 1.0
    extra = rng.random() * (more + n_items * rate) < more
    return _draw_gamma(more + extra, rate, rng)


def draw_process(
    process: Process,
    counts: Ints,
    alpha: Concentration,
    gamma: Concentration,
    rng: Generator,
) -> Process:
    """Draw tables, concentrations, sticks and rows in turn, given how often states follow.

    The concentrations come before sticks and rows, which are integrated out in their draws.
    """
    tables = draw_tables(counts, process.alpha, process.sticks, rng)
    total = int(tables.sum())
    new_alpha = draw_alpha(alpha, process.alpha, counts.sum(1), total, rng)
    new_gamma = draw_gamma(gamma, process.gamma, counts.shape[1], total, rng)
    sticks = draw_dirichlet(np.append(tables.sum(0), new_gamma), rng)
    masses = np.tile(new_alpha * sticks, (len(counts), 1))
    masses[:, :-1] += counts  # nothing is seen of the states that are not represented
    return Process(new_alpha, new_gamma, sticks, draw_dirichlet(masses, rng))


def draw_dirichlet(parameters: Floats, rng: Generator) -> Floats:
    """Draw from Dirichlet distributions along the last axis, whose parameters may be tiny.

    By logs of gamma draws, :math:`G(a) = G(a + 1) U^{1/a}`, of which at least one is not 0.
    """
    a = np.maximum(parameters, _TINY)
    logs = np.log(rng.standard_gamma(a + 1.0)) - rng.standard_exponential(a.shape) / a
    weights = np.exp(logs - logs.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def grow(process: Process, least: float, rng: Generator) -> Process:
    """Break sticks until what is left of every row is at most `least`, the smallest slice.

    No state beyond those represented then has a transition above any slice. Several are broken at a
    time, and those that turn out not to be needed become one with the rest again.
    """
    n = process.n_states
    while (rests := _rests(process, n)).min() > least:
        process = _broken(process, max(_BROKEN, process.n_states // 4), rng)
    needed = n + int(np.argmax(rests <= least))
    return process if needed == process.n_states else keep(process, np.arange(needed))


def _rests(process: Process, n: int) -> Floats:
    """Return what is left of some row at most, if `n`, n + 1, ... states are represented."""
    tails = np.cumsum(process.rows[:, n:][:, ::-1], axis=1)[:, ::-1]
    return np.maximum.accumulate(tails, axis=0)[n:].diagonal()


def _broken(process: Process, m: int, rng: Generator) -> Process:
    """Break `m` sticks off what is left, with rows for the new states."""
    alpha, gamma, old, rows = process
    if len(old) > _MOST:
        raise ArgumentError(
            f"more than {_MOST} states are open at once; lower gamma0 and alpha0, which say how "
            f"many there are"
        )
    shares = rng.beta(1.0, gamma, m)
    rests = old[-1] * np.cumprod(1.0 - shares)
    new = shares * np.append(old[-1], rests[:-1])
    sticks = np.concatenate([old[:-1], new, rests[-1:]])
    masses = np.maximum(alpha * sticks, _TINY)
    ends = draw_dirichlet(np.tile(masses[len(old) - 1 :], (len(rows), 1)), rng)
    seen = np.concatenate([rows[:, :-1], rows[:, -1:] * ends], axis=1)
    fresh = draw_dirichlet(np.tile(masses, (m, 1)), rng)
    return Process(alpha, gamma, sticks, np.concatenate([seen, fresh]))


def keep(process: Process, states: Ints) -> Process:
    """Forget all states but some; the mass of the others goes to the last entry."""
    columns = np.append(states, process.n_states)
    lost = np.ones(process.n_states + 1, bool)
    lost[columns] = False
    kept = process.rows[np.append(0, 1 + states)]
    sticks = process.sticks[columns]
    sticks[-1] += process.sticks[lost].sum()
    rows = kept[:, columns]
    rows[:, -1] += kept[:, lost].sum(1)
    return Process(process.alpha, process.gamma, sticks, rows)


def log_sticks(gamma: float, sticks: Floats) -> float:
    r"""Log density of the sticks of states that occur, in no order.

    .. math:: \gamma^K \beta_u^{\gamma - 1} \prod_k \beta_k^{-1} ,

    which is improper alone; :math:`p(Z \mid \beta)` has at least one factor :math:`\beta_k` for
    every state that occurs, and makes it proper.
    """
    logs = np.log(np.maximum(sticks, _TINY))
    return float((len(sticks) - 1) * np.log(gamma) + (gamma - 1.0) * logs[-1] - logs[:-1].sum())


def _draw_gamma(shape: float, rate: float, rng: Generator) -> float:
    return max(float(rng.gamma(shape) / rate), _LEAST)
