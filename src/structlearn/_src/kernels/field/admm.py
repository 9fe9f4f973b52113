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

from structlearn._src.kernels.field.forms import (
    EQUAL,
    LINEAR,
    SQUARED,
    column_sum,
    energy_of,
    slope,
    value_of,
)
from structlearn._src.kernels.jit import lean, or_python

_TINY = 1e-200  # relaxed multipliers fade for ever, and numbers near the least are slow


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


class BlockSums(NamedTuple):
    """Sums over blocks, one row each, and a workspace for a thread that is alone."""

    hinges: np.ndarray  #: (blocks of forms, groups and room for a cache line)
    moves: np.ndarray  #: (blocks of forms) squared change of the multipliers times length
    changes: np.ndarray  #: (blocks of variables, 3) of pull and lag, of lags, of the consensus
    pull: np.ndarray  #: (variables) A' mu, where no columns are


@lean
def local_step(forms, weights, relaxation, state, sums, tell, alone, borders, first, last):
    """Move the copies of the forms in some blocks, and their multipliers.

    With `tell`, also add up the hinges at the copies.
    """
    step = state.step[()]
    for block in range(first, last):
        hinges = sums.hinges[block]
        if tell:
            hinges[:] = 0.0
        moved = 0.0
        stop = forms.offsets[borders[block]]
        for i in range(borders[block], borders[block + 1]):
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
            if alone:
                for e in range(start, stop):
                    sums.pull[forms.variables[e]] += forms.coefficients[e] * new
        sums.moves[block] = moved


@lean
def consensus_step(bounds, relaxation, state, sums, columns, alone, borders, first, last):
    """Average the copies of the variables in some blocks."""
    step = state.step[()]
    for block in range(first, last):
        cross = 0.0
        moved = 0.0
        far = 0.0
        for j in range(borders[block], borders[block + 1]):
            pull = sums.pull[j] if alone else column_sum(columns, state.multipliers, j)
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
                moved += change * change / share
                far += (new - old) * (new - old) / share
            state.pull[j] = pull
        sums.changes[block, 0] = cross
        sums.changes[block, 1] = moved
        sums.changes[block, 2] = far


@lean
def end_step(state, sums):
    r"""Count a step; its residuals are :math:`|v - y|` and :math:`\eta |y - y'|`."""
    step = state.step[()]
    moved = 0.0
    cross = 0.0
    far = 0.0
    for block in range(len(sums.moves)):
        moved += sums.moves[block]
    for block in range(len(sums.changes)):
        cross += sums.changes[block, 0]
        moved += step * step * sums.changes[block, 1]
        far += sums.changes[block, 2]
    state.residuals[0] = np.sqrt(max(moved - 2.0 * step * cross, 0.0)) / step
    state.residuals[1] = np.sqrt(far) * step
    state.iterations[()] += 1


@lean
def at_rest(state, tol):
    r"""Whether both residuals are at most `tol`, the dual one times :math:`\eta`."""
    return tol > 0.0 and state.residuals[0] <= tol and state.residuals[1] <= tol * state.step[()]


@or_python
@lean
def advance(forms, columns, bounds, weights, relaxation, state, sums, blocks, n_steps, tol):
    """Take up to `n_steps` steps on one thread; `blocks` are the borders of both kinds."""
    by_form, by_variable = blocks
    for n in range(n_steps):
        tell = tol > 0.0 or n == n_steps - 1  # any step may be the last
        sums.pull[:] = 0.0
        local_step(
            forms, weights, relaxation, state, sums, tell, True, by_form, 0, len(by_form) - 1
        )
        consensus_step(
            bounds, relaxation, state, sums, columns, True, by_variable, 0, len(by_variable) - 1
        )
        end_step(state, sums)
        if at_rest(state, tol):
            return


@or_python
@lean
def appraise(forms, weights, point, multipliers, clipped, hinges, found, borders, first, last):
    r"""Energy and largest violation at a point, and the lower bound from the multipliers.

    Any multipliers in their cone bound the energy from below,

    .. math:: D(\lambda) = \sum_i \lambda_i b_i - \sum_{i \text{ squared}} \lambda_i^2 / 4 w_i
              + \sum_j \min_{y_j} \, (A^\top \lambda)_j y_j

    so those given are first `clipped` to it. `found` (blocks, 2) receives the violation and the
    bound without its last sum, `hinges` the sums by group.
    """
    for block in range(first, last):
        hinges[block, :] = 0.0
        violation = 0.0
        bound = 0.0
        for i in range(borders[block], borders[block + 1]):
            value = value_of(forms, i, point)
            sort = forms.sorts[i]
            weight = weights[forms.groups[i]]
            multiplier = multipliers[i]
            if sort <= SQUARED:
                hinges[block, forms.groups[i]] += energy_of(sort, value)
            else:
                violation = max(violation, abs(value) if sort == EQUAL else value)
            if sort != EQUAL:
                multiplier = max(multiplier, 0.0)
            if sort == LINEAR:
                multiplier = min(multiplier, weight)
            if sort == SQUARED:
                if weight == 0.0:
                    multiplier = 0.0
                else:
                    bound -= multiplier * multiplier / (4.0 * weight)
            bound += multiplier * forms.constants[i]
            clipped[i] = multiplier
        found[block, 0] = violation
        found[block, 1] = bound


@or_python
@lean
def pull_alone(forms, numbers, pull, borders, first, last):
    r"""Add :math:`A^\top \lambda` over some blocks of forms to `pull`."""
    for i in range(borders[first], borders[last]):
        if numbers[i] != 0.0:
            for e in range(forms.offsets[i], forms.offsets[i + 1]):
                pull[forms.variables[e]] += forms.coefficients[e] * numbers[i]


@or_python
@lean
def bound_pull(bounds, columns, numbers, pull, found, alone, borders, first, last):
    r"""Write :math:`A^\top \lambda` where columns are; find its least product with any values."""
    for block in range(first, last):
        bound = 0.0
        for j in range(borders[block], borders[block + 1]):
            if not alone:
                pull[j] = column_sum(columns, numbers, j)
            bound += pull[j] * (bounds.lower[j] if pull[j] > 0.0 else bounds.upper[j])
        found[block] = bound
