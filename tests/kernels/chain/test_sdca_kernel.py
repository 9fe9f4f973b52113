"""Dual ascent on one sequence at a time, against errors by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from chain_objectives import KINDS, Dense, chains
from structlearn._src.kernels.chain.sdca import ascend
from structlearn._src.kernels.chain.split import SplitFeatures, SplitWeights
from structlearn._src.learn.chain_arrays import make_errors, make_parts, make_workspace

SMALL = {"n": 5, "longest": 4, "loss": "log", "C": 0.3}


def read_only(*arrays):
    for array in arrays:
        array.flags.writeable = False
    return arrays


def rows_of_weights(dense):
    """Every feature has a row of weights, some of which are not kept."""
    data, K = dense.data, dense.states
    none = np.empty(0, np.int32)
    rows = np.zeros(len(data.rows), np.int64)
    kept = np.zeros((0, K))
    if data.pair_offsets.size:
        kept = dense.spread[: dense.x.shape[1] * K].any(axis=1).reshape(-1, K).astype(float)
    single = read_only(kept, rows, none, none.copy(), np.empty(0))
    return SplitFeatures(data.rows, data.columns, data.values, *single)


def single_weights(dense):
    """No feature has a row: the weights of every position come one by one."""
    K = dense.states
    states, numbers, values, borders = [], [], [], [0]
    for row in dense.x:
        for d in np.flatnonzero(row):
            for k in dense.blocks[d]:
                states.append(int(dense.spread[:, k].argmax()) % K)
                numbers.append(int(k))
                values.append(row[d])
        borders.append(len(states))
    ones = not dense.data.values.size
    arrays = read_only(
        np.zeros(len(borders), np.int64),
        np.empty(0, np.int32),
        np.empty(0) if ones else np.zeros(1),
        np.ones((1, K)),
        np.array(borders),
        np.array(numbers, np.int32),
        np.array(states, np.int32),
        np.array(values),
    )
    return SplitFeatures(*arrays)


def visit(dense, layout, order, weights, shares, nodes, steps):
    """Call the kernel; returns the losses met, all weights spread out, and those one by one."""
    objective = dense.objective
    n_nodes, K = dense.x.shape[1] * dense.states, dense.states
    full = dense.spread @ weights
    singles = weights.copy()
    primal = SplitWeights(full[:n_nodes].reshape(-1, K), singles, full[n_nodes:].reshape(K, K))
    chains_ = objective.chain_arrays
    met = ascend(
        order,
        chains_.data,
        layout,
        make_parts(objective.loss),
        chains_.loss_weights,
        shares,
        primal,
        nodes,
        steps,
        np.zeros(len(chains_.loss_weights)),
        make_errors(chains_),
        make_workspace(chains_),
    )
    return met, full, singles


def slow_visit(dense, order, weights, shares, nodes, steps):
    """The same by enumeration; memories are kept in single precision."""
    weights = weights.copy()
    part, factors = dense.objective.loss.parts[0], dense.objective.chain_arrays.loss_weights
    met = 0.0
    for c in order:
        if factors[c] == 0.0:
            continue
        own = slice(*dense.cuts[c])
        scores, edges, labels, costs = dense.potentials(c, weights)
        given = costs if part.with_cost else np.where(np.isinf(costs), costs, 0.0)
        loss, *errors = naive.chain_loss(scores, edges, labels, part.eps_y, given)
        met += factors[c] * loss
        moved = []
        for memory, error in ((nodes[own], errors[0]), (steps[c], errors[1])):
            old = memory.astype(float)
            memory[:] = old + shares[c] * (error - old)
            moved.append(factors[c] * (old - memory))
        weights += dense.pull(c, *moved)
    return met, weights


def compare(objective, lay_out, scale=0.1):
    dense, rng = Dense(objective), np.random.default_rng(0)
    n, K = objective.n_examples, dense.states
    weights = scale * rng.normal(size=objective.n_weights)
    shares = rng.uniform(0.2, 0.9, n)
    order = np.concatenate([rng.permutation(n), rng.permutation(n)])
    memories = [
        [np.zeros((len(dense.x), K), np.float32), np.zeros((n, K, K), np.float32)] for _ in range(2)
    ]
    met, full, singles = visit(dense, lay_out(dense), order, weights, shares, *memories[0])
    expected, slow = slow_visit(dense, order, weights, shares, *memories[1])
    assert met == pytest.approx(expected, rel=1e-6)
    for mine, theirs in zip(*memories, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-6)
    return full, singles, dense.spread @ slow, slow


@pytest.mark.parametrize("kind", KINDS)
def test_memories_move_a_share_of_the_way_to_the_errors(kind):
    full, _, expected, _ = compare(chains(**SMALL | KINDS[kind]), rows_of_weights)
    np.testing.assert_allclose(full, expected, atol=1e-5)


def test_weights_one_by_one_are_the_same_as_rows_of_them():
    objective = chains(**SMALL | KINDS["pairs"])
    _, singles, _, expected = compare(objective, single_weights)
    n = objective.model.groups[0][0].n_weights
    np.testing.assert_allclose(singles[:n], expected[:n], atol=1e-5)


@pytest.mark.parametrize("loss", [{"loss": "eps", "eps_y": 0.4}, {"loss": "eps", "eps_y": 2.0}])
def test_other_temperatures_and_costs(loss):
    full, _, expected, _ = compare(chains(**SMALL | loss), rows_of_weights)
    np.testing.assert_allclose(full, expected, atol=1e-5)


def test_potentials_far_apart_are_summed_by_logarithms():
    full, _, expected, _ = compare(chains(**SMALL), rows_of_weights, scale=300.0)
    np.testing.assert_allclose(full, expected, rtol=1e-9, atol=1e-5)


def test_without_a_memory_of_transitions_their_table_stays():
    dense = Dense(chains(**SMALL))
    weights = np.random.default_rng(1).normal(size=dense.objective.n_weights)
    nodes, none = np.zeros((len(dense.x), 3), np.float32), np.zeros((0, 3, 3), np.float32)
    full = visit(dense, rows_of_weights(dense), np.arange(5), weights, np.ones(5), nodes, none)[1]
    np.testing.assert_array_equal(full[-9:], weights[-9:])
    assert (full[:-9] != weights[:-9]).all()
