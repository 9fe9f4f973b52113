from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.sample.diagnostics import effective_size, r_hat


def _autoregressive(rho, shape, rng):
    x = np.zeros(shape)
    for t in range(1, shape[1]):
        x[:, t] = rho * x[:, t - 1] + rng.normal(size=shape[0])
    return x[:, 50:]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_effective_size_of_autoregressive_chains(rho):
    draws = _autoregressive(rho, (4, 4050), np.random.default_rng(1))
    expected = draws.size * (1 - rho) / (1 + rho)
    assert effective_size(draws) == pytest.approx(expected, rel=0.15)
    assert r_hat(draws) < 1.01


def test_chains_that_disagree_are_found():
    rng = np.random.default_rng(2)
    draws = rng.normal(size=(4, 500))
    places = draws + np.array([0, 0, 0, 2.0])[:, None]
    widths = draws * np.array([1, 1, 1, 5.0])[:, None]
    drifting = draws + np.linspace(0, 3, 500)
    for wrong in (places, widths, drifting):
        assert r_hat(wrong) > 1.1
    assert effective_size(places) < 50


def test_few_or_constant_draws():
    assert np.isnan(r_hat(np.zeros((2, 3))))
    assert np.isnan(effective_size(np.zeros((2, 3))))
    assert r_hat(np.ones((2, 10))) == 1.0
    assert effective_size(np.ones((2, 10))) == 20.0
    assert r_hat(np.repeat([[0.0], [1.0]], 10, axis=1)) == np.inf
