"""Gibbs sweeps over the components of rows, Gaussian parameters integrated out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.draw.density import forward, log_determinant, product, update
from structlearn._src.kernels.jit import inner, lean

#: Kinds of classifiers. The papers' logit is here too, as kernels take no functions.
HINGE, LOGIT = 0, 1
_NOTHING = 50.0  # logs so far below another are lost in its rounding: exp(-50) is 2e-22
_TINY = 1e-300  # least argument of a logarithm


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


@inner
def log_potential(prior, weights, v, label, bar):
    """Log potential of a label in a component; 0 where it is missing, -inf if below the bar.

    One row at a time, as it stops at the first label that is too good; blocks of rows have theirs
    in `density.add_hinges`.
    """
    if label < 0:
        return 0.0
    L, M = weights.shape
    hinge = prior.kind == HINGE
    slope, margin = (2.0 * prior.c, prior.cost) if hinge else (1.0, 0.0)
    own = product(weights[label], v, M)
    top = own
    total = 1.0
    for y in range(L):
        if y == label:
            continue
        score = product(weights[y], v, M) + margin
        if score > top:
            if slope * (own - score) < bar:
                return -np.inf
            total = 0.0 if hinge else total * np.exp(top - score) + 1.0
            top = score
        elif not hinge:
            total += np.exp(score - top)
    value = slope * (own - top)
    return value if hinge else value - np.log(total)


@inner
def _distance(components, k, x, limit, vector):
    """Squared distance of a row from a component by its scale matrix, or one above the limit."""
    for a in range(x.size):
        vector[a] = x[a] - components.centres[k, a]
    return forward(components.factors[k], vector, limit)


@inner
def predictive(prior, components, k, x, bar, vector):
    """Log of the rows of a component times their density at one more; -inf if below the bar.

    The density is a Student t, which falls with the distance: most components are so far away
    that a few coordinates tell.
    """
    n = components.counts[k]
    near = prior.constants[n] - 0.5 * components.logs[k] + np.log(n)
    half = 0.5 * (prior.degrees + n + 1.0)
    ratio = 1.0 - 1.0 / (prior.strength + n + 1.0)
    limit = np.expm1((near - bar) / half) / ratio
    distance = _distance(components, k, x, limit, vector)
    return near - half * np.log1p(ratio * distance) if distance <= limit else -np.inf


@inner
def _without(prior, components, k, x, vector):
    """The same in its own component, as if the row was not there."""
    n = components.counts[k] - 1
    strength = prior.strength + n + 1.0
    distance = _distance(components, k, x, np.inf, vector)
    shrink = np.log(max(1.0 - strength / (strength - 1.0) * distance, _TINY))
    near = prior.constants[n] - 0.5 * components.logs[k] + np.log(n)
    return near + 0.5 * (prior.degrees + n) * shrink


@inner
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


@inner
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


@inner
def _copy(row, given):
    """Slices could not be set as a whole without counting references."""
    for i in range(given.size):
        row[i] = given[i]


@inner
def _copy_all(rows, given):
    for i in range(given.shape[0]):
        _copy(rows[i], given[i])


@inner
def _clear(prior, components, k):
    """Make component `k` one without rows."""
    components.counts[k] = 0
    _copy(components.centres[k], prior.centre)
    _copy_all(components.factors[k], prior.factor)
    components.logs[k] = log_determinant(prior.factor)


@inner
def _refill(prior, X, assigned, components, k, vector):
    """Add all rows of a component to it, one by one."""
    _clear(prior, components, k)
    for t in range(X.shape[0]):
        if assigned[t] == k:
            _join(prior, components, k, X[t], vector)


@inner
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


@inner
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
        x = X[t]
        old = assigned[t]
        if components.counts[old] == 1:
            assigned[t] = -1
            K -= 1
            _drop(components, assigned, old, K)
            old = -1
        values[K] = bar = fresh[t]
        if old >= 0:
            values[old] = _without(prior, components, old, x, vector)
            values[old] += log_potential(prior, components.weights[old], V[t], labels[t], -np.inf)
            bar = max(bar, values[old])
        for k in range(K):
            if k != old:
                least = bar - _NOTHING
                value = predictive(prior, components, k, x, least, vector)
                if value > -np.inf:
                    value += log_potential(
                        prior, components.weights[k], V[t], labels[t], least - value
                    )
                values[k] = value
                bar = max(bar, value)
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
        values[K] = bar = fresh[t]
        for k in range(K):
            values[k] = predictive(prior, components, k, X[t], bar - _NOTHING, vector)
            bar = max(bar, values[k])
        pick(values, K + 1, 0.0)
        total = 0.0
        for k in range(K + 1):
            total += values[k]
        for y in range(L):
            out[t, y] += values[K] / total / L
        for k in range(K):
            if values[k] > 0.0:
                _vote(components.weights[k], V[t], prior.kind, values[k] / total, out[t])


@inner
def _vote(weights, v, kind, share, out):
    """Give a share to the best label, or to all by their probabilities."""
    L, M = weights.shape
    best = 0
    top = -np.inf
    total = 0.0
    for y in range(L):
        score = product(weights[y], v, M)
        if score > top:
            total = total * np.exp(top - score) + 1.0
            best = y
            top = score
        else:
            total += np.exp(score - top)
    if kind == HINGE:
        out[best] += share
        return
    for y in range(L):
        score = product(weights[y], v, M)
        out[y] += share * np.exp(score - top) / total
