"""What every ending of every method promises, on problems made to break it, by enumeration.

The promises are those of docs/guide/methods.md, "What an answer guarantees".
"""

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, infer, pairwise
from structlearn._src.inference.names import METHODS, Query
from structlearn.errors import ArgumentError, ImpossibleEvidenceError, QueryError

SIGN = np.array([[1.0, -1.0], [-1.0, 1.0]])


def frustrated(rng):
    """Odd rings and complete graphs whose neighbours all want to differ."""
    n = int(rng.choice([3, 5]))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if j - i in (1, n - 1) or n == 5]
    return pairwise(0.1 * rng.normal(size=(n, 2)), pairs, -rng.uniform(1, 4) * SIGN)


def tied(rng):
    """Symmetric: every assignment has a mirror image of the same score."""
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    return pairwise(np.zeros((4, 2)), pairs, float(rng.choice([0.0, 1.0, -2.0])) * SIGN)


def constrained(rng):
    """A third of all entries are forbidden; sometimes nothing is left."""
    return naive.random_graph(rng, 5, 3, 3, "loopy", zeros=0.35, hidden=0.3)


def huge(rng):
    """Scores of 1e11, so that differences of 1 are all that counts."""
    graph = naive.random_graph(rng, 5, 3, 2, "loopy", hidden=0.3)
    lift = rng.choice([-1e11, 1e11], graph.n_factors)
    sizes = np.diff(graph.wiring.table_offsets)
    return graph.with_potentials(graph.potentials + np.repeat(lift, sizes))


def steep(rng):
    """Differences of 1e6: probabilities are 0 or 1."""
    graph = naive.random_graph(rng, 5, 3, 3, "loopy", hidden=0.3)
    return graph.with_potentials(1e6 * graph.potentials)


def tree(rng):
    return naive.random_graph(rng, 6, 3, 3, "forest", zeros=0.1, hidden=0.3)


FAMILIES = {f.__name__: f for f in (frustrated, tied, constrained, huge, steep, tree)}
#: Temperatures of outputs and hidden variables, beside those that a query implies.
EPS = {
    "marginals": [None, (1e-3, 1e-3), (1e-9, 1e-9), (0.0, 0.0), (1.0, 0.2)],
    "partition": [None, (1e-9, 1e-9), (5.0, 5.0), (0.3, 1.0)],
    "marginal_map": [None, (0.0, 1e-6)],
}


def cases(query):
    for name, family in FAMILIES.items():
        rng = np.random.default_rng(len(name))
        for _ in range(3):
            graph = family(rng)
            for eps in EPS.get(query, [None]):
                yield graph, eps


def answers(method, query):
    """Graphs, temperatures, true values and distributions, and what the method says."""
    for graph, eps in cases(query):
        both = eps or Query(query).temperatures
        true, distribution = naive.value_and_distribution(graph, *both)
        options = {"temperatures": eps, "n_samples": 60, "burn_in": 20, "random_state": 0}
        try:
            answer = infer(graph, query, method=method, max_iter=200, **options)
        except QueryError:
            continue
        except ImpossibleEvidenceError:
            assert true == -np.inf
            continue
        yield graph, both, true, distribution, answer


def rounding(graph):
    """What sums of the potentials of a graph are known to."""
    sizes = np.abs(graph.potentials[np.isfinite(graph.potentials)])
    return 1e-8 + 1e-15 * len(sizes) * sizes.max(initial=0.0)


def assert_marginals(graph, answer, distribution, atol):
    for v in range(graph.n_variables):
        right = naive.marginal(distribution, [v])
        np.testing.assert_allclose(answer.marginals[v], right, atol=atol)


every_method = pytest.mark.parametrize("method", METHODS)
every_query = pytest.mark.parametrize("query", [*Query])


