"""Random numbers by their place in a stream."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.kernels.draw import uniform  # by its name: compiled functions are put there
from structlearn._src.kernels.jit import lean


@lean
def fill_uniforms(seed, first, out):
    """Call what only kernels call."""
    uniform.fill(seed, first, out)


def _splitmix(seed, place):
    """The number of a place, in Python's integers."""
    mask = 2**64 - 1
    z = (seed + (place + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


@pytest.mark.parametrize("seed", [0, 12345, 2**64 - 1])
def test_numbers_are_those_of_the_algorithm(seed):
    out = np.empty(20)
    fill_uniforms(np.uint64(seed), 7, out)
    assert out.tolist() == [_splitmix(seed, 7 + i) for i in range(20)]


def test_first_number_of_the_published_stream():
    """The generator with seed 1234567 begins with 6457827717110365317."""
    out = np.empty(1)
    fill_uniforms(np.uint64(1234567), 0, out)
    assert out[0] == (6457827717110365317 >> 11) * 2.0**-53


def test_numbers_are_spread_evenly():
    out = np.empty(200_000)
    fill_uniforms(np.uint64(3), 0, out)
    assert out.mean() == pytest.approx(0.5, abs=0.003)
    assert out.var() == pytest.approx(1.0 / 12.0, abs=0.001)
    assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) < 0.01
    shares = np.histogram(out, 20, (0.0, 1.0))[0] / len(out)
    np.testing.assert_allclose(shares, 0.05, atol=0.003)
