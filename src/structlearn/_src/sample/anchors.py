"""How the two positions that a move begins with are drawn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator

from structlearn._src.common.arrays import Ints
from structlearn._src.sample.emission import Emission, Gaussian
from structlearn._src.sample.hmm import HmmModel, HmmState, HmmStatistics

_CANDIDATES = 16  # positions of which the nearest to an anchor is the other one


def telling(model: HmmModel, rng: Generator) -> Sequence[Emission]:
    """Draw which emissions tell the sides of a split apart: half of the time labels too."""
    labelled = not model.conjugate or rng.random() < 0.5
    return model.emissions if labelled else model.conjugate


def _choose(n: int, rng: Generator) -> Ints | None:
    """Draw two of `n` places; None if there are not as many."""
    return rng.choice(n, 2, replace=False) if n > 1 else None


def choose_places(model: HmmModel, rng: Generator) -> Ints | None:
    """Draw two positions, half of the time such that have points near each other.

    States have no part in this. Points that are near and in two states tell that these are alike.
    """
    n = model.n_positions
    points = next((e for e in model.conjugate if isinstance(e, Gaussian)), None)
    if points is None or n < 2 or rng.random() < 0.5:
        return _choose(n, rng)
    first = int(rng.integers(n))
    others = rng.integers(n - 1, size=_CANDIDATES)
    others += others >= first
    away = ((points.data[others] - points.data[first]) ** 2).sum(1)
    return np.array([first, others[away.argmin()]])


def choose_states(state: HmmState, found: HmmStatistics, rng: Generator) -> Ints | None:
    """Draw two positions of one state, or two states and a position of each.

    All states are alike here, so that small ones get their turn too.
    """
    if rng.random() < 0.5:
        places = found.places(state.states, int(rng.integers(state.n_states)))
        pair = _choose(len(places), rng)
        return None if pair is None else places[pair]
    chosen = _choose(state.n_states, rng)
    return None if chosen is None else members(state, found, chosen, rng)


def members(
    state: HmmState, found: HmmStatistics, chosen: Sequence[int] | Ints, rng: Generator
) -> Ints:
    """Draw a position of each of some states."""
    places = (found.places(state.states, int(k)) for k in chosen)
    return np.array([own[rng.integers(len(own))] for own in places])


def log_choice(n_states: int, n_one: float, n_two: float) -> float:
    """Log ratio of how likely `choose_states` draws two positions: in one state, against in two.

    `n_states` counts the states where the two are apart, whose sizes are `n_one` and `n_two`.
    """
    n = n_one + n_two
    return float(np.log(n) + np.log(n - 1.0) - np.log(n_states) - np.log(n_one) - np.log(n_two))
