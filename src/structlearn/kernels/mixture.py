"""Gibbs sweeps over the components of rows, Gaussian parameters integrated out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn.kernels.cholesky import forward, log_determinant, update
from structlearn.kernels.jit import lean, part

HINGE, LOGIT = 0, 1


class Components(NamedTuple):
    """Normal-inverse-Wishart posteriors of components, with room for more."""

    counts: np.ndarray  #: (room,) rows of each
    centres: np.ndarray  #: (room, D)
    factors: np.ndarray  #: (room, D, D) lower factors of the scale matrices
    logs: np.ndarray  #: (room,) log determinants of these
    weights: np.ndarray  #: (room, L, M) of the classifiers


class Prior(NamedTuple):
    """What components are drawn from, and what the labels of a row are worth."""

    centre: np.ndarray
    factor: np.ndarray  #: (D, D) lower factor of the scale matrix
    constants: np.ndarray  #: (rows + 1,) of the predictive density of a component of n rows
    strength: float
    degrees: float
    kind: int  #: HINGE or LOGIT
    c: float
    cost: float


@part
def log_potential(prior, weights, v, label):
    """Log potential of a label in a component; 0 where it is missing."""
    if label < 0:
        return 0.0
    L, M = weights.shape
    top, own, total = -np.inf, 0.0, 0.0
    for y in range(L):
        score = 0.0
        for m in range(M):
            score += weights[y, m] * v[m]
        if y == label:
            own = score
        elif prior.kind == HINGE:
            score += prior.cost
        if score > top:
            total = total * np.exp(top - score) + 1.0 if prior.kind == LOGIT else 0.0
            top = score
        elif prior.kind == LOGIT:
            total += np.exp(score - top)
    if prior.kind == HINGE:
        return 2.0 * prior.c * (own - top)
    return own - top - np.log(total)


@part
def _distance(components, k, x, vector):
    """Squared distance of a row from the centre of a component, by its scale matrix."""
    for a in range(x.size):
        vector[a] = x[a] - components.centres[k, a]
    return forward(components.factors[k], vector)


@part
def predictive(prior, components, k, x, vector):
    """Log density of one more row in a component: a Student t."""
    n = components.counts[k]
    strength = prior.strength + n
    stretch = np.log1p(strength / (strength + 1.0) * _distance(components, k, x, vector))
    return (
        prior.constants[n]
        - 0.5 * components.logs[k]
        - 0.5 * (prior.degrees + n + 1.0) * stretch
    )  # fmt: skip


@part
def _without(prior, components, k, x, vector):
    """The same in its own component, as if the row was not there."""
    n = components.counts[k] - 1
    strength = prior.strength + n + 1.0
    left = 1.0 - strength / (strength - 1.0) * _distance(components, k, x, vector)
    shrink = np.log(max(left, 1e-300))
    return prior.constants[n] - 0.5 * components.logs[k] + 0.5 * (prior.degrees + n) * shrink


@part
def _join(prior, components, k, x, vector):
    """Add a row to a component."""
    strength = prior.strength + components.counts[k]
    root = np.sqrt(strength / (strength + 1.0))
    for a in range(x.size):
        apart = x[a] - components.centres[k, a]
        vector[a] = root * apart
        components.centres[k, a] += apart / (strength + 1.0)
    update(components.factors[k], vector, 1.0)
    components.counts[k] += 1
    components.logs[k] = log_determinant(components.factors[k])


@part
def _leave(prior, components, k, x, vector):
    """Take a row from a component; False where rounding forbids it."""
    strength = prior.strength + components.counts[k]
    root = np.sqrt(strength / (strength - 1.0))
    for a in range(x.size):
        apart = x[a] - components.centres[k, a]
        vector[a] = root * apart
        components.centres[k, a] -= apart / (strength - 1.0)
    components.counts[k] -= 1
    good = update(components.factors[k], vector, -1.0)
    components.logs[k] = log_determinant(components.factors[k])
    return good


@part
def _copy(row, given):
    """Slices could not be set as a whole without counting references."""
    for i in range(given.size):
        row[i] = given[i]


@part
def _copy_all(rows, given):
    for i in range(given.shape[0]):
        _copy(rows[i], given[i])


@part
def _clear(prior, components, k):
    """Make component `k` one without rows."""
    components.counts[k] = 0
    _copy(components.centres[k], prior.centre)
    _copy_all(components.factors[k], prior.factor)
    components.logs[k] = log_determinant(prior.factor)


@part
def _refill(prior, X, assigned, components, k, vector):
    """Add all rows of a component to it, one by one."""
    _clear(prior, components, k)
    for t in range(X.shape[0]):
        if assigned[t] == k:
            _join(prior, components, k, X[t], vector)


@part
def _drop(components, assigned, k, last):
    """Let the last component take the place of component `k`."""
    if k == last:
        return
    components.counts[k] = components.counts[last]
    _copy(components.centres[k], components.centres[last])
    _copy_all(components.factors[k], components.factors[last])
    components.logs[k] = components.logs[last]
    _copy_all(components.weights[k], components.weights[last])
    for t in range(assigned.size):
        if assigned[t] == last:
            assigned[t] = k


@part
def pick(values, n, uniform):
    """Draw from log weights, which are turned into weights in place."""
    top = values[0]
    for k in range(1, n):
        top = max(top, values[k])
    total = 0.0
    for k in range(n):
        values[k] = np.exp(values[k] - top)
        total += values[k]
    target = uniform * total
    for k in range(n - 1):
        target -= values[k]
        if target < 0.0:
            return k
    return n - 1


@lean
def assign(prior, components, X, V, labels, fresh, assigned, uniforms, values, vector, first, K):
    """Draw the components of the rows from `first` on, until one opens a new component.

    Returns the next row, the number of components, and whether the last of these is new. Its
    weights are for the caller to draw; `fresh` (rows,) is the log weight of one. `values` has one
    more entry than there is room for components.
    """
    for t in range(first, X.shape[0]):
        x, old = X[t], assigned[t]
        if components.counts[old] == 1:
            assigned[t] = -1
            K -= 1
            _drop(components, assigned, old, K)
            old = -1
        for k in range(K):
            if k == old:
                n, value = components.counts[k] - 1, _without(prior, components, k, x, vector)
            else:
                n, value = components.counts[k], predictive(prior, components, k, x, vector)
            potential = log_potential(prior, components.weights[k], V[t], labels[t])
            values[k] = np.log(n) + value + potential
        values[K] = fresh[t]
        new = pick(values, K + 1, uniforms[t])
        if new == old:
            continue
        assigned[t] = new
        if old >= 0 and not _leave(prior, components, old, x, vector):
            _refill(prior, X, assigned, components, old, vector)
        if new == K:
            _clear(prior, components, K)
        _join(prior, components, new, x, vector)
        if new == K:
            return t + 1, K + 1, True
    return X.shape[0], K, False


@lean
def votes(prior, components, X, V, fresh, values, vector, out):
    """Add to `out` (rows, L) the vote of every component, by its probability given the row.

    `fresh` (rows,) is the log weight of a component that has not been seen, whose vote is shared
    by all labels.
    """
    K, L = components.weights.shape[:2]
    for t in range(X.shape[0]):
        for k in range(K):
            values[k] = np.log(components.counts[k]) + predictive(
                prior, components, k, X[t], vector
            )
        values[K] = fresh[t]
        pick(values, K + 1, 0.0)
        total = 0.0
        for k in range(K + 1):
            total += values[k]
        for y in range(L):
            out[t, y] += values[K] / total / L
        for k in range(K):
            _vote(components.weights[k], V[t], prior.kind, values[k] / total, out[t])


@part
def _vote(weights, v, kind, share, out):
    """Give a share to the best label, or to all by their probabilities."""
    L, M = weights.shape
    best, top, total = 0, -np.inf, 0.0
    for y in range(L):
        score = 0.0
        for m in range(M):
            score += weights[y, m] * v[m]
        if score > top:
            total = total * np.exp(top - score) + 1.0
            best, top = y, score
        else:
            total += np.exp(score - top)
    if kind == HINGE:
        out[best] += share
        return
    for y in range(L):
        score = 0.0
        for m in range(M):
            score += weights[y, m] * v[m]
        out[y] += share * np.exp(score - top) / total
