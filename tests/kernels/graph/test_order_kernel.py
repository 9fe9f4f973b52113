"""Elimination orders and the tournament behind them, against plain Python."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import naive
from structlearn import grid
from structlearn._src.inference.order import cutset, find_order
from structlearn._src.kernels.graph import tournament


def graphs(seed, n=10):
    rng = np.random.default_rng(seed)
    return [naive.random_graph(rng, 7, min_card=2) for _ in range(n)]


def adjacency(graph):
    near = {v: set() for v in range(graph.n_variables)}
    for f in range(graph.n_factors):
        for a, b in itertools.permutations(graph.scope(f).tolist(), 2):
            near[a].add(b)
    return near


def test_separators_are_the_neighbours_at_that_time():
    for graph in graphs(1):
        found = find_order(graph.wiring, np.zeros(graph.n_variables, np.bool_))
        near = adjacency(graph)
        widest, largest, total = 0, 0.0, 0.0
        for k, v in enumerate(found.variables.tolist()):
            start, stop = found.separator_offsets[k : k + 2]
            left = near.pop(v)
            assert set(found.separators[start:stop].tolist()) == left
            for u in left:
                near[u] = (near[u] | left) - {u, v}
            size = math.prod(graph.cards[[v, *left]].tolist())
            if size > largest:
                widest, largest = len(left), size
            total += size
        assert found.complete
        assert found.width == widest  # of the largest table, which need not have most variables
        assert found.largest == pytest.approx(largest)
        assert found.total == pytest.approx(total)


def test_some_come_after_all_others():
    rng = np.random.default_rng(2)
    for graph in graphs(2):
        later = rng.random(graph.n_variables) < 0.5
        found = find_order(graph.wiring, later)
        assert (np.diff(later[found.variables].astype(int)) >= 0).all()


def test_trees_need_no_more_than_their_factors():
    rng = np.random.default_rng(3)
    for _ in range(10):
        graph = naive.random_graph(rng, 8, kind="tree", min_card=2)
        found = find_order(graph.wiring, np.zeros(8, np.bool_))
        tables = np.diff(graph.wiring.table_offsets)
        assert found.largest == pytest.approx(tables.max())


def test_an_order_beyond_the_limit_is_not_complete():
    graph = grid(np.zeros((5, 5, 3)), np.zeros((3, 3)))
    free = np.zeros(25, np.bool_)
    assert find_order(graph.wiring, free, limit=3.0**6).complete
    assert not find_order(graph.wiring, free, limit=3.0**3).complete


def test_a_cutset_leaves_small_tables():
    graph = grid(np.zeros((6, 6, 3)), np.zeros((3, 3)))
    cut = cutset(graph.wiring, 30.0, np.random.default_rng(4))
    assert 0 < cut.sum() < 36
    near = {v: u - set(np.flatnonzero(cut)) for v, u in adjacency(graph).items() if not cut[v]}
    while near:  # some variable can always go with at most 30 entries: here one or two neighbours
        v = min(near, key=lambda w: len(near[w]))
        assert 3 ** (1 + len(near[v])) <= 30
        left = near.pop(v)
        for u in left:
            near[u] = (near[u] | left) - {u, v}


# ---- tournament --------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", [1, 2, 3, 5, 8])
def test_the_winner_is_the_first_of_the_largest(leaves):
    rng = np.random.default_rng(leaves)
    tree = tournament.new_tree(leaves)
    values = np.full(leaves, -np.inf)
    for _ in range(40):
        leaf = int(rng.integers(leaves))
        values[leaf] = rng.integers(4)
        tournament.set_leaf.py_func(tree, leaf, values[leaf])
        assert tournament.winner.py_func(tree) == values.argmax()
        assert tree[1] == values.max()
