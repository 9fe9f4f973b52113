"""Every exact method against enumeration on 2,000 random small graphs."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from structlearn import infer, infer_many
from structlearn._src.common.errors import ImpossibleEvidenceError
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.pick import METHODS

KINDS = ("tree", "forest", "loopy", "chain")
ALL = ("enumeration", "chain", "tree", "junction_tree", "auto")
TEMPERATURES = ((1.0, 1.0), (0.0, 0.0), (0.0, 1.0), (0.3, 0.7), (0.5, 0.5), (1.0, 0.0))
CLOSE = 1e-8


def some_graph(rng, kind):
    """Mixed sizes, cardinalities, arities, roles and hard constraints."""
    graph = naive.random_graph(
        rng,
        n_variables=int(rng.integers(1, 7)),
        min_card=1,
        max_card=int(rng.integers(2, 5)) if kind == "chain" else 3,
        max_arity=int(rng.integers(2, 5)),
        kind=kind,
        zeros=float(rng.choice([0.0, 0.0, 0.3])),
        hidden=float(rng.choice([0.0, 0.4, 0.7, 1.0])),
    )
    return naive.tied_down(rng, graph)


def some_graphs(chunk, count):
    rng = np.random.default_rng(chunk)
    return rng, [some_graph(rng, KINDS[chunk % len(KINDS)]) for _ in range(count)]


def some_evidence(rng, graph):
    chosen = np.flatnonzero(rng.random(graph.n_variables) < 0.4)
    return {int(v): int(rng.integers(graph.cards[v])) for v in chosen}


class Case:
    """One graph, its evidence, and the right answers from its full joint table."""

    def __init__(self, graph, evidence=None):
        self.graph, self.evidence = graph, evidence
        self.table = naive.observed(naive.joint(graph), evidence or {})
        self.best = self.table.max()
        self.summed = naive.marginal_map_values(graph, table=self.table)
        if self.best > -np.inf:
            self.right = {eps: self.value_and_marginals(*eps) for eps in TEMPERATURES}

    def value_and_marginals(self, *eps):
        value, distribution = naive.value_and_distribution(self.graph, *eps, self.table)
        scopes = [[v] for v in range(self.graph.n_variables)]
        scopes += [self.graph.scope(f).tolist() for f in range(self.graph.n_factors)]
        parts = [naive.marginal(distribution, s).ravel() for s in scopes]
        return value, np.concatenate(parts)

    def taken_by(self, method, query, eps):
        """Whether the method takes the graph; given evidence it takes it all the more."""
        if method not in ("chain", "tree"):
            return True
        problem = Problem(self.graph.wiring, self.graph.potentials, *eps)
        return not METHODS[method].refuses(problem, query, Options())

    def check(self, answer, query, eps):
        value, marginals = self.right[eps]
        assert answer.exact
        assert answer.lower == answer.upper == answer.value
        assert abs(answer.value - value) < CLOSE
        if query == "marginals":
            mine = np.concatenate([answer.marginals.flat, answer.factor_marginals.flat])
            assert np.abs(mine - marginals).max() < CLOSE
        elif query == "map":
            assert list(answer.assignment) == list(range(self.graph.n_variables))
            assert self.table[tuple(answer.assignment.values())] > self.best - CLOSE
        elif query == "marginal_map":
            assert list(answer.assignment) == np.flatnonzero(self.graph.roles != 1).tolist()
            assert self.summed[tuple(answer.assignment.values())] > self.summed.max() - CLOSE


def questions():
    for eps in TEMPERATURES:
        yield "marginals", eps
        yield "partition", eps
    yield "map", (0.0, 0.0)
    yield "marginal_map", (0.0, 1.0)


def check_all(cases, method):
    """Ask everything of the graphs that a method takes; returns how many answers were checked."""
    count = 0
    for query, eps in questions():
        mine = [c for c in cases if c.taken_by(method, query, eps)]
        for case, answer in zip(mine, ask(mine, query, method, eps), strict=True):
            case.check(answer, query, eps)
        count += len(mine)
    return count


def ask(cases, query, method, eps):
    options = {"temperatures": eps, "method": method, "factor_marginals": True}
    if method == "auto":  # the best for each graph, not one for all
        return [infer(c.graph, query, evidence=c.evidence, **options) for c in cases]
    # Graphs with only outputs and with only hidden variables each have one temperature, but
    # together they would have two.
    groups = [[c for c in cases if (c.graph.roles == 1).all() == hidden] for hidden in (0, 1)]
    found = {}
    for group in groups:
        graphs, evidence = [c.graph for c in group], [c.evidence for c in group]
        answers = infer_many(graphs, query, evidence=evidence, **options)
        found.update({id(c): a for c, a in zip(group, answers, strict=True)})
    return [found[id(c)] for c in cases]


def check_counts(chunk, cases, counts):
    everything = len(list(questions())) * len(cases)
    kind = KINDS[chunk % len(KINDS)]
    assert counts["auto"] == counts["enumeration"] == counts["junction_tree"] == everything
    assert counts["tree"] > everything / 4 or kind == "loopy"
    assert counts["chain"] > everything / 4 or kind != "chain"


@pytest.mark.parametrize("chunk", range(20))
def test_exact_methods_agree_with_enumeration(chunk):
    _, graphs = some_graphs(chunk, 100)
    cases = [Case(g) for g in graphs]
    check_counts(chunk, cases, {m: check_all(cases, m) for m in ALL})


@pytest.mark.parametrize("chunk", range(20, 28))
def test_exact_methods_agree_with_enumeration_given_evidence(chunk):
    rng, graphs = some_graphs(chunk, 100)
    cases = [Case(g, some_evidence(rng, g)) for g in graphs]
    impossible = [c for c in cases if c.best == -np.inf]
    for case in impossible:
        for query in ("partition", "map", "marginal_map"):
            with pytest.raises(ImpossibleEvidenceError, match="evidence contradicts"):
                infer(case.graph, query, evidence=case.evidence)
    possible = [c for c in cases if c.best > -np.inf]
    assert len(possible) > 50
    check_counts(chunk, possible, {m: check_all(possible, m) for m in ALL})
