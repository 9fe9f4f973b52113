"""One label over a chain of hidden states, against its formula."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from designs import BESIDE, STATES, WIDTH, chain_data, prepared, random_states, table_score
from structlearn._src.graph.wiring import HIDDEN, OUTPUT
from structlearn._src.model.hidden_chain import HiddenChainDesign


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
