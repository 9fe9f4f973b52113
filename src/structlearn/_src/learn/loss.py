"""Losses, task costs and penalties: what an objective is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.common.errors import ArgumentError
from structlearn._src.common.names import COSTS, PAPERS_LOSSES
from structlearn._src.learn.vectors import dot


class LossPart(NamedTuple):
    """One pair of worlds in a loss: mixing weight, temperatures, and whether the cost is added.

    Parameters
    ----------
    share
        Weight of the part in the loss.
    eps_y, eps_h
        Temperatures of outputs and hidden variables.
    with_cost
        Whether the task cost is added to the scores of the free world.

    Examples
    --------
    >>> from structlearn.losses import LossPart
    >>> LossPart(share=1.0, eps_y=0.0, eps_h=1.0, with_cost=True)  # the marginal loss
    LossPart(share=1.0, eps_y=0.0, eps_h=1.0, with_cost=True)
    """

    share: float
    eps_y: float
    eps_h: float
    with_cost: bool


#: Temperatures of outputs and hidden variables, and whether the task cost takes part.
NAMED = {
    "log": (1.0, 1.0, False),
    "hinge": (0.0, 0.0, True),
    "latent-hinge": (0.0, 0.0, True),
    "marginal": (0.0, 1.0, True),
    "eps": (0.5, 0.5, True),
    "hybrid": (0.0, 1.0, True),
    "perceptron": (0.0, 0.0, False),
}


class Loss(NamedTuple):
    r"""The loss of one example, the value of its free world minus that of its clamped world.

    .. math::
        \ell(\epsilon_y, \epsilon_h, \Delta) &= \Phi(\theta + \Delta; \epsilon_y, \epsilon_h)
        - \Phi(\theta \text{ with } y \text{ clamped}; \epsilon_h) \\
        \text{hybrid}(\alpha) &= \alpha\, \ell(1, 1, 0)
        + (1 - \alpha)\, \ell(\epsilon_y, \epsilon_h, \Delta)

    Parameters
    ----------
    parts
        The terms of the sum: one, or two for the hybrid loss.
    eps_h
        Temperature of the hidden variables in prediction.

    References
    ----------
    W. Ping, Q. Liu and A. Ihler, "Marginal structured SVM with hidden variables", 2014, eq. 5.
    Q. Shi et al., "A hybrid loss for multiclass and structured prediction", 2014, eq. 4.

    Examples
    --------
    >>> from structlearn.losses import Loss, LossPart
    >>> Loss((LossPart(1.0, 1.0, 1.0, with_cost=False),), eps_h=1.0).smooth  # the log loss
    True
    """

    parts: tuple[LossPart, ...]
    eps_h: float  #: temperature of the hidden variables in prediction

    @property
    def smooth(self) -> bool:
        """Whether the loss has a gradient everywhere."""
        return all(part.eps_y > 0 and part.eps_h > 0 for part in self.parts)

    @property
    def zero_is_optimal(self) -> bool:
        """Whether weights of 0 have no loss."""
        return all(part.eps_y == 0 and not part.with_cost for part in self.parts)

    def softened(self, eps: float) -> Loss:
        """Return the loss with no temperature below `eps`.

        Parameters
        ----------
        eps
            Lowest temperature.

        Returns
        -------
        Loss
            A loss that has a gradient everywhere if `eps` is positive.

        Examples
        --------
        >>> from structlearn.losses import Loss, LossPart
        >>> hinge = Loss((LossPart(1.0, 0.0, 0.0, with_cost=True),), eps_h=0.0)
        >>> hinge.smooth, hinge.softened(0.1).smooth
        (False, True)
        """
        parts = tuple(
            part._replace(eps_y=max(part.eps_y, eps), eps_h=max(part.eps_h, eps))
            for part in self.parts
        )
        return self._replace(parts=parts)


def make_loss(
    name: str, eps_y: float | None = None, eps_h: float | None = None, alpha: float = 0.5
) -> Loss:
    """Return the loss with this name of `NAMED`.

    Temperatures that are given replace those of the named loss; for "eps", `eps_h` follows
    `eps_y` unless it is given too. `alpha` is the mixing weight of the log loss in "hybrid".
    """
    if (recipe := PAPERS_LOSSES.get(str(name).lower())) is not None:
        raise ArgumentError(f"loss={name!r} is the name of a paper; here it is {recipe}")
    checks.one_of("loss", name, tuple(NAMED))
    y, h, with_cost = NAMED[name]
    if eps_y is not None:
        y = checks.number("eps_y", eps_y, low=0.0, open_high=True)
        h = y if name == "eps" else h
    if eps_h is not None:
        h = checks.number("eps_h", eps_h, low=0.0, open_high=True)
    if name != "hybrid":
        return Loss((LossPart(1.0, y, h, with_cost),), h)
    share = checks.number("alpha", alpha, low=0.0, high=1.0)
    parts = LossPart(share, 1.0, 1.0, False), LossPart(1.0 - share, y, h, with_cost)
    return Loss(tuple(part for part in parts if part.share > 0), h)


# ---- task costs ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Cost:
    r"""A cost for every pair of true and given label, summed over the variables of an example.

    .. math:: \Delta(y, y') = \sum_i M[y_i, y'_i]
    """

    matrix: Floats  #: (states, states) true labels in rows; the diagonal is 0
    mean: bool = False  #: whether to divide by the number of labelled variables of the example
    whole: bool = False  #: whether all wrong labellings cost 1, however many labels are wrong

    def rows(self, labels: Ints, borders: Ints) -> Floats:
        """Cost of every state of every variable, 0 for those labelled -1.

        The variables of example ``i`` are those from ``borders[i]`` to ``borders[i + 1]``.
        """
        out: Floats = self.matrix[labels] * (labels >= 0)[:, None]
        if self.mean:
            count = np.add.reduceat(labels >= 0, borders[:-1]).clip(1)
            out /= np.repeat(count, np.diff(borders))[:, None]
        return out

    def between(self, labels: Ints, given: Ints, borders: Ints) -> Floats:
        """Cost of the labels `given` in every example."""
        rows = self.rows(labels, borders)[np.arange(len(labels)), given]
        sums: Floats = np.add.reduceat(rows, borders[:-1])
        return np.minimum(sums, 1.0) if self.whole else sums


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

    "hamming" counts wrong labels, "hamming-mean" gives their share, "zero-one" is 1 for every
    labelling but the true one; an array (states,) says what an error costs by true label, one
    (states, states) what it costs by true and given label.
    """
    check_cost(cost)
    if isinstance(cost, str):
        return Cost(1.0 - np.eye(states), cost == "hamming-mean", cost == "zero-one")
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


