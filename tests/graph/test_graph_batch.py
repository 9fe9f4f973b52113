"""Examples side by side: which rows, variables and factors are whose, also of some of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.common.arrays import block_indices
from structlearn._src.graph.batch import (
    Graphs,
    Sequences,
    assemble,
    potentials_to_tables,
    tables_to_potentials,
)
from structlearn._src.graph.joined import select
from structlearn._src.graph.wiring import HIDDEN, OUTPUT
from structlearn._src.text.labels import Forbidden

STEADY = settings(max_examples=40, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)


def drawn(seed):
    """Random graphs by the scopes of their groups; a group may miss in some or all of them."""
    rng = np.random.default_rng(seed)
    n_graphs = int(rng.integers(1, 6))
    borders = np.concatenate([[0], np.cumsum(rng.integers(1, 5, n_graphs))])
    cards = rng.integers(1, 4, borders[-1])
    roles = rng.choice([OUTPUT, HIDDEN], borders[-1])
    # By shape, so that the tables of a group have one size.
    found: dict[tuple[int, ...], list[list[int]]] = {
        (3,): [],
        (2, 2): [],
        (3, 2): [],
        (2, 3, 3): [],
    }
    for a, b in itertools.pairwise(borders):
        for shape, scopes in found.items():
            for scope in itertools.permutations(range(a, b), len(shape)):
                if tuple(cards[list(scope)]) == shape and rng.random() < 0.6:
                    scopes.append(list(scope))
    scopes = tuple(np.array(s, np.int64).reshape(-1, len(k)) for k, s in found.items())
    return rng, assemble(cards, roles, borders, scopes), scopes


def described(graphs):
    """Every graph as its cards, roles and factors (group, scope within the graph, bars)."""
    wiring, out = graphs.wiring, []
    group = {int(f): g for g, members in enumerate(graphs.groups) for f in members}
    for i in range(graphs.n_examples):
        a, b = wiring.graph_variables[i : i + 2]
        factors = []
        for f in range(*wiring.graph_factors[i : i + 2]):
            scope = wiring.scopes[wiring.scope_offsets[f] : wiring.scope_offsets[f + 1]] - a
            bars = None
            if graphs.forbidden_potentials is not None:
                bars = graphs.forbidden_potentials[slice(*wiring.table_offsets[f : f + 2])].tolist()
            factors.append((group[f], scope.tolist(), bars))
        out.append((wiring.cards[a:b].tolist(), wiring.roles[a:b].tolist(), factors))
    return out


@STEADY
@given(SEEDS)
def test_assembled_graphs_have_the_factors_that_were_given(seed):
    _, graphs, scopes = drawn(seed)
    wiring = graphs.wiring
    for g, rows in enumerate(scopes):
        assert len(graphs.groups[g]) == len(rows)
        starts = graphs.rows(g)
        assert starts[0] == 0
        assert starts[-1] == len(rows)
        for r, f in enumerate(graphs.groups[g]):
            scope = wiring.scopes[wiring.scope_offsets[f] : wiring.scope_offsets[f + 1]]
            np.testing.assert_array_equal(scope, rows[r])
            owner = int(np.searchsorted(starts, r, side="right")) - 1
            assert wiring.graph_variables[owner] <= scope.min()
            assert scope.max() < wiring.graph_variables[owner + 1]
            entries = np.arange(wiring.table_offsets[f], wiring.table_offsets[f + 1])
            np.testing.assert_array_equal(graphs.entries[g][r], entries)
    assert sum(map(len, scopes)) == wiring.n_factors
    every = np.concatenate([e.ravel() for e in graphs.entries])
    np.testing.assert_array_equal(np.sort(every), np.arange(wiring.table_offsets[-1]))


@STEADY
@given(SEEDS, st.booleans())
def test_some_graphs_are_those_graphs(seed, barred):
    rng, graphs, _ = drawn(seed)
    if barred:
        bars = np.where(rng.random(int(graphs.wiring.table_offsets[-1])) < 0.3, -np.inf, 0.0)
        graphs = Graphs(graphs.wiring, graphs.groups, bars)
    which = rng.integers(0, graphs.n_examples, int(rng.integers(1, 5)))
    taken = graphs.take(which)
    whole = described(graphs)
    assert described(taken) == [whole[i] for i in which]
    assert taken.n_examples == len(which)
    for g in range(len(graphs.groups)):
        # Rows of features follow their graphs.
        rows = block_indices(graphs.rows(g), which)
        np.testing.assert_array_equal(
            np.diff(graphs.rows(g))[which], np.diff(taken.rows(g)), err_msg=str(rows)
        )
        assert len(rows) == len(taken.groups[g])
    same = select(graphs.wiring, np.arange(graphs.n_examples))
    for ours, theirs in zip(same, graphs.wiring, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_spans():
    borders = np.array([0, 2, 2, 5, 6])
    np.testing.assert_array_equal(
        block_indices(borders, np.array([2, 0, 1, 2])), [2, 3, 4, 0, 1, 2, 3, 4]
    )
    assert len(block_indices(borders, np.array([1]))) == 0
    assert len(block_indices(borders, np.empty(0, np.int64))) == 0


@pytest.mark.parametrize("barred", [False, True])
def test_sequences_as_graphs(barred):
    bars = None
    if barred:
        steps = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], bool)
        bars = Forbidden(np.array([True, False, False]), np.array([False, False, True]), steps)
    sequences = Sequences(np.array([0, 3, 4, 6]), 3, bars)
    graphs = sequences.graphs()
    never = -np.inf
    first, last, one = [never, 0, 0], [0, 0, never], [never, 0, never]
    nodes = {0: [first, [0, 0, 0], last], 1: [one], 2: [first, last]}
    step = np.where(bars.pairs, never, 0.0).ravel().tolist() if barred else None
    for i, (cards, roles, factors) in enumerate(described(graphs)):
        n = (3, 1, 2)[i]
        assert cards == [3] * n
        assert roles == [OUTPUT] * n
        wanted = [(0, [t], nodes[i][t] if barred else None) for t in range(n)]
        assert factors == wanted + [(1, [t, t + 1], step) for t in range(n - 1)]
    for g in (0, 1):
        np.testing.assert_array_equal(graphs.rows(g), sequences.rows(g))
    np.testing.assert_array_equal(sequences.rows(1), [0, 2, 2, 3])


def test_some_sequences_are_those_sequences():
    sequences = Sequences(np.array([0, 3, 4, 6]), 3)
    taken = sequences.take(np.array([2, 0, 2]))
    np.testing.assert_array_equal(taken.offsets, [0, 2, 5, 7])
    assert (taken.n_examples, taken.n_variables, taken.states) == (3, 7, 3)
    assert sequences.take(np.empty(0, np.int64)).n_examples == 0


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_tables_and_potentials_are_adjoint(n_jobs):
    """Enough factors for several ranges; the second group has one table for all."""
    rng = np.random.default_rng(0)
    n = 100_000
    cards = np.full(n, 2)
    pairs = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    graphs = assemble(cards, np.full(n, OUTPUT), np.array([0, n]), (np.arange(n)[:, None], pairs))
    tables = rng.normal(size=(n, 2)), rng.normal(size=(1, 4))
    values = rng.normal(size=2 * n + 4 * (n - 1))
    potentials = tables_to_potentials(graphs, tables, n_jobs)
    assert (potentials[graphs.entries[0]] == tables[0]).all()
    assert (potentials[graphs.entries[1]] == tables[1]).all()
    back = potentials_to_tables(graphs, values, tables, n_jobs)
    inner = sum((a * b).sum() for a, b in zip(tables, back, strict=True))
    assert inner == pytest.approx(potentials @ values, rel=1e-9)
    alone = potentials_to_tables(graphs, values, tables)
    assert all((a == b).all() for a, b in zip(alone, back, strict=True))


def test_factors_of_no_group_have_potentials_of_zero():
    graphs = assemble(
        np.full(3, 2), np.full(3, OUTPUT), np.array([0, 3]), (np.arange(3)[:, None],) * 2
    )
    some = Graphs(graphs.wiring, graphs.groups[:1])
    potentials = tables_to_potentials(some, (np.ones((3, 2)),))
    assert potentials[some.entries[0]].min() == 1.0
    assert potentials.sum() == 6.0


def test_a_group_of_one_factor_has_its_own_table():
    graphs = assemble(np.full(1, 3), np.full(1, OUTPUT), np.array([0, 1]), (np.zeros((1, 1), int),))
    tables = (np.array([[1.0, -2.0, 3.0]]),)
    potentials = tables_to_potentials(graphs, tables)
    np.testing.assert_array_equal(potentials, tables[0][0])
    np.testing.assert_array_equal(potentials_to_tables(graphs, potentials, tables)[0], tables[0])
    unused = Graphs(graphs.wiring, (*graphs.groups, np.empty(0, np.int64)))
    back = potentials_to_tables(unused, potentials, (*tables, np.ones((1, 4))))
    np.testing.assert_array_equal(back[1], np.zeros((1, 4)))
