"""Task costs that split over variables: what each wrong label costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.names import COSTS


@dataclass(frozen=True, eq=False)
class Cost:
    r"""A cost for every pair of true and given label, summed over the variables of an example.

    .. math:: \Delta(y, y') = \sum_i M[y_i, y'_i]

    Parameters
    ----------
    matrix
        (states, states) True labels in rows; the diagonal is 0.
    mean
        Whether to divide by the number of labelled variables of the example.
    """

    matrix: Floats
    mean: bool = False

    def rows(self, labels: Ints, borders: Ints) -> Floats:
        """Cost of every state of every variable, 0 for those labelled -1.

        Parameters
        ----------
        labels
            (variables,)
        borders
            (examples + 1,) Where the variables of every example begin.
        """
        out: Floats = self.matrix[labels] * (labels >= 0)[:, None]
        if self.mean:
            count = np.add.reduceat(labels >= 0, borders[:-1]).clip(1)
            out /= np.repeat(count, np.diff(borders))[:, None]
        return out

    def between(self, labels: Ints, given: Ints, borders: Ints) -> Floats:
        """Cost of the labels `given` in every example."""
        rows = self.rows(labels, borders)[np.arange(len(labels)), given]
        return np.add.reduceat(rows, borders[:-1])


def check_cost(cost: Any) -> None:
    """Refuse what is neither a name nor an array of numbers with one or two axes."""
    if isinstance(cost, str) and cost in COSTS:
        return
    try:
        known = not isinstance(cost, str) and np.asarray(cost, dtype=np.float64).ndim in (1, 2)
    except (TypeError, ValueError):
        known = False
    if not known:
        raise ArgumentError(
            f"cost={cost!r} is not known; choose one of {', '.join(map(repr, COSTS))}, or give an "
            f"array of numbers: one for every true label, or for every true and given label"
        )


def make_cost(cost: Any, states: int) -> Cost:
    """Return the cost meant by a name, by a weight per true label, or by a matrix.

    Parameters
    ----------
    cost
        "hamming" counts wrong labels, "hamming-mean" gives their share; an array (states,) says
        what an error costs by true label; an array (states, states) what it costs by true and
        given label.
    """
    check_cost(cost)
    if isinstance(cost, str):
        return Cost(1.0 - np.eye(states), mean=cost == "hamming-mean")
    matrix = np.asarray(cost, dtype=np.float64)
    if matrix.shape == (states,):
        matrix = np.where(np.eye(states), 0.0, matrix[:, None])
    if matrix.shape != (states, states):
        raise ArgumentError(
            f"cost has shape {matrix.shape}; with {states} labels it must be ({states},) or "
            f"({states}, {states})"
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any() or np.diag(matrix).any():
        raise ArgumentError(
            "cost must have finite entries of at least 0, and 0 on its diagonal: the right label "
            "costs nothing"
        )
    return Cost(matrix)
