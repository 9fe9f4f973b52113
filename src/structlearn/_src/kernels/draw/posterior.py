"""What two sides know of their points: normal-inverse-Wishart posteriors, which may lag behind.

Several points are weighed together, and a few wait until a posterior takes them in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structlearn._src.kernels import lanes
from structlearn._src.kernels.jit import inline, inner
from structlearn._src.kernels.lanes import LANES

LAG = 16  # points that a side knows for each that waits: log probabilities change by some nats


class PointPosteriors(NamedTuple):
    """Normal-inverse-Wishart posteriors of groups of features, of both sides.

    Where there are no points, symbols or labels, the arrays with one row for each position are
    empty.
    """

    data: np.ndarray  #: (positions, groups * width) of all positions, not of the union alone
    seen: np.ndarray  #: (positions,)
    counts: np.ndarray  #: (2,)
    centres: np.ndarray  #: (2, groups, width)
    factors: np.ndarray  #: (2, groups, width, width) L of the scale matrices L D L', L[i, i] = 1
    squares: np.ndarray  #: (2, groups, width) the diagonals D
    inverses: np.ndarray  #: (2, groups, width) of these, as divisions cost most
    bands: np.ndarray  #: (2, groups, width, width) of the roots of the inverses, as `lanes.measure`
    means: np.ndarray  #: (2, groups, width) the centres; for both the last feature comes first
    tops: np.ndarray  #: (2, groups) log densities at the centres
    scales: np.ndarray  #: (2, groups, width, width) the scale matrices, lower triangles
    waiting: np.ndarray  #: (2,) points that are in none of these yet
    queue: np.ndarray  #: (2, n / LAG + 1) their positions
    strength: float
    degrees: float


class PointWorkspace(NamedTuple):
    """Scratch space, and the odds of the positions that were weighed last."""

    rows: np.ndarray  #: (width, LANES) features of positions that are looked at together
    away: np.ndarray  #: (width, LANES)
    lengths: np.ndarray  #: (LANES,)
    odds: np.ndarray  #: (m,) a multiple of LANES
    factor: np.ndarray  #: (width, width)
    apart: np.ndarray  #: (width + 1, LANES) what lies between points and a centre, and ones
    products: np.ndarray  #: (products, LANES) of these
    sums: np.ndarray  #: (products,)


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
def _invert(points, k, g, inverse):
    """Find the bands of a root of the inverse scale matrix of a side, and its mean.

    The features are turned round, as the root is a lower triangle otherwise.
    """
    factor = points.factors[k, g]
    bands = points.bands[k, g]
    D = factor.shape[0]
    for i in range(D):
        root = np.sqrt(points.inverses[k, g, i])
        inverse[i, i] = 1.0
        for j in range(i):
            total = factor[i, j]
            for a in range(j + 1, i):
                total += factor[i, a] * inverse[a, j]
            inverse[i, j] = -total
        for j in range(i + 1):
            bands[D - 1 - i, j] = root * inverse[i, i - j]
        points.means[k, g, D - 1 - i] = points.centres[k, g, i]


@inner
def weigh_points(points, positions, some, workspace):
    """Find the log odds of the second side for some positions by their points: Student's t."""
    odds = workspace.odds
    odds[:] = 0.0
    if points.seen.size == 0:
        return
    _, groups, width = points.centres.shape
    for begin in range(0, some.size, LANES):
        n = min(LANES, some.size - begin)
        for g in range(groups):
            for b in range(LANES):
                x = points.data[positions[some[begin + min(b, n - 1)]]]
                for a in range(width):
                    workspace.rows[width - 1 - a, b] = x[g * width + a]
            for k in range(2):
                _add_density(points, k, g, begin, workspace)
        for b in range(n):
            if not points.seen[positions[some[begin + b]]]:
                odds[begin + b] = 0.0


@inline
def look_ahead(points, steady):
    """How many positions are worth a look: no posterior changes before so many, or it seldom does.

    As many as there are lanes take no longer than one.
    """
    sure = min(
        points.counts[0] // LAG + 1 - points.waiting[0],
        points.counts[1] // LAG + 1 - points.waiting[1],
    )
    return max(sure, steady, LANES)


