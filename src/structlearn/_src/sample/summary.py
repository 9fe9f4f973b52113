"""Summaries of draws that do not depend on how their states are numbered.

A state has no name of its own: in another draw the same one may have another number. So draws are
compared by their partitions of the positions, and matched to a central draw.

References
----------
S. Wade and Z. Ghahramani, "Bayesian cluster analysis: point estimation and credible balls",
Bayesian Analysis 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.sample.hmm import HmmState

_COMPARED = 30  # draws that are compared with each other at most: the cost is its square


@dataclass(frozen=True, eq=False)
class Summary:
    """The central draw among those with the usual number of states, and how all match its states.

    States are numbered by how often they occur in the central draw, the most frequent first.
    """

    draws: Sequence[HmmState]
    matches: list[Ints]  #: which state each of a draw's states is; -1 for those that match none
    n_states: int  #: of the central draw, which most draws have

    @staticmethod
    def of(draws: Sequence[HmmState]) -> Summary:
        """Match draws."""
        usual = np.bincount([draw.n_states for draw in draws]).argmax()
        likely = [draw for draw in draws if draw.n_states == usual]
        middle = likely[central([draw.states for draw in likely])]
        ranks = np.argsort(np.argsort(-np.bincount(middle.states), kind="stable"))
        named = ranks[middle.states]
        n = middle.n_states
        tables = [overlap(draw.states, named, draw.n_states, n) for draw in draws]
        return Summary(draws, [match(table) for table in tables], n)

    def pooled(self, values: Sequence[Floats]) -> Floats:
        """Return means over draws of values (states, ...), state by state; NaN if never there."""
        total = np.zeros((self.n_states, *values[0].shape[1:]))
        found = np.zeros(self.n_states)
        for own, match in zip(values, self.matches, strict=True):
            known = match >= 0
            total[match[known]] += own[known]
            found[match[known]] += 1.0
        return total / found.reshape(-1, *(1,) * (total.ndim - 1))

    def moved(self, beliefs: Floats, draw: int) -> Floats:
        """Return probabilities of states of a draw (positions, states) by the central numbering."""
        out = np.zeros((len(beliefs), self.n_states))
        match = self.matches[draw]
        known = match >= 0
        out[:, match[known]] = beliefs[:, known]
        return out

    def state_shares(self) -> Floats:
        """Return how often every position has every state, (positions, states)."""
        shares = np.zeros((len(self.draws[0].states), self.n_states + 1))
        everywhere = np.arange(len(shares))
        for draw, match in zip(self.draws, self.matches, strict=True):
            shares[everywhere, match[draw.states]] += 1.0  # the last column is for -1
        return shares[:, :-1] / len(self.draws)

    def transitions(self) -> tuple[Floats, Floats]:
        """Return mean probabilities to begin in a state (states,) and to follow (states, states).

        What draws leave to states that match none is shared out.
        """
        moved = [self.moved(d.process.rows[:, :-1], i) for i, d in enumerate(self.draws)]
        starts = np.mean([rows[0] for rows in moved], axis=0)
        rows = self.pooled([rows[1:] for rows in moved])
        return starts / starts.sum(), rows / rows.sum(1, keepdims=True)


def overlap(one: Ints, two: Ints, n_one: int, n_two: int) -> Ints:
    """Return how many positions have each pair of states in two draws, (n_one, n_two)."""
    return np.bincount(one * n_two + two, minlength=n_one * n_two).reshape(n_one, n_two)


def distance(table: Ints) -> float:
    """Variation of information between two partitions, from their overlap: 0 if they agree."""
    p = table / table.sum()
    return 2.0 * _entropy(p) - _entropy(p.sum(0)) - _entropy(p.sum(1))


def central(draws: Sequence[Ints]) -> int:
    """Return the draw whose partition is nearest to those of the others on average."""
    chosen = np.unique(np.linspace(0, len(draws) - 1, _COMPARED).astype(int))
    sizes = {i: int(draws[i].max()) + 1 for i in chosen}
    away = np.zeros((len(chosen), len(chosen)))
    for a, i in enumerate(chosen):
        for b, j in enumerate(chosen[:a]):
            found = distance(overlap(draws[i], draws[j], sizes[i], sizes[j]))
            away[a, b] = away[b, a] = found
    return int(chosen[away.sum(1).argmin()])


def match(table: Ints) -> Ints:
    """Return which state of the second draw each of the first is, from their overlap.

    One to one, with as many positions in common as can be; -1 for states that are left over.
    """
    rows, columns = linear_sum_assignment(-table)
    found = np.full(len(table), -1)
    found[rows] = columns
    found[rows[table[rows, columns] == 0]] = -1
    return found


def similarity(draws: Sequence[Ints], positions: Ints) -> Floats:
    """Return how often each two of some positions share a state, (positions, positions)."""
    total = np.zeros((len(positions), len(positions)))
    for states in draws:
        own = states[positions]
        total += own[:, None] == own
    return total / len(draws)


def _entropy(p: Floats) -> float:
    seen = p[p > 0.0]
    return float(-(seen * np.log(seen)).sum())
