"""The frozen compiled form: layout, joining, forests, orders, and conditioning."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, chain, grid
from structlearn._src.common import threads
from structlearn._src.common.arrays import offsets_of
from structlearn._src.common.errors import GraphError
from structlearn._src.graph.joined import join
from structlearn._src.graph.wiring import Wiring, compile_wiring, condition, places


def some_graphs(seed=0, count=12, **kinds):
    rng = np.random.default_rng(seed)
    graphs = [
        naive.random_graph(rng, int(rng.integers(1, 7)), 4, max_arity=4, hidden=0.3, **kinds)
        for _ in range(count)
    ]
    graphs.insert(3, FactorGraph())
    return graphs


def blocks(starts, values):
    return [values[a:b] for a, b in itertools.pairwise(starts)]


# ---- layout ------------------------------------------------------------------------------


def test_layout():
    for graph in some_graphs():
        w = graph.wiring
        for f, (scope, strides) in enumerate(
            zip(blocks(w.scope_offsets, w.scopes), blocks(w.scope_offsets, w.strides), strict=True)
        ):
            table = np.empty(w.cards[scope])
            assert (np.array(table.strides) // 8).tolist() == strides.tolist()
            assert np.diff(w.table_offsets)[f] == table.size
        assert (w.slot_factors == np.repeat(np.arange(w.n_factors), w.arities)).all()
        assert (np.diff(w.message_offsets) == w.cards[w.scopes]).all()
        assert (np.diff(w.belief_offsets) == w.cards).all()
        for v, slots in enumerate(blocks(w.slot_offsets, w.slots)):
            assert sorted(slots) == np.flatnonzero(w.scopes == v).tolist()
        assert (w.n_graphs, w.n_variables, w.n_factors) == (1, graph.n_variables, graph.n_factors)


def test_frozen_and_of_one_type():
    """Kernels must see one type of array, whatever was given."""
    w = compile_wiring(
        np.array([2, 3], np.int32),
        np.zeros(2, np.int8),
        np.array([0, 2]),
        np.array([[1, 0]]).T[:, 0],
    )
    for array in w:
        assert array.dtype == np.int64
        assert array.flags.c_contiguous
        assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        w.cards[0] = 5


def test_what_was_given_stays_writeable():
    cards = np.array([2, 2])
    compile_wiring(cards, np.zeros(2, np.int64), np.array([0, 2]), np.array([0, 1]))
    cards[0] = 7
    assert cards[0] == 7


def test_a_graph_compiles_again_after_a_change():
    graph = FactorGraph()
    graph.add_variables(2, 2)
    first = graph.wiring
    assert graph.wiring is first
    graph.add_factor([0, 1], np.zeros((2, 2)))
    assert graph.wiring.n_factors == 1
    graph.add_variable()
    assert graph.wiring.n_variables == 3
    assert first.n_factors == 0


def test_offsets():
    assert offsets_of(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert offsets_of(np.array([], np.int64)).tolist() == [0]


# ---- many graphs -------------------------------------------------------------------------


def test_joined_graphs_lie_side_by_side():
    graphs = some_graphs()
    together = join([g.wiring for g in graphs])
    assert together.n_graphs == len(graphs)
    potentials = np.concatenate([g.potentials for g in graphs])
    rng = np.random.default_rng(1)
    labels = rng.integers(0, together.cards)
    scores = together.score(potentials, labels)
    parts = blocks(together.graph_variables, labels)
    for g, graph in enumerate(graphs):
        assert scores[g] == pytest.approx(naive.score(graph, parts[g].tolist()))
        first = together.graph_variables[g]
        mine = range(together.graph_factors[g], together.graph_factors[g + 1])
        for f, other in enumerate(mine):
            scope = blocks(together.scope_offsets, together.scopes)[other]
            assert (scope - first).tolist() == graph.scope(f).tolist()
    assert together.roles.tolist() == [r for g in graphs for r in g.roles]
    assert together.variable_graphs.tolist() == [
        i for i, g in enumerate(graphs) for _ in range(g.n_variables)
    ]


def test_joining_is_associative_and_one_joins_to_itself():
    wirings = [g.wiring for g in some_graphs()]
    once = join(wirings)
    twice = join([join(wirings[:5]), join(wirings[5:])])
    for field, a, b in zip(Wiring._fields, once, twice, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=field)
    for a, b in zip(join(wirings[:1]), wirings[0], strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(GraphError, match="no graphs were given"):
        join([])


# ---- forests and orders ------------------------------------------------------------------


def test_forests_are_told_from_loops():
    loops = some_graphs(2, 30)
    trees = some_graphs(3, 10, kind="forest") + some_graphs(4, 10, kind="chain")
    together = join([g.wiring for g in loops + trees])
    found = together.forests()
    assert found[len(loops) :].all()
    assert found.tolist() == [by_counting(g) for g in loops + trees]
    assert 0 < found[: len(loops)].sum() < len(loops)


def by_counting(graph):
    """A graph of variables and factors has no cycle if its links number its nodes less parts."""
    parts = list(range(graph.n_variables))
    for f in range(graph.n_factors):
        merged = {parts[v] for v in graph.scope(f)}
        parts = [min(merged) if p in merged else p for p in parts]
    links = sum(len(graph.scope(f)) for f in range(graph.n_factors))
    return links == graph.n_variables + graph.n_factors - len(set(parts))


def test_breadth_first_has_parents_before_children():
    rng = np.random.default_rng(5)
    for _ in range(20):
        graph = naive.random_graph(rng, 9, max_arity=4, kind="forest")
        order = graph.wiring.breadth_first().tolist()
        assert sorted(order) == list(range(graph.n_variables))
        seen = set()
        for v in order:
            scopes = [set(graph.scope(f).tolist()) for f in range(graph.n_factors)]
            # In a forest every later variable hangs on at most one factor with earlier ones.
            assert sum(len(s) > 1 and v in s and bool(s & seen) for s in scopes) <= 1
            seen.add(v)


def test_forests_and_orders_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "graphs", 50)
    graphs = some_graphs(7, 30) + some_graphs(8, 30, kind="forest")
    together = join([g.wiring for g in graphs])
    found = together.forests(3)
    np.testing.assert_array_equal(found, together.forests(1))
    order = together.breadth_first(found, 3)
    alone = [
        g.wiring.breadth_first() if forest else np.arange(g.n_variables)
        for g, forest in zip(graphs, found, strict=True)
    ]
    starts = np.repeat(together.graph_variables[:-1], [len(part) for part in alone])
    np.testing.assert_array_equal(order, np.concatenate(alone) + starts)


def test_two_factors_over_the_same_pair_are_a_cycle():
    graph = chain(np.zeros((2, 2)), np.zeros((2, 2)))
    assert graph.wiring.forests()[0]
    graph.add_factor([1, 0], np.zeros((2, 2)))
    assert not graph.wiring.forests()[0]
    assert not grid(np.zeros((2, 2, 2)), np.zeros((2, 2))).wiring.forests()[0]


# ---- conditioning ------------------------------------------------------------------------


def test_conditioned_tables_are_slices():
    rng = np.random.default_rng(6)
    for graph in some_graphs(6, 20, zeros=0.2):
        w = graph.wiring
        fixed = np.where(rng.random(w.n_variables) < 0.5, rng.integers(0, w.cards), -1)
        small = condition(w, graph.potentials, fixed)
        free = np.flatnonzero(fixed < 0)
        assert small.variables.tolist() == free.tolist()
        assert small.wiring.cards.tolist() == w.cards[free].tolist()
        assert small.wiring.roles.tolist() == w.roles[free].tolist()
        tables = blocks(small.wiring.table_offsets, small.potentials)
        constant = 0.0
        kept = []
        for f in range(graph.n_factors):
            scope = graph.scope(f)
            part = graph.table(f)[tuple(slice(None) if fixed[v] < 0 else fixed[v] for v in scope)]
            if part.ndim == 0:
                constant += part
                continue
            np.testing.assert_array_equal(tables[len(kept)], part.ravel())
            mine = blocks(small.wiring.scope_offsets, small.wiring.scopes)[len(kept)]
            assert free[mine].tolist() == [v for v in scope if fixed[v] < 0]
            kept.append(f)
        assert small.factors.tolist() == kept
        assert small.constant[0] == pytest.approx(constant)


def test_conditioning_keeps_graphs_apart():
    rng = np.random.default_rng(7)
    graphs = some_graphs(7)
    together = join([g.wiring for g in graphs])
    potentials = np.concatenate([g.potentials for g in graphs])
    fixed = np.where(rng.random(together.n_variables) < 0.5, rng.integers(0, together.cards), -1)
    small = condition(together, potentials, fixed)
    scores = (
        small.wiring.score(small.potentials, np.zeros(small.wiring.n_variables, np.int64))
        + small.constant
    )
    labels = np.maximum(fixed, 0)
    np.testing.assert_allclose(scores, together.score(potentials, labels))


def test_nothing_fixed_costs_nothing():
    graph = some_graphs(8)[0]
    tables = graph.potentials
    small = condition(graph.wiring, tables, np.full(graph.n_variables, -1))
    assert small.wiring is graph.wiring
    assert small.potentials is tables


def test_slices_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "graphs", 20)
    together = join([g.wiring for g in some_graphs(9, 20)])
    rng = np.random.default_rng(9)
    potentials = rng.normal(size=int(together.table_offsets[-1]))
    some = rng.random(together.n_variables) < 0.5
    fixed = np.where(some, rng.integers(0, together.cards), -1)
    for one, other in zip(places(together, fixed, 1), places(together, fixed, 3), strict=True):
        np.testing.assert_array_equal(one, other)
    small = [condition(together, potentials, fixed, n_jobs) for n_jobs in (1, 3)]
    for one, other in zip(small[0][1:], small[1][1:], strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(small[0].wiring, small[1].wiring, strict=True):
        np.testing.assert_array_equal(one, other)


def test_what_is_conditioned_is_compiled_as_if_it_were_new():
    rng = np.random.default_rng(10)
    together = join([g.wiring for g in some_graphs(10, 20)])
    potentials = rng.normal(size=int(together.table_offsets[-1]))
    some = rng.random(together.n_variables) < 0.5
    fixed = np.where(some, rng.integers(0, together.cards), -1)
    small = condition(together, potentials, fixed)
    wiring = small.wiring
    given = wiring.cards, wiring.roles, wiring.scope_offsets, wiring.scopes
    again = compile_wiring(*given, wiring.graph_variables, wiring.graph_factors)
    for one, other in zip(wiring, again, strict=True):
        np.testing.assert_array_equal(one, other)
    bare = condition(together, np.empty(0), fixed)
    assert len(bare.potentials) == 0
    np.testing.assert_array_equal(bare.factors, small.factors)


def test_places_point_at_the_entries_kept():
    rng = np.random.default_rng(9)
    for graph in some_graphs(9):
        w = graph.wiring
        fixed = np.where(rng.random(w.n_variables) < 0.5, rng.integers(0, w.cards), -1)
        kept, gone = places(w, fixed)
        small = condition(w, graph.potentials, fixed)
        np.testing.assert_array_equal(graph.potentials[kept], small.potentials)
        assert graph.potentials[gone].sum() == pytest.approx(small.constant[0])


# ---- small graphs that are alike -----------------------------------------------------------


def test_wirings_that_come_again_are_copied():
    """A wiring joined many times is as if compiled from separate ones, for any threads."""
    kinds = [graph.wiring for graph in some_graphs(3)]
    several = join(kinds[:2])  # of two graphs
    kinds.append(several)
    which = np.random.default_rng(0).integers(len(kinds), size=3000)
    again = [kinds[i] for i in which]
    apart = join([Wiring(*w) for w in again])  # none is another
    for n_jobs in (1, 3):
        for mine, theirs in zip(join(again, n_jobs), apart, strict=True):
            np.testing.assert_array_equal(mine, theirs)
            assert not mine.flags.writeable


def test_small_graphs_that_are_alike_share_their_wiring():
    one, two = (chain(np.full((3, 2), x), np.eye(2)) for x in (0.0, 1.0))
    assert one.wiring is two.wiring
    two.set_roles({1: "hidden"})
    assert one.wiring is not two.wiring
    assert one.wiring.roles.tolist() == [0, 0, 0]
    assert two.wiring.roles.tolist() == [0, 1, 0]