@every_method
@every_query
def test_bounds_and_exactness(method, query):
    for graph, eps, true, _, answer in answers(method, query):
        slack = rounding(graph)
        assert not np.isnan([answer.value, answer.lower, answer.upper]).any()
        assert answer.lower <= true + slack
        assert answer.upper >= true - slack
        if answer.exact:
            assert true > -np.inf
            assert answer.value == pytest.approx(true, abs=slack)
            assert answer.converged
            assert answer.ended == "done"
        if query == "map" or (query == "marginal_map" and answer.lower > -np.inf):
            assert answer.value == answer.lower
        if method in ("chain", "tree", "junction_tree", "enumeration"):
            assert answer.exact
        if eps == (1.0, 1.0) and method == "bp" and query == "partition":
            assert answer.exact == bool(graph.wiring.forests()[0] and answer.converged)


@every_method
@pytest.mark.parametrize("query", ["map", "marginal_map"])
def test_values_belong_to_assignments(method, query):
    for graph, eps, _, _, answer in answers(method, query):
        labels = answer.assignment.array
        if query == "map":
            score = naive.score(graph, labels)
        else:
            given = {v: s for v, s in enumerate(labels.tolist()) if s >= 0}
            table = naive.observed(naive.joint(graph), given)
            score, _ = naive.value_and_distribution(graph, 0.0, eps[1], table)
        assert answer.value == pytest.approx(score, abs=rounding(graph))


@every_method
def test_marginals_are_distributions_and_exact_ones_are_right(method):
    for graph, eps, true, distribution, answer in answers(method, "marginals"):
        sums = [answer.marginals[v].sum() for v in range(graph.n_variables)]
        unknown = "no possible state" in answer.status
        assert unknown or sums == pytest.approx(np.ones(len(sums)), abs=1e-9)
        scores = naive.joint(graph)
        top = np.sort(scores[np.isfinite(scores)])
        # Where temperatures are as small as rounding, ties are broken by it.
        clear = eps[0] > 0 or len(top) < 2 or top[-1] - top[-2] > 1e-6
        if answer.exact and true > -np.inf and clear and min(eps) != 1e-9:
            known = rounding(graph) / (min(eps) or 1.0)
            assert_marginals(graph, answer, distribution / distribution.sum(), known)


@every_method
@every_query
def test_convergence_and_endings(method, query):
    for graph, _, _, _, answer in answers(method, query):
        assert answer.status
        assert answer.ended in ("done", "limit")
        if method in ("bp", "trw"):
            assert answer.converged == (answer.ended == "done")
            assert not answer.converged or answer.residual <= 1e-6
        if method == "icm" and answer.converged:
            start = answer.assignment.array.tolist()
            assert naive.steepest_flip(graph, start) is None or rounding(graph) > 1e-6
            assert answer.ended == "done"
        if method == "icm" and not answer.converged:
            assert answer.ended == "limit"
        if method == "gibbs" and answer.converged:
            assert answer.residual <= 0.1


@pytest.mark.parametrize("eps", [1e-300, 1e-12, 5e-10])
def test_temperatures_that_rounding_takes_for_zero_are_refused(eps):
    graph = tied(np.random.default_rng(0))
    for both in ((eps, 1.0), (1.0, eps)):
        with pytest.raises(ArgumentError, match="temperatures"):
            infer(graph, "marginals", temperatures=both)


def test_a_portfolio_that_the_clock_ends_has_not_converged():
    graph = frustrated(np.random.default_rng(0))
    answer = infer(graph, "map", method="portfolio", time_limit=1e-9, random_state=0)
    assert answer.ended == "time"
    assert not answer.converged
    assert answer.value == pytest.approx(naive.score(graph, answer.assignment.array))


def test_icm_that_runs_out_of_sweeps_says_so():
    graph = FactorGraph()
    graph.add_variables(30, 2)
    graph.add_factor([0], [0.0, 9.0])
    graph.add_factors([[i, i + 1] for i in reversed(range(29))], 5.0 * np.eye(2))
    answer = infer(graph, "map", method="icm", max_iter=1, restarts=0, schedule="steepest")
    assert answer.converged == (answer.ended == "done")
