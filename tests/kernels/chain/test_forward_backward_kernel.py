"""Passes over batches of chains, against all their labellings one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structlearn._src.kernels.chain import forward_backward, viterbi

LENGTHS = (1, 3, 2, 4)


def batch(seed, states=3, shared=True, scale=1.0, closed=0.0):
    """Random potentials of a few chains, some of them forbidden."""
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(LENGTHS))
    n_edges = 1 if shared else offsets[-1] - len(LENGTHS)
    nodes = scale * rng.normal(size=(offsets[-1], states))
    edges = scale * rng.normal(size=(n_edges, states, states))
    nodes[rng.random(nodes.shape) < closed] = -np.inf
    edges[rng.random(edges.shape) < closed] = -np.inf
    return nodes, edges, offsets


def paths(nodes, edges, offsets, c):
    """All labellings of one chain with their scores."""
    start, stop = offsets[c], offsets[c + 1]
    found = {}
    for labels in itertools.product(range(nodes.shape[1]), repeat=int(stop - start)):
        score = sum(nodes[start + t, s] for t, s in enumerate(labels))
        for t, pair in enumerate(itertools.pairwise(labels)):
            score += edges[0 if len(edges) == 1 else start - c + t][pair]
        found[labels] = score
    return found


def naive_sums(nodes, edges, offsets, weights):
    """Log partition functions, node marginals, and one table of edge marginals per edge."""
    values = np.full(len(LENGTHS), -np.inf)
    soft = np.zeros(nodes.shape)
    pairs = np.zeros((offsets[-1] - len(LENGTHS), *edges.shape[1:]))
    for c in range(len(LENGTHS)):
        found = paths(nodes, edges, offsets, c)
        top = max(found.values())
        if top == -np.inf:
            continue
        total = sum(np.exp(score - top) for score in found.values())
        values[c] = top + np.log(total)
        for labels, score in found.items():
            share = weights[c] * np.exp(score - top) / total
            for t, s in enumerate(labels):
                soft[offsets[c] + t, s] += share
            for t, pair in enumerate(itertools.pairwise(labels)):
                pairs[offsets[c] - c + t][pair] += share
    return values, soft, pairs


def sums(nodes, edges, offsets, weights, n_pairs, logs=False):
    """What the kernels find, by logarithms alone or only where they ask for these."""
    soft, tops = np.empty(nodes.shape), np.empty(len(nodes))
    forward_backward.shift(nodes, soft, tops)
    rows, table_tops = edges.reshape(-1, edges.shape[-1]), np.empty(len(edges))
    tables = np.empty(rows.shape)
    forward_backward.shift(rows, tables, table_tops)
    soft, tables = np.exp(soft), np.exp(tables).reshape(edges.shape)
    alpha, scales = np.empty(nodes.shape), np.empty(len(nodes))
    values = np.empty(len(LENGTHS))
    forward_backward.forward(offsets, soft, tops, tables, table_tops, alpha, scales, values)
    need = np.isnan(values) | logs
    forward_backward.forward_log(nodes, edges, offsets, alpha, scales, need, values)
    pairs = np.zeros((n_pairs, *edges.shape[1:]))
    rest = alpha, scales, values, need, weights, pairs
    forward_backward.backward(offsets, soft, tables, *rest)
    forward_backward.backward_log(nodes, edges, offsets, soft, *rest)
    return values, soft, pairs, need


@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("closed", [0.0, 0.3])
def test_sums_over_all_labellings(shared, closed, logs):
    for seed in range(4):
        given = batch(seed, states=3 + 2 * (seed % 2), shared=shared, closed=closed)
        weights = np.random.default_rng(seed).random(len(LENGTHS)) + 0.5
        truth = naive_sums(*given, weights)
        for n_pairs in (0, 1, len(truth[2])):
            # One table may only be asked for as a sum where all edges share it.
            values, soft, pairs, _ = sums(*given, weights, n_pairs, logs)
            np.testing.assert_allclose(values, truth[0], rtol=1e-12)
            np.testing.assert_allclose(soft, truth[1], atol=1e-12)
            expected = {0: truth[2][:0], 1: truth[2].sum(axis=0)[None]}.get(n_pairs, truth[2])
            np.testing.assert_allclose(pairs, expected, atol=1e-12)


def test_wide_potentials_ask_for_logarithms():
    given = batch(0, scale=200.0)
    weights = np.ones(len(LENGTHS))
    values, soft, pairs, need = sums(*given, weights, 1)
    truth = naive_sums(*given, weights)
    assert need.any()
    np.testing.assert_allclose(values, truth[0], rtol=1e-12)
    np.testing.assert_allclose(soft, truth[1], atol=1e-9)
    np.testing.assert_allclose(pairs, truth[2].sum(axis=0)[None], atol=1e-9)


def test_impossible_chains_have_no_value_and_no_marginals():
    nodes, edges, offsets = batch(1)
    nodes[offsets[1]] = -np.inf
    for logs in (False, True):
        values, soft, pairs, _ = sums(nodes, edges, offsets, np.ones(len(LENGTHS)), 1, logs)
        assert values[1] == -np.inf
        assert np.isfinite(np.delete(values, 1)).all()
        assert not soft[offsets[1] : offsets[2]].any()
        assert pairs.sum() == pytest.approx(sum(LENGTHS) - len(LENGTHS) - (LENGTHS[1] - 1))


def test_draws_have_the_probabilities_of_labellings():
    nodes, edges, offsets = batch(2)
    chain = offsets[1:3] - offsets[1]
    own = np.ascontiguousarray(nodes[offsets[1] : offsets[2]])
    alpha, scales, values = np.empty(own.shape), np.empty(len(own)), np.empty(1)
    logs = np.ones(1, np.bool_)
    forward_backward.forward_log(own, edges, chain, alpha, scales, logs, values)
    n = 20_000
    labels = np.empty((n, len(own)), np.int64)
    uniforms = np.random.default_rng(3).random(labels.shape)
    forward_backward.draw(chain, edges, np.exp(edges), alpha, values, logs, uniforms, labels)
    found = paths(nodes, edges, offsets, 1)
    for path, score in found.items():
        share = np.exp(score - values[0])
        seen = float((labels == path).all(axis=1).mean())
        assert abs(seen - share) < 5.0 * np.sqrt(share / n) + 1e-3


@pytest.mark.parametrize("shared", [False, True])
def test_best_paths_and_their_followers(shared):
    for seed in range(4):
        nodes, edges, offsets = batch(seed, shared=shared, closed=0.2)
        values, labels = np.empty(len(LENGTHS)), np.empty(len(nodes), np.int64)
        viterbi.max_product(nodes, edges, offsets, values, labels)
        k = 4
        scores, rows = np.empty((len(LENGTHS), k)), np.empty((k, len(nodes)), np.int64)
        viterbi.k_best(nodes, edges, offsets, scores, rows)
        for c in range(len(LENGTHS)):
            found = paths(nodes, edges, offsets, c)
            best = sorted(found.values(), reverse=True)[:k]
            best += [-np.inf] * (k - len(best))
            np.testing.assert_allclose(values[c], best[0])
            np.testing.assert_allclose(scores[c], best)
            own = slice(offsets[c], offsets[c + 1])
            for score, row in zip(best, rows, strict=True):
                if score == -np.inf:
                    assert (row[own] == -1).all()
                else:
                    assert found[tuple(row[own])] == pytest.approx(score)
            if best[0] > -np.inf:
                assert found[tuple(labels[own])] == pytest.approx(best[0])
