"""Vector operations in ranges: right, and the same for every number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.common import threads, vectors


@pytest.fixture(autouse=True)
def _small_ranges(monkeypatch):
    for kind in ("weights", "entries"):
        monkeypatch.setitem(threads.GRAIN, kind, 10)


@pytest.mark.parametrize("size", [0, 1, 9, 10, 25, 137])
def test_ranges_cover_a_vector(size):
    for n_jobs in (1, 3):
        seen = np.zeros(size, int)

        def work(part, seen=seen):
            seen[part] += 1

        vectors.over(work, size, n_jobs)
        assert (seen == 1).all()


@pytest.mark.parametrize("shape", [(0,), (137,), (30, 4), (5, 40)])
def test_values_are_copied_taken_and_put(shape):
    rng = np.random.default_rng(2)
    size = int(np.prod(shape))
    where = rng.permutation(2 * size)[:size].reshape(shape)
    source = rng.normal(size=2 * size)
    one_row = rng.normal(size=shape[1:])
    want_all, want_row = np.zeros((2, 2 * size))
    want_all[where] = source[where]
    want_row[where] = one_row
    for n_jobs in (1, 3):
        found = vectors.taken(source, where, n_jobs)
        np.testing.assert_array_equal(found, source[where])
        copied = np.empty(shape)
        vectors.copy_into(copied, found, n_jobs)
        np.testing.assert_array_equal(copied, found)
        each, row = np.zeros((2, 2 * size))
        vectors.put(each, where, found, n_jobs)
        np.testing.assert_array_equal(each, want_all)
        vectors.put(row, where, one_row[None], n_jobs)
        np.testing.assert_array_equal(row, want_row)


@pytest.mark.parametrize("size", [0, 1, 137])
def test_vectors_are_filled_and_counted(size):
    for n_jobs in (1, 3):
        np.testing.assert_array_equal(vectors.filled(size, 0.5, n_jobs), np.full(size, 0.5))
        np.testing.assert_array_equal(vectors.counted(size, n_jobs), np.arange(size))
