r"""A density near the posterior of one classifier's weights, for moves that propose them anew.

Only differences to the weights of the first label, :math:`u_y = \eta_y - \eta_0`, matter to the
hinge. Their mode is sought by the steps of expectation maximisation that the augmentation of the
hinge leads to,

.. math:: \Big( \sum_i c^2 \tau_i x_i x_i^\top + I / \nu \Big) \eta_y =
          \sum_i (\pm c + c^2 \tau_i \rho_i) \, x_i , \qquad \tau_i = 1 / |c (\rho_i - s_i)| ,

with the score :math:`s_i` of label :math:`y` and that of its best rival :math:`\rho_i`. The
matrices on the left, which make too narrow a normal density, are the scales of wide-tailed ones.
All this depends on the rows alone and not on any draw, so that moves in both directions know the
same density.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.sample.hinge import Hinge

_FEW = 2000  # rows that a fit begins with: enough to come near the mode
_ROUNDS = 30  # rounds with these, after which weights hardly change
_MORE = 5  # rounds with all rows, from weights that are near
_WIDER = 2.0  # variance in units of the scale, as the normal density is too narrow
DEGREES = 5.0  # of freedom: tails wider than those of the posterior keep log weights bounded


class WeightProposal(NamedTuple):
    """Independent Student densities of the differences of every label but the first."""

    means: Floats  #: (labels - 1, features)
    roots: Floats  #: (labels - 1, features, features) Lower Cholesky roots of inverse scales

    @staticmethod
    def fit(loss: Hinge, features: Floats, labels: Ints, n_labels: int) -> WeightProposal:
        """Return the proposal for rows that all have a label."""
        weights = np.zeros((n_labels, features.shape[1]))
        rounds = _ROUNDS
        if len(labels) > _FEW:
            step = -(-len(labels) // _FEW)
            few = np.ascontiguousarray(features[::step])
            weights = loss.fit_weights(few, labels[::step].copy(), weights, _ROUNDS)
            rounds = _MORE
        weights = loss.fit_weights(features, labels, weights, rounds)
        roots = np.linalg.cholesky(loss.precisions(features, labels, weights)[1:])
        return WeightProposal(weights[1:] - weights[0], roots / np.sqrt(_WIDER))

    def draw(self, rng: np.random.Generator) -> Floats:
        """Draw differences (labels - 1, features)."""
        noise = rng.standard_normal(self.means.shape)
        noise /= np.sqrt(rng.chisquare(DEGREES, (len(noise), 1)) / DEGREES)
        return self.means + np.array(
            [solve_triangular(root.T, row) for root, row in zip(self.roots, noise, strict=True)]
        )

    def log_density(self, differences: Floats) -> float:
        """Log density of differences (labels - 1, features)."""
        width = differences.shape[1]
        away = np.einsum("yij,yi->yj", self.roots, differences - self.means)
        constant = gammaln((DEGREES + width) / 2.0) - gammaln(DEGREES / 2.0)
        constant -= 0.5 * width * np.log(DEGREES * np.pi)
        logs = constant + np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(1)
        logs -= 0.5 * (DEGREES + width) * np.log1p((away**2).sum(1) / DEGREES)
        return float(logs.sum())
