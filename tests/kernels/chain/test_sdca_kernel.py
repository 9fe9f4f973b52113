"""Dual ascent on one sequence at a time, against errors by enumeration."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from chain_objectives import KINDS, Dense, chains
from structlearn._src.common import threads
from structlearn._src.kernels.chain.sdca import (
    Changes,
    Memory,
    ascend,
    ascend_in_threads,
)
from structlearn._src.kernels.chain.split import Moves, SplitFeatures, SplitWeights
from structlearn._src.kernels.team import make_board
from structlearn._src.learn.chain_arrays import make_errors, make_parts, make_workspace
from structlearn._src.learn.chain_layout import ChainLayout

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


def visit(dense, layout, order, weights, shares, memory, size=None, ranges=2):
    """Call the kernel; returns all weights spread out, and those one by one."""
    objective = dense.objective
    n_nodes, K = dense.x.shape[1] * dense.states, dense.states
    full = dense.spread @ weights
    singles = weights.copy()
    primal = SplitWeights(full[:n_nodes].reshape(-1, K), singles, full[n_nodes:].reshape(K, K))
    chains_ = objective.chain_arrays
    given = chains_.data, layout, make_parts(objective.loss), chains_.loss_weights, shares
    own = make_errors(chains_), make_workspace(chains_)
    if size is None:
        ascend(order, *given, primal, memory, *own)
        return full, singles
    batches = np.append(np.arange(0, len(order), size), len(order))
    nothing = np.empty(0, np.int32)
    moves = Moves(nothing, nothing, nothing)
    dealt = ChainLayout(layout, len(weights), moves).dealt(chains_, ranges, 1)
    nodes = np.empty((size, chains_.longest, K))
    changes = Changes(nodes, nodes.reshape(size, -1), np.empty((size, K, K)))
    board = make_board(2 * (len(batches) - 1))
    errors, spaces = (threads.Workspaces(lambda mine=mine: mine) for mine in own)
    with errors.lend(0) as all_errors, spaces.lend(0) as workspaces:
        threads.launch(
            ascend_in_threads, 0, board, order, batches, *given, primal, memory, *dealt, changes,
            all_errors, workspaces,
        )  # fmt: skip
    return full, singles


def slow_visit(dense, order, weights, shares, memory, size=1):
    """The same by enumeration; memories are kept in single precision."""
    weights = weights.copy()
    part, factors = dense.objective.loss.parts[0], dense.objective.chain_arrays.loss_weights
    for start in range(0, len(order), size):
        old_weights = weights.copy()
        for c in order[start : start + size]:
            if factors[c] == 0.0:
                continue
            own = slice(*dense.cuts[c])
            scores, edges, labels, costs = dense.potentials(c, old_weights)
            given = costs if part.with_cost else np.where(np.isinf(costs), costs, 0.0)
            loss, *errors = naive.chain_loss(scores, edges, labels, part.eps_y, given)
            bound = loss - dense.pull(c, *errors) @ old_weights
            memory.bounds[c] += shares[c] * (bound - memory.bounds[c])
            moved = []
            for kept, error in ((memory.nodes[own], errors[0]), (memory.steps[c], errors[1])):
                old = kept.astype(float)
                kept[:] = old + shares[c] * (error - old)
                moved.append(factors[c] * (old - kept))
            weights += dense.pull(c, *moved)
    return weights


def compare(objective, lay_out, scale=0.1, size=None, **options):
    dense, rng = Dense(objective), np.random.default_rng(0)
    n, K = objective.n_examples, dense.states
    weights = scale * rng.normal(size=objective.n_weights)
    shares = rng.uniform(0.2, 0.9, n)
    order = np.concatenate([rng.permutation(n), rng.permutation(n)])
    mine, theirs = (
        Memory(
            np.zeros((len(dense.x), K), np.float32), np.zeros((n, K, K), np.float32), np.zeros(n)
        )
        for _ in range(2)
    )
    layout = lay_out(dense)
    full, singles = visit(dense, layout, order, weights, shares, mine, size, **options)
    slow = slow_visit(dense, order, weights, shares, theirs, size or 1)
    np.testing.assert_allclose(mine.nodes, theirs.nodes, atol=2e-6)
    np.testing.assert_allclose(mine.steps, theirs.steps, atol=2e-6)
    np.testing.assert_allclose(mine.bounds, theirs.bounds, rtol=1e-5, atol=1e-5)
    return full, singles, dense.spread @ slow, slow


@pytest.mark.parametrize("ranges", [1, 2, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_sequences_of_a_batch_start_from_the_same_weights(kind, ranges):
    """Five sequences twice, in batches of 5: none meets itself in a batch."""
    objective = chains(**SMALL | KINDS[kind])
    full, _, expected, _ = compare(objective, rows_of_weights, size=5, ranges=ranges)
    np.testing.assert_allclose(full, expected, atol=1e-5)


def test_single_weights_in_batches():
    objective = chains(**SMALL | KINDS["pairs"])
    _, singles, _, expected = compare(objective, single_weights, size=5, ranges=3)
    n = objective.model.groups[0][0].n_weights
    np.testing.assert_allclose(singles[:n], expected[:n], atol=1e-5)


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
    nodes = np.zeros((len(dense.x), 3), np.float32)
    memory = Memory(nodes, np.zeros((0, 3, 3), np.float32), np.zeros(5))
    full, _ = visit(dense, rows_of_weights(dense), np.arange(5), weights, np.ones(5), memory)
    np.testing.assert_array_equal(full[-9:], weights[-9:])
    assert (full[:-9] != weights[:-9]).all()
