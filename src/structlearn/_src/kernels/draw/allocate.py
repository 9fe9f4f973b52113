"""Positions of a union go to one of two sides, one after the other, each given those before it.

Parameters of both sides are integrated out, so that they follow whatever sides came before. What is
known of points may lag behind by a few, so that several positions are weighed together.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.draw.density import combine, product
from structlearn._src.kernels.jit import inline, inner, lean

LAG = 32  # points that a side knows for each that waits: log probabilities change by a nat or two


class Links(NamedTuple):
    """How positions hang together with those before and after them."""

    before: np.ndarray  #: (n,) as `surround` finds them
    after: np.ndarray  #: (n,)
    into: np.ndarray  #: (rows, 2) transitions to both sides so far, with their masses
    within: np.ndarray  #: (2, 2) the same from both sides
    out: np.ndarray  #: (2, states) transitions to other states, with their masses
    left: np.ndarray  #: (2,) all transitions from both sides, with the mass of a row


class PointPosteriors(NamedTuple):
    """Normal-inverse-Wishart posteriors of groups of features, of both sides."""

    data: np.ndarray  #: (n, groups, width)
    seen: np.ndarray  #: (n,)
    counts: np.ndarray  #: (2,)
    centres: np.ndarray  #: (2, groups, width)
    factors: np.ndarray  #: (2, groups, width, width) L of the scale matrices L D L', L[i, i] = 1
    squares: np.ndarray  #: (2, groups, width) the diagonals D
    inverses: np.ndarray  #: (2, groups, width) of these, as divisions cost most
    tops: np.ndarray  #: (2, groups) log densities at the centres
    scales: np.ndarray  #: (2, groups, width, width) the scale matrices, lower triangles
    waiting: np.ndarray  #: (2,) points that are in none of these yet
    sums: np.ndarray  #: (2, groups, width) of what lies between them and the centres
    products: np.ndarray  #: (2, groups, width, width) of the same, lower triangles
    strength: float
    degrees: float


class SymbolMasses(NamedTuple):
    """Counts of symbols, of both sides."""

    data: np.ndarray  #: (n,) -1 where missing
    masses: np.ndarray  #: (2, symbols) with those of the prior


class Regressions(NamedTuple):
    """Least squares of the indicators of labels, of both sides: quick stand-ins of classifiers."""

    features: np.ndarray  #: (n, M)
    labels: np.ndarray  #: (n,) -1 where missing
    inverses: np.ndarray  #: (2, M, M) of the ridge and all products
    sums: np.ndarray  #: (2, L, M) of the features with each label
    firm: float  #: log odds by score: by how much labels tell sides apart


class AllocationWorkspace(NamedTuple):
    """Scratch space."""

    rows: np.ndarray  #: (width, m) features of positions that are looked at together
    solved: np.ndarray  #: (width, m)
    lengths: np.ndarray  #: (m,)
    odds: np.ndarray  #: (m,)
    image: np.ndarray  #: (M,)
    values: np.ndarray  #: (2,)


@lean
def find(states, k, number):
    """Return where a state occurs for the given time, counted from 0."""
    left = number
    for t in range(states.size):
        if states[t] == k:
            if left == 0:
                return t
            left -= 1
    return -1


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


@inner
def _add_square(factor, squares, inverses, vector):
    """Add the square of a vector to L D L': method C1 of Gill, Golub, Murray and Saunders (1974).

    It adds positive numbers alone, so that rounding cannot grow. Uses the vector up.
    """
    left = 1.0
    for i in range(vector.size):
        y = vector[i]
        old = squares[i]
        new = old + left * y * y
        inverse = 1.0 / new
        step = left * y * inverse
        left *= old * inverse
        squares[i] = new
        inverses[i] = inverse
        for j in range(i + 1, vector.size):
            rest = vector[j] - factor[j, i] * y
            factor[j, i] += step * rest
            vector[j] = rest


@inner
def _factorise(scale, factor, squares, inverses):
    """Write a matrix, of which the lower triangle is read, as L D L'."""
    for i in range(squares.size):
        for j in range(i):
            total = scale[i, j]
            for a in range(j):
                total -= factor[i, a] * factor[j, a] * squares[a]
            factor[i, j] = total * inverses[j]
        total = scale[i, i]
        for a in range(i):
            total -= factor[i, a] * factor[i, a] * squares[a]
        squares[i] = total
        inverses[i] = 1.0 / total


