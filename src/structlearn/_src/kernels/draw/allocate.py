"""Positions of a union go to one of two sides, one after the other, each given those before it.

Parameters of both sides are integrated out, so that they follow whatever sides came before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.draw.density import forward, log_determinant, product, update
from structlearn._src.kernels.jit import inner, lean


class Links(NamedTuple):
    """How positions hang together with those before and after them."""

    before: np.ndarray  #: (n,) row of the transition to it, -1 where the one before is in the union
    after: np.ndarray  #: (n,) state of the next position, -1 in the union or at an end
    into: np.ndarray  #: (rows, 2) transitions to both sides so far, with their masses
    within: np.ndarray  #: (2, 2) the same from both sides
    out: np.ndarray  #: (2, states) transitions to other states, with their masses
    left: np.ndarray  #: (2,) all transitions from both sides, with the mass of a row


class PointPosteriors(NamedTuple):
    """Normal-inverse-Wishart posteriors of groups of features, of both sides."""

    data: np.ndarray  #: (n, groups, width)
    seen: np.ndarray  #: (n,)
    constants: np.ndarray  #: (n + 1,) of the predictive density after so many points
    counts: np.ndarray  #: (2,)
    centres: np.ndarray  #: (2, groups, width)
    factors: np.ndarray  #: (2, groups, width, width) lower factors of the scale matrices
    logs: np.ndarray  #: (2, groups) log determinants of these
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

    vector: np.ndarray  #: (width,)
    image: np.ndarray  #: (M,)
    values: np.ndarray  #: (2,)


@inner
def _add_points(points, i, values, vector):
    """Add log densities of a point on both sides: Student's t."""
    if not points.seen[i]:
        return
    for k in range(2):
        n = points.counts[k]
        half = 0.5 * (points.degrees + n + 1.0)
        ratio = 1.0 - 1.0 / (points.strength + n + 1.0)
        for g in range(points.data.shape[1]):
            x = points.data[i, g]
            for a in range(x.size):
                vector[a] = x[a] - points.centres[k, g, a]
            away = forward(points.factors[k, g], vector, np.inf)
            values[k] += points.constants[n] - 0.5 * points.logs[k, g]
            values[k] -= half * np.log1p(ratio * away)


@inner
def _join_points(points, i, k, vector):
    if not points.seen[i]:
        return
    strength = points.strength + points.counts[k]
    root = np.sqrt(strength / (strength + 1.0))
    for g in range(points.data.shape[1]):
        x = points.data[i, g]
        for a in range(x.size):
            apart = x[a] - points.centres[k, g, a]
            vector[a] = root * apart
            points.centres[k, g, a] += apart / (strength + 1.0)
        update(points.factors[k, g], vector, 1.0)
        points.logs[k, g] = log_determinant(points.factors[k, g])
    points.counts[k] += 1


@inner
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


@inner
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


@inner
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


@inner
def _join(points, symbols, labelled, i, k, workspace):
    """Let a position join a side."""
    _join_points(points, i, k, workspace.vector)
    if symbols.data[i] >= 0:
        symbols.masses[k, symbols.data[i]] += 1.0
    _join_labels(labelled, i, k, workspace.image)


@inner
def _add_links(links, i, previous, values):
    """Add log probabilities of the transitions to a position, and to another state from it."""
    row = links.before[i]
    after = links.after[i]
    for k in range(2):
        values[k] += np.log(links.within[previous, k] if row < 0 else links.into[row, k])
        if after >= 0:
            values[k] += np.log(links.out[k, after] / links.left[k])


@inner
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


@lean
def allocate(order, anchors, links, points, symbols, labelled, workspace, uniforms, sides):
    """Draw the sides of positions in their order; return the log probability of all of them.

    Those that are given, 0 or 1 in `sides`, stay; -1 is drawn with its number of `uniforms`. The
    two `anchors` are given with certainty, and known from the start.
    """
    values = workspace.values
    for k in range(2):
        sides[anchors[k]] = k
        _join(points, symbols, labelled, anchors[k], k, workspace)
    total = 0.0
    for j in range(order.size):
        i = order[j]
        previous = sides[i - 1] if links.before[i] < 0 else 0
        if i != anchors[0] and i != anchors[1]:
            values[0] = 0.0
            values[1] = 0.0
            _add_links(links, i, previous, values)
            _add_points(points, i, values, workspace.vector)
            _add_symbols(symbols, i, values)
            _add_labels(labelled, i, values, workspace.image)
            odds = values[1] - values[0]
            share = 1.0 / (1.0 + np.exp(-odds))
            if sides[i] < 0:
                sides[i] = 1 if uniforms[i] < share else 0
            chosen = odds if sides[i] == 0 else -odds
            total -= max(chosen, 0.0) + np.log1p(np.exp(-abs(chosen)))
            _join(points, symbols, labelled, i, sides[i], workspace)
        _count(links, i, previous, sides[i])
    return total
