"""Summaries of draws that do not depend on how their states are numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.sample import align
from structlearn._src.sample.hmm import HmmState


@dataclass(frozen=True, eq=False)
class Summary:
    """A draw in the middle of those with the usual number of states, and how all match its own.

    States are numbered by how often they occur in the draw in the middle, the most frequent first.

    Attributes
    ----------
    draws
        All draws.
    matches
        Of every draw, the state that each of its states is; -1 for those that match none.
    n_states
        Number of states of the draw in the middle, which most draws have.
    """

    draws: Sequence[HmmState]
    matches: list[Ints]
    n_states: int

    @staticmethod
    def of(draws: Sequence[HmmState]) -> Summary:
        """Match draws."""
        usual = np.bincount([draw.n_states for draw in draws]).argmax()
        likely = [draw for draw in draws if draw.n_states == usual]
        middle = likely[align.central([draw.states for draw in likely])]
        order = np.argsort(-np.bincount(middle.states), kind="stable")
        numbers = np.empty_like(order)
        numbers[order] = np.arange(len(order))
        named = numbers[middle.states]
        n = middle.n_states
        tables = [align.overlap(draw.states, named, draw.n_states, n) for draw in draws]
        return Summary(draws, [align.match(table) for table in tables], n)

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
        """Return probabilities of states of a draw (positions, states) as those of the middle."""
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
