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

from structlearn.common.checks import Floats, Ints
from structlearn.kernels import margin
from structlearn.spread import threads

_WORTH = 20_000  # rows times labels below which a thread costs more than it brings


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
    """
    K, L, M = weights.shape
    order = np.argsort(assigned, kind="stable")
    borders = np.searchsorted(assigned[order], np.arange(K + 1))
    new = weights.copy()
    # Drawn here and not in the threads, so that their number changes nothing.
    normals, uniforms = rng.standard_normal((L, len(V))), rng.random((L, len(V)))
    noise = rng.standard_normal(weights.shape)
    scores, work = np.empty((len(V), L)), np.empty((K, M + 1, M))

    def part(first: int, last: int) -> None:
        margin.draw_weights(
            V, labels, order, borders, new, 1.0 / hinge.variance, hinge.c, hinge.cost,
            normals, uniforms, noise, scores, work, first, last,
        )  # fmt: skip

    jobs = threads.workers(n_jobs) if len(V) * L > _WORTH else 1
    threads.run(part, threads.split(borders, jobs), jobs)
    return new
