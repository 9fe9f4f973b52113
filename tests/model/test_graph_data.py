"""Nodes and edges of many examples in one, against one example at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.model.graph_data import EdgeSet, GraphData, shift_edges

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
