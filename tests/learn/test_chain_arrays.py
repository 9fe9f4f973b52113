"""Objectives as plain arrays: what kernels read, and the way back."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from chain_objectives import KINDS, Dense, chains
from structlearn._src.learn.chain_arrays import make_errors, make_parts, make_workspace
from structlearn._src.learn.chain_layout import cut_by_entries
from structlearn._src.learn.loss import make_loss
from structlearn._src.learn.structured_objective import chain_refusal
from structlearn._src.model.model import Examples, LinearModel
from structlearn._src.model.term import LinearTerm, TableTerm


@pytest.mark.parametrize("kind", KINDS)
def test_weights_come_back_from_kernels_as_they_went(kind):
    objective = chains(n=5, **KINDS[kind])
    flat = objective.chain_arrays
    weights = np.random.default_rng(0).normal(size=objective.n_weights)
    inner = flat.to_kernel(weights)
    back = weights if np.shares_memory(inner, weights) else np.full(len(weights), np.nan)
    expected = weights + 1.0
    inner += 1.0
    flat.from_kernel(back, inner)
    assert len(inner) == flat.n_weights
    np.testing.assert_array_equal(back, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_see_every_weight_at_its_feature_and_state(kind):
    objective = chains(n=5, **KINDS[kind])
    flat, dense = objective.chain_arrays, Dense(objective)
    K, weights = flat.states, np.random.default_rng(1).normal(size=objective.n_weights)
    inner, full = flat.to_kernel(weights), dense.spread @ weights
    n_nodes = dense.x.shape[1] * K
    np.testing.assert_array_equal(flat.table(inner).ravel(), full[n_nodes:])
    assert flat.data.learnt.ravel().tolist() == dense.spread[n_nodes:].any(axis=1).tolist()
    if not flat.data.pair_offsets.size:
        np.testing.assert_array_equal(inner, full)
        return
    for d in range(dense.x.shape[1]):
        own = slice(flat.data.pair_offsets[d], flat.data.pair_offsets[d + 1])
        kept = flat.data.kept[own] > 0
        found = np.zeros(K)
        found[flat.data.pair_states[own][kept]] = inner[own][kept]
        np.testing.assert_array_equal(found, full[d * K : (d + 1) * K])
        assert not inner[own][~kept].any()


def test_a_view_is_enough_where_all_pairs_have_weights():
    objective = chains(n=5)
    weights = np.zeros(objective.n_weights)
    objective.chain_arrays.to_kernel(weights)[:] = 1.0
    assert weights.sum() == 12.0 + 9.0


def test_losses_are_weighted_by_c_and_by_example():
    objective = chains(n=5, C=0.25, weighted=True)
    expected = 0.25 * objective.examples.weights
    np.testing.assert_array_equal(objective.chain_arrays.loss_weights, expected)


def test_arrays_are_read_only_and_bars_forbid():
    data = chains(n=5, **KINDS["bars"]).chain_arrays.data
    assert not any(array.flags.writeable for array in data[:-1])
    assert np.argwhere(np.isinf(data.bars)).tolist() == [[0, 1]]
    assert np.argwhere(np.isinf(data.end_bars)).tolist() == [[0, 1], [1, 0]]
    assert data.mean is False
    assert chains(n=5, **KINDS["mean"]).chain_arrays.data.mean


def test_workspaces_fit_the_longest_sequence_and_share_memory():
    flat = chains(n=5, longest=4).chain_arrays
    work, errors = make_workspace(flat), make_errors(flat)
    assert flat.longest == 4
    assert work.nodes.shape == errors.nodes.shape == (4, 3)
    work.soft[:] = 7.0
    work.tables[0] = 5.0
    assert (work.flat_soft == 7.0).all()
    assert (work.flat_table == 5.0).all()
    assert np.shares_memory(work.bits, work.integers)
    assert len(work.bits) >= max(work.soft.size, work.tables[0].size)
    assert not errors.edges.any()


def test_parts_of_a_loss_are_arrays():
    parts = make_parts(make_loss("hybrid", alpha=0.25))
    assert parts.shares.tolist() == [0.25, 0.75]
    assert parts.eps.tolist() == [1.0, 0.0]
    assert parts.with_cost.tolist() == [False, True]


def refusal(objective, examples=None, groups=None):
    model = objective.model if groups is None else LinearModel(groups)
    return chain_refusal(replace(objective, model=model, examples=examples or objective.examples))


@pytest.mark.parametrize("kind", KINDS)
def test_plain_sequences_are_taken(kind):
    assert refusal(chains(n=5, **KINDS[kind])) == ""


def test_what_kernels_cannot_read_is_refused_with_a_reason():
    objective = chains(n=5)
    examples = objective.examples
    labels = examples.labels.copy()
    labels[0] = -1
    some = Examples(examples.structure, examples.inputs, labels, examples.weights)
    graphs = replace(examples, structure=examples.structure.graphs())
    nodes, table = objective.model.groups
    assert "hidden" in refusal(objective, some)
    assert "sequences" in refusal(objective, graphs)
    assert "one kind of features" in refusal(objective, groups=(nodes * 2, table))
    assert "one kind of features" in refusal(objective, groups=((TableTerm(3),), table))
    assert "transitions without features" in refusal(objective, groups=(nodes, table * 2))
    assert "at all positions" in refusal(objective, groups=(nodes, (LinearTerm(2, 9),)))
    assert "weight of its own" in refusal(objective, groups=(nodes, (TableTerm.potts(3),)))
    idle = TableTerm(9, (0, 2, *[-1] * 7))
    assert "weight of its own" in refusal(objective, groups=(nodes, (idle,)))


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_ranges_of_weights_have_about_as_many_entries_each(n_jobs):
    """Enough entries for several ranges of them."""
    rng = np.random.default_rng(0)
    entries = np.minimum(rng.geometric(0.001, size=2_500_000), 9_000).astype(np.int32)
    borders = cut_by_entries(entries, 9_001, 4, n_jobs)
    inside = [np.sum((entries >= a) & (entries < b)) for a, b in itertools.pairwise(borders)]
    assert sum(inside) == len(entries)
    np.testing.assert_allclose(inside, len(entries) / 4, rtol=0.01)