@inner
def _measure(points, k, g, n, workspace):
    """Find squared lengths, by the scale matrix of a side, from its centre to some positions."""
    lengths = workspace.lengths
    for b in range(n):
        lengths[b] = 0.0
    for a in range(points.data.shape[2]):
        solved = workspace.solved[a]
        combine(points.factors[k, g, a, :a], workspace.solved, n, solved)
        centre = points.centres[k, g, a]
        inverse = points.inverses[k, g, a]
        for b in range(n):
            y = workspace.rows[a, b] - centre - solved[b]
            solved[b] = y
            lengths[b] += y * y * inverse


@inner
def _weigh_points(points, some, workspace):
    """Find the log odds of the second side for some positions by their points: Student's t."""
    odds = workspace.odds
    n = some.size
    for b in range(n):
        odds[b] = 0.0
    for g in range(points.data.shape[1]):
        for a in range(points.data.shape[2]):
            for b in range(n):
                workspace.rows[a, b] = points.data[some[b], g, a]
        for k in range(2):
            _measure(points, k, g, n, workspace)
            known = points.counts[k]
            sign = 2.0 * k - 1.0
            half = 0.5 * (points.degrees + known + 1.0)
            ratio = 1.0 - 1.0 / (points.strength + known + 1.0)
            top = points.tops[k, g]
            for b in range(n):
                if points.seen[some[b]]:
                    odds[b] += sign * (top - half * np.log1p(ratio * workspace.lengths[b]))


@inline
def _join_points(points, i, k):
    """Let a point wait until its side takes it in."""
    if not points.seen[i]:
        return
    points.waiting[k] += 1
    for g in range(points.data.shape[1]):
        x = points.data[i, g]
        centre = points.centres[k, g]
        for a in range(x.size):
            apart = x[a] - centre[a]
            points.sums[k, g, a] += apart
            row = points.products[k, g, a]
            for b in range(a + 1):
                row[b] += apart * (x[b] - centre[b])


@inner
def _find_tops(points, k):
    """Find the log predictive densities at the centres of a side: see `student_constants`."""
    width = points.data.shape[2]
    strength = points.strength + points.counts[k]
    upper = 0.5 * (points.degrees + points.counts[k] + 1.0)
    top = 0.5 * width * np.log(strength / (strength + 1.0) / np.pi)
    top += math.lgamma(upper) - math.lgamma(upper - 0.5 * width)
    for g in range(points.data.shape[1]):
        points.tops[k, g] = top
        for a in range(width):
            points.tops[k, g] -= 0.5 * np.log(points.squares[k, g, a])


@inline
def _take_in(points, k):
    """Let the posterior of a side know the points that wait; return whether it does.

    They wait as long as they are few: ever more, so that it is not found anew for each of them.
    """
    new = points.waiting[k]
    if LAG * new <= points.counts[k]:
        return False
    strength = points.strength + points.counts[k] + new
    for g in range(points.data.shape[1]):
        sums = points.sums[k, g]
        for a in range(sums.size):
            for b in range(a + 1):
                change = points.products[k, g, a, b] - sums[a] * sums[b] / strength
                points.scales[k, g, a, b] += change
                points.products[k, g, a, b] = 0.0
        for a in range(sums.size):
            points.centres[k, g, a] += sums[a] / strength
        factor = points.factors[k, g]
        if new == 1:  # as all are at first: quicker where there are many features
            root = np.sqrt(1.0 - 1.0 / strength)
            for a in range(sums.size):
                sums[a] *= root
            _add_square(factor, points.squares[k, g], points.inverses[k, g], sums)
        else:
            _factorise(points.scales[k, g], factor, points.squares[k, g], points.inverses[k, g])
        for a in range(sums.size):
            sums[a] = 0.0
    points.counts[k] += new
    points.waiting[k] = 0
    _find_tops(points, k)
    return True


