"""Blocks of large graphs and their colours, and messages that do not depend on threads."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from structlearn import grid, hidden_grid, infer, infer_many, pairwise
from structlearn._src.graph.joined import join
from structlearn._src.inference.schedule import colour, make_schedule

SIDE = 120  # of grids whose blocks threads share
SWEEPS = {"bp": 9, "trw": 15}  # that the sequential schedule needs on `large_grid(2)`


def large_grid(states, seed=0, side=SIDE):
    rng = np.random.default_rng(seed)
    edges = 2 * side * (side - 1)
    tables = 0.6 * np.eye(states) + rng.normal(0.0, 0.1, (edges, states, states))
    return grid(rng.normal(size=(side, side, states)), tables)


def random_graph(n=20_000, degree=4, seed=1):
    rng = np.random.default_rng(seed)
    edges = rng.integers(n, size=(n * degree // 2, 2))
    edges = np.unique(np.sort(edges[edges[:, 0] != edges[:, 1]], axis=1), axis=0)
    return pairwise(rng.normal(size=(n, 2)), edges, 0.3 * np.eye(2))


def layered_grid():
    rng = np.random.default_rng(2)
    nodes = rng.normal(size=(2, SIDE, SIDE, 2))
    return hidden_grid(*nodes, 0.3 * np.eye(2), np.eye(2))


def blocks_of(schedule):
    """Block and colour of every variable."""
    sizes = np.diff(schedule.block_offsets)
    counts = np.diff(schedule.colour_offsets)
    block = np.empty(len(schedule.variables), np.int64)
    block[schedule.variables] = np.repeat(np.arange(len(sizes)), sizes)
    return block, np.repeat(np.arange(len(counts)), counts)[block]


def check(wiring, schedule):
    np.testing.assert_array_equal(np.sort(schedule.variables), np.arange(wiring.n_variables))
    block, tint = blocks_of(schedule)
    starts = wiring.scope_offsets[:-1]
    for f in np.flatnonzero(wiring.arities > 1):
        scope = wiring.scopes[starts[f] : wiring.scope_offsets[f + 1]]
        met = {}
        for v in scope.tolist():
            assert met.setdefault(tint[v], block[v]) == block[v]


@pytest.mark.parametrize(
    ("make", "colours"), [(lambda: large_grid(2), 2), (layered_grid, 2), (random_graph, None)]
)
def test_no_factor_touches_two_blocks_of_one_colour(make, colours):
    wiring = make().wiring
    schedule = make_schedule(wiring, wiring.forests())
    assert schedule.shared.tolist() == [0]
    assert colours is None or np.diff(schedule.graph_colours).tolist() == [colours]
    check(wiring, schedule)


def test_small_graphs_and_forests_are_one_block_each():
    rng = np.random.default_rng(3)
    small = [naive.random_graph(rng, 6, kind=kind).wiring for kind in ("tree", "loopy")]
    edges = np.stack([np.arange(39_999), np.arange(1, 40_000)], axis=1)
    path = pairwise(np.zeros((40_000, 2)), edges, np.eye(2)).wiring
    wiring = join([*small, large_grid(2).wiring, path, *small])
    schedule = make_schedule(wiring, wiring.forests())
    assert schedule.shared.tolist() == [2]
    assert (np.diff(schedule.colour_offsets[schedule.graph_colours])[[0, 1, 3, 4, 5]] == 1).all()
    assert schedule.rounds[0] == (0, 2)
    assert [a for a, _ in schedule.rounds][1:] == [b for _, b in schedule.rounds][:-1]
    check(wiring, schedule)


def test_colours_of_variables():
    board = colour(large_grid(2, side=5).wiring).reshape(5, 5)
    np.testing.assert_array_equal(board, np.add.outer(np.arange(5), np.arange(5)) % 2)
    for seed in range(5):
        wiring = naive.random_graph(np.random.default_rng(seed), 8, kind="loopy").wiring
        tint = colour(wiring)
        for f in range(wiring.n_factors):
            scope = wiring.scopes[wiring.scope_offsets[f] : wiring.scope_offsets[f + 1]]
            assert len(set(tint[scope].tolist())) == len(scope)


@pytest.mark.parametrize(
    ("query", "method", "schedule"),
    [
        ("marginals", "bp", "sequential"),
        ("marginals", "bp", "flooding"),
        ("marginals", "trw", "sequential"),
        ("map", "bp", "sequential"),
        ("map", "trw", "flooding"),
    ],
)
@pytest.mark.parametrize("make", [lambda: large_grid(3), random_graph])
def test_messages_do_not_depend_on_threads(make, query, method, schedule):
    graph = make()
    options = {"method": method, "schedule": schedule, "max_iter": 3, "random_state": 0}
    one, *others = [infer(graph, query, n_jobs=n, **options) for n in (1, 2, 3, 8)]
    for other in others:
        assert (other.value, other.upper, other.residual) == (one.value, one.upper, one.residual)
        np.testing.assert_array_equal(other.messages, one.messages)
        if query == "map":
            np.testing.assert_array_equal(other.assignment.array, one.assignment.array)
        else:
            np.testing.assert_array_equal(other.marginals.flat, one.marginals.flat)


@pytest.mark.parametrize("method", SWEEPS)
def test_blocks_need_no_more_sweeps_than_one_after_the_other(method):
    answer = infer(large_grid(2), method=method, restarts=0, random_state=0)
    assert answer.converged
    assert answer.iterations <= SWEEPS[method]


def test_a_large_graph_among_small_ones_is_answered_as_if_alone():
    large, small = large_grid(2), large_grid(2, side=4)
    options = {"method": "bp", "restarts": 0, "max_iter": 5}
    alone = [infer(graph, **options) for graph in (small, large, small)]
    together = infer_many([small, large, small], **options)
    for one, other in zip(alone, together, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-12)
        np.testing.assert_allclose(one.marginals.flat, other.marginals.flat, atol=1e-12)
