r"""Max-margin classifiers of components, those of new components among them.

A priori the scores of the L labels of a row are independent and normal with variance
:math:`\sigma^2 = \nu^2 |v|^2`. So the potential of its label, expected over all classifiers,
depends on :math:`\sigma` only, and is an integral over one number: the best score of the others.

.. math:: G(\sigma) = \int g(\sigma z) \; d \, \Phi(z)^{L-1}, \qquad
          g(m) = \Phi(-a/\sigma) + e^{2 c^2 \sigma^2 - 2 c a} \, \Phi(a/\sigma - 2 c \sigma),
          \quad a = \ell + m
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri_exp

from structlearn._src.common.arrays import Floats
from structlearn._src.kernels.draw.mixture import HINGE
from structlearn._src.sample.hinge import Hinge

_STEP = 0.2  # of the trapezoidal rule: smaller steps change no digit of the integrals
_NODES = np.arange(-38.0, 9.0, _STEP)  # of the best score, in units of its deviation
_BLOCK = 2000  # rows whose integrals are taken at once: tables of some megabytes
_EDGES = np.arange(-38.0, 9.0, 0.05)  # of the staircase: cells so narrow that few draws are lost


class MaxMargin(Hinge):
    """Classifiers by the hinge loss, as mixtures ask for them."""

    __slots__ = ()

    @property
    def code(self) -> tuple[int, float, float]:
        """Kind, weight and cost, as kernels know them."""
        return HINGE, self.c, self.cost

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

    def draw_new_weights(
        self, v: Floats, label: int, n_labels: int, rng: np.random.Generator
    ) -> Floats:
        r"""Draw weights (L, M) from their prior times the potential of one label, exactly.

        The scores come first, then the weights given these,
        :math:`\eta = v s / |v|^2 + (I - v v^\top / |v|^2) \, N(0, \nu^2)`.
        """
        scores = draw_scores(self, float(np.sqrt(self.variance * (v @ v))), label, n_labels, rng)
        return weights_given(self.variance, v, scores, rng)


def weights_given(variance: float, v: Floats, scores: Floats, rng: np.random.Generator) -> Floats:
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


def draw_scores(
    hinge: Hinge, sigma: float, label: int, n_labels: int, rng: np.random.Generator
) -> Floats:
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


def _draw_best(hinge: Hinge, sigma: float, n_labels: int, rng: np.random.Generator) -> float:
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
