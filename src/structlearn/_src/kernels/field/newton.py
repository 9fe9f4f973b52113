r"""Newton steps on the augmented energy of a hinge-loss field, to polish what ADMM found.

With multipliers :math:`\mu` and a softness :math:`s` of what has a kink, the proximal method of
multipliers minimises over the box

.. math:: \Phi(y) = \sum_i \max_\lambda \Bigl[\lambda l_i(y) - \phi_i^*(\lambda)
          - \tfrac{s_i}{2} (\lambda - \mu_i)^2\Bigr] + \tfrac{\delta}{2} |y - y_k|^2

where :math:`\phi_i^*` is the conjugate of form ``i`` with its weight, and :math:`s_i = 0` for
squared hinges. Its gradient is :math:`A^\top \lambda` with the slopes of the local step of ADMM,
its Hessian :math:`A^\top \mathrm{diag}(\lambda') A` touches active forms only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.field.admm import EQUAL, LINEAR, SQUARED, slope, value_of
from structlearn._src.kernels.jit import inner, lean, or_python


class ActiveRows(NamedTuple):
    """Active forms over free variables, scaled by the root of their curvature."""

    offsets: np.ndarray  #: (active + 1) uint64
    variables: np.ndarray  #: uint32
    coefficients: np.ndarray
    owners: np.ndarray  #: (variables) the stiff row that preconditions it, or -1


@inner
def curvature(sort, weight, value, softness):
    """Derivative of the slope by the value; the same arguments as for the slope."""
    if sort == SQUARED:
        return 2.0 * weight if value > 0.0 else 0.0
    inside = sort == EQUAL or (value > 0.0 and (sort != LINEAR or value < weight * softness))
    return 1.0 / softness if inside else 0.0


@or_python
@lean
def evaluate(forms, weights, softness, bases, point, slopes, gradient):
    """Return the augmented energy without its last term; write slopes and gradient."""
    gradient[:] = 0.0
    total = 0.0
    for i in range(len(forms.constants)):
        value = value_of(forms, i, point)
        sort = forms.sorts[i]
        weight = weights[forms.groups[i]]
        if sort == SQUARED:
            new = 2.0 * weight * max(value, 0.0)
            total += 0.5 * new * max(value, 0.0)
        else:
            new = slope(sort, weight, value + bases[i] * softness, softness)
            change = new - bases[i]
            total += new * value - 0.5 * softness * (change * change)
        slopes[i] = new
        if new != 0.0:
            for e in range(forms.offsets[i], forms.offsets[i + 1]):
                gradient[forms.variables[e]] += forms.coefficients[e] * new
    return total


@or_python
@lean
def gather(forms, weights, softness, hard_softness, bases, point, free, rows, diagonal):
    """Collect the active rows, stiff ones first; return how many of them, and how many in all.

    `diagonal` receives the squares of the rows, but for variables owned by a stiff row.
    """
    count = 0
    stiff = 0
    entry = 0
    rows.owners[:] = -1
    for squared in range(2):  # stiff rows first: they precondition, each its own variables
        for i in range(len(forms.constants)):
            sort = forms.sorts[i]
            if (sort == SQUARED) != squared:
                continue
            soft = softness if sort == LINEAR else hard_softness
            value = value_of(forms, i, point) + (0.0 if squared else bases[i] * soft)
            curved = curvature(sort, weights[forms.groups[i]], value, soft)
            if curved <= 0.0:
                continue
            root = np.sqrt(curved)
            before = entry
            for e in range(forms.offsets[i], forms.offsets[i + 1]):
                j = forms.variables[e]
                if free[j]:
                    rows.variables[entry] = j
                    rows.coefficients[entry] = root * forms.coefficients[e]
                    if not squared and rows.owners[j] < 0:
                        rows.owners[j] = count
                    else:
                        diagonal[j] += rows.coefficients[entry] * rows.coefficients[entry]
                    entry += 1
            if entry > before:
                count += 1
                rows.offsets[count] = entry
        if not squared:
            stiff = count
    return stiff, count


@inner
def precondition(rows, stiff, diagonal, given, out):
    """Divide by the diagonal plus the own part of every stiff row (Sherman and Morrison)."""
    for j in range(len(out)):
        out[j] = given[j] / diagonal[j]
    for i in range(stiff):
        start, stop = rows.offsets[i], rows.offsets[i + 1]
        product = 0.0
        size = 1.0
        for e in range(start, stop):
            j = rows.variables[e]
            if rows.owners[j] == i:
                product += rows.coefficients[e] * out[j]
                size += rows.coefficients[e] * rows.coefficients[e] / diagonal[j]
        for e in range(start, stop):
            j = rows.variables[e]
            if rows.owners[j] == i:
                out[j] -= rows.coefficients[e] / diagonal[j] * product / size


@inner
def dot(left, right):
    """Inner product, always summed in the same order."""
    total = 0.0
    for j in range(len(left)):
        total += left[j] * right[j]
    return total


@or_python
@lean
def direct(rows, counts, diagonal, prox, gradient, free, tol, limit, scratch, out):
    """Solve for the Newton direction by preconditioned conjugate gradients; return the steps.

    `scratch` is of shape (4, variables).
    """
    left = scratch[0]  # residual of the linear system
    scaled = scratch[1]
    along = scratch[2]
    image = scratch[3]
    out[:] = 0.0
    for j in range(len(out)):
        left[j] = -gradient[j] if free[j] else 0.0
    along[:] = 0.0
    old = np.inf
    enough = 0.0
    for n in range(limit):
        precondition(rows, counts[0], diagonal, left, scaled)
        size = dot(left, scaled)
        if n == 0:
            enough = size * tol * tol
        if size <= enough and (n > 0 or size == 0.0):
            return n
        for j in range(len(out)):
            along[j] = scaled[j] + size / old * along[j]
            image[j] = prox * along[j]
        old = size
        for i in range(counts[1]):
            product = 0.0
            for e in range(rows.offsets[i], rows.offsets[i + 1]):
                product += rows.coefficients[e] * along[rows.variables[e]]
            for e in range(rows.offsets[i], rows.offsets[i + 1]):
                image[rows.variables[e]] += rows.coefficients[e] * product
        curved = dot(along, image)
        if not 0.0 < curved < np.inf:
            return n  # rounding or overflow: the direction so far has to do
        length = size / curved
        for j in range(len(out)):
            out[j] += length * along[j]
            left[j] -= length * image[j]
    return limit
