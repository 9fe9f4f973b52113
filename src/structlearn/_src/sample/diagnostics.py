"""Whether chains agree, and how much their draws are worth: R-hat and effective sample size.

References
----------
A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P. Buerkner, "Rank-normalization, folding, and
localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 2021.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from structlearn._src.common.arrays import Floats


def r_hat(draws: Floats) -> float:
    """Return the R-hat of draws (chains, draws): near 1 where chains agree.

    The larger of that of ranks and of folded ranks, each chain cut in two. NaN below four draws.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(r_hat(rng.normal(size=(4, 500))), 1)
    1.0
    >>> r_hat(rng.normal(size=(4, 500)) + 3 * np.arange(4)[:, None]) > 2
    True
    """
    halves = _halves(np.atleast_2d(draws))
    if halves.shape[1] < 2:
        return float("nan")
    folded = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_normal_scores(halves)), _plain_r_hat(_normal_scores(folded)))


def effective_size(draws: Floats) -> float:
    """Return how many independent draws these (chains, draws) are worth, of their middle.

    By autocorrelations of rank-normalised half chains, up to where sums of pairs turn negative.
    """
    halves = _halves(np.atleast_2d(draws))
    if halves.shape[1] < 2:
        return float("nan")
    return _effective_size(_normal_scores(halves))


def _halves(draws: Floats) -> Floats:
    """Cut each chain in two of the same length."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def _normal_scores(draws: Floats) -> Floats:
    ranks = rankdata(draws).reshape(draws.shape)
    return np.asarray(ndtri((ranks - 0.375) / (draws.size + 0.25)))


def _plain_r_hat(draws: Floats) -> float:
    n = draws.shape[1]
    within = draws.var(1, ddof=1).mean()
    between = n * draws.mean(1).var(ddof=1)
    if within == 0.0:
        return 1.0 if between == 0.0 else float("inf")
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))


def _effective_size(draws: Floats) -> float:
    chains, n = draws.shape
    covariances = _autocovariances(draws)
    within = covariances[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + draws.mean(1).var(ddof=1)
    if total == 0.0:
        return float(chains * n)
    correlations = 1.0 - (within - covariances.mean(0) * n / (n - 1)) / total
    correlations[0] = 1.0
    pairs = correlations[: n - n % 2].reshape(-1, 2).sum(1)
    ends = np.flatnonzero(pairs < 0.0)
    pairs = np.minimum.accumulate(pairs[: ends[0] if len(ends) else len(pairs)])
    time = max(2.0 * pairs.sum() - 1.0, 1.0 / np.log10(chains * n))
    return float(chains * n / time)


def _autocovariances(draws: Floats) -> Floats:
    """Autocovariances (chains, lags) by Fourier transform."""
    n = draws.shape[1]
    away = draws - draws.mean(1, keepdims=True)
    power = np.abs(np.fft.rfft(away, 2 * n)) ** 2
    return np.fft.irfft(power)[:, :n] / n
