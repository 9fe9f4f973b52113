"""Small random graph data, and what designs of models make of them."""

from __future__ import annotations

import itertools

import numpy as np

from structlearn._src.model.model import EdgeSet, GraphData

STATES, BESIDE, WIDTH = 3, 2, 2


def chain_data(sizes=(3, 1, 2), edge_features=False, seed=0):
    """Sequences with features, and edges between neighbours."""
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(sizes))
    pairs = [(t, t + 1) for a, b in itertools.pairwise(offsets) for t in range(a, b - 1)]
    edges = np.array(pairs, np.int64).reshape(-1, 2)
    features = rng.normal(size=(len(edges), 2)) if edge_features else None
    return GraphData(offsets, rng.normal(size=(offsets[-1], WIDTH)), (EdgeSet(edges, features),))


def prepared(design, data, seed=1):
    """Structure, random weights, and the tables these make."""
    rng = np.random.default_rng(seed)
    structure, outputs, beside = design.structure(data, STATES)
    labels = rng.integers(STATES, size=data.n_nodes)
    model = design.model(data, labels, STATES)
    weights = rng.normal(size=model.n_weights)
    tables = model.push(weights, design.inputs(data))
    return structure, outputs, beside, model, weights, tables


def table_score(graphs, tables, states):
    """Sum of the entries of all tables at an assignment."""
    wiring = graphs.wiring
    total = 0.0
    for factors, rows in zip(graphs.groups, tables, strict=True):
        for i, f in enumerate(factors):
            scope = wiring.scopes[wiring.scope_offsets[f] : wiring.scope_offsets[f + 1]]
            own = rows[i if len(rows) > 1 else 0].reshape(wiring.cards[scope])
            total += own[tuple(states[scope])]
    return total


def random_states(graphs, rng):
    return np.array([rng.integers(card) for card in graphs.wiring.cards])
