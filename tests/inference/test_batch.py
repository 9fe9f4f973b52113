"""Batches large enough to be cut into ranges: neither the batch nor the threads may show."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn import chain, grid, hidden_chain, infer, infer_many
from structlearn._src.common import threads
from structlearn._src.graph.joined import join
from structlearn._src.inference import messenger, separate
from structlearn._src.inference.base import Problem
from structlearn._src.inference.messenger import Messenger


def mixed(rng, count):
    graphs = []
    for k in range(count):
        n = 3 + k % 5
        if k % 3 == 0:
            graphs.append(grid(rng.normal(size=(3, n, 2)), rng.normal(size=(5 * n - 3, 2, 2))))
        elif k % 3 == 1:
            graphs.append(chain(rng.normal(size=(n, 4)), rng.normal(size=(n - 1, 4, 4))))
        else:
            graphs.append(
                hidden_chain(
                    rng.normal(size=(n, 3)),
                    rng.normal(size=(n, 2)),
                    rng.normal(size=(2, 2)),
                    rng.normal(size=(n, 3, 2)),
                )
            )
    return graphs


@pytest.fixture
def batch(monkeypatch):
    """Graphs that make several ranges of each kind."""
    monkeypatch.setitem(threads.GRAIN, "orders", 300)
    monkeypatch.setitem(threads.GRAIN, "arrays", 2000)
    monkeypatch.setitem(threads.GRAIN, "entries", 500)
    monkeypatch.setitem(threads.GRAIN, "graphs", 1000)
    monkeypatch.setitem(threads.GRAIN, "whole graphs", 300)
    return mixed(np.random.default_rng(8), 250)


CASES = [
    ("marginals", "bp", {"restarts": 0, "tol": 1e-10, "damping": 0.1}),
    ("marginals", "bp", {"restarts": 0, "max_iter": 7, "schedule": "flooding", "damping": 0.4}),
    ("marginals", "junction_tree", {"factor_marginals": True}),
    ("marginal_map", "junction_tree", {}),
    ("map", "junction_tree", {}),
]


@pytest.mark.parametrize(("query", "method", "options"), CASES)
def test_neither_the_batch_nor_the_threads_change_an_answer(batch, query, method, options):
    evidence = [{0: 1} if k % 7 == 0 else None for k in range(len(batch))]
    one, many = (
        infer_many(batch, query, evidence=evidence, method=method, n_jobs=n, **options)
        for n in (1, 3)
    )
    for k in range(len(batch)):
        assert one[k].value == many[k].value
        assert one[k].iterations == many[k].iterations
        same(one[k], many[k], 0.0)
    for k in range(0, len(batch), 29):
        alone = infer(batch[k], query, evidence=evidence[k], method=method, **options)
        assert one[k].value == pytest.approx(alone.value, abs=1e-9)
        same(one[k], alone, 1e-9)


def same(a, b, tol):
    if a.marginals is not None:
        np.testing.assert_allclose(a.marginals.flat, b.marginals.flat, rtol=0, atol=tol)
    if a.factor_marginals is not None:
        np.testing.assert_allclose(a.factor_marginals.flat, b.factor_marginals.flat, 0, tol)
    if a.assignment is not None:
        np.testing.assert_array_equal(a.assignment.array, b.assignment.array)


def test_k_best_of_a_batch_are_those_of_each_graph():
    rng = np.random.default_rng(3)
    graphs = [chain(rng.normal(size=(n, 2)), rng.normal(size=(2, 2))) for n in (1, 2, 5)]
    for graph, answer in zip(graphs, infer_many(graphs, "map", k=3), strict=True):
        alone = infer(graph, "map", k=3)
        assert len(answer.k_best) == len(alone.k_best) == min(3, 2**graph.n_variables)
        for (value, labels), (true_value, true_labels) in zip(
            answer.k_best, alone.k_best, strict=True
        ):
            assert value == pytest.approx(true_value)
            assert dict(labels) == dict(true_labels)


@pytest.mark.parametrize("stretch", [1.0, 60.0, 400.0])
def test_messages_do_not_depend_on_how_tables_are_kept(batch, stretch):
    """Tables near 0, scaled tables and log tables: the same messages where all can be used."""
    graphs = [g for g in batch if g.wiring.forests()[0]]
    wiring = join([g.wiring for g in graphs])
    potentials = np.concatenate([g.potentials for g in graphs])
    lift = np.repeat(np.arange(wiring.n_factors) % 2 * stretch, np.diff(wiring.table_offsets))
    plain, lifted = (Messenger(Problem(wiring, t)) for t in (potentials, potentials + lift))
    for each in (plain, lifted):
        each.run(1, np.inf)
    np.testing.assert_allclose(plain.beliefs()[0], lifted.beliefs()[0], rtol=0, atol=1e-9)
    wide = potentials.copy()
    wide[:: len(wide) // 50] -= 2 * stretch
    exact = infer_many([g.with_potentials(t) for g, t in cut(graphs, wide)], method="junction_tree")
    spread = Messenger(Problem(wiring, wide), start=plain.messages)
    spread.run(1, np.inf)
    flat = np.concatenate([a.marginals.flat for a in exact])
    np.testing.assert_allclose(spread.beliefs()[0], flat, rtol=0, atol=1e-8)


def cut(graphs, flat):
    borders = np.cumsum([0, *(len(g.potentials) for g in graphs)])
    return [(g, flat[borders[i] : borders[i + 1]]) for i, g in enumerate(graphs)]


SWEEPS = [
    {},
    {"max_iter": 2},
    {"max_iter": 35, "tol": 1e-9, "damping": 0.7},  # more sweeps than each graph gets alone
    {"tol": 1e-12, "restarts": 1},
    {"factor_marginals": True},
]


@pytest.mark.parametrize("options", SWEEPS)
@pytest.mark.parametrize(
    ("query", "method"),
    [("marginals", "bp"), ("map", "bp"), ("partition", "bp"), ("partition", "trw")],
)
def test_graphs_one_after_the_other_or_all_together(batch, method, query, options, monkeypatch):
    monkeypatch.setattr(threads, "_WHOLE", 3)  # several calls of the kernel
    if query != "marginals":
        options = {key: x for key, x in options.items() if key != "factor_marginals"}
    given = {"method": method, "restarts": 0, "random_state": 0, **options}
    one = infer_many(batch, query, n_jobs=2, **given)
    monkeypatch.setattr(messenger, "separable", lambda plan: False)
    joint = infer_many(batch, query, **given)
    for a, b in zip(one, joint, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-9, abs=1e-9)
        assert (a.iterations, a.converged, a.ended) == (b.iterations, b.converged, b.ended)
        assert a.residual == pytest.approx(b.residual, rel=1e-4, abs=1e-9)
        same(a, b, 1e-7)


def test_an_interrupt_between_graphs_keeps_what_is_done(batch, monkeypatch):
    monkeypatch.setattr(threads, "_WHOLE", 3)
    calls = []

    def interrupted(*given):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(given)
        separate.solve_graphs(*given)

    monkeypatch.setattr(messenger, "solve_graphs", interrupted)
    whole = infer_many(batch, "marginals", method="bp", restarts=0, progress=lambda *of: None)
    answers = infer_many(batch, "marginals", method="bp", restarts=0)
    assert {a.ended for a in answers} == {"interrupted"}
    assert "interrupted" in answers[0].status
    done = [a.converged for a in answers]
    assert done[0]
    assert not done[-1]
    for answer, full in zip(answers, whole, strict=True):
        np.testing.assert_allclose(answer.marginals.array().sum(axis=1), 1.0)
        if answer.converged and answer.iterations:
            same(answer, full, 1e-7)
