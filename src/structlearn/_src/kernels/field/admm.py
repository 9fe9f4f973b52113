r"""Steps of consensus ADMM on hinge-loss fields, one number per form.

A form :math:`l_i(y) = a_i y + b_i` owns local copies :math:`v_i` of its variables with multipliers
:math:`\alpha_i` and step :math:`\eta`. The local step moves a copy along :math:`a_i` only,

.. math:: v_i = y - \alpha_i / \eta - \lambda_i a_i / \eta, \qquad
          \lambda_i \in w_i \, \partial \max(l_i(v_i), 0)^{p_i}

so by induction all multipliers are :math:`\alpha_{ij} = -\mu_i a_{ij} + \eta c_j`: a number
:math:`\mu_i` per form and a lag :math:`c_j` per variable. With relaxation :math:`\rho`

.. math:: \mu \leftarrow (1 - \rho) \mu + \rho \lambda, \qquad
          y' = \mathrm{clip}(y + (1 - \rho) c - A^\top \mu / (\eta d)), \qquad
          c \leftarrow (1 - \rho) c + y - y'

where :math:`d_j` counts the copies of a variable. Nothing is left out: local copies and
multipliers can be read off at any time. (Without relaxation this is the primal-dual method of
Chambolle and Pock with diagonal steps.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.jit import inner, lean, or_python

LINEAR = 0  # hinges first, so that `sort <= SQUARED` tells them from hard forms
SQUARED = 1
AT_MOST = 2
EQUAL = 3
_TINY = 1e-200  # relaxed multipliers fade for ever, and numbers near the least are slow


class Forms(NamedTuple):
    """Linear forms, ready for steps; unsigned, as the sign of an index costs a test each time."""

    offsets: np.ndarray  #: (forms + 1) uint64
    variables: np.ndarray  #: (entries) uint32
    coefficients: np.ndarray  #: (entries)
    constants: np.ndarray  #: (forms)
    sorts: np.ndarray  #: (forms) int8: LINEAR, SQUARED, AT_MOST or EQUAL
    groups: np.ndarray  #: (forms) uint32
    lengths: np.ndarray  #: (forms) squared coefficients of free variables, over the stiffness


class Bounds(NamedTuple):
    """Where the variables may lie."""

    lower: np.ndarray
    upper: np.ndarray
    shares: np.ndarray  #: one over the number of copies; 0 for variables without


class AdmmState(NamedTuple):
    """All that ADMM remembers between steps, and nothing else: named arrays, changed in place."""

    multipliers: np.ndarray  #: (forms) mu
    consensus: np.ndarray  #: (variables) y, always within the bounds
    lags: np.ndarray  #: (variables) c
    ahead: np.ndarray  #: (variables) y - c
    pull: np.ndarray  #: (variables) A' mu
    hinges: np.ndarray  #: (groups) sum of the hinges at the local copies after the last run
    residuals: np.ndarray  #: (2) primal and dual, of the last step
    step: np.ndarray  #: () eta
    iterations: np.ndarray  #: () int64: steps so far


class RangeSums(NamedTuple):
    """Sums over ranges of forms, one row each, added up in the order of the ranges."""

    pulls: np.ndarray  #: (ranges, variables)
    hinges: np.ndarray  #: (ranges, groups) hinges at the local copies
    moves: np.ndarray  #: (ranges, 1) squared change of the multipliers times length


@or_python
@lean
def find_twice(offsets, variables, seen):
    """Return the first entry whose variable occurred in the same form before, or -1.

    `seen` (variables) must hold -1.
    """
    for i in range(len(offsets) - 1):
        for e in range(offsets[i], offsets[i + 1]):
            if seen[variables[e]] == i:
                return e
            seen[variables[e]] = i
    return -1


@inner
def slope(sort, weight, value, length):
    """Multiplier of one form after its local step from a point where it has this value."""
    above = value if value > 0.0 else 0.0
    if sort == SQUARED:
        return 2.0 * weight * above / (1.0 + 2.0 * weight * length)
    if sort == LINEAR:
        return weight if value >= weight * length else above / length
    return (value if sort == EQUAL else above) / length


@inner
def value_of(forms, i, point):
    """Value of one form at a point."""
    value = forms.constants[i]
    for e in range(forms.offsets[i], forms.offsets[i + 1]):
        value += forms.coefficients[e] * point[forms.variables[e]]
    return value


@inner
def energy_of(sort, value):
    """Hinge of one form, without its weight."""
    hinge = value if value > 0.0 else 0.0
    return hinge * hinge if sort == SQUARED else hinge


@lean
def local_step(forms, weights, relaxation, state, sums, tell, row, first, last):
    """Move the copies of the forms from `first` to `last`, and their multipliers.

    With `tell`, also add up the hinges at the copies.
    """
    step = state.step[()]
    pull = sums.pulls[row]
    hinges = sums.hinges[row]
    pull[:] = 0.0
    if tell:
        hinges[:] = 0.0
    moved = 0.0
    stop = forms.offsets[first]
    for i in range(first, last):
        start, stop = stop, forms.offsets[i + 1]
        value = forms.constants[i]
        for e in range(start, stop):
            value += forms.coefficients[e] * state.ahead[forms.variables[e]]
        length = forms.lengths[i] / step
        old = state.multipliers[i]
        value += old * length
        sort = forms.sorts[i]
        group = forms.groups[i]
        if value <= 0.0 and old == 0.0 and sort != EQUAL:
            continue  # an idle form stays idle; most forms are
        multiplier = slope(sort, weights[group], value, length)
        if tell and sort <= SQUARED:
            hinges[group] += energy_of(sort, value - multiplier * length)
        change = relaxation * (multiplier - old)
        moved += change * change * forms.lengths[i]
        new = old + change
        if abs(new) < _TINY:
            new = 0.0
        state.multipliers[i] = new
        for e in range(start, stop):
            pull[forms.variables[e]] += forms.coefficients[e] * new
    sums.moves[row, 0] = moved


@lean
def consensus_step(bounds, relaxation, state, sums):
    r"""Average the copies; the residuals are :math:`|v - y|` and :math:`\eta |y - y'|`."""
    step = state.step[()]
    cross = 0.0
    far = 0.0
    moved = 0.0
    for row in range(len(sums.moves)):
        moved += sums.moves[row, 0]
    for j in range(len(state.consensus)):
        pull = 0.0
        for row in range(len(sums.pulls)):
            pull += sums.pulls[row, j]
        share = bounds.shares[j]
        if share > 0.0:
            old = state.consensus[j]
            lag = state.lags[j]
            kept = old + (1.0 - relaxation) * lag
            new = min(max(kept - pull * share / step, bounds.lower[j]), bounds.upper[j])
            state.consensus[j] = new
            state.lags[j] = kept - new
            state.ahead[j] = 2.0 * new - kept
            change = kept - new - lag
            cross += change * (pull - state.pull[j])
            moved += step * step * (change * change) / share
            far += (new - old) * (new - old) / share
        state.pull[j] = pull
    state.residuals[0] = np.sqrt(max(moved - 2.0 * step * cross, 0.0)) / step
    state.residuals[1] = np.sqrt(far) * step
    state.iterations[()] += 1


@lean
def at_rest(state, tol):
    r"""Whether both residuals are at most `tol`, the dual one times :math:`\eta`."""
    return tol > 0.0 and state.residuals[0] <= tol and state.residuals[1] <= tol * state.step[()]


@or_python
@lean
def advance(forms, bounds, weights, relaxation, state, sums, borders, n_steps, tol):
    """Take up to `n_steps` steps on one thread."""
    for n in range(n_steps):
        tell = tol > 0.0 or n == n_steps - 1  # any step may be the last
        for row in range(len(borders) - 1):
            first, last = borders[row], borders[row + 1]
            local_step(forms, weights, relaxation, state, sums, tell, row, first, last)
        consensus_step(bounds, relaxation, state, sums)
        if at_rest(state, tol):
            return


@or_python
@lean
def appraise(forms, bounds, weights, point, multipliers, pull, hinges, found):
    r"""Energy and largest violation at a point, and the lower bound from the multipliers.

    Any multipliers in their cone bound the energy from below,

    .. math:: D(\lambda) = \sum_i \lambda_i b_i - \sum_{i \text{ squared}} \lambda_i^2 / 4 w_i
              + \sum_j \min_{y_j} \, (A^\top \lambda)_j y_j

    so those given are first clipped to it. `found` receives energy, violation and bound.
    """
    pull[:] = 0.0
    hinges[:] = 0.0
    violation = 0.0
    bound = 0.0
    for i in range(len(forms.constants)):
        value = value_of(forms, i, point)
        sort = forms.sorts[i]
        weight = weights[forms.groups[i]]
        multiplier = multipliers[i]
        if sort <= SQUARED:
            hinges[forms.groups[i]] += energy_of(sort, value)
        else:
            violation = max(violation, abs(value) if sort == EQUAL else value)
        if sort != EQUAL:
            multiplier = max(multiplier, 0.0)
        if sort == LINEAR:
            multiplier = min(multiplier, weight)
        if sort == SQUARED:
            if weight == 0.0:
                continue
            bound -= multiplier * multiplier / (4.0 * weight)
        if multiplier != 0.0:
            bound += multiplier * forms.constants[i]
            for e in range(forms.offsets[i], forms.offsets[i + 1]):
                pull[forms.variables[e]] += forms.coefficients[e] * multiplier
    for j in range(len(pull)):
        bound += pull[j] * (bounds.lower[j] if pull[j] > 0.0 else bounds.upper[j])
    energy = 0.0
    for g in range(len(hinges)):
        energy += weights[g] * hinges[g]
    found[0] = energy
    found[1] = violation
    found[2] = bound
