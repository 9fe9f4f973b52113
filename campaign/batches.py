"""Many graphs at once: what `infer_many` says about each is what `infer` says about it alone."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from campaign.base import expect
from campaign.graphs import TEMPERATURES, make_evidence, make_graph
from structlearn import FactorGraph, chain, grid, infer, infer_many
from structlearn._src.common import threads
from structlearn.errors import ImpossibleEvidenceError, QueryError

BATCHES = 20
EXACT = ("enumeration", "junction_tree", "tree", "chain", "auto", "auto")
FACTS = ("query", "method", "exact", "converged")


@contextmanager
def fine_grains(rng: np.random.Generator) -> Iterator[None]:
    """Let threads share work that is far too little for them, so that small data have many ranges."""
    before = dict(threads.GRAIN)
    threads.GRAIN.update({kind: int(rng.integers(2, 60)) for kind in before})
    try:
        yield
    finally:
        threads.GRAIN.update(before)


def check(rng: np.random.Generator) -> None:
    """Ask about some batches in which most graphs come again with other tables."""
    for _ in range(BATCHES):
        graphs = alike(rng)
        if rng.random() < 0.5:
            compare(rng, graphs)
        else:
            with fine_grains(rng):
                compare(rng, graphs)


def alike(rng: np.random.Generator) -> list[FactorGraph]:
    """Graphs of a few kinds, in any order, that share wirings, or are built alike, or are single."""
    kind = str(rng.choice(["tree", "forest", "loopy", "chain"]))
    hidden = rng.random() < 0.3
    kinds = [_kind(rng, kind, hidden) for _ in range(int(rng.integers(1, 4)))]
    graphs = []
    for which in rng.integers(len(kinds), size=int(rng.integers(1, 12))):
        first = kinds[which]
        way = rng.random()
        if way < 0.15:
            graphs.append(first)  # the same object
        elif way < 0.6:
            shift = rng.normal(size=len(first.potentials))
            graphs.append(first.with_potentials(first.potentials + shift))
        else:
            graphs.append(_again(rng, first))
    return graphs


def _kind(rng: np.random.Generator, kind: str, hidden: bool) -> FactorGraph:
    way = rng.random()
    if way < 0.2:
        n, states = (int(x) for x in rng.integers(1, 5, 2))
        return chain(rng.normal(size=(n, states)), rng.normal(size=(states, states)))
    if way < 0.3:
        rows, columns = (int(x) for x in rng.integers(1, 4, 2))
        return grid(rng.normal(size=(rows, columns, 2)), rng.normal(size=(2, 2)))
    graph = make_graph(rng, kind)
    if not hidden:
        graph.set_roles(dict.fromkeys(graph.names, "output"))
    return graph


def _again(rng: np.random.Generator, graph: FactorGraph) -> FactorGraph:
    """Build a graph like another, with names of its own half of the time."""
    named = rng.random() < 0.5
    other = FactorGraph()
    for v in range(graph.n_variables):
        role = ("output", "hidden")[int(graph.roles[v])]
        other.add_variable(f"v{v}" if named else None, int(graph.cards[v]), role)
    for f in range(graph.n_factors):
        table = graph.table(f)
        names = [other.names[v] for v in graph.scope(f)]
        other.add_factor(names, table + rng.normal(size=table.shape))
    return other


def compare(rng: np.random.Generator, graphs: list[FactorGraph]) -> None:
    """Ask one question about all, and about each alone."""
    query = str(rng.choice(["partition", "marginals", "map", "marginal_map"]))
    eps = TEMPERATURES[int(rng.integers(len(TEMPERATURES)))]
    options: dict[str, Any] = {"method": str(rng.choice(EXACT)), "n_jobs": int(rng.integers(1, 4))}
    if query in ("partition", "marginals"):
        options |= {"temperatures": eps, "factor_marginals": query == "marginals"}
    if query == "map" and rng.random() < 0.5:
        options["k"] = int(rng.integers(2, 8))
    given = [_named(graph, make_evidence(rng, graph)) for graph in graphs]
    alone = [
        _ask(graph, query, evidence, options) for graph, evidence in zip(graphs, given, strict=True)
    ]
    try:
        together = infer_many(graphs, query, evidence=given, **options)
    except (QueryError, ImpossibleEvidenceError) as error:
        # Graphs of outputs alone and of hidden variables alone have two temperatures together.
        # Enumeration finds the k best of one graph at a time.
        some = ("tree", "chain", "enumeration") if "k" in options else ("tree", "chain")
        refused = isinstance(error, QueryError) and options["method"] in some
        asked = any(isinstance(one, type(error)) for one in alone)
        expect(asked or refused, error, alone, _told(graphs))
        return
    about = f"{query} {options} {given}"
    for one in alone:
        expect(not isinstance(one, Exception), one, about, _told(graphs))
    copies(rng, graphs, together)
    for graph, one, many in zip(graphs, alone, together, strict=True):
        same(graph, one, many, about, options["method"] == "auto")


def _named(graph: FactorGraph, evidence: dict[int, int] | None) -> dict[Any, int] | None:
    return evidence and {graph.names[v]: state for v, state in evidence.items()}


def _ask(graph: FactorGraph, query: str, evidence: Any, options: dict[str, Any]) -> Any:
    try:
        return infer(graph, query, evidence=evidence, **options)
    except (QueryError, ImpossibleEvidenceError) as error:
        return error


def _told(graphs: list[FactorGraph]) -> str:
    return str([(g.cards.tolist(), g.roles.tolist(), g.wiring.scopes.tolist()) for g in graphs])


def copies(rng: np.random.Generator, graphs: list[FactorGraph], answers: Any) -> None:
    """Answers are like a list, in whatever order they are looked at, and copied before or after."""
    n = len(graphs)
    early = pickle.loads(pickle.dumps(answers)) if rng.random() < 0.5 else copy.deepcopy(answers)
    if rng.random() < 0.5:
        for graph in graphs:  # answers stay as they are when the user goes on building
            graph.add_factor([graph.names[0]], np.zeros(graph.cards[0]))
            graph.add_variable(None if isinstance(graph.names, range) else object(), 2)
    start, stop = (int(x) for x in rng.integers(-n - 1, n + 2, 2))
    step = int(rng.choice([-2, -1, 1, 2]))
    expect(answers[start:stop:step] == list(answers)[start:stop:step], start, stop, step)
    which = int(rng.integers(-n, n))
    expect(answers[which] is answers[which % n], which, n)
    expect(answers == list(answers) and len(answers) == n, "answers and their list")
    late = copy.deepcopy(answers)
    for other in (early, late):
        expect(len(other) == n, "a copy of another length")
        for one, two in zip(answers, other, strict=True):
            expect(repr(one) == repr(two), one, two)


def same(graph: FactorGraph, one: Any, many: Any, about: str, chosen: bool) -> None:
    """Two answers about a graph agree; where the method was chosen it may be another."""
    size = 1.0 + float(np.abs(graph.potentials[np.isfinite(graph.potentials)]).max(initial=0.0))
    close = 1e-9 + 1e-11 * size * (1 + graph.n_factors)
    for name in ("value", "lower", "upper"):
        a, b = getattr(one, name), getattr(many, name)
        expect(abs(a - b) <= close, f"{name} {a} alone, {b} with others:", about)
    for name in FACTS:
        a, b = getattr(one, name), getattr(many, name)
        expect(a == b or (chosen and name == "method"), f"{name} {a} alone, {b}:", about)
    for name in ("marginals", "factor_marginals"):
        a, b = getattr(one, name), getattr(many, name)
        expect((a is None) == (b is None), name, about)
        if a is not None and size < 1e5:
            expect(list(a) == list(b), "names:", about)
            expect(np.allclose(a.flat, b.flat, atol=1e-6), name, a.flat, b.flat, about)
    expect((one.assignment is None) == (many.assignment is None), "assignment:", about)
    if one.assignment is not None:
        expect(list(one.assignment) == list(many.assignment), "names assigned:", about)
    expect((one.k_best is None) == (many.k_best is None), "k best:", about)
    if one.k_best is not None:
        values = [[value for value, _ in found.k_best] for found in (one, many)]
        expect(len(values[0]) == len(values[1]), values, about)
        expect(np.allclose(*values, rtol=0.0, atol=close), values, about)
