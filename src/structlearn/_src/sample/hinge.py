r"""Max-margin classifiers inside states or components: labels as what these emit.

The potential of label :math:`y` with the scores :math:`s` of a component is

.. math:: \phi = \exp \big( -2 c \, \big( \max_{y'} (\ell [y' \ne y] + s_{y'}) - s_y \big) \big),

where the cost of a wrong label :math:`\ell` is `cost`. The weights of all labels are normal with
mean 0 and variance `variance` a priori. With two labels only the difference of their weights
matters: the first have weights 0 and the second twice the variance, which is the same model.

A priori the scores of the L labels of a row :math:`v` are independent and normal with variance
:math:`\sigma^2 = \nu^2 |v|^2`. So the potential of its label, expected over all classifiers,
depends on :math:`\sigma` only, and is an integral over one number: the best score of the others.

.. math:: G(\sigma) = \int g(\sigma z) \; d \, \Phi(z)^{L-1}, \qquad
          g(m) = \Phi(-a/\sigma) + e^{2 c^2 \sigma^2 - 2 c a} \, \Phi(a/\sigma - 2 c \sigma),
          \quad a = \ell + m

References
----------
N. Polson and S. Scott, "Data augmentation for support vector machines", Bayesian Analysis 2011.
A. Zhang, J. Zhu and B. Zhang, "Max-margin infinite hidden Markov models", ICML 2014. Its equation
23 has the mean right for c = 1 only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from structlearn._src.common import threads
from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.kernels.draw import margin
from structlearn._src.kernels.draw.density import NO_DENSITIES, Densities, LabelDensities
from structlearn._src.kernels.draw.mixture import HINGE
from structlearn._src.sample.emission import Arrays, NonConjugate
from structlearn._src.sample.normal_fit import fit_normal
from structlearn._src.sample.runner import streams

_LEAST = 1e-10  # distance to the margin that weights are drawn with, against division by 0
_FIRM = 0.3  # the same in fits: a row on the margin would have infinite precision and stay there
_STEPS = 3  # of a rough fit, which is repeated as sides change
_RUNGS = 8  # of paths from a fitted density to the posterior: log weights vary by 1 to 5
_MORE_RUNGS = 16  # with few rows, whose posterior is less like a normal density
_FEW = 64  # such rows
_STEP = 0.2  # of the trapezoidal rule: smaller steps change no digit of the integrals
_NODES = np.arange(-38.0, 9.0, _STEP)  # of the best score, in units of its deviation
_BLOCK = 2000  # rows whose integrals are taken at once: tables of some megabytes
_EDGES = np.arange(-38.0, 9.0, 0.05)  # of the staircase: cells so narrow that few draws are lost


class Hinge(NamedTuple):
    """Weight of the loss, cost of a wrong label, and prior variance of the weights."""

    c: float = 1.0
    cost: float = 1.0
    variance: float = 100.0

    @property
    def code(self) -> tuple[int, float, float]:
        """Kind, weight and cost, as the kernels of mixtures know them."""
        return HINGE, self.c, self.cost

    def log_potential(self, scores: Floats, labels: Ints) -> Floats:
        """(rows, ...) Log potential of labels given scores (rows, ..., L); 0 without a label."""
        given = labels.reshape(-1, *(1,) * (scores.ndim - 1))
        own = np.take_along_axis(scores, np.maximum(given, 0), axis=-1)[..., 0]
        costs = self.cost * (np.arange(scores.shape[-1]) != given)
        loss = (scores + costs).max(axis=-1) - own
        return np.where(given[..., 0] >= 0, -2.0 * self.c * loss, 0.0)

    def draw_weights(
        self,
        V: Floats,
        labels: Ints,
        assigned: Ints,
        weights: Floats,
        rng: Generator,
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

    def bridge(
        self, V: Floats, labels: Ints, weights: Floats | None, rng: Generator, n_labels: int
    ) -> tuple[Floats, float]:
        r"""Draw weights (L, M) on a path of densities; return them and the log weight of the path.

        For rows that all have a label. The path begins with a draw from a normal density
        :math:`q` that is fitted to the rows, or ends there if `weights` are given. With heats
        :math:`0 = b_0 < \dots < b_T = 1` and the prior :math:`p`, weights at heat b are drawn from
        :math:`q^{1 - b} (p \phi)^b`, and the log weight of a path up is
        :math:`\sum_t (b_{t+1} - b_t) \log (p \phi / q)(\eta_t)`. That of a path down is the same
        sum over the path reversed: then labels are drawn in the opposite order.
        """
        low = 1 if n_labels == 2 else 0  # of two labels, one alone has weights
        variance = self.variance * (1.0 + low)
        density = fit_normal(V, labels, n_labels, variance, self.c, self.cost)
        up = weights is None
        new = np.zeros((n_labels, V.shape[1]))
        new[low:] = density.draw(rng) if weights is None else weights[low:]
        order = slice(None, None, 1 if up or low else -1)
        given = labels if up or low else n_labels - 1 - labels
        ladder = np.linspace(0.0, 1.0, 1 + (_RUNGS if len(labels) > _FEW else _MORE_RUNGS))
        steps = np.arange(len(ladder) - 1)[:: 1 if up else -1]
        shape = (len(steps), n_labels, len(labels))
        path = np.ascontiguousarray(new[order])
        log_weight = margin.bridge(
            V, given, path, np.ascontiguousarray(density.centre[order]),
            np.ascontiguousarray(density.curvature.blocks()[order]),
            np.ascontiguousarray(density.curvature.links.T[order]), 1.0 / self.variance, self.c,
            self.cost, _LEAST, ladder[steps + 1], np.diff(ladder)[steps], up,
            rng.standard_normal(shape), rng.random(shape),
            rng.standard_normal((len(steps), *new.shape)),
        )  # fmt: skip
        return path[order], log_weight + density.log_constant(variance)

    def log_expected_potential(self, V: Floats, n_labels: int) -> Floats:
        """(rows,) Log of the potential of any label, expected over the prior of the weights."""
        sigma = np.sqrt(self.variance * (V * V).sum(axis=1))
        if n_labels == 2:  # the difference of the two scores is normal itself
            return _log_expected(self, np.sqrt(2.0) * sigma, np.zeros(1))[:, 0]
        # The trapezoidal rule, all but exact for smooth functions that vanish at both ends.
        density = np.log(_STEP * (n_labels - 1)) - 0.5 * (_NODES**2 + np.log(2.0 * np.pi))
        density += (n_labels - 2) * log_ndtr(_NODES)
        blocks = np.array_split(sigma, max(len(sigma) // _BLOCK, 1))
        return np.concatenate(
            [
                logsumexp(density + _log_expected(self, s, s[:, None] * _NODES), axis=1)
                for s in blocks
            ]
        )

    def draw_new_weights(self, v: Floats, label: int, n_labels: int, rng: Generator) -> Floats:
        r"""Draw weights (L, M) from their prior times the potential of one label, exactly.

        The scores come first, then the weights given these,
        :math:`\eta = v s / |v|^2 + (I - v v^\top / |v|^2) \, N(0, \nu^2)`.
        """
        scores = draw_scores(self, float(np.sqrt(self.variance * (v @ v))), label, n_labels, rng)
        return weights_given(self.variance, v, scores, rng)


@dataclass(frozen=True, eq=False)
class LabelEmission(NonConjugate):
    """Labels that every state gives by a classifier of its own.

    Parameters are the weights (states, labels, features) alone.
    """

    features: Floats  #: (positions, features) a constant among them
    labels: Ints  #: (positions,) -1 where not known
    n_labels: int
    loss: Hinge

    _BY_POSITION = ("features", "labels")

    @cached_property
    def _columns(self) -> Floats:
        return np.ascontiguousarray(self.features.T)

    def draw_prior(self, n_states: int, rng: Generator) -> Arrays:
        """Draw the weights of new states from their prior."""
        shape = (n_states, self.n_labels, self.features.shape[1])
        return (prior_weights(self.loss.variance, shape, rng),)

    def blank(self, n_states: int) -> Arrays:
        """Return weights of 0."""
        return (np.zeros((n_states, self.n_labels, self.features.shape[1])),)

    def draw(
        self, states: Ints, parameters: Arrays, rng: Generator, n_jobs: int | None = 1
    ) -> Arrays:
        """Draw the weights given the state of every position and the weights so far."""
        (weights,) = parameters
        new = self.loss.draw_weights(self.features, self.labels, states, weights, rng, n_jobs)
        return (new,)

    def densities(self, parameters: Arrays) -> Densities:
        """Return the log potentials as kernels find them."""
        (weights,) = parameters
        factor = -2.0 * self.loss.c
        found = LabelDensities(self._columns, self.labels, weights, factor, self.loss.cost)
        return NO_DENSITIES._replace(labels=found)

    def refined(self, states: Ints, n_states: int, before: Arrays | None) -> Arrays:
        """Fit weights to the positions of states, by a few steps from those before."""
        shape = (n_states, self.n_labels, self.features.shape[1])
        weights = np.zeros(shape) if before is None else before[0]
        own = [np.flatnonzero((states == k) & (self.labels >= 0)) for k in range(n_states)]
        fitted = [
            self.loss.fit_weights(self.features[rows], self.labels[rows], start, _STEPS)
            for rows, start in zip(own, weights, strict=True)
        ]
        return (np.array(fitted),)

    def propose(self, rng: Generator) -> tuple[Arrays, float]:
        """Draw weights of one state that has all positions, on a path to their posterior."""
        weights, log_weight = self._bridge(None, rng)
        return (weights[None],), log_weight

    def log_weight_of(self, parameters: Arrays, rng: Generator) -> float:
        """Draw a path from the weights of one state back, and return its log weight."""
        return self._bridge(parameters[0][0], rng)[1]

    def _bridge(self, weights: Floats | None, rng: Generator) -> tuple[Floats, float]:
        known = self.labels >= 0
        return self.loss.bridge(
            self.features[known], self.labels[known], weights, rng, self.n_labels
        )


def prior_weights(variance: float, shape: tuple[int, ...], rng: Generator) -> Floats:
    """Draw weights (K, L, M) from their prior."""
    weights = np.sqrt(variance) * rng.standard_normal(shape)
    if shape[1] == 2:
        weights[:, 1] *= np.sqrt(2.0)
        weights[:, 0] = 0.0
    return weights


def weights_given(variance: float, v: Floats, scores: Floats, rng: Generator) -> Floats:
    """Draw weights (L, M) from their prior given the scores of one row.

    With two labels the first are 0, and the second the difference.
    """
    weights = np.sqrt(variance) * rng.standard_normal((len(scores), len(v)))
    weights += np.multiply.outer(scores - weights @ v, v / (v @ v))
    if len(scores) == 2:
        weights -= weights[0].copy()
    return weights


def _log_expected(hinge: Hinge, sigma: Floats, best: Floats) -> Floats:
    """(rows, n) Log g: given the best score of the other labels."""
    right, wrong = _log_sides(hinge, sigma[:, None], best)
    return np.logaddexp(right, wrong)


def _log_sides(hinge: Hinge, sigma: Floats, best: Floats) -> tuple[Floats, Floats]:
    """Return both terms of log g: the label beats the others by its cost, or does not."""
    a = hinge.cost + best
    c = hinge.c
    wrong = 2.0 * c * (c * sigma * sigma - a) + log_ndtr(a / sigma - 2.0 * c * sigma)
    return log_ndtr(-a / sigma), wrong


def draw_scores(hinge: Hinge, sigma: float, label: int, n_labels: int, rng: Generator) -> Floats:
    """Draw the scores of all labels from their prior times the potential of one of them.

    The best of the others is drawn first, whichever it is; the rest lie below it.
    """
    best = _draw_best(hinge, sigma, n_labels, rng)
    scores = sigma * _below(best / sigma, rng.random(n_labels))
    others = np.delete(np.arange(n_labels), label)
    scores[rng.choice(others)] = best
    right, wrong = _log_sides(hinge, np.array(sigma), np.array(best))
    a = (hinge.cost + best) / sigma
    tilt = 2.0 * hinge.c * sigma
    u = rng.random()
    if np.log(rng.random()) < right - np.logaddexp(right, wrong):
        scores[label] = -sigma * _below(-a, u)
    else:
        scores[label] = sigma * (tilt + _below(a - tilt, u))
    return scores


def _draw_best(hinge: Hinge, sigma: float, n_labels: int, rng: Generator) -> float:
    """Draw the best score of the other labels by rejection: g falls, so a staircase covers it."""
    log_cdf = (n_labels - 1) * log_ndtr(_EDGES)
    low, high = log_cdf[:-1], log_cdf[1:]
    stair = _log_expected(hinge, np.array([sigma]), sigma * _EDGES[None, :-1])[0]
    width = high + np.log(-np.expm1(low - high))
    mass = width + stair
    shares = np.exp(mass - mass.max()).cumsum()
    while True:
        cell = int(np.searchsorted(shares, rng.random() * shares[-1]))
        place = np.logaddexp(low[cell], np.log(rng.random()) + width[cell])
        best = sigma * float(ndtri_exp(place / (n_labels - 1)))
        value = _log_expected(hinge, np.array([sigma]), np.array([[best]]))[0, 0]
        if np.log(rng.random()) < value - stair[cell]:
            return best


def _below(bound: float, uniforms: float | Floats) -> Floats:
    """Standard normal numbers below a bound, from uniform ones."""
    out: Floats = ndtri_exp(np.log(uniforms) + log_ndtr(bound))
    return out


def _by_component(labels: Ints, assigned: Ints, n: int) -> tuple[Ints, Ints]:
    """Return the rows with a label, ordered by component, and where each begins and ends."""
    known = np.flatnonzero(labels >= 0)
    numbers = assigned[known]
    order = np.argsort(numbers.astype(np.min_scalar_type(n)), kind="stable")  # short ones are quick
    return known[order], offsets_of(np.bincount(numbers, minlength=n))
