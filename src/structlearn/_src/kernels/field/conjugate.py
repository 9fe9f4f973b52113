r"""Conjugate gradients for Newton directions: :math:`(R^\top R + \delta I) x = -g`.

:math:`R` are the active rows. One iteration goes through blocks of variables and of rows four
times, with a sum over all blocks in between: what is left and its scaled version, the direction,
its products with the rows, and its image. Rows that are stiff are eliminated by the
preconditioner, each over the variables that it owns (Sherman and Morrison).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.field.forms import add_up
from structlearn._src.kernels.jit import lean, or_python


class Directions(NamedTuple):
    """Vectors of conjugate gradients, all (variables)."""

    left: np.ndarray  #: residual of the linear system
    scaled: np.ndarray
    along: np.ndarray
    image: np.ndarray
    out: np.ndarray  #: the solution


class DirectionSums(NamedTuple):
    """Inner products by block: of variables, and of stiff rows."""

    variables: np.ndarray
    rows: np.ndarray


@or_python
@lean
def begin(gradient, free, vectors, borders, first, last):
    """Start from 0 with the negative gradient over free variables."""
    for j in range(borders[first], borders[last]):
        vectors.left[j] = -gradient[j] if free[j] else 0.0
        vectors.out[j] = 0.0
        vectors.along[j] = 0.0
        vectors.image[j] = 0.0


@lean
def go(length, diagonal, vectors, sums, borders, first, last):
    """Move along the direction; scale what is left of variables that no stiff row owns."""
    for block in range(first, last):
        total = 0.0
        for j in range(borders[block], borders[block + 1]):
            vectors.out[j] += length * vectors.along[j]
            left = vectors.left[j] - length * vectors.image[j]
            vectors.left[j] = left
            if diagonal.owners[j] < 0:
                scaled = left / diagonal.values[j]
                vectors.scaled[j] = scaled
                total += left * scaled
        sums.variables[block] = total


@lean
def scale_owned(rows, diagonal, vectors, sums, borders, first, last):
    """Scale what is left of variables that stiff rows own."""
    for block in range(first, last):
        total = 0.0
        for i in range(borders[block], borders[block + 1]):
            product = 0.0
            size = 1.0
            for e in range(rows.offsets[i], rows.offsets[i + 1]):
                j = rows.variables[e]
                if diagonal.owners[j] == i:
                    scaled = rows.coefficients[e] / diagonal.values[j]
                    product += scaled * vectors.left[j]
                    size += scaled * rows.coefficients[e]
            for e in range(rows.offsets[i], rows.offsets[i + 1]):
                j = rows.variables[e]
                if diagonal.owners[j] == i:
                    left = vectors.left[j]
                    scaled = (left - rows.coefficients[e] * product / size) / diagonal.values[j]
                    vectors.scaled[j] = scaled
                    total += left * scaled
        sums.rows[block] = total


@lean
def turn(ratio, prox, vectors, borders, first, last):
    """Take the next direction, and the part of its image that is not of rows."""
    for j in range(borders[first], borders[last]):
        along = vectors.scaled[j] + ratio * vectors.along[j]
        vectors.along[j] = along
        vectors.image[j] = prox * along


@lean
def multiply(rows, vectors, alone, borders, first, last):
    """Multiply rows by the direction; a thread that is alone adds them to the image at once."""
    for i in range(borders[first], borders[last]):
        product = 0.0
        for e in range(rows.offsets[i], rows.offsets[i + 1]):
            product += rows.coefficients[e] * vectors.along[rows.variables[e]]
        if alone:
            for e in range(rows.offsets[i], rows.offsets[i + 1]):
                vectors.image[rows.variables[e]] += rows.coefficients[e] * product
        else:
            rows.products[i] = product


@lean
def gather_image(starts, active, rows, vectors, sums, alone, borders, first, last):
    """Add up the image by columns; its inner product with the direction is the curvature."""
    for block in range(first, last):
        total = 0.0
        for j in range(borders[block], borders[block + 1]):
            image = vectors.image[j]
            if not alone:
                for e in range(starts[j], active.ends[j]):
                    image += active.coefficients[e] * rows.products[active.rows[e]]
                vectors.image[j] = image
            total += vectors.along[j] * image
        sums.variables[block] = total


@or_python
@lean
def largest(vector, found, borders, first, last):
    """Write the largest number of every block, without its sign."""
    for block in range(first, last):
        most = 0.0
        for j in range(borders[block], borders[block + 1]):
            most = max(most, abs(vector[j]))
        found[block] = most


@or_python
@lean
def solve(rows, diagonal, prox, vectors, starts, active, sums, blocks, tol, limit):
    """Take up to `limit` iterations on one thread; return their number.

    `blocks` are the borders of blocks of variables, of stiff rows and of all rows.
    """
    by_variable, by_stiff, by_row = blocks
    n_variables = len(by_variable) - 1
    old = np.inf
    enough = 0.0
    length = 0.0
    for n in range(limit):
        go(length, diagonal, vectors, sums, by_variable, 0, n_variables)
        scale_owned(rows, diagonal, vectors, sums, by_stiff, 0, len(by_stiff) - 1)
        size = add_up(sums.variables) + add_up(sums.rows[: len(by_stiff) - 1])
        if n == 0:
            enough = size * tol * tol
        if size <= enough and (n > 0 or size == 0.0):
            return n
        turn(size / old, prox, vectors, by_variable, 0, n_variables)
        old = size
        multiply(rows, vectors, True, by_row, 0, len(by_row) - 1)
        gather_image(starts, active, rows, vectors, sums, True, by_variable, 0, n_variables)
        curved = add_up(sums.variables)
        if not 0.0 < curved < np.inf:
            return n  # rounding or overflow: the direction so far has to do
        length = size / curved
    go(length, diagonal, vectors, sums, by_variable, 0, n_variables)
    return limit
