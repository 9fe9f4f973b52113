"""Positions of a union go to one of two sides, one after the other, each given those before it.

Parameters of both sides are integrated out, so that they follow whatever sides came before. What is
known of points may lag behind by a few, so that several positions are weighed together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels import lanes
from structlearn._src.kernels.draw.density import product
from structlearn._src.kernels.draw.posterior import (
    find_densities,
    join_points,
    look_ahead,
    take_in,
    weigh_points,
)
from structlearn._src.kernels.jit import inline, inner, lean

_FETCHED = 64  # positions whose points are asked for ahead: as many as are weighed together
_FAR = 90.0  # log odds whose exponentials can be multiplied by odds that are not too large
_LARGE = 1e40  # such odds
_FARTHEST = 300.0  # log odds beyond all that matters: their exponentials are still numbers
_TINY = 1e-150  # probability whose product with the least one is still a number


class Links(NamedTuple):
    """How positions hang together with those before and after them."""

    before: np.ndarray  #: (n,) as `surround` finds them
    after: np.ndarray  #: (n,)
    into: np.ndarray  #: (rows, 2) transitions to both sides so far, with their masses
    within: np.ndarray  #: (2, 2) the same from both sides
    out: np.ndarray  #: (2, states) transitions to other states, with their masses
    left: np.ndarray  #: (2,) all transitions from both sides, with the mass of a row


class AllocationScratch(NamedTuple):
    """Scratch space."""

    image: np.ndarray  #: (M,)
    values: np.ndarray  #: (2,)


class SymbolMasses(NamedTuple):
    """Counts of symbols, of both sides."""

    data: np.ndarray  #: (positions,) -1 where missing
    masses: np.ndarray  #: (2, symbols) with those of the prior


class Regressions(NamedTuple):
    """Least squares of the indicators of labels, of both sides: quick stand-ins of classifiers."""

    features: np.ndarray  #: (positions, M)
    labels: np.ndarray  #: (positions,) -1 where missing
    inverses: np.ndarray  #: (2, M, M) of the ridge and all products
    sums: np.ndarray  #: (2, L, M) of the features with each label
    firm: float  #: log odds by score: by how much labels tell sides apart


@lean
def surround(states, offsets, positions, before, after):
    """Find what lies around the positions of a union, which come in their order.

    `before` becomes the row of the transition to each, -1 where the one before is in the union;
    `after` the state of the next position, -1 in the union or at an end.
    """
    c = 0
    for i in range(positions.size):
        t = positions[i]
        while offsets[c + 1] <= t:
            c += 1
        if t == offsets[c]:
            before[i] = 0
        else:
            before[i] = -1 if i > 0 and positions[i - 1] == t - 1 else 1 + states[t - 1]
        inside = i + 1 < positions.size and positions[i + 1] == t + 1
        after[i] = -1 if inside or t + 1 == offsets[c + 1] else states[t + 1]


@lean
def recount(before, after, sides, old, new, counts):
    """Move the transitions of positions on the second side of a union from one state to another.

    `counts` (states + 1, states) are those where all positions have the state `old`.
    """
    previous = old
    for i in range(sides.size):
        own = new if sides[i] else old
        row = before[i]
        counts[1 + old if row < 0 else row, old] -= 1
        counts[1 + previous if row < 0 else row, own] += 1
        if after[i] >= 0:
            counts[1 + old, after[i]] -= 1
            counts[1 + own, after[i]] += 1
        previous = own


@lean
def count_around(before, after, sides, one, two, counts):
    """Count the transitions to and from positions of a union, whose sides are states of their own.

    Positions are the first ones of the union; `counts` (states + 1, states) is added to.
    """
    previous = one
    for i in range(sides.size):
        own = two if sides[i] else one
        row = before[i]
        counts[1 + previous if row < 0 else row, own] += 1
        if after[i] >= 0:
            counts[1 + own, after[i]] += 1
        previous = own


@inline
def _add_symbols(symbols, t, values):
    s = symbols.data[t] if symbols.data.size > 0 else -1
    if s < 0:
        return
    for k in range(2):
        total = 0.0
        for y in range(symbols.masses.shape[1]):
            total += symbols.masses[k, y]
        values[k] += np.log(symbols.masses[k, s] / total)


@inner
def _multiply(matrix, v, out):
    for a in range(v.size):
        out[a] = product(matrix[a], v, v.size)


@inline
def _add_labels(labelled, t, values, image):
    """Add log probabilities of the label of a position, by scores that count less where unsure."""
    label = labelled.labels[t] if labelled.labels.size > 0 else -1
    if label < 0:
        return
    v = labelled.features[t]
    M = v.size
    for k in range(2):
        _multiply(labelled.inverses[k], v, image)
        slope = labelled.firm / np.sqrt(1.0 + product(image, v, M))
        own = slope * product(labelled.sums[k, label], image, M)
        total = 0.0
        for y in range(labelled.sums.shape[1]):
            total += np.exp(slope * product(labelled.sums[k, y], image, M) - own)
        values[k] -= np.log(total)


@inline
def _join_labels(labelled, t, k, image):
    label = labelled.labels[t] if labelled.labels.size > 0 else -1
    if label < 0:
        return
    v = labelled.features[t]
    M = v.size
    inverse = labelled.inverses[k]
    _multiply(inverse, v, image)
    shrink = 1.0 / (1.0 + product(image, v, M))
    for a in range(M):
        labelled.sums[k, label, a] += v[a]
        for b in range(M):
            inverse[a, b] -= shrink * image[a] * image[b]


@inline
def _join(points, symbols, labelled, t, k, scratch):
    """Let a position join a side."""
    join_points(points, t, k)
    if symbols.data.size > 0 and symbols.data[t] >= 0:
        symbols.masses[k, symbols.data[t]] += 1.0
    _join_labels(labelled, t, k, scratch.image)


@inline
def _link_odds(links, i, previous):
    """Odds of the transitions to a position, and to another state from it."""
    row = links.before[i]
    after = links.after[i]
    into = links.within[previous] if row < 0 else links.into[row]
    odds = into[1] / into[0]
    if after >= 0:
        out = links.out[:, after]
        odds *= out[1] / out[0] * (links.left[0] / links.left[1])
    return odds


@inline
def _count(links, i, previous, k):
    row = links.before[i]
    after = links.after[i]
    if row < 0:
        links.within[previous, k] += 1.0
        links.left[previous] += 1.0
    else:
        links.into[row, k] += 1.0
    if after >= 0:
        links.out[k, after] += 1.0
        links.left[k] += 1.0


@inline
def _choose(log_odds, odds, uniforms, i, sides):
    """Draw the side of a position that has none; return the probability of its side.

    Its odds are the product of those that are given. It is not 0, but may be tiny.
    """
    if not (abs(log_odds) < _FAR and 1.0 / _LARGE < odds < _LARGE):  # the product may overflow
        log_odds = max(-_FARTHEST, min(_FARTHEST, log_odds + np.log(odds)))
        odds = 1.0
    whole = np.exp(log_odds) * odds
    left = 1.0 / (1.0 + whole)
    if sides[i] < 0:
        sides[i] = 1 if uniforms[i] < whole * left else 0
    return left if sides[i] == 0 else whole * left


@lean
def allocate(
    order, positions, anchors, links, points, symbols, labelled, workspace, scratch, uniforms, sides
):
    """Draw the sides of positions in their order; return the log probability of all of them.

    Those that are given, 0 or 1 in `sides`, stay; -1 is drawn with its number of `uniforms`. The
    two `anchors` are given with certainty, and known from the start. `positions` are those of the
    union among all.
    """
    values = scratch.values
    for k in range(2):
        sides[anchors[k]] = k
        find_densities(points, k, workspace.factor)  # in case that the anchor has no point
        _join(points, symbols, labelled, positions[anchors[k]], k, scratch)
        take_in(points, k, workspace)
    total = 0.0
    chance = 1.0  # of the last choices
    weighed = 0  # positions whose odds by points are known
    begun = 0  # the first of these that were looked at together
    steady = 0  # positions since a posterior was found anew
    fetched = 0  # positions whose points were asked for
    for j in range(order.size):
        if j == weighed:
            begun = j
            weighed = min(order.size, j + look_ahead(points, steady), j + workspace.odds.size)
            weigh_points(points, positions, order[begun:weighed], workspace)
            while points.seen.size > 0 and fetched < min(order.size, weighed + _FETCHED):
                lanes.prefetch(points.data, positions[order[fetched]])
                fetched += 1
        steady += 1
        i = order[j]
        t = positions[i]
        previous = sides[i - 1] if links.before[i] < 0 else 0
        if i != anchors[0] and i != anchors[1]:
            values[0] = 0.0
            values[1] = workspace.odds[j - begun]
            _add_symbols(symbols, t, values)
            _add_labels(labelled, t, values, scratch.image)
            odds = _link_odds(links, i, previous)
            chance *= _choose(values[1] - values[0], odds, uniforms, i, sides)
            if chance < _TINY:
                total += np.log(chance)
                chance = 1.0
            _join(points, symbols, labelled, t, sides[i], scratch)
            if take_in(points, sides[i], workspace):
                weighed = j + 1  # what lies beyond is out of date
                steady = 0
        _count(links, i, previous, sides[i])
    return total + np.log(chance)
