"""Vectors of solvers in ranges: right, and the same for every number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.common import threads
from structlearn._src.learn import vectors


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "parts of vectors", 10)


@pytest.mark.parametrize("size", [1, 25, 137])
def test_results_are_right_and_do_not_depend_on_threads(size):
    rng = np.random.default_rng(size)
    a, b = rng.normal(size=(2, size))
    found = []
    for n_jobs in (1, 2, 3, 8):
        into = a.copy()
        vectors.add_multiple(into, 0.5, b, n_jobs)
        found.append(
            np.concatenate(
                [
                    [vectors.dot(a, b, n_jobs)],
                    vectors.moved(a, 2.0, b, n_jobs),
                    into,
                ]
            )
        )
    want = np.concatenate([[a @ b], a + 2.0 * b, a + 0.5 * b])
    np.testing.assert_allclose(found[0], want, rtol=1e-12, atol=1e-12)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
