"""One suite that every method of inference passes: it refuses in words, or keeps its word."""

import numpy as np
import pytest

import naive
from structlearn._src.inference.base import Options, Problem
from structlearn._src.inference.names import Query
from structlearn._src.inference.pick import AUTO, METHODS

EXACT = ("chain", "tree", "junction_tree", "enumeration")


def _problems(query):
    rng = np.random.default_rng(7)
    for kind in ("chain", "tree", "forest", "loopy"):
        for hidden in (0.0, 0.5):
            for zeros in (0.0, 0.15):
                graph = naive.random_graph(rng, 5, 3, 3, kind, zeros, hidden)
                yield graph, Problem(graph.wiring, graph.potentials, *query.temperatures)


def _accepted(method, query):
    options = Options(n_samples=50, rng=np.random.default_rng(0))
    for graph, problem in _problems(query):
        if not METHODS[method].refuses(problem, query, options):
            yield graph, problem, METHODS[method].run(problem, query, options)


every_pair = pytest.mark.parametrize("method", METHODS)
every_query = pytest.mark.parametrize("query", [*Query])


@every_pair
@every_query
def test_a_refusal_is_a_sentence(method, query):
    for _, problem in _problems(query):
        reason = METHODS[method].refuses(problem, query, Options())
        assert isinstance(reason, str)
        assert reason == "" or len(reason.split()) > 3


@every_pair
@every_query
def test_results_have_the_promised_shapes(method, query):
    for _, problem, result in _accepted(method, query):
        wiring = problem.wiring
        assert result.value.shape == (1,)
        assert result.status
        if query == "marginals":
            assert result.beliefs.shape == (wiring.belief_offsets[-1],)
            sums = np.add.reduceat(result.beliefs, wiring.belief_offsets[:-1])
            assert sums == pytest.approx(np.ones(wiring.n_variables), abs=1e-6)
        if query == "samples":
            assert result.draws.shape == (50, wiring.n_variables)
            assert (result.draws >= 0).all()
            assert (result.draws < wiring.cards).all()
        if query in ("map", "marginal_map"):
            open_end = (wiring.roles == 1) & (query == "marginal_map")
            assert ((result.labels == -1) == open_end).all()
            assert (result.labels < wiring.cards).all()


@every_pair
@every_query
def test_bounds_bracket_the_true_value(method, query):
    for graph, _, result in _accepted(method, query):
        true, _ = naive.value_and_distribution(graph, *query.temperatures)
        if result.exact:
            assert result.value[0] == pytest.approx(true, abs=1e-8)
        if result.lower is not None:
            assert result.lower[0] <= true + 1e-8
        if result.upper is not None:
            assert result.upper[0] >= true - 1e-8


@every_pair
@every_query
def test_problems_are_not_changed(method, query):
    options = Options(n_samples=5, rng=np.random.default_rng(0))
    for _, problem in _problems(query):
        before = problem.potentials.copy()
        if not METHODS[method].refuses(problem, query, options):
            METHODS[method].run(problem, query, options)
        assert (problem.potentials == before).all()


@pytest.mark.parametrize("method", EXACT)
@every_query
def test_exact_methods_say_so(method, query):
    assert all(result.exact for _, _, result in _accepted(method, query))


@every_query
def test_the_last_resort_accepts_everything(query):
    last = METHODS[AUTO[query][-1]]
    assert not any(last.refuses(problem, query, Options()) for _, problem in _problems(query))
