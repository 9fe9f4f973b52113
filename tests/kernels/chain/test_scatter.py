"""Sparse features times weights, and back, against dense matrices."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.kernels.chain import scatter
from structlearn._src.text.rows import from_dense, transpose

STATES = 3


def features(seed, ones):
    rng = np.random.default_rng(seed)
    x = np.where(rng.random((6, 5)) < 0.4, rng.normal(size=(6, 5)), 0.0)
    return (x != 0.0).astype(float) if ones else x, rng


def columns_of(x):
    return transpose(from_dense(x))


@pytest.mark.parametrize("ones", [False, True])
def test_all_pairs_are_a_matrix_product_and_its_adjoint(ones):
    x, rng = features(0, ones)
    weights, marginals = rng.normal(size=(5, STATES)), rng.normal(size=(6, STATES))
    rows = from_dense(x)
    pushed, pulled = np.full((6, STATES), np.nan), np.full((5, STATES), np.nan)
    for first, last in ((0, 4), (4, 6)):
        scatter.multiply(*rows[:3], weights, first, last, pushed)
    for first, last in ((0, 2), (2, 5)):
        scatter.multiply(*columns_of(x), marginals, first, last, pulled)
    np.testing.assert_allclose(pushed, x @ weights, atol=1e-12)
    np.testing.assert_allclose(pulled, x.T @ marginals, atol=1e-12)


@pytest.mark.parametrize("ones", [False, True])
def test_chosen_pairs_are_a_product_with_zeros_elsewhere(ones):
    x, rng = features(1, ones)
    kept = rng.random((5, STATES)) < 0.5
    offsets = np.append(0, np.cumsum(kept.sum(axis=1)))
    states = np.nonzero(kept)[1].astype(np.int32)
    weights, marginals = rng.normal(size=len(states)), rng.normal(size=(6, STATES))
    dense = np.zeros((5, STATES))
    dense[kept] = weights
    pushed, pulled = np.full((6, STATES), np.nan), np.full(len(states), np.nan)
    scatter.push_pairs(*from_dense(x)[:3], offsets, states, weights, 0, 6, pushed)
    scatter.pull_pairs(*columns_of(x), offsets, states, marginals, 0, 5, pulled)
    np.testing.assert_allclose(pushed, x @ dense, atol=1e-12)
    np.testing.assert_allclose(pulled, (x.T @ marginals)[kept], atol=1e-12)


def test_pairs_seen_in_training():
    x, rng = features(2, True)
    labels = rng.integers(-1, STATES, 6)
    columns = columns_of(x)
    offsets, none = np.empty(6, np.int64), np.empty(0, np.int32)
    scatter.seen_pairs(*columns[:2], labels, np.full(STATES, -1), offsets, none)
    states = np.empty(offsets[-1], np.int32)
    scatter.seen_pairs(*columns[:2], labels, np.full(STATES, -1), offsets, states)
    for d in range(5):
        seen = sorted({int(s) for s in labels[x[:, d] > 0] if s >= 0})
        assert states[offsets[d] : offsets[d + 1]].tolist() == seen
