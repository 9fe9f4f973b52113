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
    add_hinges,
    backward,
    combine,
    factorise,
    forward,
    take_better,
)
from structlearn._src.kernels.jit import inner, kernel

_LANES = 64  # rows at a time, a power of 2: their products fill vector registers and fit the cache


@inner
def _inverse_gaussian(mean, normal, uniform):
    """Draw from the inverse Gaussian of shape 1, by Michael, Schucany and Haas."""
    s = mean * normal * normal
    root = 2.0 * mean / (2.0 + s + np.sqrt(4.0 * s + s * s))
    return root if uniform * (mean + root) <= mean else mean * mean / root


@inner
def _gather(V, labels, rows, columns, own):
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
def _score(weights, columns, scores):
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
    lanes = np.empty((M + 1, M, _LANES))
    scaled = np.empty(_LANES)
    for k in range(first, last):
        rows = order[borders[k] : borders[k + 1]]
        begin = borders[k] - borders[first]
        n = rows.size
        width = _LANES if n >= 2 * _LANES else max(n, 1)
        blocks = (n + width - 1) // width
        columns = np.empty((blocks, M, width))
        own = np.empty(blocks * width, np.int64)
        scores = np.empty((L, own.size))
        stiff = np.zeros(own.size)
        pull = np.zeros(own.size)
        _gather(V, labels, rows, columns, own)
        for y in range(L):
            _score(weights[k, y], columns, scores[y])
        for y in range(low, L):
            _rivals(scores, own, y, cost, stiff)
            normal = normals[y, begin : begin + n]
            uniform = uniforms[y, begin : begin + n]
            _augment(scores[y], own, y, c, least, normal, uniform, stiff, pull)
            stiff[n:] = 0.0  # beyond the last row
            precision[:] = 0.0
            for m in range(M):
                precision[m, m] = ridge * (0.5 if low else 1.0)
            if blocks > 1:
                lanes[:] = 0.0
                for i in range(blocks):
                    block = slice(i * width, (i + 1) * width)
                    _add_block(columns[i], stiff[block], pull[block], scaled, lanes)
                _add_lanes(lanes, precision)
            else:
                for i in range(n):
                    _add_row(V[rows[i]], stiff[i], pull[i], precision)
            _solve(precision, noise[k, y], weights[k, y])
            _score(weights[k, y], columns, scores[y])


@kernel
def anneal(
    V, columns, labels, weights, ridge, c, cost, least, heats, shares, first,
    normals, uniforms, noise,
):  # fmt: skip
    """Redraw weights (1, L, M) in place as losses count by `heats` more or less, step by step.

    Returns the sum over steps of `shares` times the log potential of the labels of all rows, taken
    before the draw of a step if `first`, or after it. `normals` and `uniforms` are (steps, L,
    rows), `noise` (steps, 1, L, M).
    """
    n = labels.size
    order = np.arange(n)
    borders = np.array([0, n])
    fits = np.empty((n, 1))
    total = 0.0
    for t in range(heats.size):
        for turn in range(2):
            if (turn == 0) == first:
                fits[:] = 0.0
                add_hinges(columns, labels, weights, -2.0 * c, cost, 0, n, fits)
                total += shares[t] * fits.sum()
            else:
                draw_weights(
                    V, labels, order, borders, weights, ridge, heats[t] * c, cost, least,
                    normals[t], uniforms[t], noise[t], 0, 1,
                )  # fmt: skip
    return total
