"""Engines: planned once, right for any potentials, and with no memory but what they return."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from structlearn._src.common.errors import ArgumentError, TooWideError
from structlearn._src.graph.joined import join
from structlearn._src.graph.wiring import HIDDEN
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.engine import clamp, forest_shares, make_engine
from structlearn._src.inference.messenger import Messenger
from tests import naive

EPS = [(1.0, 1.0), (0.5, 0.5), (0.0, 0.0), (0.0, 1.0), (1.0, 0.3)]
REST = {"sweeps": 500, "tol": 1e-11}


def graphs_of(seed, n=4, size=5, **options):
    rng = np.random.default_rng(seed)
    return [naive.random_graph(rng, size, **options) for _ in range(n)]


def trees(seed, **options):
    return graphs_of(seed, kind="tree", **options)


def joined(graphs, eps):
    wiring = join([graph.wiring for graph in graphs])
    return Problem(wiring, np.concatenate([graph.potentials for graph in graphs]), *eps)


def right(graphs, eps):
    """Values of all graphs and marginals of their factors, by enumeration."""
    values, factors = [], []
    for graph in graphs:
        value, distribution = naive.value_and_distribution(graph, *eps)
        values.append(value)
        factors += [naive.marginal(distribution, graph.scope(f)) for f in range(graph.n_factors)]
    return np.array(values), np.concatenate([np.empty(0), *(table.ravel() for table in factors)])


@pytest.mark.parametrize("eps", EPS)
def test_exact_engines_enumerate(eps):
    graphs = graphs_of(0, hidden=0.4)
    engine = make_engine(joined(graphs, eps), "exact")
    assert engine.exact
    assert engine.begin() == ()
    rng = np.random.default_rng(1)
    for _ in range(2):
        others = [g.with_potentials(rng.normal(size=g.potentials.size)) for g in graphs]
        found = engine.solve(joined(others, eps).potentials, (), 0, 0.0)
        values, beliefs = right(others, eps)
        np.testing.assert_allclose(found.values, values, atol=1e-9)
        np.testing.assert_allclose(found.beliefs, beliefs, atol=1e-9)


@pytest.mark.parametrize("method", ["bp", "trw"])
@pytest.mark.parametrize("eps", [(1.0, 1.0), (0.5, 0.5), (0.0, 0.0)])
def test_messages_are_exact_on_forests(method, eps):
    graphs = trees(2)
    problem = joined(graphs, eps)
    shares = forest_shares(problem.wiring) if method == "trw" else None
    engine = make_engine(problem, method, shares=shares)
    found = engine.solve(problem.potentials, engine.begin(), **REST)
    values, beliefs = right(graphs, eps)
    np.testing.assert_allclose(found.values, values, atol=1e-7)
    np.testing.assert_allclose(found.beliefs, beliefs, atol=1e-6)
    assert not engine.exact


def test_what_is_maximised_is_fixed_and_the_rest_is_inferred():
    """Value and beliefs at temperatures (0, 1) belong to labels that exist."""
    graphs = graphs_of(3, hidden=0.5)
    problem = joined(graphs, (0.0, 1.0))
    engine = make_engine(problem, "bp")
    memory = engine.begin()
    assert len(memory) == 2
    found = engine.solve(problem.potentials, memory, **REST)
    for g, graph in enumerate(graphs):
        values = naive.marginal_map_values(graph)
        assert found.values[g] <= values.max() + 0.5  # the hidden ones are summed by messages
    sizes = np.diff(problem.wiring.table_offsets)
    sums = np.add.reduceat(found.beliefs, problem.wiring.table_offsets[:-1])
    np.testing.assert_allclose(sums[sizes > 0], 1.0, atol=1e-9)


@pytest.mark.parametrize("eps", [(1.0, 1.0), (0.0, 0.0), (0.0, 1.0)])
def test_a_warm_start_goes_on_where_messages_stood(eps):
    problem = joined(graphs_of(4, hidden=0.4), eps)
    engine = make_engine(problem, "bp", Options(damping=0.2))
    memory = engine.begin()
    for _ in range(4):
        found = engine.solve(problem.potentials, memory, 1, 0.0)
        memory = found.memory
        assert found.sweeps == len(memory)
    once = engine.solve(problem.potentials, engine.begin(), 4, 0.0)
    np.testing.assert_allclose(memory[0], once.memory[0], atol=1e-9)
    if len(memory) == 1:
        np.testing.assert_allclose(found.values, once.values, atol=1e-9)
        np.testing.assert_allclose(found.beliefs, once.beliefs, atol=1e-9)


@pytest.mark.parametrize("method", ["exact", "bp"])
@pytest.mark.parametrize("eps", [(1.0, 1.0), (0.0, 1.0)])
def test_solving_changes_nothing(method, eps):
    """Neither the memory that is given nor the engine: the same call gives the same bits."""
    problem = joined(graphs_of(5, hidden=0.4), eps)
    engine = make_engine(problem, method)
    memory = engine.solve(problem.potentials, engine.begin(), 3, 0.0).memory
    before = [array.copy() for array in memory]
    one = engine.solve(problem.potentials, memory, 3, 0.0)
    engine.solve(-problem.potentials, engine.begin(), 3, 0.0)
    two = pickle.loads(pickle.dumps(engine)).solve(problem.potentials, memory, 3, 0.0)
    for found in (two, engine.solve(problem.potentials, memory, 3, 0.0)):
        np.testing.assert_array_equal(one.values, found.values)
        np.testing.assert_array_equal(one.beliefs, found.beliefs)
    for old, new in zip(before, memory, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("method", ["exact", "bp"])
def test_threads_share_an_engine(method):
    problem = joined(graphs_of(6, 3, 7), (1.0, 1.0))
    engine = make_engine(problem, method, Options(n_jobs=1))
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(24, len(problem.potentials)))

    def solve(row):
        return engine.solve(row, engine.begin(), 20, 1e-9)

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(solve, rows))
    for row, found in zip(rows, together, strict=True):
        alone = solve(row)
        np.testing.assert_array_equal(found.values, alone.values)
        np.testing.assert_array_equal(found.beliefs, alone.beliefs)


# ---- with some variables fixed -----------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "bp"])
@pytest.mark.parametrize("eps", [1.0, 0.0])
def test_clamped_graphs_for_any_states(method, eps):
    graphs = trees(7)
    problem = joined(graphs, (eps, eps))
    wiring = problem.wiring
    rng = np.random.default_rng(7)
    free = rng.random(wiring.n_variables) < 0.5
    clamped = clamp(wiring, np.where(free, -1, 0), eps, method)
    memory = clamped.begin()
    for _ in range(3):
        labels = np.where(free, -1, rng.integers(0, wiring.cards))
        found = clamped.at(labels).solve(problem.potentials, memory, **REST)
        memory = found.memory
        values, beliefs = right(clamped_by_force(graphs, wiring, labels), (eps, eps))
        np.testing.assert_allclose(found.values, values, atol=1e-7)
        np.testing.assert_allclose(found.beliefs, beliefs, atol=1e-6)


def clamped_by_force(graphs, wiring, labels):
    """Forbid all that does not agree with the labels."""
    out = []
    for g, graph in enumerate(graphs):
        mine = labels[wiring.graph_variables[g] : wiring.graph_variables[g + 1]]
        potentials = graph.potentials.copy()
        for f in range(graph.n_factors):
            scope = graph.scope(f)
            start, stop = graph.wiring.table_offsets[f : f + 2]
            table = potentials[start:stop].reshape(graph.cards[scope])
            states = np.indices(table.shape)
            for axis, v in enumerate(scope):
                if mine[v] >= 0:
                    table[states[axis] != mine[v]] = -np.inf
        out.append(graph.with_potentials(potentials))
    return out


def test_all_fixed_is_a_point_mass():
    graphs = graphs_of(8)
    problem = joined(graphs, (1.0, 1.0))
    labels = np.random.default_rng(8).integers(0, problem.wiring.cards)
    clamped = clamp(problem.wiring, labels, 1.0, "bp")
    assert clamped.exact
    found = clamped.at(labels).solve(problem.potentials, clamped.begin(), 1, 0.0)
    np.testing.assert_allclose(found.values, problem.wiring.score(problem.potentials, labels))
    assert set(found.beliefs) <= {0.0, 1.0}
    assert found.beliefs.sum() == problem.wiring.n_factors
    assert found.beliefs @ problem.potentials == pytest.approx(found.values.sum())


def test_nothing_fixed_is_the_graph_itself():
    problem = joined(graphs_of(9), (1.0, 1.0))
    free = np.full(problem.wiring.n_variables, -1)
    clamped = clamp(problem.wiring, free, 1.0, "exact")
    found = clamped.at(free).solve(problem.potentials, (), 0, 0.0)
    alone = make_engine(problem, "exact").solve(problem.potentials, (), 0, 0.0)
    np.testing.assert_allclose(found.values, alone.values)
    np.testing.assert_allclose(found.beliefs, alone.beliefs)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_what_memory_held_before_makes_no_difference(n_jobs):
    """Enough graphs for several ranges."""
    graphs = graphs_of(11, n=1_500)
    problem = joined(graphs, (1.0, 1.0))
    fixed = np.where(np.arange(problem.wiring.n_variables) % 3, -1, 0)
    for make in (make_engine, lambda *given: clamp(problem.wiring, fixed, 1.0, *given[1:])):
        alone = make(problem, "exact", Options(n_jobs=1)).solve(problem.potentials, (), 0, 0.0)
        engine = make(problem, "exact", Options(n_jobs=n_jobs))
        for _ in range(2):
            dirt = [np.full(size, np.nan) for size in range(1_000, 200_000, 5_000)]
            del dirt
            found = engine.solve(problem.potentials, (), 0, 0.0)
            np.testing.assert_array_equal(found.values, alone.values)
            np.testing.assert_array_equal(found.beliefs, alone.beliefs)


def test_values_alone():
    problem = joined(graphs_of(10, hidden=0.4), (0.0, 1.0))
    for method in ("exact", "bp"):
        engine = make_engine(problem, method)
        whole = engine.solve(problem.potentials, engine.begin(), 5, 0.0)
        short = engine.solve(problem.potentials, engine.begin(), 5, 0.0, beliefs=False)
        np.testing.assert_array_equal(whole.values, short.values)
        assert len(short.beliefs) == 0


@pytest.mark.parametrize("eps", [(0.0, 1.0), (0.0, 0.0)])
def test_an_interrupt_between_sweeps_is_raised(eps, monkeypatch):
    """The work around the engine must end, too."""

    def interrupt(*_):
        raise KeyboardInterrupt

    problem = joined(graphs_of(10, hidden=0.4), eps)
    engine = make_engine(problem, "bp")
    monkeypatch.setattr(Messenger, "_propagate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        engine.solve(problem.potentials, engine.begin(), 5, 0.0)


# ---- which engine ------------------------------------------------------------------------


def test_auto_is_exact_where_that_is_quick():
    problem = joined(graphs_of(11, 2, 12), (1.0, 1.0))
    assert make_engine(problem, times=np.inf).exact
    assert not make_engine(problem, times=0.0).exact
    narrow = Options(max_table=4)
    assert not make_engine(problem, options=narrow, times=np.inf).exact
    with pytest.raises(TooWideError, match="max_table"):
        make_engine(problem, "exact", narrow)


def test_messages_refuse_warm_outputs_over_maxima():
    graph = graphs_of(12, 1, hidden=0.5)[0]
    assert (graph.roles == HIDDEN).any()
    with pytest.raises(ArgumentError, match="eps_h=0"):
        make_engine(Problem(graph.wiring, graph.potentials, 1.0, 0.0), "bp")
