"""Models over nodes and edges, against sums node by node and edge by edge."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from designs import BESIDE, STATES, WIDTH, chain_data, prepared, random_states, table_score
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Graphs, Sequences
from structlearn._src.graph.wiring import HIDDEN, OUTPUT
from structlearn._src.model.design import HiddenChainDesign, PairwiseDesign
from structlearn._src.model.model import EdgeSet
from structlearn._src.model.term import Sparse
from structlearn._src.text.labels import Forbidden
from structlearn._src.text.rows import from_dense


def edge_table(kind, weights, states):
    """Weights of pairs as a table, by what a kind of edges means."""
    table = np.zeros((states, states))
    unordered = list(itertools.combinations_with_replacement(range(states), 2))
    for a, b in itertools.product(range(states), repeat=2):
        if kind == "table":
            table[a, b] = weights[a * states + b]
        elif kind == "symmetric":
            table[a, b] = weights[unordered.index((min(a, b), max(a, b)))]
        elif kind == "potts":
            table[a, b] = weights[0] * (a == b)
    return table


def pairwise_score(design, data, model, weights, y, h):
    """Score of labels and hidden states, node by node and edge by edge."""
    own = [[weights[block] for block in blocks] for blocks in model.blocks]
    nodes = own[0][0].reshape(WIDTH, STATES)
    total = sum(x @ nodes[:, s] for x, s in zip(data.features, y, strict=True))
    linked, size = (h, BESIDE) if design.hidden == "layer" else (y, STATES)
    last = len(own) - (2 if design.hidden else 0)
    for parts, links in zip(own[1:last], design.links(data), strict=True):
        parts = list(parts)
        table = np.zeros((size, size))
        if design.edges != "features":
            table = edge_table(design.edges, parts.pop(0), size)
        for i, (a, b) in enumerate(links.pairs):
            total += table[linked[a], linked[b]]
            if links.features is not None:
                by_feature = parts[0].reshape(-1, size, size)
                total += links.features[i] @ by_feature[:, linked[a], linked[b]]
    if design.hidden:
        beside, pairs = own[-2][0].reshape(WIDTH, BESIDE), own[-1][0].reshape(STATES, BESIDE)
        total += sum(x @ beside[:, s] for x, s in zip(data.features, h, strict=True))
        total += sum(pairs[a, b] for a, b in zip(y, h, strict=True))
    return total


@pytest.mark.parametrize("hidden", [None, "node", "layer"])
@pytest.mark.parametrize(
    ("edges", "edge_features"),
    [
        ("features", True),
        *itertools.product(["table", "symmetric", "potts", "none"], [False, True]),
    ],
)
def test_nodes_and_edges_have_the_score_of_their_weights(edges, edge_features, hidden):
    design = PairwiseDesign(edges=edges, hidden=hidden, hidden_states=BESIDE)
    data = chain_data(edge_features=edge_features)
    graphs, outputs, beside, model, weights, tables = prepared(design, data)
    assert isinstance(graphs, Graphs)
    rng = np.random.default_rng(3)
    for _ in range(5):
        states = random_states(graphs, rng)
        h = None if beside is None else states[beside]
        expected = pairwise_score(design, data, model, weights, states[outputs], h)
        assert table_score(graphs, tables, states) == pytest.approx(expected)
    assert design.sizes(STATES, len(tables)) == tuple(table.shape[1] for table in tables)


@pytest.mark.parametrize("edges", ["table", "symmetric", "potts", "features", "none"])
def test_transitions_are_the_tables_of_edges(edges):
    design = PairwiseDesign(edges=edges)
    data = chain_data(edge_features=edges == "features")
    *_, model, weights, _ = prepared(design, data)
    found = design.transitions(model, weights, STATES)
    if edges in ("features", "none"):
        assert found is None
    else:
        expected = edge_table(edges, weights[model.blocks[1][0]], STATES)
        np.testing.assert_array_equal(found, expected)


def test_several_kinds_of_edges_have_a_table_each():
    data = chain_data()
    data = data._replace(edge_sets=data.edge_sets * 2)
    design = PairwiseDesign()
    *_, model, weights, _ = prepared(design, data)
    found = design.transitions(model, weights, STATES)
    assert found.shape == (2, STATES, STATES)
    np.testing.assert_array_equal(found.ravel(), weights[model.blocks[1][0].start :])


def test_sequences_without_hidden_states_stay_sequences():
    data = chain_data()
    design = PairwiseDesign(chain=True)
    structure, outputs, beside = design.structure(data, STATES)
    assert isinstance(structure, Sequences)
    assert structure.offsets is data.offsets
    assert (outputs, beside) == (slice(None), None)


def test_only_pairs_seen_in_training_have_weights_where_features_are_sparse():
    data = chain_data()
    some = np.where(np.random.default_rng(4).random(data.features.shape) < 0.6, 1.0, 0.0)
    data = data._replace(features=Sparse(from_dense(some)))
    labels = np.array([0, 1, 1, 2, 0, 1])
    model = PairwiseDesign(space="sparse").model(data, labels, STATES)
    nodes, edges = model.groups[0][0], model.groups[1][0]
    seen = [(d, s) for d in range(WIDTH) for s in range(STATES) if some[labels == s, d].any()]
    owners = np.repeat(np.arange(WIDTH), np.diff(nodes.offsets))
    assert list(zip(owners.tolist(), nodes.states.tolist(), strict=True)) == seen
    steps = {(0, 1), (1, 1)}  # of the pairs (0, 1), (1, 1) and, in the last sequence, (0, 1)
    kept = {divmod(entry, STATES) for entry, tie in enumerate(edges.ties) if tie >= 0}
    assert kept == steps
    with pytest.raises(ArgumentError, match="features='sparse'"):
        PairwiseDesign(space="sparse").model(chain_data(), labels, STATES)


# ---- weights by position -----------------------------------------------------------------


def test_untied_weights_belong_to_positions():
    data = chain_data((3, 3))
    design = PairwiseDesign(tied=False).fitted_to(data)
    graphs, _, _, model, weights, tables = prepared(design, data)
    nodes = weights[model.blocks[0][0]].reshape(3, WIDTH, STATES)
    edges = weights[model.blocks[1][0]].reshape(2, STATES, STATES)
    rng = np.random.default_rng(5)
    for _ in range(10):
        y = random_states(graphs, rng)
        expected = 0.0
        for c, t in itertools.product(range(2), range(3)):
            expected += data.features[3 * c + t] @ nodes[t, :, y[3 * c + t]]
            if t:
                expected += edges[t - 1, y[3 * c + t - 1], y[3 * c + t]]
        assert table_score(graphs, tables, y) == pytest.approx(expected)
    np.testing.assert_array_equal(design.transitions(model, weights, STATES), edges)


def test_untied_examples_must_be_alike():
    with pytest.raises(ArgumentError, match="tied=False"):
        PairwiseDesign(tied=False).fitted_to(chain_data((3, 2)))
    design = PairwiseDesign(tied=False).fitted_to(chain_data((3, 3)))
    with pytest.raises(ArgumentError, match="tied=False"):
        design.structure(chain_data((2, 2)), STATES)
    other = chain_data((3, 3))
    turned = other.edge_sets[0].pairs[:, ::-1]
    with pytest.raises(ArgumentError, match=r"tied=False.*edges"):
        design.structure(other._replace(edge_sets=(EdgeSet(turned),)), STATES)
    mixed = np.array([[0, 1], [1, 2], [3, 4], [3, 5]])
    with pytest.raises(ArgumentError, match=r"tied=False.*edges"):
        PairwiseDesign(tied=False).fitted_to(other._replace(edge_sets=(EdgeSet(mixed),)))


# ---- forbidden labels --------------------------------------------------------------------


@pytest.mark.parametrize("hidden", ["node", "layer"])
def test_forbidden_labels_are_impossible_beside_hidden_states_too(hidden):
    first, last = np.array([False, True, False]), np.array([True, False, False])
    steps = np.zeros((STATES, STATES), bool)
    steps[2, 1] = True
    never = Forbidden(first, last, steps)
    design = PairwiseDesign(hidden=hidden, hidden_states=BESIDE, forbidden=never, chain=True)
    data = chain_data((3, 1))
    graphs, outputs, _ = design.structure(data, STATES)
    assert len(graphs.groups) == 4  # what has weights, whatever else there is
    wiring = graphs.wiring
    states = np.zeros(wiring.n_variables, np.int64)
    for y in naive.assignments([STATES] * 4):
        states[outputs] = y
        places = [
            wiring.table_offsets[f]
            + sum(
                wiring.strides[s] * states[wiring.scopes[s]]
                for s in range(wiring.scope_offsets[f], wiring.scope_offsets[f + 1])
            )
            for f in range(wiring.n_factors)
        ]
        chain, single = y[:3], y[3]
        bad = first[chain[0]] or last[chain[-1]] or first[single] or last[single]
        bad = bad or any(steps[pair] for pair in itertools.pairwise(chain))
        total = graphs.forbidden_potentials[places].sum()
        assert total == (-np.inf if bad else 0.0)


# ---- one label over a chain of hidden states, against its formula ------------------------


def hidden_chain_score(data, weights, y, h):
    """The formula of the hidden conditional random field."""
    sizes = WIDTH * BESIDE, STATES * BESIDE, STATES * BESIDE**2, STATES
    v, b_pairs, a, b = np.split(weights, np.cumsum(sizes)[:-1])
    v = v.reshape(WIDTH, BESIDE)
    b_pairs = b_pairs.reshape(STATES, BESIDE)
    a = a.reshape(STATES, BESIDE, BESIDE)
    total = sum(b[label] for label in y)
    for c, (start, stop) in enumerate(itertools.pairwise(data.offsets)):
        for t in range(start, stop):
            total += data.features[t] @ v[:, h[t]] + b_pairs[y[c], h[t]]
            if t > start:
                total += a[y[c], h[t - 1], h[t]]
    return total


def test_a_hidden_chain_has_the_score_of_its_formula():
    design, data = HiddenChainDesign(BESIDE), chain_data()
    graphs, label, hidden, _, weights, tables = prepared(design, data)
    assert graphs.wiring.roles[label].tolist() == [OUTPUT] * 3
    assert graphs.wiring.roles[hidden].tolist() == [HIDDEN] * 6
    assert sorted([*label, *hidden]) == list(range(9))
    assert np.diff(graphs.variables).tolist() == [4, 2, 3]
    rng = np.random.default_rng(2)
    for _ in range(20):
        states = random_states(graphs, rng)
        expected = hidden_chain_score(data, weights, states[label], states[hidden])
        assert table_score(graphs, tables, states) == pytest.approx(expected)


def test_a_hidden_chain_tells_its_sizes_and_transitions():
    design, data = HiddenChainDesign(BESIDE), chain_data()
    _, _, _, model, weights, tables = prepared(design, data)
    assert design.sizes(STATES, 4) == tuple(table.shape[1] for table in tables)
    found = design.transitions(model, weights, STATES)
    np.testing.assert_array_equal(found.ravel(), weights[model.blocks[2][0]])
    assert found.shape == (STATES, BESIDE, BESIDE)
    assert (design.hidden, design.forbidden, design.tied) == ("layer", None, True)
