"""Log densities of many positions in many states, and the sums that states are learnt from.

Positions lie in columns where sums run over them: a block of positions at a time, with no sum that
depends on the one before. A triangular matrix is kept as bands: entry ``(i, i + j)`` of the upper
triangle at ``[i, j]``. One band alone is a diagonal matrix.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.jit import inner, kernel, lean

_BLOCK = 128  # positions at a time: their columns stay in the first-level cache


@inner
def _load(columns, start, n, out):
    """Copy a block of positions, so that loops over it have no offset and can be vectorised."""
    for m in range(columns.shape[0]):
        for b in range(n):
            out[m, b] = columns[m, start + b]


@inner
def combine(weights, rows, n, out):
    """out[b] = sum over ``m`` of ``weights[m] rows[m, b]``, four rows at a time."""
    width = weights.size
    whole = width - width % 4
    for b in range(n):
        out[b] = 0.0
    for m in range(0, whole, 4):
        w0, w1, w2, w3 = weights[m], weights[m + 1], weights[m + 2], weights[m + 3]
        r0, r1, r2, r3 = rows[m], rows[m + 1], rows[m + 2], rows[m + 3]
        for b in range(n):
            out[b] += (w0 * r0[b] + w1 * r1[b]) + (w2 * r2[b] + w3 * r3[b])
    for m in range(whole, width):
        weight = weights[m]
        row = rows[m]
        for b in range(n):
            out[b] += weight * row[b]


@inner
def take_better(scores, labels, label, cost, best):
    """best[b] = max(best[b], score of one label), plus the cost of a wrong label where it is one.

    Over all labels it is the first term of the hinge loss, max_y (cost [y != label] + score_y).
    """
    for b in range(best.size):
        score = scores[b] + (0.0 if labels[b] == label else cost)
        best[b] = score if score > best[b] else best[b]


@kernel
def add_gaussians(columns, seen, means, bands, constants, first, last, out):
    """Add log densities ``constants[k] - |R (x - mean)|^2 / 2`` to ``out[t - first, k]``.

    `columns` (features, positions), `bands` (states, features, bands) the upper triangles ``R``;
    nothing is added where a position is not `seen`.
    """
    states, D, width = bands.shape
    local = np.empty((D, _BLOCK))
    away = np.empty((D, _BLOCK))
    row = np.empty(_BLOCK)
    total = np.empty(_BLOCK)
    for start in range(first, last, _BLOCK):
        n = min(_BLOCK, last - start)
        _load(columns, start, n, local)
        for k in range(states):
            for i in range(D):
                m = means[k, i]
                for b in range(n):
                    away[i, b] = local[i, b] - m
            total[:] = 0.0
            for i in range(D):
                combine(bands[k, i, : min(width, D - i)], away[i:], n, row)
                for b in range(n):
                    total[b] += row[b] * row[b]
            for b in range(n):
                if seen[start + b]:
                    out[start - first + b, k] += constants[k] - 0.5 * total[b]


@lean
def add_moments(points, seen, states, counts, sums, outers):
    """Add numbers, sums and products ``x_i x_(i + j)`` of the points of every state.

    `points` (positions, features); `outers` (states, features, bands).
    """
    _, D, width = outers.shape
    for t in range(points.shape[0]):
        if not seen[t]:
            continue
        k = states[t]
        x = points[t]
        counts[k] += 1.0
        for i in range(D):
            a = x[i]
            sums[k, i] += a
            for j in range(min(width, D - i)):
                outers[k, i, j] += a * x[i + j]


@kernel
def add_hinges(columns, labels, weights, factor, cost, first, last, out):
    """Add `factor` times the hinge loss of position ``t`` in state ``k`` to ``out[t - first, k]``.

    `columns` (features, positions), `weights` (states, labels, features); labels of -1 lose
    nothing.
    """
    states, n_labels, width = weights.shape
    local = np.empty((width, _BLOCK))
    scores = np.empty((n_labels, _BLOCK))
    best = np.empty(_BLOCK)
    for start in range(first, last, _BLOCK):
        n = min(_BLOCK, last - start)
        _load(columns, start, n, local)
        own = labels[start : start + n]
        for k in range(states):
            best[:] = -np.inf
            for y in range(n_labels):
                combine(weights[k, y], local, n, scores[y])
                take_better(scores[y], own, y, cost, best[:n])
            for b in range(n):
                label = own[b]
                if label >= 0:
                    out[start - first + b, k] += factor * (best[b] - scores[label, b])
