"""Chains of two sides: log odds of positions, the best sides, and draws of all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels import lanes
from structlearn._src.kernels.draw.density import weigh
from structlearn._src.kernels.jit import inline, lean
from structlearn._src.kernels.lanes import LANES

_AHEAD = 32  # positions whose rows are asked for before they are read
_FARTHEST = 300.0  # log odds beyond all that matters: their exponentials are still numbers
_TINY = 1e-150  # probability whose product with the least one is still a number


class Seen(NamedTuple):
    """What is seen at all positions, a row for each; empty where there is nothing of the kind."""

    points: np.ndarray  #: (positions, features)
    shown: np.ndarray  #: (positions,) whether there is a point
    symbols: np.ndarray  #: (positions,)
    features: np.ndarray  #: (positions, M)
    labels: np.ndarray  #: (positions,)


class SideChain(NamedTuple):
    """How sides follow each other."""

    linked: np.ndarray  #: (n,) whether a position follows the one before
    odds: float  #: of the second side where it follows none
    table: np.ndarray  #: (2, 2) probabilities of the side that follows each
    anchors: np.ndarray  #: (2,) positions whose sides are certain


@inline
def _fetch(seen, positions, begin, densities, workspace):
    """Copy what is seen at up to eight positions into lanes; the last one fills those left over."""
    for i in range(begin + _AHEAD, min(begin + _AHEAD + LANES, positions.size)):
        if seen.points.size > 0:
            lanes.prefetch(seen.points, positions[i])
        if seen.features.size > 0:
            lanes.prefetch(seen.features, positions[i])
    for b in range(LANES):
        t = positions[min(begin + b, positions.size - 1)]
        if seen.points.size > 0:
            x = seen.points[t]
            densities.points.seen[b] = seen.shown[t]
            for m in range(x.size):
                workspace.points[m, b] = x[m]
        if seen.symbols.size > 0:
            densities.symbols.data[b] = seen.symbols[t]
        if seen.features.size > 0:
            v = seen.features[t]
            densities.labels.labels[b] = seen.labels[t]
            for m in range(v.size):
                workspace.features[m, b] = v[m]


@lean
def weigh_sides(densities, seen, positions, workspace, odds):
    """Find the log odds of the second of two states for some positions.

    Whether there are points, the symbols and the labels of `densities` are those of eight
    positions at a time, and written here; so is the workspace.
    """
    values = workspace.values
    for begin in range(0, positions.size, LANES):
        _fetch(seen, positions, begin, densities, workspace)
        n = min(LANES, positions.size - begin)
        weigh(densities, 0, LANES, 0, workspace, values)
        for b in range(n):
            odds[begin + b] = -values[b]
        weigh(densities, 0, LANES, 1, workspace, values)
        for b in range(n):
            odds[begin + b] += values[b]


@lean
def best_sides(odds, linked, share, table, sides):
    """Find the best sides by log odds; `share` and `table` are log odds and log probabilities."""
    n = odds.size
    lead = 0.0  # of the best sides up to here that end in the second
    for i in range(n):
        if linked[i]:
            one = lead + table[1, 1]
            two = lead + table[1, 0]
            # The best side before each of both, until the sides themselves are known.
            sides[i] = (2 if one > table[0, 1] else 0) + (1 if two > table[0, 0] else 0)
            lead = max(one, table[0, 1]) - max(two, table[0, 0])
        else:
            sides[i] = 0
            lead = share
        lead += odds[i]
        if i + 1 == n or not linked[i + 1]:
            _trace(i, 1 if lead > 0.0 else 0, linked, sides)


@inline
def _trace(last, side, linked, sides):
    """Replace the sides that come best before others by the best ones, back to where none does."""
    i = last
    while linked[i]:
        before = sides[i] >> side & 1
        sides[i] = side
        side = before
        i -= 1
    sides[i] = side


@lean
def draw_sides(odds, chain, uniforms, weights, sides):
    """Draw sides by log odds; return the log probability of all of them.

    Those that are given, 0 or 1 in `sides`, stay; -1 is drawn with its number of `uniforms`.
    `weights` (n,) is workspace: odds of the second side given the positions up to each.
    """
    n = odds.size
    table = chain.table
    share = 0.0  # of the second side at the position before
    for i in range(n):
        before = chain.odds
        if chain.linked[i]:
            one = (1.0 - share) * table[0, 1] + share * table[1, 1]
            before = one / ((1.0 - share) * table[0, 0] + share * table[1, 0])
        weights[i] = before * np.exp(max(-_FARTHEST, min(_FARTHEST, odds[i])))
        if i == chain.anchors[0]:
            weights[i] = 0.0
        elif i == chain.anchors[1]:
            weights[i] = np.exp(_FARTHEST)
        share = weights[i] / (1.0 + weights[i])
    total = 0.0
    chance = 1.0
    for i in range(n - 1, -1, -1):
        weight = weights[i]
        if i + 1 < n and chain.linked[i + 1]:
            weight *= table[1, sides[i + 1]] / table[0, sides[i + 1]]
        left = 1.0 / (1.0 + weight)
        if sides[i] < 0:
            sides[i] = 1 if uniforms[i] < weight * left else 0
        chance *= left if sides[i] == 0 else weight * left
        if chance < _TINY:
            total += np.log(chance)
            chance = 1.0
    return total + np.log(chance)
