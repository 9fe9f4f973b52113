"""Batches of examples, and parts of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chain_objectives import KINDS, chains, dense_rows
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.model.model import EdgeSet, Examples, GraphData, shift_edges
from structlearn._src.model.term import Sparse


def node_features(examples):
    given = examples.inputs[0][0]
    return dense_rows(given.rows) if isinstance(given, Sparse) else given


@pytest.mark.parametrize("kind", KINDS)
def test_some_examples_keep_their_own_features_labels_and_weights(kind):
    whole = chains(n=6, **KINDS[kind]).examples
    which = np.array([4, 1, 1])
    part = whole.take(which)
    assert part.n_examples == 3
    cuts = list(itertools.pairwise(whole.structure.offsets))
    places = np.concatenate([np.arange(*cuts[i]) for i in which])
    np.testing.assert_array_equal(part.labels, whole.labels[places])
    np.testing.assert_array_equal(node_features(part), node_features(whole)[places])
    np.testing.assert_array_equal(part.weights, whole.weights[which])
    assert part.inputs[1:] == whole.inputs[1:]  # tables have none
    assert part.structure.forbidden is whole.structure.forbidden


def hidden_in(examples, where):
    labels = examples.labels.copy()
    labels[where] = -1
    return Examples(examples.structure, examples.inputs, labels, examples.weights)


def test_two_temperatures_need_graphs_only_where_something_is_hidden():
    whole = chains(n=4).examples
    assert not whole.hidden
    assert whole.at_two_temperatures() is whole
    some = hidden_in(whole, [0, 3])
    assert some.hidden
    graphs = some.at_two_temperatures()
    assert isinstance(some.structure, Sequences)
    assert isinstance(graphs.structure, Graphs)
    assert graphs.at_two_temperatures() is graphs
    assert graphs.n_examples == 4
    np.testing.assert_array_equal(graphs.structure.variables, whole.structure.offsets)


@pytest.mark.parametrize("kind", ["dense", "no edges"])
def test_graphs_of_sequences_have_a_group_for_every_input(kind):
    some = hidden_in(chains(n=4, **KINDS[kind]).examples, [0])
    graphs = some.at_two_temperatures()
    assert len(graphs.structure.groups) == len(graphs.inputs)
    assert len(graphs.structure.groups[0]) == len(some.labels)


# ---- nodes and edges of many examples in one, against one example at a time --------------


SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=6)


def random_data(sizes, seed=0):
    """Examples with random edges, each counted within its example too."""
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(sizes))
    local = [rng.integers(0, n, (int(rng.integers(0, 4)), 2)) for n in sizes]
    pairs = shift_edges(local, offsets)
    return GraphData(offsets, None, (EdgeSet(pairs),)), local


@settings(deadline=None)
@given(SIZES)
def test_nodes_are_counted_within_their_example(sizes):
    data, _ = random_data(sizes)
    assert data.n_examples == len(sizes)
    assert data.n_nodes == sum(sizes)
    assert data.sizes.tolist() == sizes
    assert data.positions.tolist() == [i for n in sizes for i in range(n)]


@settings(deadline=None)
@given(SIZES, st.integers(0, 99))
def test_edges_know_their_example_and_their_place_in_it(sizes, seed):
    data, local = random_data(sizes, seed)
    pairs = data.edge_sets[0].pairs
    owners = [i for i, own in enumerate(local) for _ in own]
    assert data.owners(pairs).tolist() == owners
    assert data.edge_positions(pairs).tolist() == [j for own in local for j in range(len(own))]
    within = pairs - data.offsets[owners][:, None] if len(pairs) else pairs
    assert within.tolist() == [edge.tolist() for own in local for edge in own]


def test_values_of_nodes_are_cut_by_example():
    data, _ = random_data([2, 3])
    values = np.arange(10).reshape(5, 2)
    first, second = data.cut(values)
    assert first.tolist() == [[0, 1], [2, 3]]
    assert second.shape == (3, 2)
    assert np.shares_memory(first, values)


def test_examples_with_a_form_get_it_back():
    data = random_data([6, 2])[0]._replace(forms=[(2, 3), (1, 2)])
    grid, row = data.cut(np.arange(8))
    assert grid.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert row.tolist() == [[6, 7]]
    assert data.cut(np.zeros((8, 4)))[0].shape == (2, 3, 4)


def test_forms_must_be_as_many_as_examples():
    data = random_data([6, 2])[0]._replace(forms=[(2, 3)])
    with pytest.raises(ValueError, match="zip"):
        data.cut(np.arange(8))