@inline
def _add_density(points, k, g, begin, workspace):
    """Add log densities given one side to the odds of eight positions, with its sign."""
    lengths = workspace.lengths
    lanes.measure(workspace.rows, points.means[k, g], points.bands[k, g], workspace.away, lengths)
    known = points.counts[k]
    sign = 2.0 * k - 1.0
    half = sign * 0.5 * (points.degrees + known + 1.0)
    ratio = 1.0 - 1.0 / (points.strength + known + 1.0)
    top = sign * points.tops[k, g]
    for b in range(LANES):
        workspace.odds[begin + b] += top - half * np.log1p(ratio * lengths[b])


@inline
def join_points(points, t, k):
    """Let a point wait until its side takes it in."""
    if points.seen.size > 0 and points.seen[t]:
        points.queue[k, points.waiting[k]] = t
        points.waiting[k] += 1


@inner
def _add_up(points, k, g, workspace):
    """Sum up what lies between the centre of a side and the points that wait, and its products."""
    apart = workspace.apart
    centre = points.centres[k, g]
    products = workspace.products
    products[:] = 0.0
    width = centre.size
    waiting = points.waiting[k]
    for begin in range(0, waiting, LANES):
        for b in range(LANES):
            within = begin + b < waiting
            x = points.data[points.queue[k, begin + b if within else 0]]
            apart[width, b] = 1.0 if within else 0.0
            for a in range(width):
                apart[a, b] = x[g * width + a] - centre[a] if within else 0.0
        lanes.add_products(apart, True, products)
    for r in range(workspace.sums.size):
        row = products[r]
        workspace.sums[r] = ((row[0] + row[1]) + (row[2] + row[3])) + (
            (row[4] + row[5]) + (row[6] + row[7])
        )


@inner
def find_densities(points, k, inverse):
    """Find what is needed for the log predictive densities of a side: see `student_constants`."""
    _, groups, width = points.centres.shape
    strength = points.strength + points.counts[k]
    upper = 0.5 * (points.degrees + points.counts[k] + 1.0)
    top = 0.5 * width * np.log(strength / (strength + 1.0) / np.pi)
    top += math.lgamma(upper) - math.lgamma(upper - 0.5 * width)
    for g in range(groups):
        points.tops[k, g] = top
        for a in range(width):
            points.tops[k, g] -= 0.5 * np.log(points.squares[k, g, a])
        _invert(points, k, g, inverse)


@inner
def _renew(points, k, workspace):
    """Let the posterior of a side know the points that wait."""
    new = points.waiting[k]
    strength = points.strength + points.counts[k] + new
    _, groups, width = points.centres.shape
    for g in range(groups):
        _add_up(points, k, g, workspace)
        sums = workspace.sums[width * (width + 1) // 2 :][:width]
        r = 0
        for a in range(width):
            for b in range(a + 1):
                points.scales[k, g, a, b] += workspace.sums[r] - sums[a] * sums[b] / strength
                r += 1
        for a in range(width):
            points.centres[k, g, a] += sums[a] / strength
        factor = points.factors[k, g]
        if new == 1:  # as all are at first: quicker where there are many features
            root = np.sqrt(1.0 - 1.0 / strength)
            for a in range(width):
                sums[a] *= root
            _add_square(factor, points.squares[k, g], points.inverses[k, g], sums)
        else:
            _factorise(points.scales[k, g], factor, points.squares[k, g], points.inverses[k, g])
    points.counts[k] += new
    points.waiting[k] = 0
    find_densities(points, k, workspace.factor)


@inline
def take_in(points, k, workspace):
    """Let the posterior of a side know the points that wait; return whether it does.

    They wait as long as they are few: ever more, so that it is not found anew for each of them.
    """
    if LAG * points.waiting[k] <= points.counts[k]:
        return False
    _renew(points, k, workspace)
    return True
