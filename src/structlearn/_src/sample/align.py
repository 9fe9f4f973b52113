"""What draws have in common, whatever numbers their states have.

A state has no name of its own: in another draw the same one may have another number. So draws are
compared by their partitions of the positions, and matched to a draw in their middle.

References
----------
S. Wade and Z. Ghahramani, "Bayesian cluster analysis: point estimation and credible balls",
Bayesian Analysis 2018.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from structlearn._src.common.arrays import Floats, Ints

_COMPARED = 30  # draws that are compared with each other at most: the cost is its square


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
