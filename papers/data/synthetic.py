"""Made-up data with known truth: fields with hidden cells, noisy images, ambiguous classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from papers import checks
from papers.arrays import Bools, Floats, Ints
from structlearn import grid_edges

Seed = int | np.random.Generator | None


class Spread(NamedTuple):
    """Standard deviations of the random log potentials of a `HiddenField`."""

    inputs: float = 0.1
    outputs: float = 0.1
    hidden: float = 0.1
    output_input: float = np.sqrt(2.0)
    hidden_input: float = np.sqrt(2.0)
    pairs: float = np.sqrt(2.0)  #: of an output and a hidden cell


#: Pairwise variance 2: so chosen that chain and grid come near the accuracies of the paper.
CALIBRATED = Spread()


@dataclass(frozen=True, eq=False)
class HiddenField:
    r"""A random field on a grid: every other cell is hidden, and every cell has an input.

    .. math:: p(x, z) \propto \exp \Big( \sum_i a_i(x_i) + b_i(z_i) + c_i(x_i, z_i)
              + \sum_{ij} d_{ij}(z_i, z_j) \Big)

    Neighbours in the grid are linked. Outputs and hidden cells alternate like the squares of a
    chessboard, so that outputs touch hidden cells only; a single column is a chain.

    Parameters
    ----------
    shape
        Rows and columns.
    inputs, cells
        (cells, states) Log potentials :math:`a` and :math:`b`.
    sight
        (cells, states, states) Log potentials :math:`c`, the input first.
    pairs
        (edges, states, states) Log potentials :math:`d`, in the order of `edges`.

    References
    ----------
    W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014,
    section 7.1.
    """

    shape: tuple[int, int]
    inputs: Floats
    cells: Floats
    sight: Floats
    pairs: Floats

    @classmethod
    def draw(
        cls,
        rows: int,
        columns: int = 1,
        *,
        states: int = 4,
        spread: Spread = CALIBRATED,
        random_state: Seed = None,
    ) -> HiddenField:
        """Draw all log potentials from normal distributions of mean 0.

        Examples
        --------
        >>> field = HiddenField.draw(10, random_state=0)
        >>> field.hidden[:4]
        array([False,  True, False,  True])
        >>> inputs, cells = field.sample(3, random_state=1)
        >>> inputs.shape, cells.shape
        ((3, 10), (3, 10))
        """
        checks.integer("rows", rows, low=1)
        checks.integer("columns", columns, low=1)
        checks.integer("states", states, low=1)
        rng = np.random.default_rng(random_state)
        n = rows * columns
        hidden = chessboard(rows, columns)
        alone = np.where(hidden, spread.hidden, spread.outputs)
        seen = np.where(hidden, spread.hidden_input, spread.output_input)
        return cls(
            (rows, columns),
            spread.inputs * rng.standard_normal((n, states)),
            alone[:, None] * rng.standard_normal((n, states)),
            seen[:, None, None] * rng.standard_normal((n, states, states)),
            spread.pairs * rng.standard_normal((len(neighbours(rows, columns)), states, states)),
        )

    @property
    def hidden(self) -> Bools:
        """(cells,) Which cells are hidden."""
        return chessboard(*self.shape)

    @property
    def edges(self) -> Ints:
        """(edges, 2) Linked cells."""
        return neighbours(*self.shape)

    def sample(self, n_samples: int, random_state: Seed = None) -> tuple[Ints, Ints]:
        """Draw inputs and cells together, exactly: two arrays (samples, cells).

        Inputs are summed out, cells are drawn row by row from a forward filter over the last
        `columns` of them, and every input given its cell.
        """
        checks.integer("n_samples", n_samples, low=1)
        rng = np.random.default_rng(random_state)
        both = self.inputs[:, :, None] + self.sight
        alone = self.cells + _log_sum(both, axis=1)
        rows, columns = self.shape
        down, right = _by_direction(self.pairs, rows, columns)
        cells = _sample_cells(alone, down, right, columns, rng.random((n_samples, rows * columns)))
        scores = both[np.arange(len(both)), :, cells]
        return _pick(scores, rng.random(cells.shape)), cells


def chessboard(rows: int, columns: int) -> Bools:
    """(cells,) Every other cell, the second one first."""
    row, column = np.indices((rows, columns))
    out: Bools = ((row + column) % 2 == 1).ravel()
    return out


def neighbours(rows: int, columns: int) -> Ints:
    """(edges, 2) The edges of a grid, vertical ones first: the order of the random numbers."""
    return np.roll(grid_edges(rows, columns), (rows - 1) * columns, axis=0)


def _by_direction(pairs: Floats, rows: int, columns: int) -> tuple[Floats, Floats]:
    """Tables with the cell above and with the cell to the left of every cell, 0 where none is."""
    edges = neighbours(rows, columns)
    out = np.zeros((2, rows * columns, *pairs.shape[1:]))
    n_down = (rows - 1) * columns
    out[0, edges[:n_down, 1]] = pairs[:n_down]
    out[1, edges[n_down:, 1]] = pairs[n_down:]
    return out[0], out[1]


def _sample_cells(
    alone: Floats, down: Floats, right: Floats, columns: int, uniforms: Floats
) -> Ints:
    """Draw all cells, one after the other given the last `columns` before it.

    A table ``future[t]`` over these cells holds the log of what can follow, summed.
    """
    n, states = alone.shape
    future = [np.zeros((states,) * columns)]
    for t in reversed(range(n)):
        future.append(_log_sum(_scores(t, alone, down, right, future[-1]), axis=-1))
    future.reverse()
    cells = np.zeros((len(uniforms), columns + n), np.int64)  # begins with cells outside
    for t in range(n):
        last = tuple(cells[:, t : t + columns].T)
        scores = _scores(t, alone, down, right, future[t + 1])[last]
        cells[:, columns + t] = _pick(scores, uniforms[:, t])
    return cells[:, columns:]


def _scores(t: int, alone: Floats, down: Floats, right: Floats, after: Floats) -> Floats:
    """Log weight of cell `t` given the last ones: one axis each, oldest first, then its own."""
    columns = after.ndim
    states = len(alone[t])
    above = down[t].reshape(states, *(1,) * (columns - 1), states)
    beside: Floats = right[t]
    return above + beside + alone[t] + after[None]


def _pick(scores: Floats, uniforms: Floats) -> Ints:
    """Draw from distributions given by log weights along the last axis."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True)).cumsum(axis=-1)
    return (weights < (uniforms * weights[..., -1])[..., None]).sum(axis=-1)


