r"""Mean-field posteriors of truncated mixtures: every row has a share in each component.

References
----------
D. Blei and M. Jordan, "Variational inference for Dirichlet process mixtures", Bayesian Analysis
2006.
"""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

from papers.arrays import Floats, Ints
from structlearn._src.sample.priors import Moments, NormalWishart


def soft_moments(X: Floats, shares: Floats) -> Moments:
    """Return the moments of components in which rows have shares (rows, K)."""
    outers = np.einsum("tk,ti,tj->kij", shares, X, X, optimize=True)
    return Moments(shares.sum(axis=0), shares.T @ X, outers)


def soft_pairs(shares: Floats, offsets: Ints) -> Floats:
    """(K, K) How often components follow each other within sequences of rows with shares."""
    follows = np.ones(len(shares), np.bool_)
    follows[offsets[:-1]] = False
    later = np.flatnonzero(follows)
    return shares[later - 1].T @ shares[later]


def expected_log_density(after: NormalWishart, X: Floats) -> Floats:
    r"""(rows, K) Log density of rows, expected over means and covariances.

    .. math:: \frac{1}{2} \Big( \sum_{i=1}^D \psi \Big( \frac{\nu + 1 - i}{2} \Big)
              - \log |S| - D \log \pi - \frac{D}{\kappa} - \nu (x - m)^\top S^{-1} (x - m) \Big)
    """
    D = after.width
    degrees = np.asarray(after.degrees, np.float64)
    roots = np.linalg.cholesky(after.scale)
    away = np.linalg.solve(roots, (X - after.mean[:, None]).swapaxes(1, 2))
    squares = (away**2).sum(axis=1)
    volume = 2.0 * np.log(np.diagonal(roots, axis1=1, axis2=2)).sum(axis=1)
    turn = digamma(0.5 * (degrees[:, None] - np.arange(D))).sum(axis=1)
    constant = turn - volume - D * np.log(np.pi) - D / np.asarray(after.strength)
    return 0.5 * (constant[:, None] - degrees[:, None] * squares).T


def expected_log_sticks(counts: Floats, alpha: float) -> Floats:
    r"""(..., K) Log weights of components, expected over their sticks, given expected counts.

    Stick :math:`k` is a posteriori :math:`\mathrm{Beta}(1 + n_k, \alpha + \sum_{j > k} n_j)`; the
    larger counts come first. The last component has what is left.
    """
    order = np.argsort(-counts, axis=-1, kind="stable")
    sizes = np.take_along_axis(counts, order, axis=-1)
    later = sizes[..., ::-1].cumsum(axis=-1)[..., ::-1] - sizes
    both = digamma(1.0 + alpha + sizes + later)
    own = digamma(1.0 + sizes) - both
    rest = digamma(alpha + later) - both
    own[..., -1] = 0.0
    logs = own + np.concatenate([np.zeros_like(rest[..., :1]), rest[..., :-1].cumsum(-1)], axis=-1)
    out = np.empty_like(logs)
    np.put_along_axis(out, order, logs, axis=-1)
    return out
