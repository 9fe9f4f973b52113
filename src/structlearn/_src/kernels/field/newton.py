r"""Newton steps on the augmented energy of a hinge-loss field, to polish what ADMM found.

With multipliers :math:`\mu` and a softness :math:`s` of what has a kink, the proximal method of
multipliers minimises over the box

.. math:: \Phi(y) = \sum_i \max_\lambda \Bigl[\lambda l_i(y) - \phi_i^*(\lambda)
          - \tfrac{s_i}{2} (\lambda - \mu_i)^2\Bigr] + \tfrac{\delta}{2} |y - y_k|^2

where :math:`\phi_i^*` is the conjugate of form ``i`` with its weight, and :math:`s_i = 0` for
squared hinges. Its gradient is :math:`A^\top \lambda` with the slopes of the local step of ADMM,
its Hessian :math:`A^\top \mathrm{diag}(\lambda') A` touches active forms only, and these can be
told by their slopes. Blocks and columns are as in `kernels.field.forms`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.field.forms import (
    EQUAL,
    LINEAR,
    SQUARED,
    column_sum,
    slope,
    value_of,
)
from structlearn._src.kernels.jit import inner, lean, or_python


class ActiveRows(NamedTuple):
    """Active forms over free variables, scaled by the root of their curvature, stiff ones first."""

    offsets: np.ndarray  #: (active + 1) uint64
    variables: np.ndarray  #: uint32
    coefficients: np.ndarray
    numbers: np.ndarray  #: (forms) int32: the row of every form, or -1; empty without columns
    products: np.ndarray  #: (active) roots of the curvature, then products with a direction


class ActiveColumns(NamedTuple):
    """The same entries by variable; column ``j`` begins where that of all forms does."""

    ends: np.ndarray  #: (variables) uint64
    rows: np.ndarray  #: (entries) uint32, ascending within a column
    coefficients: np.ndarray


class Diagonal(NamedTuple):
    """What the preconditioner divides by."""

    values: np.ndarray  #: (variables) squares of the rows, but for the one that owns a variable
    owners: np.ndarray  #: (variables) int32: the first stiff row with the variable, or -1


@or_python
@lean
def evaluate(forms, weights, softness, bases, point, slopes, values, borders, first, last):
    """Write the slopes; `values` (blocks) receives the augmented energy without its last term.

    `softness` is a pair: that of kinks, and that of hard constraints.
    """
    for block in range(first, last):
        total = 0.0
        for i in range(borders[block], borders[block + 1]):
            value = value_of(forms, i, point)
            sort = forms.sorts[i]
            weight = weights[forms.groups[i]]
            if sort == SQUARED:
                new = 2.0 * weight * max(value, 0.0)
                total += 0.5 * new * max(value, 0.0)
            else:
                soft = softness[0] if sort == LINEAR else softness[1]
                new = slope(sort, weight, value + bases[i] * soft, soft)
                change = new - bases[i]
                total += new * value - 0.5 * soft * (change * change)
            slopes[i] = new
        values[block] = total


@or_python
@lean
def descend(
    columns, bounds, slopes, point, anchor, prox, scale, gradient, free, wrong, alone, borders,
    first, last,
):  # fmt: skip
    """Add up the gradient, and tell which variables no bound holds back.

    `wrong` (blocks) receives how far the point is from stationary. A thread that is alone has
    written the part of the forms to `gradient` before.
    """
    for block in range(first, last):
        most = 0.0
        for j in range(borders[block], borders[block + 1]):
            part = gradient[j] if alone else column_sum(columns, slopes, j)
            down = part + prox * (point[j] - anchor[j])
            gradient[j] = down
            moved = min(max(point[j] - down / scale, bounds.lower[j]), bounds.upper[j])
            most = max(most, abs(moved - point[j]))
            low = point[j] <= bounds.lower[j] and down >= 0.0
            high = point[j] >= bounds.upper[j] and down <= 0.0
            free[j] = not (low or high)
        wrong[block] = most


@or_python
@lean
def bend(bounds, point, direction, length, anchor, gradient, there, found, borders, first, last):
    """Go along a direction, bent at the bounds.

    `found` (blocks, 2) receives the squared distance from the anchor, and the change that the
    gradient promises.
    """
    for block in range(first, last):
        away = 0.0
        promised = 0.0
        for j in range(borders[block], borders[block + 1]):
            moved = point[j] + length * direction[j]
            new = min(max(moved, bounds.lower[j]), bounds.upper[j])
            there[j] = new
            away += (new - anchor[j]) * (new - anchor[j])
            promised += gradient[j] * (new - point[j])
        found[block, 0] = away
        found[block, 1] = promised


# ---- the Hessian ----------------------------------------------------------------------------


@inner
def is_active(sort, weight, slope):
    """Whether a form bends the augmented energy where it has this slope."""
    if sort == EQUAL:
        return True
    return slope > 0.0 and (sort != LINEAR or slope < weight)


@or_python
@lean
def count_active(forms, weights, slopes, free, counts, borders, first, last):
    """Count the active rows of some blocks: `counts` (blocks, 4), see `fill_rows`."""
    for block in range(first, last):
        counts[block, :] = 0
        for i in range(borders[block], borders[block + 1]):
            sort = forms.sorts[i]
            if is_active(sort, weights[forms.groups[i]], slopes[i]):
                size = 0
                for e in range(forms.offsets[i], forms.offsets[i + 1]):
                    if free[forms.variables[e]]:
                        size += 1
                if size > 0:
                    side = 2 if sort == SQUARED else 0
                    counts[block, side] += 1
                    counts[block, side + 1] += size


@or_python
@lean
def fill_rows(forms, weights, softness, slopes, free, starts, rows, borders, first, last):
    """Write the active rows of some blocks.

    `starts` (blocks, 4) says at which row and entry each block begins, stiff ones and the others.
    """
    for block in range(first, last):
        for i in range(borders[block], borders[block + 1]):
            sort = forms.sorts[i]
            weight = weights[forms.groups[i]]
            if len(rows.numbers):
                rows.numbers[i] = -1
            if not is_active(sort, weight, slopes[i]):
                continue
            side = 2 if sort == SQUARED else 0
            soft = softness[0] if sort == LINEAR else softness[1]
            root = np.sqrt(2.0 * weight if sort == SQUARED else 1.0 / soft)
            entry = starts[block, side + 1]
            before = entry
            for e in range(forms.offsets[i], forms.offsets[i + 1]):
                if free[forms.variables[e]]:
                    rows.variables[entry] = forms.variables[e]
                    rows.coefficients[entry] = root * forms.coefficients[e]
                    entry += 1
            if entry > before:
                row = starts[block, side]
                rows.offsets[row + 1] = entry
                rows.products[row] = root
                if len(rows.numbers):
                    rows.numbers[i] = row
                starts[block, side] = row + 1
                starts[block, side + 1] = entry


@or_python
@lean
def divide(rows, stiff, diagonal, borders, first, last):
    """Add some rows to the diagonal, in their order on one thread; the first ones are `stiff`."""
    for i in range(borders[first], borders[last]):
        for e in range(rows.offsets[i], rows.offsets[i + 1]):
            j = rows.variables[e]
            if i < stiff and diagonal.owners[j] < 0:
                diagonal.owners[j] = i
            else:
                diagonal.values[j] += rows.coefficients[e] * rows.coefficients[e]


@lean
def divide_by_column(columns, free, rows, stiff, prox, active, diagonal, borders, first, last):
    """Write the active columns of some blocks of variables, and their part of the diagonal."""
    for j in range(borders[first], borders[last]):
        at = np.int64(columns.offsets[j])
        value = prox
        owner = -1
        if free[j]:
            for squared in range(2):  # rows ascend, and stiff ones come first
                for e in range(columns.offsets[j], columns.offsets[j + 1]):
                    row = rows.numbers[columns.forms[e]]
                    if row < 0 or (row >= stiff) != squared:
                        continue
                    scaled = rows.products[row] * columns.coefficients[e]
                    active.rows[at] = row
                    active.coefficients[at] = scaled
                    at += 1
                    if not squared and owner < 0:
                        owner = row
                    else:
                        value += scaled * scaled
        active.ends[j] = at
        diagonal.values[j] = value
        diagonal.owners[j] = owner


@or_python
@lean
def by_weight(forms, weights, y, moved, multipliers, saturated, sums, borders, first, last):
    """Add up, by group, what a change of the weight does along a direction, see `weight_gradient`.

    A linear hinge counts where its multiplier is `saturated` times its weight at least.
    """
    for block in range(first, last):
        sums[block, :] = 0.0
        for i in range(borders[block], borders[block + 1]):
            sort = forms.sorts[i]
            if sort > SQUARED:
                continue
            value = forms.constants[i]
            along = 0.0
            for e in range(forms.offsets[i], forms.offsets[i + 1]):
                value += forms.coefficients[e] * y[forms.variables[e]]
                along += forms.coefficients[e] * moved[forms.variables[e]]
            if sort == SQUARED:
                change = 2.0 * max(value, 0.0)
            else:
                change = 1.0 if multipliers[i] >= saturated * weights[forms.groups[i]] else 0.0
            sums[block, forms.groups[i]] += along * change