# ---- penalties -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ElasticNet:
    r"""Squares and absolute values of the weights.

    .. math:: \Omega(w) = \tfrac{1}{2} (1 - r) \|w\|_2^2 + r \|w\|_1

    with :math:`r` the `l1_ratio`: 0 is the ridge of support vector machines and CRFs, 1 the lasso.
    The whole penalty is multiplied by `strength`.

    Parameters
    ----------
    l1_ratio
        Fraction of the penalty on absolute values, between 0 and 1.
    strength
        Factor of the whole penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from structlearn.losses import ElasticNet
    >>> ElasticNet(l1_ratio=0.5).value(np.array([3.0, -4.0]))  # 0.25 * 25 + 0.5 * 7
    9.75
    """

    l1_ratio: float = 0.0
    strength: float = 1.0

    def __post_init__(self) -> None:
        for name, high in (("l1_ratio", 1.0), ("strength", np.inf)):
            value = checks.number(name, getattr(self, name), low=0.0, high=high)
            object.__setattr__(self, name, value)  # a plain float, whatever the precision given

    @property
    def smooth(self) -> bool:
        """Whether the penalty is differentiable everywhere."""
        return self.lasso == 0.0

    @property
    def ridge(self) -> float:
        """Factor of half the sum of squares."""
        return self.strength * (1.0 - self.l1_ratio)

    @property
    def lasso(self) -> float:
        """Factor of the sum of absolute values."""
        return self.strength * self.l1_ratio

    def value(self, weights: Floats, n_jobs: int | None = 1) -> float:
        """Return the whole penalty.

        Parameters
        ----------
        weights
            (weights,) The weights.
        n_jobs
            Number of threads; None for all cores.

        Returns
        -------
        float
            The penalty.

        Examples
        --------
        >>> import numpy as np
        >>> ElasticNet().value(np.array([3.0, 4.0]))
        12.5
        """
        squares = 0.5 * self.ridge * dot(weights, weights, n_jobs)
        return squares + (0.0 if self.smooth else self.lasso * float(np.abs(weights).sum()))

    def gradient(self, weights: Floats) -> Floats:
        """Return the gradient of the squares.

        Parameters
        ----------
        weights
            (weights,) The weights.

        Returns
        -------
        array of shape (weights,)
            The gradient, without the absolute values.

        Examples
        --------
        >>> import numpy as np
        >>> ElasticNet(l1_ratio=0.5).gradient(np.array([3.0, 4.0]))
        array([1.5, 2. ])
        """
        return self.ridge * weights

    def prox(self, weights: Floats, step: float | Floats) -> Floats:
        """Pull every weight towards 0 by ``step * lasso``, no further than 0.

        Parameters
        ----------
        weights
            (weights,) The weights.
        step
            Length of the step, one for all weights or one for each.

        Returns
        -------
        array of shape (weights,)
            The proximal operator of the absolute values: weights after soft thresholding.

        Examples
        --------
        >>> import numpy as np
        >>> ElasticNet(l1_ratio=1.0).prox(np.array([3.0, -0.1]), 0.5)
        array([ 2.5, -0. ])
        """
        return np.sign(weights) * np.maximum(np.abs(weights) - step * self.lasso, 0.0)


@dataclass(frozen=True)
class NonNegative(ElasticNet):
    """The same for weights that must not fall below 0: `prox` projects them."""

    @property
    def smooth(self) -> bool:
        """Whether `gradient` tells everything: never, as there is a border."""
        return False

    def prox(self, weights: Floats, step: float | Floats) -> Floats:
        """Pull every weight down by ``step * lasso``, no further than 0."""
        return np.maximum(weights - step * self.lasso, 0.0)