def _log_sum(scores: Floats, axis: int) -> Floats:
    top = scores.max(axis=axis, keepdims=True)
    out: Floats = np.log(np.exp(scores - top).sum(axis=axis)) + top.squeeze(axis)
    return out


def quadrants(rows: int = 20, columns: int = 40) -> Ints:
    """(rows, columns) A picture with five labels: four quadrants, and an ellipse in the middle."""
    row, column = np.indices((rows, columns))
    quarter = 2 * (row >= rows / 2) + (column >= columns / 2)
    up, along = (row + 0.5) / rows - 0.5, (column + 0.5) / columns - 0.5
    return np.where((up / 0.3) ** 2 + (along / 0.225) ** 2 <= 1.0, 4, quarter)


def noisy_images(
    truth: Ints,
    n_images: int,
    variance: float,
    share: float,
    random_state: Seed = None,
) -> tuple[Floats, Ints]:
    """Draw noisy images of one truth, and labels of which a share is missing.

    Parameters
    ----------
    truth
        (rows, columns) Labels, counted from 0.
    variance
        Of the noise, which is added to the labels.
    share
        Share of the labels that is missing, another choice in every image.

    Returns
    -------
    images
        (images, rows, columns)
    labels
        (images, rows, columns) With -1 where the label is missing.
    """
    checks.number("variance", variance, low=0.0)
    checks.number("share", share, low=0.0, high=1.0)
    rng = np.random.default_rng(random_state)
    shape = (n_images, *truth.shape)
    images = truth + np.sqrt(variance) * rng.standard_normal(shape)
    order = rng.random((n_images, truth.size)).argsort(axis=1).reshape(shape)
    return images, np.where(order < round(share * truth.size), -1, truth)
