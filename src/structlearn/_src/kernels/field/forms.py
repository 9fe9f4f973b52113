r"""Linear forms by row and by column, and what is read off them before the first step.

Work is cut into blocks of forms and blocks of variables, by the field alone; kernels go through
the blocks from `first` to `last`, and write one row of sums for each. Sums of blocks are added
in their order, so that no result depends on the number of threads.

What forms say about variables, :math:`A^\top \lambda`, is added up in one of two ways. A thread
that is alone adds the part of every form as it goes; several threads go through the columns of
the matrix, each through those of its own variables. Both add in the order of the forms, so they
give the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.jit import inner, lean, or_python

LINEAR = 0  # hinges first, so that `sort <= SQUARED` tells them from hard forms
SQUARED = 1  # a hinge, too
AT_MOST = 2  # hard, as are all from here on
EQUAL = 3  # hard from both sides
SHORT = 8  # entries up to which comparing all pairs takes less than marks


class Forms(NamedTuple):
    """Linear forms, ready for steps; unsigned, as the sign of an index costs a test each time."""

    offsets: np.ndarray  #: (forms + 1) uint64
    variables: np.ndarray  #: (entries) uint32
    coefficients: np.ndarray  #: (entries)
    constants: np.ndarray  #: (forms)
    sorts: np.ndarray  #: (forms) int8: LINEAR, SQUARED, AT_MOST or EQUAL
    groups: np.ndarray  #: (forms) uint32
    lengths: np.ndarray  #: (forms) squared coefficients of free variables, over the stiffness


class FormColumns(NamedTuple):
    """The entries once more, by variable and then by form; empty for a thread that is alone."""

    offsets: np.ndarray  #: (variables + 1) uint64
    forms: np.ndarray  #: (entries) uint32
    coefficients: np.ndarray  #: (entries)


class Bounds(NamedTuple):
    """Where the variables may lie."""

    lower: np.ndarray
    upper: np.ndarray
    shares: np.ndarray  #: one over the number of copies; 0 for variables without


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
def column_sum(columns, numbers, j):
    """Add up a number per form over the forms of one variable, times the coefficients."""
    total = 0.0
    for e in range(columns.offsets[j], columns.offsets[j + 1]):
        total += columns.coefficients[e] * numbers[columns.forms[e]]
    return total


@or_python
@lean
def add_up(sums):
    """Sum of the blocks, in their order."""
    total = 0.0
    for block in range(len(sums)):
        total += sums[block]
    return total


# ---- columns --------------------------------------------------------------------------------


@lean
def count_entries(variables, first, last, counts):
    """Count the entries of the variables from `first` to `last`; `counts` has one more in front."""
    for j in range(first, last):
        counts[j + 1] = 0
    for e in range(len(variables)):
        j = variables[e]
        if first <= j < last:
            counts[j + 1] += 1


@lean
def fill_columns(offsets, variables, coefficients, columns, ends, first, last):
    """Write the columns of the variables from `first` to `last`; `ends` is a workspace."""
    for j in range(first, last):
        ends[j] = columns.offsets[j]
    for i in range(len(offsets) - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = variables[e]
            if first <= j < last:
                at = ends[j]
                columns.forms[at] = i
                columns.coefficients[at] = coefficients[e]
                ends[j] = at + 1


# ---- before the first step ------------------------------------------------------------------


@or_python
@lean
def find_twice(offsets, variables, seen, first, last):
    """Return the first entry whose variable occurred in the same form before, or -1.

    For forms of more than `SHORT` entries `seen` (variables) holds numbers of earlier forms.
    """
    for i in range(first, last):
        start, stop = offsets[i], offsets[i + 1]
        if stop - start > SHORT:
            for e in range(start, stop):
                if seen[variables[e]] == i:
                    return e
                seen[variables[e]] = i
        else:
            for e in range(start, stop):
                for other in range(start, e):
                    if variables[other] == variables[e]:
                        return e
    return -1


@or_python
@lean
def measure(forms, fixed, stiffness, borders, first, last):
    """Write the length of every form: the sum of its squared coefficients of free variables."""
    for i in range(borders[first], borders[last]):
        length = 0.0
        for e in range(forms.offsets[i], forms.offsets[i + 1]):
            if not fixed[forms.variables[e]]:
                length += forms.coefficients[e] * forms.coefficients[e]
        forms.lengths[i] = length if forms.sorts[i] <= SQUARED else length / stiffness


@or_python
@lean
def count_copies(forms, stiffness, copies, borders, first, last):
    """Count the copies of variables in some forms, in hard ones as often as these are stiff."""
    for i in range(borders[first], borders[last]):
        factor = 1.0 if forms.sorts[i] <= SQUARED else stiffness
        for e in range(forms.offsets[i], forms.offsets[i + 1]):
            copies[forms.variables[e]] += factor


@lean
def count_copies_by_column(forms, columns, stiffness, copies, borders, first, last):
    """Do the same for the variables of some blocks."""
    for j in range(borders[first], borders[last]):
        total = 0.0
        for e in range(columns.offsets[j], columns.offsets[j + 1]):
            total += 1.0 if forms.sorts[columns.forms[e]] <= SQUARED else stiffness
        copies[j] = total


@or_python
@lean
def settle_constant(forms, point, lengths, allowed, found, borders, first, last):
    """Give forms without free variables a length; find the first hard one that does not hold.

    `lengths` are those of hard forms and of hinges; `found` (blocks) receives a number, or -1.
    """
    for block in range(first, last):
        found[block] = -1
        for i in range(borders[block], borders[block + 1]):
            if forms.lengths[i] == 0.0:
                sort = forms.sorts[i]
                forms.lengths[i] = lengths[1] if sort <= SQUARED else lengths[0]
                if sort > SQUARED and found[block] < 0:
                    value = value_of(forms, i, point)
                    if value > allowed or (sort == EQUAL and -value > allowed):
                        found[block] = i


@or_python
@lean
def highest(forms, bounds, hinges, borders, first, last):
    """Add up the hinges of every group at the largest values that each form can have by itself."""
    for block in range(first, last):
        hinges[block, :] = 0.0
        for i in range(borders[block], borders[block + 1]):
            if forms.sorts[i] <= SQUARED:
                value = forms.constants[i]
                for e in range(forms.offsets[i], forms.offsets[i + 1]):
                    j = forms.variables[e]
                    a = forms.coefficients[e]
                    value += a * (bounds.upper[j] if a > 0.0 else bounds.lower[j])
                hinges[block, forms.groups[i]] += energy_of(forms.sorts[i], value)


@or_python
@lean
def hinges_at(forms, point, hinges, borders, first, last):
    """Add up the hinges of every group at a point."""
    for block in range(first, last):
        hinges[block, :] = 0.0
        for i in range(borders[block], borders[block + 1]):
            sort = forms.sorts[i]
            if sort <= SQUARED:
                hinges[block, forms.groups[i]] += energy_of(sort, value_of(forms, i, point))
