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
from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.kernels.draw import margin
from structlearn._src.sample.runner import streams

_LEAST = 1e-10  # distance to the margin that weights are drawn with, against division by 0
_LADDER = np.linspace(0.0, 1.0, 81) ** 4  # how much losses count on the way from the prior
_AT_ONCE = 2**20  # random numbers of a path that are drawn at a time: some megabytes
_FIRM = 0.3  # the same in fits: a row on the margin would have infinite precision and stay there


class Hinge(NamedTuple):
    """Weight of the loss, cost of a wrong label, and prior variance of the weights."""

    c: float = 1.0
    cost: float = 1.0
    variance: float = 100.0

    def with_costs(self, scores: Floats, labels: Ints) -> Floats:
        """Return scores (rows, ..., L) plus the cost of every label that is not the given one."""
        given = labels.reshape(-1, *(1,) * (scores.ndim - 1))
        return scores + self.cost * (np.arange(scores.shape[-1]) != given)

    def log_potential(self, scores: Floats, labels: Ints) -> Floats:
        """(rows, ...) Log potential of labels given scores (rows, ..., L); 0 without a label."""
        given = labels.reshape(-1, *(1,) * (scores.ndim - 1))
        own = np.take_along_axis(scores, np.maximum(given, 0), axis=-1)[..., 0]
        loss = self.with_costs(scores, labels).max(axis=-1) - own
        return np.where(given[..., 0] >= 0, -2.0 * self.c * loss, 0.0)

    def draw_weights(
        self,
        V: Floats,
        labels: Ints,
        assigned: Ints,
        weights: Floats,
        rng: np.random.Generator,
        n_jobs: int | None = 1,
    ) -> Floats:
        """Return new weights (K, L, M): one Gibbs sweep over all labels of all components.

        For features `V` (rows, M) and labels of rows, -1 where missing.
        """
        L = weights.shape[1]
        order, borders = _by_component(labels, assigned, len(weights))
        new = weights.copy()
        noise = rng.standard_normal(weights.shape)
        pieces = threads.split(borders, max(1, len(order) * L // threads.GRAIN["margins"]))
        # Every piece has a stream of its own, so that the number of threads changes nothing.
        own = streams(rng, len(pieces)) if len(pieces) > 1 else [rng]
        stream_of = dict(zip(pieces, own, strict=True))

        def work(first: int, last: int) -> None:
            stream = stream_of[first, last]
            shape = (L, int(borders[last] - borders[first]))
            margin.draw_weights(
                V, labels, order, borders, new, 1.0 / self.variance, self.c, self.cost, _LEAST,
                stream.standard_normal(shape), stream.random(shape), noise, first, last,
            )  # fmt: skip

        threads.run(work, pieces, n_jobs)
        return new

    def fit_weights(self, V: Floats, labels: Ints, weights: Floats, rounds: int) -> Floats:
        """Return weights (L, M) nearer to the mode for rows that all have a label."""
        L, M = weights.shape
        n = len(labels)
        new = weights[None].copy()
        still = np.zeros((L, n))  # without noise a draw is a step of expectation maximisation
        for _ in range(rounds):
            margin.draw_weights(
                V, labels, np.arange(n), np.array([0, n]), new, 1.0 / self.variance, self.c,
                self.cost, _FIRM, still, still, np.zeros((1, L, M)), 0, 1,
            )  # fmt: skip
        return new[0]

    def anneal(
        self, V: Floats, labels: Ints, weights: Floats, rng: np.random.Generator, up: bool
    ) -> tuple[Floats, float]:
        r"""Draw weights (L, M) again and again as losses count more, or less if not `up`.

        For rows that all have a label. With heats :math:`0 = b_0 < \dots < b_T = 1` the log weight
        of a path up is :math:`\sum_t (b_{t+1} - b_t) \log \phi(\eta_t)`, and that of a path down
        the same sum over the path reversed: then labels are drawn in the opposite order.
        """
        L, M = weights.shape
        mirrored = not up and L > 2  # of two labels, one alone has weights
        new = np.ascontiguousarray(weights[None, ::-1] if mirrored else weights[None]).copy()
        given = L - 1 - labels if mirrored else labels
        columns = np.ascontiguousarray(V.T)
        steps = np.arange(len(_LADDER) - 1)
        at_once = max(1, _AT_ONCE // (L * max(len(labels), 1)))
        total = 0.0
        for first in range(0, len(steps), at_once):
            some = (steps if up else steps[::-1])[first : first + at_once]
            shape = (len(some), L, len(labels))
            total += margin.anneal(
                V, columns, given, new, 1.0 / self.variance, self.c, self.cost, _LEAST,
                _LADDER[some + 1], np.diff(_LADDER)[some], up, rng.standard_normal(shape),
                rng.random(shape), rng.standard_normal((len(some), 1, L, M)),
            )  # fmt: skip
        return (new[0, ::-1] if mirrored else new[0]), total


def prior_weights(variance: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw weights (K, L, M) from their prior."""
    weights = np.sqrt(variance) * rng.standard_normal(shape)
    if shape[1] == 2:
        weights[:, 1] *= np.sqrt(2.0)
        weights[:, 0] = 0.0
    return weights


def _by_component(labels: Ints, assigned: Ints, n: int) -> tuple[Ints, Ints]:
    """Return the rows with a label, ordered by component, and where each begins and ends."""
    known = np.flatnonzero(labels >= 0)
    numbers = assigned[known]
    order = np.argsort(numbers.astype(np.min_scalar_type(n)), kind="stable")  # short ones are quick
    return known[order], offsets_of(np.bincount(numbers, minlength=n))