@inline
def _add_symbols(symbols, i, values):
    s = symbols.data[i]
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
def _add_labels(labelled, i, values, image):
    """Add log probabilities of the label of a position, by scores that count less where unsure."""
    label = labelled.labels[i]
    if label < 0:
        return
    v = labelled.features[i]
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
def _join_labels(labelled, i, k, image):
    label = labelled.labels[i]
    if label < 0:
        return
    v = labelled.features[i]
    M = v.size
    inverse = labelled.inverses[k]
    _multiply(inverse, v, image)
    shrink = 1.0 / (1.0 + product(image, v, M))
    for a in range(M):
        labelled.sums[k, label, a] += v[a]
        for b in range(M):
            inverse[a, b] -= shrink * image[a] * image[b]


@inline
def _join(points, symbols, labelled, i, k, workspace):
    """Let a position join a side."""
    _join_points(points, i, k)
    if symbols.data[i] >= 0:
        symbols.masses[k, symbols.data[i]] += 1.0
    _join_labels(labelled, i, k, workspace.image)


@inline
def _add_links(links, i, previous, values):
    """Add log odds of the transitions to a position, and to another state from it."""
    row = links.before[i]
    after = links.after[i]
    into = links.within[previous] if row < 0 else links.into[row]
    odds = into[1] / into[0]
    if after >= 0:
        out = links.out[:, after]
        odds *= out[1] / out[0] * (links.left[0] / links.left[1])
    values[1] += np.log(odds)


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
def _choose(odds, uniforms, i, sides):
    """Draw the side of a position that has none; return the log probability of its side."""
    less = np.exp(-abs(odds))  # odds of the side that is less likely
    share = (1.0 if odds > 0.0 else less) / (1.0 + less)
    if sides[i] < 0:
        sides[i] = 1 if uniforms[i] < share else 0
    against = odds if sides[i] == 0 else -odds
    return -max(against, 0.0) - np.log1p(less)


@lean
def allocate(order, anchors, links, points, symbols, labelled, workspace, uniforms, sides):
    """Draw the sides of positions in their order; return the log probability of all of them.

    Those that are given, 0 or 1 in `sides`, stay; -1 is drawn with its number of `uniforms`. The
    two `anchors` are given with certainty, and known from the start.
    """
    values = workspace.values
    for k in range(2):
        sides[anchors[k]] = k
        _find_tops(points, k)  # in case that the anchor has no point
        _join(points, symbols, labelled, anchors[k], k, workspace)
        _take_in(points, k)
    total = 0.0
    weighed = 0  # positions whose odds by points are known
    begun = 0  # the first of these that were looked at together
    steady = 0  # positions since a posterior was found anew
    for j in range(order.size):
        if j == weighed:
            begun = j
            weighed = min(order.size, j + 1 + steady, j + workspace.odds.size)
            _weigh_points(points, order[begun:weighed], workspace)
        steady += 1
        i = order[j]
        previous = sides[i - 1] if links.before[i] < 0 else 0
        if i != anchors[0] and i != anchors[1]:
            values[0] = 0.0
            values[1] = workspace.odds[j - begun]
            _add_links(links, i, previous, values)
            _add_symbols(symbols, i, values)
            _add_labels(labelled, i, values, workspace.image)
            total += _choose(values[1] - values[0], uniforms, i, sides)
            _join(points, symbols, labelled, i, sides[i], workspace)
            if _take_in(points, sides[i]):
                weighed = j + 1  # what lies beyond is out of date
                steady = 0
        _count(links, i, previous, sides[i])
    return total
