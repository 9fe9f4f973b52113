r"""Draws of the weights of max-margin classifiers, one for each component, by augmentation.

With :math:`\zeta` the best score of another label, costs included, and :math:`\kappa = \pm 1`,

.. math:: e^{-2 c (\kappa (\zeta - f))_+} = \int_0^\infty \frac{1}{\sqrt{2 \pi w}}
          e^{-(w + c \kappa (\zeta - f))^2 / (2 w)} \, dw,

which is normal in the score :math:`f = \langle \eta, v \rangle` given :math:`w`.

The rows of a component lie in columns, a block of them at a time, zeros beyond the last. Sums over
many rows are kept in lanes, so that no addition waits for the one before.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.draw.density import (
    backward,
    combine,
    factorise,
    forward,
    take_better,
)
from structlearn._src.kernels.jit import inner, kernel

LANES = 64  # rows at a time, a power of 2: their products fill vector registers and fit the cache


@inner
def _inverse_gaussian(mean, normal, uniform):
    """Draw from the inverse Gaussian of shape 1, by Michael, Schucany and Haas."""
    s = mean * normal * normal
    root = 2.0 * mean / (2.0 + s + np.sqrt(4.0 * s + s * s))
    return root if uniform * (mean + root) <= mean else mean * mean / root


@inner
def lane_width(n):
    """Rows in a block: those of few rows are summed one by one."""
    return LANES if n >= 2 * LANES else max(n, 1)


@inner
def gather(V, labels, rows, columns, own):
    """Copy features and labels of some rows, zeros beyond them."""
    width = columns.shape[2]
    columns[:] = 0.0
    own[:] = 0
    for i in range(rows.size):
        t = rows[i]
        own[i] = labels[t]
        for m in range(V.shape[1]):
            columns[i // width, m, i % width] = V[t, m]


@inner
def score(weights, columns, scores):
    """Scores of one label."""
    width = columns.shape[2]
    for i in range(columns.shape[0]):
        combine(weights, columns[i], width, scores[i * width : (i + 1) * width])


@inner
def _rivals(scores, labels, y, cost, out):
    """Best scores of other labels than `y`, costs included, less the cost of `y`."""
    for i in range(out.size):
        out[i] = -np.inf
    for other in range(scores.shape[0]):
        if other != y:
            take_better(scores[other], labels, other, cost, out)
    for i in range(out.size):
        out[i] -= 0.0 if labels[i] == y else cost


@inner
def _augment(scores, labels, y, c, least, normals, uniforms, stiff, pull):
    """Draw the augmentation of rows, whose rivals `stiff` holds: precision and linear term."""
    for i in range(normals.size):
        zeta = stiff[i]
        mean = 1.0 / max(c * abs(zeta - scores[i]), least)
        inverse = _inverse_gaussian(mean, normals[i], uniforms[i])
        pull[i] = (c if labels[i] == y else -c) + c * c * zeta * inverse
        stiff[i] = c * c * inverse


@inner
def _scale(x, factors, out):
    for b in range(out.size):
        out[b] = factors[b] * x[b]


@inner
def _add_products(x, v, out):
    for b in range(out.size):
        out[b] += x[b] * v[b]


@inner
def _add_block(columns, stiff, pull, scaled, lanes):
    """Add a row for every lane to the lanes of the precision (M, M); lane M has the linear term."""
    M = columns.shape[0]
    for a in range(M):
        _scale(columns[a], stiff, scaled)
        for m in range(a + 1):
            _add_products(scaled, columns[m], lanes[a, m])
        _add_products(pull, columns[a], lanes[M, a])


@inner
def _add_lanes(lanes, out):
    """Add the sums of lanes."""
    for a in range(lanes.shape[0]):
        for m in range(min(a + 1, lanes.shape[1])):
            row = lanes[a, m]
            width = row.size
            while width > 1:
                width //= 2
                low, high = row[:width], row[width : 2 * width]
                for b in range(width):
                    low[b] += high[b]
            out[a, m] += row[0]


@inner
def _add_row(x, stiff, pull, out):
    """Add one row to the precision (M, M); row M of `out` has the linear term."""
    M = x.size
    for a in range(M):
        out[M, a] += pull * x[a]
        scaled = stiff * x[a]
        for m in range(a + 1):
            out[a, m] += scaled * x[m]


@inner
def _clear(lanes):
    for a in range(lanes.shape[0]):
        for m in range(lanes.shape[1]):
            for b in range(lanes.shape[2]):
                lanes[a, m, b] = 0.0


@inner
def add_all(V, rows, columns, work):
    """Add all rows to a precision; `work` as in `_redraw`."""
    stiff, pull, precision, lanes, scaled = work
    blocks, _, width = columns.shape
    if blocks > 1:
        _clear(lanes)
        for i in range(blocks):
            block = slice(i * width, (i + 1) * width)
            _add_block(columns[i], stiff[block], pull[block], scaled, lanes)
        _add_lanes(lanes, precision)
    else:
        for i in range(rows.size):
            _add_row(V[rows[i]], stiff[i], pull[i], precision)


@inner
def _solve(precision, noise, out):
    """Draw from the normal distribution with this precision, and linear term in its last row."""
    M = out.size
    factor = precision[:M]
    linear = precision[M]
    factorise(factor)
    forward(factor, linear, np.inf)
    for m in range(M):
        linear[m] += noise[m]
    backward(factor, linear)
    for m in range(M):
        out[m] = linear[m]


@inner
def _redraw(V, rows, columns, own, scores, y, c, cost, least, extra, chance, work, weights):
    """Draw the weights of one label anew, and its scores.

    `extra` is added to the linear terms of rows, unless it is empty.
    `chance` has normal and uniform numbers of rows, and normal ones of weights; `work` the vectors
    `stiff` and `pull` of rows, the precision with the linear term, filled by the prior, and lanes.
    """
    normal, uniform, noise = chance
    stiff, pull, precision, _, _ = work
    _rivals(scores, own, y, cost, stiff)
    _augment(scores[y], own, y, c, least, normal, uniform, stiff, pull)
    for i in range(rows.size, stiff.size):  # beyond the last row
        stiff[i] = 0.0
    for i in range(extra.size):
        pull[i] += extra[i]
    add_all(V, rows, columns, work)
    _solve(precision, noise, weights)
    score(weights, columns, scores[y])


@inner
def fill_prior(precision, ridge):
    """Begin a precision with that of the prior, whose mean is 0."""
    for a in range(precision.shape[0]):
        for m in range(precision.shape[1]):
            precision[a, m] = ridge if a == m else 0.0


@kernel
def draw_weights(
    V, labels, order, borders, weights, ridge, c, cost, least, normals, uniforms, noise, first, last
):
    """Draw the weights (K, L, M) of the components from `first` up to `last` anew, in place.

    Component k has the rows ``order[borders[k]:borders[k + 1]]``, all with a label; `normals` and
    `uniforms` (L, rows) are those of these components alone. With two labels only the second has
    weights, with half the `ridge`: only their difference matters. Rows nearer to their margin than
    `least` count as if they were as far. Where all that is random is 0, scales are their means and
    weights are the best given these: a step of expectation maximisation.
    """
    _, L, M = weights.shape
    low = 1 if L == 2 else 0
    precision = np.empty((M + 1, M))
    lanes = np.empty((M + 1, M, LANES))
    scaled = np.empty(LANES)
    nothing = np.empty(0)
    for k in range(first, last):
        rows = order[borders[k] : borders[k + 1]]
        begin = borders[k] - borders[first]
        n = rows.size
        width = lane_width(n)
        columns = np.empty(((n + width - 1) // width, M, width))
        own = np.empty(columns.shape[0] * width, np.int64)
        scores = np.empty((L, own.size))
        work = (np.zeros(own.size), np.zeros(own.size), precision, lanes, scaled)
        gather(V, labels, rows, columns, own)
        for y in range(L):
            score(weights[k, y], columns, scores[y])
        for y in range(low, L):
            fill_prior(precision, ridge * (0.5 if low else 1.0))
            place = slice(begin, begin + n)
            chance = (normals[y, place], uniforms[y, place], noise[k, y])
            _redraw(
                V, rows, columns, own, scores, y, c, cost, least, nothing, chance, work,
                weights[k, y],
            )  # fmt: skip


@inner
def _fill_bridge(centre, block, heat, ridge, precision):
    """Begin a precision at one heat between the normal density of one label and the prior.

    What other labels add to its linear term is left to `_pull_links`.
    """
    M = centre.size
    for a in range(M):
        total = 0.0
        for m in range(M):
            total += block[a, m] * centre[m]
            precision[a, m] = (1.0 - heat) * block[a, m]
        precision[M, a] = (1.0 - heat) * total
        precision[a, a] += heat * ridge


@inner
def _sum_links(links, away, out):
    """Sum over labels of links times how far scores are from those of the centre."""
    for i in range(out.size):
        out[i] = 0.0
    for f in range(links.shape[0]):
        for i in range(out.size):
            out[i] += links[f, i] * away[f, i]


@inner
def _pull_links(links, away, f, heat, out):
    """Linear terms of rows by which all labels but `f` pull its weights in a normal density."""
    _sum_links(links, away, out)
    for i in range(out.size):
        out[i] = (heat - 1.0) * links[f, i] * (out[i] - links[f, i] * away[f, i])


@inner
def _log_ratio(scores, labels, n, weights, low, normal, away, ridge, c, cost, sums):
    """Log of prior and potentials of `n` rows, less that of a normal density; without constants."""
    centre, blocks, links = normal
    F, M = centre.shape
    total = 0.0
    _sum_links(links, away, sums)
    for i in range(n):
        label = labels[i]
        own = scores[label, i]
        best = own
        for y in range(scores.shape[0]):
            if y != label and scores[y, i] + cost > best:
                best = scores[y, i] + cost
        total += 2.0 * c * (own - best) - 0.5 * sums[i] * sums[i]
        for f in range(F):
            total += 0.5 * (links[f, i] * away[f, i]) ** 2
    for f in range(F):
        for a in range(M):
            w = weights[low + f, a]
            pulled = 0.0
            for m in range(M):
                pulled += blocks[f, a, m] * (weights[low + f, m] - centre[f, m])
            total += 0.5 * (pulled * (w - centre[f, a]) - ridge * w * w)
    return total


@kernel
def bridge(
    V, labels, weights, centre, blocks, links, ridge, c, cost, least, heats, shares, first,
    normals, uniforms, noise,
):  # fmt: skip
    """Redraw weights (L, M) in place at `heats` between a normal density and the posterior.

    The density at heat b is that of the normal one to the power of 1 - b, times prior and
    potentials to the power of b. The normal one lies around `centre` (F, M); its inverse covariance
    has `blocks` (F, M, M) on the diagonal, and between labels f and g the sum over rows of
    ``-links[f] links[g]`` (F, rows) times products of features. Returns the sum over steps of
    `shares` times the log ratio of the two ends without constants, taken before the draw of a step
    if `first`, or after it. `normals` and `uniforms` are (steps, L, rows), `noise` (steps, L, M).
    """
    L, M = weights.shape
    low = 1 if L == 2 else 0
    ridge = ridge * (0.5 if low else 1.0)
    n = labels.size
    rows = np.arange(n)
    width = lane_width(n)
    columns = np.empty(((n + width - 1) // width, M, width))
    own = np.empty(columns.shape[0] * width, np.int64)
    scores = np.empty((L, own.size))
    away = np.empty((L - low, own.size))
    extra = np.empty(n)
    precision = np.empty((M + 1, M))
    lanes = np.empty((M + 1, M, LANES))
    work = (np.zeros(own.size), np.zeros(own.size), precision, lanes, np.empty(LANES))
    normal = (centre, blocks, links)
    gather(V, labels, rows, columns, own)
    for y in range(L):
        score(weights[y], columns, scores[y])
    for f in range(L - low):
        score(centre[f] - weights[low + f], columns, away[f])
    total = 0.0
    for t in range(heats.size):
        for turn in range(2):
            if (turn == 0) == first:
                total += shares[t] * _log_ratio(
                    scores, own, n, weights, low, normal, away, ridge, c, cost, extra
                )
                continue
            for y in range(low, L):
                f = y - low
                _fill_bridge(centre[f], blocks[f], heats[t], ridge, precision)
                _pull_links(links, away, f, heats[t], extra)
                chance = (normals[t, y], uniforms[t, y], noise[t, y])
                _redraw(
                    V, rows, columns, own, scores, y, heats[t] * c, cost, least, extra, chance,
                    work, weights[y],
                )  # fmt: skip
                score(centre[f] - weights[y], columns, away[f])
    return total
