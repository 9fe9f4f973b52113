"""Worlds of graphs take tables of groups and give them back: as engines do potentials, in steps."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structlearn._src.graph.batch import (
    Graphs,
    assemble,
    potentials_to_tables,
    tables_to_potentials,
)
from structlearn._src.graph.wiring import HIDDEN, OUTPUT
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.engine import clamp, forest_shares, make_engine
from structlearn._src.learn.structured_world import GraphWorld
from structlearn._src.learn.world import Budget, InferenceSettings

SWEEPS = 7
STATES = 3


def make_graphs(n_graphs=9, size=6, seed=0):
    """Nodes, two kinds of edges and triples, and more nodes that are in no group."""
    rng = np.random.default_rng(seed)
    starts = np.arange(n_graphs + 1) * size
    pairs = [
        (start + i, start + j)
        for start in starts[:-1]
        for i, j in itertools.combinations(range(size), 2)
        if rng.random() < 0.5
    ]
    nodes = np.arange(starts[-1])[:, None]
    triples = starts[:-1, None] + np.arange(3)
    half = len(pairs) // 2
    scopes = nodes, np.array(pairs[:half]), np.array(pairs[half:]), triples, nodes
    cards = np.full(starts[-1], STATES)
    graphs = assemble(cards, np.full(len(cards), OUTPUT), starts, scopes)
    added = rng.normal(size=int(graphs.wiring.table_offsets[-1]))
    return rng, Graphs(graphs.wiring, graphs.groups[:-1]), added


def make_tables(rng, graphs, shared):
    """Random tables; those of groups that are `shared` have one row."""
    widths = STATES, STATES**2, STATES**2, STATES**3
    return tuple(
        rng.normal(size=(1 if g in shared else len(graphs.groups[g]), width))
        for g, width in enumerate(widths)
    )


def in_steps(graphs, labels, tables, added, factors, into, method, clamped):
    """The same by way of potentials and beliefs."""
    wiring = graphs.wiring
    if not clamped:
        wiring = wiring._replace(roles=np.where(labels < 0, HIDDEN, OUTPUT))
    shares = forest_shares(wiring) if method == "trw" else None
    if clamped:
        engine = clamp(wiring, labels, 1.0, method, Options(), shares)
    else:
        problem = Problem(wiring, np.zeros(len(added)), 1.0, 1.0)
        engine = make_engine(problem, method, Options(), shares)
    assert engine.in_kernels
    potentials = tables_to_potentials(graphs, tables) + added
    found = engine.solve(potentials, engine.begin(), SWEEPS, 0.0)
    beliefs = found.beliefs * np.repeat(factors, np.diff(wiring.graph_tables))
    return found.values, potentials_to_tables(graphs, beliefs, tables, 1, into)


@pytest.mark.parametrize("clamped", [False, True])
@pytest.mark.parametrize("method", ["exact", "bp", "trw"])
@pytest.mark.parametrize("shared", [(), (1, 3), (0, 1, 2, 3), (1, 2, 3)])
def test_tables_go_in_and_come_out(shared, method, clamped):
    rng, graphs, added = make_graphs()
    labels = np.where(rng.random(graphs.n_variables) < 0.5, -1, 1)
    labels[:6] = 2  # of one graph all are known
    tables = make_tables(rng, graphs, shared)
    factors = rng.normal(size=graphs.n_examples)
    before = tuple(rng.normal(size=table.shape) for table in tables)
    for into in (None, before):
        wanted = in_steps(
            graphs, labels, tables, added, factors,
            None if into is None else tuple(map(np.copy, into)), method, clamped,
        )  # fmt: skip
        for n_jobs in (1, 3):
            settings = InferenceSettings(method, n_jobs=n_jobs)
            world = GraphWorld(
                graphs, labels, 1.0, 1.0, clamped=clamped, added=added, settings=settings
            )
            given = None if into is None else tuple(map(np.copy, into))
            values, found, _ = world.solve(tables, factors, world.begin(), Budget(SWEEPS), given)
            np.testing.assert_array_equal(values, wanted[0])
            assert found is given or given is None or all(map(np.may_share_memory, found, given))
            for one, other in zip(found, wanted[1], strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_one_world_takes_tables_of_other_shapes():
    rng, graphs, added = make_graphs()
    labels = np.full(graphs.n_variables, -1)
    settings = InferenceSettings("exact", n_jobs=1)
    world = GraphWorld(graphs, labels, 1.0, 1.0, clamped=False, added=added, settings=settings)
    one = make_tables(rng, graphs, shared=(0, 1, 2, 3))
    each = tuple(np.repeat(t, len(f), axis=0) for t, f in zip(one, graphs.groups, strict=True))
    factors = np.ones(graphs.n_examples)
    values, summed, _ = world.solve(one, factors, None)
    others, found, _ = world.solve(each, factors, None)
    np.testing.assert_array_equal(values, others)
    for total, table in zip(summed, found, strict=True):
        np.testing.assert_allclose(total[0], table.sum(axis=0), rtol=1e-12)
