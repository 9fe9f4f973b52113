r"""Max-margin classifiers inside components: the potential of a label, and draws of the weights.

The potential of label :math:`y` with the scores :math:`s` of a component is

.. math:: \phi = \exp \big( -2 c \, \big( \max_{y'} (\ell [y' \ne y] + s_{y'}) - s_y \big) \big),

where the cost of a wrong label :math:`\ell` is `cost`. The weights of all labels are normal with
mean 0 and variance `variance` a priori. With two labels only the difference of their weights
matters: the first have weights 0 and the second twice the variance, which is the same model.

References
----------
N. Polson and S. Scott, "Data augmentation for support vector machines", Bayesian Analysis 2011.
A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014. Its equation
23 has the mean right for c = 1 only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.kernels.draw import margin
from structlearn._src.sample.runner import streams

_GRAIN = 2**15  # rows times labels per piece of work
_LEAST = 1e-10  # distance to the margin that weights are drawn with
_FIRM = 0.3  # the same where they are fitted: rows on the margin would hold them fast


class Hinge(NamedTuple):
    """Weight of the loss, cost of a wrong label, and prior variance of the weights."""

    c: float = 1.0
    cost: float = 1.0
    variance: float = 100.0


def log_potential(hinge: Hinge, scores: Floats, labels: Ints) -> Floats:
    """(rows, ...) Log potential of the labels given scores (rows, ..., L); 0 without a label."""
    flat = np.maximum(labels, 0).reshape(-1, *(1,) * (scores.ndim - 1))
    own = np.take_along_axis(scores, flat, axis=-1)[..., 0]
    wrong = np.arange(scores.shape[-1]) != flat
    loss = (scores + hinge.cost * wrong).max(axis=-1) - own
    known = (labels >= 0).reshape(-1, *(1,) * (loss.ndim - 1))
    return np.where(known, -2.0 * hinge.c * loss, 0.0)


def prior_weights(variance: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw weights (K, L, M) from their prior."""
    weights = np.sqrt(variance) * rng.standard_normal(shape)
    if shape[1] == 2:
        weights[:, 1] *= np.sqrt(2.0)
        weights[:, 0] = 0.0
    return weights


def draw_weights(
    hinge: Hinge,
    V: Floats,
    labels: Ints,
    assigned: Ints,
    weights: Floats,
    rng: np.random.Generator,
    n_jobs: int | None = 1,
) -> Floats:
    """Return new weights (K, L, M): one Gibbs sweep over all labels of all components.

    Parameters
    ----------
    V
        (rows, M) Features, a constant one among them.
    labels
        (rows,) -1 where missing.
    assigned
        (rows,) Component of every row.
    weights
        (K, L, M) Weights before.
    n_jobs
        Number of threads; draws do not depend on it.
    """
    L, order, borders = weights.shape[1], *_by_component(labels, assigned, len(weights))
    new, noise = weights.copy(), rng.standard_normal(weights.shape)
    pieces = threads.split(borders, max(1, len(order) * L // _GRAIN))
    # Every piece has a stream of its own, so that the number of threads changes nothing.
    own = dict(zip(pieces, streams(rng, len(pieces)) if len(pieces) > 1 else [rng], strict=True))

    def work(first: int, last: int) -> None:
        stream, shape = own[first, last], (L, int(borders[last] - borders[first]))
        margin.draw_weights(
            V, labels, order, borders, new, 1.0 / hinge.variance, hinge.c, hinge.cost, _LEAST,
            stream.standard_normal(shape), stream.random(shape), noise, first, last,
        )  # fmt: skip

    threads.run(work, pieces, n_jobs)
    return new


def fit_weights(hinge: Hinge, V: Floats, labels: Ints, weights: Floats, rounds: int) -> Floats:
    """Return weights (L, M) nearer to the mode for rows that all have a label."""
    new, (L, M), n = weights[None].copy(), weights.shape, len(labels)
    order, borders, still = np.arange(n), np.array([0, n]), np.zeros((L, n))
    for _ in range(rounds):
        margin.draw_weights(
            V, labels, order, borders, new, 1.0 / hinge.variance, hinge.c, hinge.cost, _FIRM,
            still, still, np.zeros((1, L, M)), 0, 1,
        )  # fmt: skip
    return new[0]


def scales(hinge: Hinge, V: Floats, labels: Ints, weights: Floats) -> Floats:
    """(L, M, M) Inverse covariances of weights given those of other labels, as fits have them."""
    scores, numbers = weights @ V.T, np.arange(len(weights))
    costs = hinge.cost * (numbers[:, None] != labels)
    ridge, out = np.eye(V.shape[1]) / hinge.variance, np.empty((len(weights), *(V.shape[1],) * 2))
    for y in numbers:
        rivals = (scores + costs)[numbers != y].max(0) - costs[y]
        stiff = hinge.c**2 / np.maximum(hinge.c * np.abs(rivals - scores[y]), _FIRM)
        out[y] = (V * stiff[:, None]).T @ V + ridge
    return out


def _by_component(labels: Ints, assigned: Ints, n: int) -> tuple[Ints, Ints]:
    """Return the rows with a label, ordered by component, and where each begins and ends."""
    known = np.flatnonzero(labels >= 0)
    numbers = assigned[known]
    order = np.argsort(numbers.astype(np.min_scalar_type(n)), kind="stable")  # short ones are quick
    return known[order], np.append(0, np.cumsum(np.bincount(numbers, minlength=n)))
