"""Newton steps on softened hinge losses of two labels, whose scores differ by one number."""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.draw.density import backward, factorise, forward
from structlearn._src.kernels.draw.margin import (
    LANES,
    add_all,
    fill_prior,
    gather,
    lane_width,
    score,
)
from structlearn._src.kernels.jit import inner, kernel


@inner
def _soften(scores, labels, n, cost, weight, taus, stiff, pull):
    """Sum of losses; curvatures and negative slopes of rows in `stiff` and `pull`."""
    total = 0.0
    for i in range(n):
        sign = 1.0 if labels[i] == 1 else -1.0
        lack = cost - sign * scores[i]
        e = np.exp(-abs(lack) / taus[i])
        p = (1.0 if lack > 0.0 else e) / (1.0 + e)
        total += max(lack, 0.0) + taus[i] * np.log1p(e)
        stiff[i] = weight * p * (1.0 - p) / taus[i]
        pull[i] = weight * sign * p
    return weight * total


@inner
def _cool(columns, n, factor, scale, fastest, vector, taus):
    """Set the temperatures of rows by the deviations of their scores; they fall step by step."""
    width = columns.shape[2]
    for i in range(n):
        for m in range(vector.size):
            vector[m] = columns[i // width, m, i % width]
        taus[i] = max(scale * np.sqrt(forward(factor, vector, np.inf)), taus[i] / fastest)


@kernel
def fit_pair(V, labels, weights, factor, taus, settings, rounds, steps):
    """Minimise softened hinge losses of rows with labels 0 and 1, by Newton steps, in place.

    `weights` (M,) are those of label 1, `factor` (M, M) becomes the lower factor of the Hessian and
    `taus` (rows,) the temperatures. `settings`: ridge, weight of a loss, cost, scale of
    temperatures, and by which factor these fall at most between two rounds.
    """
    ridge, weight, cost, scale, fastest = settings
    M = weights.size
    n = labels.size
    rows = np.arange(n)
    width = lane_width(n)
    columns = np.empty(((n + width - 1) // width, M, width))
    own = np.empty(columns.shape[0] * width, np.int64)
    scores = np.empty(own.size)
    precision = np.empty((M + 1, M))
    lanes = np.empty((M + 1, M, LANES))
    stiff, pull = np.zeros(own.size), np.zeros(own.size)
    work = (stiff, pull, precision, lanes, np.empty(LANES))
    before = weights.copy()
    vector = np.empty(M)
    gather(V, labels, rows, columns, own)
    for r in range(rounds):
        if r > 0:
            _cool(columns, n, factor, scale, fastest, vector, taus)
        least = np.inf
        for step in range(steps + 1):
            score(weights, columns, scores)
            value = _soften(scores, own, n, cost, weight, taus, stiff, pull)
            value += 0.5 * ridge * (weights * weights).sum()
            better = value <= least
            if better:
                least = value
                before[:] = weights
            elif step == steps:
                weights[:] = before
            else:  # too far: half of the step
                weights[:] = 0.5 * (weights + before)
            if better:
                fill_prior(precision, ridge)
                precision[M] = -ridge * weights
                add_all(V, rows, columns, work)
                factorise(precision[:M])
                for a in range(M):
                    for m in range(M):
                        factor[a, m] = precision[a, m] if m <= a else 0.0
                if step < steps:
                    forward(factor, precision[M], np.inf)
                    backward(factor, precision[M])
                    weights += precision[M]
