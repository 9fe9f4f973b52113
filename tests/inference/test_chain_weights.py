"""Marginals of chains that count with weights."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn._src.common import threads
from structlearn._src.inference.chain_batch import Chains


def drawn(seed, shared, wide):
    """Chains of several lengths, some with hard constraints or wide ranges, one impossible."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, 12)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    total, states = offsets[-1], int(rng.integers(1, 6))
    nodes = rng.normal(0.0, 400.0 if wide else 1.5, (total, states))
    edges = rng.normal(size=(1 if shared else total - 12, states, states))
    nodes[rng.random(nodes.shape) < 0.1] = -np.inf
    nodes[offsets[4]] = -np.inf
    return nodes, edges, offsets, rng.uniform(-1.0, 2.0, 12)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("pairs", ["none", "each", "sum"])
def test_weights_multiply_the_marginals_of_their_chain(shared, wide, pairs, monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "chains", 20)  # several ranges
    for seed in range(5):
        nodes, edges, offsets, weights = drawn(seed, shared, wide)
        chains = Chains(nodes, edges, offsets)
        values, beliefs, found = chains.marginals(pairs, weights)
        plain_values, plain, each = chains.marginals("each")
        np.testing.assert_array_equal(values, plain_values)
        lengths = np.diff(offsets)
        np.testing.assert_allclose(
            beliefs, plain * np.repeat(weights, lengths)[:, None], rtol=1e-12, atol=1e-15
        )
        expected = each * np.repeat(weights, lengths - 1)[:, None, None]
        if pairs == "none":
            expected = expected[:0]
        elif pairs == "sum":
            expected = expected.sum(axis=0, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_weights_of_zero_and_of_one():
    nodes, edges, offsets, _ = drawn(1, True, False)
    chains = Chains(nodes, edges, offsets)
    plain = chains.marginals("sum")
    for ours, theirs in zip(plain, chains.marginals("sum", np.ones(12)), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    _, beliefs, pairs = chains.marginals("sum", np.zeros(12))
    assert not beliefs.any()
    assert not pairs.any()


def test_the_number_of_threads_does_not_show(monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "chains", 20)
    for shared in (True, False):
        nodes, edges, offsets, weights = drawn(2, shared, False)
        one, three = (Chains(nodes, edges, offsets, n).marginals("sum", weights) for n in (1, 3))
        for ours, theirs in zip(one, three, strict=True):
            np.testing.assert_array_equal(ours, theirs)
