"""Elimination along a direction: expectations and covariances, against whole tables."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from structlearn import FactorGraph
from structlearn._src.graph.joined import join
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.junction import EliminationTree
from structlearn._src.kernels.graph import eliminate


def wide_graph(rng):
    """A clique whose first bucket has many blocks: two of its axes are outer ones."""
    graph = naive.clique(rng)
    assert 5 ** (graph.n_variables - 1) > eliminate.BLOCK
    return graph


def by_enumeration(graph, direction):
    """Mean of the direction, and its covariance with every entry of the tables."""
    _, p = naive.value_and_distribution(graph)
    moved = naive.joint(graph.with_potentials(direction))
    mean = (p * moved).sum()
    parts = []
    for f in range(graph.n_factors):
        scope = graph.scope(f).tolist()
        others = tuple(v for v in range(graph.n_variables) if v not in scope)
        table = (p * (moved - mean)).sum(axis=others)
        parts.append(table.transpose(np.argsort(np.argsort(scope))).ravel())
    return mean, np.concatenate(parts)


def along(graphs, directions, n_jobs=1):
    wiring = graphs[0].wiring if len(graphs) == 1 else join([g.wiring for g in graphs])
    potentials = np.concatenate([g.potentials for g in graphs])
    tree = EliminationTree.of(Problem(wiring, potentials), Options(n_jobs=n_jobs))
    store = tree.stores.take()
    tree.forward(potentials, store)
    moved = np.full(len(store), np.nan)
    moved[: len(potentials)] = np.concatenate(directions)
    return tree.forward_along(store, moved), tree.backward_along(store, moved)


@pytest.mark.parametrize("seed", range(8))
def test_means_and_covariances_of_small_graphs(seed):
    rng = np.random.default_rng(seed)
    graph = naive.random_graph(rng, 6, 3, 3, zeros=0.15, min_card=2)
    direction = rng.normal(size=len(graph.potentials))
    mean, covariances = by_enumeration(graph, direction)
    value, found = along([graph], [direction])
    assert value[0] == pytest.approx(mean, abs=1e-12)
    np.testing.assert_allclose(found, covariances, atol=1e-12)


def test_tables_of_many_blocks():
    rng = np.random.default_rng(0)
    graph = wide_graph(rng)
    direction = rng.normal(size=len(graph.potentials))
    mean, covariances = by_enumeration(graph, direction)
    value, found = along([graph], [direction])
    assert value[0] == pytest.approx(mean)
    np.testing.assert_allclose(found, covariances, atol=1e-10)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_graphs_side_by_side_are_those_alone(n_jobs):
    rng = np.random.default_rng(1)
    graphs = [naive.random_graph(rng, n, kind="loopy", min_card=2) for n in (1, 5, 3)]
    directions = [rng.normal(size=len(g.potentials)) for g in graphs]
    values, found = along(graphs, directions, n_jobs)
    single = [along([g], [d]) for g, d in zip(graphs, directions, strict=True)]
    np.testing.assert_allclose(values, [value[0] for value, _ in single])
    np.testing.assert_allclose(found, np.concatenate([each for _, each in single]), atol=1e-14)


def test_graphs_without_a_possible_assignment_give_zeros():
    graph = FactorGraph()
    graph.add_variables(2, 2)
    graph.add_factor([0, 1], np.full((2, 2), -np.inf))
    value, found = along([graph], [np.ones(4)])
    assert value[0] == 0.0
    assert (found == 0.0).all()
