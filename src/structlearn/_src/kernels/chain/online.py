r"""Stochastic gradient steps, one sequence at a time, each at the cost of its own features.

Weights are kept as :math:`w = s v`, so that shrinking all of them changes one number, and averages
as :math:`\bar w = a u + b v`, so that averaging does. What pulls every weight on its own is made up
for when its feature is met again. All arrays are those of `OnlineWeights`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.sequence import loss_and_errors, pull, pull_node, score, span
from structlearn._src.kernels.jit import inner, lean

FIXED, DECAYING, ROOT, PEGASOS, ADAGRAD = range(5)
#: The clock: s, a, b; how far pulls have come; the squared length of the weights.
SCALE, MASS, SHARE, NOW, SQUARE = range(5)

_SMALL = 1e-6  # a scale below this is multiplied out
_TINY = 1e-12  # added to roots of sums of squares that may be 0


class StepRule(NamedTuple):
    """How steps are made."""

    kind: int
    step: float
    ridge: float  #: factor of half the squares in the penalty
    lasso: float  #: factor of the absolute values
    radius: float  #: of the ball to which weights are projected, infinite for none
    power: float  #: weights after update t count by its power in the average
    begin: float  #: updates before the average begins; below 0 use the power instead


class OnlineWeights(NamedTuple):
    """Weights of features, then of transitions; arrays that are not used are empty."""

    weights: np.ndarray
    average: np.ndarray
    squares: np.ndarray  #: sums of squared gradients
    gradient: np.ndarray  #: that of features is 0 between updates
    last: np.ndarray  #: (features,) up to where pulls have been made up for


@inner
def _length(rule, t):
    """Length of step `t`, counted from 1."""
    if rule.kind == DECAYING:
        return rule.step / (1.0 + rule.step * rule.ridge * (t - 1.0))
    if rule.kind == ROOT:
        return rule.step / math.sqrt(t)
    if rule.kind == PEGASOS:
        return 1.0 / (rule.ridge * t)
    return rule.step


@inner
def _portion(rule, t):
    """How much of the average the weights after update `t` are to be."""
    if rule.begin >= 0.0:
        return 1.0 / max(t - rule.begin, 1.0)
    return (rule.power + 1.0) / (t + rule.power)


@inner
def _pulled(x, factor, divisor):
    """Pull a number towards 0, no further, and divide it."""
    size = abs(x) - factor
    return 0.0 if size <= 0.0 else math.copysign(size / divisor, x)


@inner
def _catch_up(start, stop, missed, ratio, rule, weights, squares, average):
    """Pull weights by what they missed: an amount, or a number of steps of lengths of their own."""
    for k in range(start, stop):
        before = weights[k]
        if rule.kind == ADAGRAD:
            step = missed * rule.step / (math.sqrt(squares[k]) + _TINY)
            weights[k] = _pulled(before, step * rule.lasso, 1.0 + step * rule.ridge)
        else:
            weights[k] = _pulled(before, missed, 1.0)
        if ratio != 0.0:
            average[k] -= ratio * (weights[k] - before)


@inner
def _catch_up_feature(data, d, now, ratio, rule, primal, K):
    """Make up for all that feature `d` has missed."""
    start, stop = span(data, d, K)
    arrays = primal.weights, primal.squares, primal.average
    _catch_up(start, stop, now - primal.last[d], ratio, rule, *arrays)
    primal.last[d] = now


@inner
def _catch_up_all(data, now, ratio, rule, primal, K):
    """Make up for all that any feature has missed."""
    for d in range(primal.last.size):
        _catch_up_feature(data, d, now, ratio, rule, primal, K)


@inner
def _adapt(start, stop, ratio, rule, weights, squares, average, gradient):
    """Take a step of its own length for every weight; clears the gradient."""
    for k in range(start, stop):
        before = weights[k]
        g = gradient[k]
        squares[k] += g * g
        step = rule.step / (math.sqrt(squares[k]) + _TINY)
        weights[k] = _pulled(before - step * g, step * rule.lasso, 1.0 + step * rule.ridge)
        gradient[k] = 0.0
        if ratio != 0.0:
            average[k] -= ratio * (weights[k] - before)


@inner
def _fold(begun, primal, clock):
    """Multiply weights and average out; an average that has not begun becomes 0."""
    mass, share = (clock[MASS], clock[SHARE]) if begun else (0.0, 0.0)
    for k in range(primal.average.size):
        primal.average[k] = mass * primal.average[k] + share * primal.weights[k]
    for k in range(primal.weights.size):
        primal.weights[k] *= clock[SCALE]
    clock[SCALE] = 1.0
    clock[MASS] = 1.0
    clock[SHARE] = 0.0


@inner
def _scale(data, n, scale, weights, errors):
    """Multiply the scores of nodes by `scale`, and lay out the table of transitions with bars."""
    K = errors.scores.shape[1]
    table = weights[weights.size - K * K :]
    for t in range(n if scale != 1.0 else 0):
        for s in range(K):
            errors.scores[t, s] *= scale
    for r in range(K):
        for s in range(K):
            errors.edges[r, s] = scale * table[r * K + s] + data.bars[r, s]


@inner
def _turn(data, factor, steps, gradient):
    """Write `factor` times the errors of transitions to their gradient."""
    K = steps.shape[0]
    own = gradient[gradient.size - K * K :]
    for r in range(K):
        for s in range(K):
            own[r * K + s] = factor * steps[r, s] if data.learnt[r, s] else 0.0


@inner
def _add(start, factor, ratio, primal):
    """Add `factor` times the gradient to the weights from `start` on."""
    for k in range(start, primal.weights.size):
        primal.weights[k] += factor * primal.gradient[k]
        if ratio != 0.0:
            primal.average[k] -= ratio * factor * primal.gradient[k]


@inner
def _project(data, first, n, factor, length, rule, primal, errors, clock):
    """Follow the squared length of the weights through a step, and back into the ball."""
    square, product = _slope(data, first, n, factor, errors, primal)
    shrink = 1.0 - length * rule.ridge
    clock[SQUARE] *= shrink * shrink
    clock[SQUARE] += length * (length * square - 2.0 * shrink * product)
    most = rule.radius * rule.radius
    if clock[SQUARE] <= most:
        return 1.0
    back = math.sqrt(most / clock[SQUARE])
    clock[SQUARE] = most
    return back


@inner
def _slope(data, first, n, factor, errors, primal):
    """Squared length of the gradient, and its product with the weights."""
    K = errors.scores.shape[1]
    square = 0.0
    product = 0.0
    for t in range(n):
        for s in range(K):
            x = factor * errors.nodes[t, s]
            if x != 0.0:
                product += x * errors.scores[t, s]
                square += pull_node(data, first + t, s, x, primal.gradient, K)
    for e in range(data.rows[first], data.rows[first + n]):
        start, stop = span(data, data.columns[e], K)
        primal.gradient[start:stop] = 0.0
    table = primal.gradient[primal.gradient.size - K * K :]
    for r in range(K):
        for s in range(K):
            x = table[r * K + s]
            if x != 0.0:
                square += x * x
                product += x * errors.edges[r, s]
    return square, product


@inner
def _step_own(data, first, last, factor, ratio, rule, primal, errors, clock):
    """Take a step of its own length for every weight that these positions use."""
    K = errors.scores.shape[1]
    clock[NOW] += 1.0
    pull(data, first, last - first, factor, errors.nodes, primal.gradient)
    arrays = primal.weights, primal.squares, primal.average, primal.gradient
    for e in range(data.rows[first], data.rows[last]):
        d = data.columns[e]
        if primal.last[d] != clock[NOW]:
            start, stop = span(data, d, K)
            _adapt(start, stop, ratio, rule, *arrays)
            primal.last[d] = clock[NOW]
    _adapt(primal.weights.size - K * K, primal.weights.size, ratio, rule, *arrays)


@inner
def _step_shared(data, first, last, factor, begun, ratio, length, rule, primal, errors, clock):
    """Take a step of one length for all weights."""
    K = errors.scores.shape[1]
    n = last - first
    table = primal.weights.size - K * K  # where the weights of transitions begin
    back = 1.0
    if rule.radius < np.inf:
        back = _project(data, first, n, factor, length, rule, primal, errors, clock)
    clock[SCALE] *= 1.0 - length * rule.ridge
    if abs(clock[SCALE]) < _SMALL:
        if rule.lasso > 0.0:
            _catch_up_all(data, clock[NOW], ratio, rule, primal, K)
        _fold(begun, primal, clock)
        ratio = 0.0
    step = -length / clock[SCALE]
    pull(data, first, n, step * factor, errors.nodes, primal.weights)
    _add(table, step, ratio, primal)
    if ratio != 0.0:
        pull(data, first, n, -ratio * step * factor, errors.nodes, primal.average)
    if rule.lasso > 0.0:
        amount = abs(step) * rule.lasso
        clock[NOW] += amount
        arrays = primal.weights, primal.squares, primal.average
        _catch_up(table, primal.weights.size, amount, ratio, rule, *arrays)
    clock[SCALE] *= back


@lean
def online(order, data, parts, loss_weights, rule, primal, errors, work, clock, updates):
    """Take one step for every sequence in `order`; return the weighted losses met on the way.

    `loss_weights` are times the number of sequences; there were `updates` steps before these, and
    `clock` (5,) is a workspace.
    """
    K = errors.scores.shape[1]
    met = 0.0
    own = rule.kind == ADAGRAD
    averaging = primal.average.size > 0
    lazy = own or rule.lasso > 0.0
    begun = averaging and _portion(rule, updates + 1.0) < 1.0
    _wind_up(begun, 1.0 * updates if own else 0.0, rule, primal, clock)
    for i in range(order.size):
        c = order[i]
        first, last = data.offsets[c], data.offsets[c + 1]
        updates += 1
        portion = _portion(rule, 1.0 * updates) if averaging else 1.0
        begun = portion < 1.0
        ratio = clock[SHARE] / clock[MASS] if begun else 0.0
        for e in range(data.rows[first], data.rows[last] if lazy else 0):
            if primal.last[data.columns[e]] != clock[NOW]:
                _catch_up_feature(data, data.columns[e], clock[NOW], ratio, rule, primal, K)
        score(data, first, last - first, primal.weights, errors.scores)
        _scale(data, last - first, clock[SCALE], primal.weights, errors)
        met += loss_weights[c] * loss_and_errors(data, c, parts, errors, work)
        _turn(data, loss_weights[c], errors.steps, primal.gradient)
        if own:
            _step_own(data, first, last, loss_weights[c], ratio, rule, primal, errors, clock)
        else:
            rest = _length(rule, 1.0 * updates), rule, primal, errors, clock
            _step_shared(data, first, last, loss_weights[c], begun, ratio, *rest)
        clock[MASS] *= 1.0 - portion if begun else 1.0
        clock[SHARE] = (1.0 - portion) * clock[SHARE] + portion * clock[SCALE]
    if lazy:
        ratio = clock[SHARE] / clock[MASS] if begun else 0.0
        _catch_up_all(data, clock[NOW], ratio, rule, primal, K)
    _fold(True, primal, clock)
    return met


@inner
def _wind_up(begun, now, rule, primal, clock):
    """Set the clock, and clear an average that has not begun."""
    clock[SCALE] = 1.0
    clock[MASS] = 1.0
    clock[SHARE] = 0.0
    clock[NOW] = now
    clock[SQUARE] = 0.0
    primal.last[:] = now
    if not begun:
        primal.average[:] = 0.0
    if rule.radius < np.inf:
        for k in range(primal.weights.size):
            clock[SQUARE] += primal.weights[k] * primal.weights[k]
