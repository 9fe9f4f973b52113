"""Sparse rows against dense arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from structlearn._src.common.errors import ArgumentError
from structlearn._src.text.rows import Rows, from_csr, from_dense, stack, take, transpose


def dense(rows):
    out = np.zeros((rows.n_rows, rows.n_columns))
    values = rows.values if len(rows.values) else np.ones(len(rows.columns))
    places = np.repeat(np.arange(rows.n_rows), np.diff(rows.offsets))
    np.add.at(out, (places, rows.columns), values)
    return out


def random_array(rng, binary):
    shape = rng.integers(0, 7, size=2)
    values = 1.0 if binary else rng.normal(size=shape)
    return values * (rng.random(shape) < 0.4)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("binary", [False, True])
def test_dense_and_back(seed, binary):
    array = random_array(np.random.default_rng(seed), binary)
    for rows in (from_dense(array), from_csr(scipy.sparse.csr_array(array))):
        assert [a.dtype for a in rows[:3]] == [np.int64, np.int32, np.float64]
        assert len(rows.columns) == np.count_nonzero(array)
        assert len(rows.values) == (0 if binary else len(rows.columns))
        np.testing.assert_array_equal(dense(rows), array)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("binary", [False, True])
def test_transpose_and_take(seed, binary):
    rng = np.random.default_rng(seed)
    array = random_array(rng, binary)
    rows = from_dense(array)
    offsets, places, values = transpose(rows)
    assert places.dtype == np.int32
    np.testing.assert_array_equal(dense(Rows(offsets, places, values, rows.n_rows)), array.T)
    assert all((np.diff(part) > 0).all() for part in np.split(places, offsets[1:-1]))
    which = rng.integers(0, len(array), size=9) if len(array) else []
    np.testing.assert_array_equal(dense(take(rows, which)), array[np.array(which, int)])


@pytest.mark.parametrize("seed", range(10))
def test_stack(seed):
    rng = np.random.default_rng(seed)
    arrays = [
        rng.choice([0.0, 1.0], (n, 4)) * (1.0 if binary else rng.normal(size=(n, 4)))
        for n, binary in zip(rng.integers(0, 4, 5), rng.random(5) < 0.5, strict=True)
    ]
    stacked = stack([from_dense(array) for array in arrays], 4)
    np.testing.assert_array_equal(dense(stacked), np.concatenate(arrays))
    assert [part.dtype for part in stacked[:3]] == [np.int64, np.int32, np.float64]
    assert stack([], 4).n_rows == 0


def test_sparse_input_is_made_canonical_and_left_alone():
    entries = ([1.0, 2.0, 4.0, 0.0], ([0, 0, 0, 1], [2, 0, 2, 1]))
    matrix = scipy.sparse.coo_array(entries, shape=(2, 3)).tocsr()
    raw = scipy.sparse.csr_array(([1, 2, 4], [2, 0, 2], [0, 3, 3]), shape=(2, 3))
    for given in (matrix, raw):
        before = given.data.copy()
        rows = from_csr(given)
        assert rows.columns.tolist() == [0, 2]
        assert rows.values.tolist() == [2.0, 5.0]
        np.testing.assert_array_equal(given.data, before)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_features_must_be_finite(bad):
    array = np.eye(3)
    array[1, 2] = bad
    for call in (from_dense, lambda a: from_csr(scipy.sparse.csr_array(a))):
        with pytest.raises(ArgumentError, match="row 1, column 2"):
            call(array)


def test_too_many_columns_are_refused():
    with pytest.raises(ArgumentError, match="columns"):
        from_csr(scipy.sparse.csr_array((1, 2**31)))
