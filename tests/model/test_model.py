"""Batches of examples, and parts of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from chain_objectives import KINDS, chains, dense_rows
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.model.model import Examples
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
