"""The front door: what it refuses and in which words, and what the answers look like."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import pickle

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, chain, grid, infer, infer_many
from structlearn._src.common.errors import (
    ArgumentError,
    EvidenceError,
    GraphError,
    ImpossibleEvidenceError,
    QueryError,
    StructlearnError,
)
from structlearn._src.common.watch import Ending
from structlearn._src.inference import front
from structlearn._src.inference.base import Options
from structlearn._src.inference.messenger import Messenger
from structlearn._src.inference.names import Query
from structlearn._src.inference.pick import AUTO, METHODS


@pytest.fixture
def weather():
    """Rain, a wet street that nobody looks at, and an umbrella that somebody must look at."""
    graph = FactorGraph()
    graph.add_variable("rain", 2)
    graph.add_variable("street", 3, "hidden")
    graph.add_variable("umbrella", 2, "observed")
    graph.add_factor(["rain"], np.log([0.7, 0.3]))
    graph.add_factor(["rain", "street"], np.log([[0.8, 0.1, 0.1], [0.1, 0.3, 0.6]]))
    graph.add_factor(["rain", "umbrella"], np.log([[0.9, 0.1], [0.2, 0.8]]))
    return graph


@pytest.fixture
def loop():
    rng = np.random.default_rng(0)
    return grid(rng.normal(size=(3, 3, 2)), rng.normal(size=(12, 2, 2)))


@pytest.fixture
def no_work(monkeypatch):
    """Fail as soon as anything is computed."""

    def refuse(*_):
        raise AssertionError("work began before the arguments were checked")

    monkeypatch.setattr(front, "condition", refuse)


# ---- arguments ---------------------------------------------------------------------------


def bad(error, words, **arguments):
    return pytest.param(
        error, words, arguments, id="-".join(f"{k}={v}" for k, v in arguments.items())
    )


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        bad(ArgumentError, "query='mode' is not known; choose one of 'partition'", query="mode"),
        bad(ArgumentError, "schedule='random' is not known; choose one of", schedule="random"),
        bad(ArgumentError, r"tol=-1 must lie in \[0, inf\]", tol=-1),
        bad(ArgumentError, "tol='small' is not a number", tol="small"),
        bad(ArgumentError, "tol=nan must lie in", tol=float("nan")),
        bad(ArgumentError, r"damping=1.0 must lie in \[0, 1\)", damping=1.0),
        bad(ArgumentError, "damping=-0.1 must lie in", damping=-0.1),
        bad(ArgumentError, "factor_marginals=", factor_marginals=np.zeros(3)),
        bad(ArgumentError, "max_iter=0 must be a whole number of at least 1", max_iter=0),
        bad(ArgumentError, "max_iter=2.5 must be a whole number", max_iter=2.5),
        bad(ArgumentError, "max_iter=True must be a whole number", max_iter=True),
        bad(ArgumentError, "n_samples=0 must be a whole number of at least 1", n_samples=0),
        bad(ArgumentError, "burn_in=-1 must be a whole number of at least 0", burn_in=-1),
        bad(ArgumentError, "restarts=-1 must be a whole number", restarts=-1),
        bad(ArgumentError, "max_table=0 must be", max_table=0),
        bad(ArgumentError, "n_jobs=0 must be", n_jobs=0),
        bad(ArgumentError, "k=0 must be", k=0),
        bad(QueryError, "k=2 asks for the k best assignments; that is query='map'", k=2),
        bad(ArgumentError, "time_limit=0 must lie in", time_limit=0),
        bad(ArgumentError, "random_state='now' must be None, a whole number", random_state="now"),
        bad(ArgumentError, "temperatures=1.0 must be a pair", temperatures=1.0),
        bad(ArgumentError, "must be a pair", temperatures=(1.0,)),
        bad(ArgumentError, r"temperatures\[0\]=-1.0 must lie in", temperatures=(-1.0, 0.0)),
        bad(ArgumentError, r"temperatures\[1\]=nan must", temperatures=(1.0, float("nan"))),
        bad(ArgumentError, r"temperatures\[1\]='hot' is not a number", temperatures=(1.0, "hot")),
        bad(ArgumentError, r"temperatures\[0\]=inf must", temperatures=(float("inf"), 1.0)),
    ],
)
@pytest.mark.usefixtures("no_work")
def test_bad_arguments_are_named_before_any_work(loop, error, words, arguments):
    with pytest.raises(error, match=words) as caught:
        infer(loop, **arguments)
    assert isinstance(caught.value, StructlearnError)
    assert isinstance(caught.value, ValueError)


def test_unknown_options_and_methods(loop):
    with pytest.raises(ArgumentError, match="option='sweeps' is not known; choose one of"):
        infer_many([loop], sweeps=3)
    with pytest.raises(TypeError, match="sweeps"):
        infer(loop, sweeps=3)
    with pytest.raises(ArgumentError, match="method='magic' is not known; choose one of 'auto'"):
        infer(loop, method="magic")
    with pytest.raises(ArgumentError, match="method"):
        infer(loop, method=np.ones(3, bool))
    with pytest.raises(ArgumentError, match="method"):
        infer_many([], method="magic")


@pytest.mark.parametrize("query", ["map", "marginal_map"])
def test_temperatures_must_suit_the_query(loop, query):
    with pytest.raises(QueryError, match=f"query='{query}' has"):
        infer(loop, query, temperatures=(1.0, 1.0))


@pytest.mark.parametrize("thing", [None, "graph", 3, {}])
def test_only_graphs_are_graphs(thing):
    with pytest.raises(GraphError, match=f"a {type(thing).__name__} was given; need a FactorGraph"):
        infer(thing)


def test_start_of_the_wrong_size(loop):
    for start in (np.zeros(3), np.zeros((2, 33)), [0.0]):
        with pytest.raises(ArgumentError, match="but this graph has 66 message entries"):
            infer(loop, method="bp", start=start)


def test_a_method_that_cannot_answer_says_why(loop):
    for method, query, why in (
        ("tree", "map", "has a cycle"),
        ("chain", "map", "cycle|linked to more than two"),
        ("icm", "partition", "'map', .*not 'partition'"),
        ("gibbs", "map", "not 'map'"),
        ("bp", "samples", "not 'samples'"),
        ("portfolio", "marginals", "not 'marginals'"),
    ):
        with pytest.raises(QueryError, match=f"method='{method}' cannot be used here: .*({why})"):
            infer(loop, query, method=method)


def test_k_best_on_a_loop_are_found_exactly_or_refused(loop):
    assert [value for value, _ in infer(loop, "map", k=2).k_best] == pytest.approx(
        [value for value, _ in infer(loop, "map", k=2, method="enumeration").k_best]
    )
    with pytest.raises(QueryError, match="no method can answer this"):
        infer(loop, "map", k=2, max_table=1)
    for method in set(METHODS) - {"enumeration", "junction_tree"}:
        with pytest.raises(QueryError):
            infer(loop, "map", k=2, method=method)


def test_defaults_are_those_of_options():
    fields = {f.name: f.default for f in dataclasses.fields(Options)}
    given = {
        name: p.default for name, p in inspect.signature(infer).parameters.items() if name in fields
    }
    assert given == {name: fields[name] for name in given}
    assert set(fields) - set(given) == {"rng", "watch"}


def test_every_query_has_methods_to_try():
    assert set(AUTO) == set(Query)
    assert set(itertools.chain(*AUTO.values())) <= set(METHODS)


# ---- evidence ----------------------------------------------------------------------------


def test_evidence_must_make_sense(weather):
    for evidence, words in (
        ({"snow": 1}, "no variable named 'snow'; the graph has 3 variables named 'rain', 'street'"),
        ({"umbrella": 2}, "variable 'umbrella' cannot be in state 2; its states are 0 to 1"),
        ({"umbrella": -1}, "cannot be in state -1"),
        ({"umbrella": 0.5}, "cannot be in state 0.5"),
        ({"umbrella": "up"}, "cannot be in state 'up'"),
        ([("umbrella", 1)], "evidence is a list; need a mapping"),
        (1, "evidence is a int; need a mapping"),
        (None, "variable 'umbrella' is observed but has no evidence"),
        ({"rain": 1}, "variable 'umbrella' is observed but has no evidence"),
    ):
        with pytest.raises(EvidenceError, match=words):
            infer(weather, evidence=evidence)


def test_evidence_is_certain_in_the_answer(weather):
    answer = infer(weather, evidence={"umbrella": 1}, factor_marginals=True)
    np.testing.assert_allclose(answer.marginals["umbrella"], [0.0, 1.0])
    assert "'umbrella': [0.0, 1.0]" in repr(answer.marginals)
    rain = np.array([0.7 * 0.1, 0.3 * 0.8])
    assert answer.value == pytest.approx(np.log(rain.sum()))
    np.testing.assert_allclose(answer.marginals["rain"], rain / rain.sum())
    table = answer.factor_marginals[2]
    np.testing.assert_allclose(table, np.stack([[0, 0], rain / rain.sum()], axis=1))
    assert infer(weather, "map", evidence={"umbrella": 1}).assignment["umbrella"] == 1
    draws = infer(weather, "samples", evidence={"umbrella": 1}, n_samples=10, random_state=0)
    assert (draws.samples[:, 2] == 1).all()


def forbidding(n):
    """A chain whose neighbours must be equal."""
    return chain(np.zeros((n, 2)), np.where(np.eye(2, dtype=bool), 0.0, -np.inf))


@pytest.mark.parametrize("query", [*Query])
@pytest.mark.parametrize("method", ["auto", "chain", "tree", "junction_tree", "enumeration"])
def test_impossible_evidence_is_an_error(query, method):
    graph = forbidding(4)
    for evidence in ({0: 0, 1: 1}, {0: 0, 3: 1}):  # against a factor, and down the chain
        with pytest.raises(ImpossibleEvidenceError, match="the evidence contradicts the hard"):
            infer(graph, query, method=method, evidence=evidence)
    assert np.isfinite(infer(graph, query, method=method, evidence={0: 1, 3: 1}).value)


@pytest.mark.parametrize("method", ["bp", "trw", "portfolio", "icm"])
def test_evidence_against_one_factor_is_impossible_for_everybody(method):
    graph = forbidding(4)
    with pytest.raises(ImpossibleEvidenceError):
        infer(graph, "map", method=method, evidence={0: 0, 1: 1})


def test_an_impossible_graph_is_told_apart_from_impossible_evidence():
    graph = FactorGraph()
    graph.add_variable("x", 2)
    graph.add_factor(["x"], [-np.inf, -np.inf])
    with pytest.raises(ImpossibleEvidenceError, match="no way to satisfy the hard constraints"):
        infer(graph)
    fine = forbidding(3)
    with pytest.raises(ImpossibleEvidenceError, match="of graph 1"):
        infer_many([fine, fine, fine], evidence=[None, {0: 0, 2: 1}, None])


# ---- three different questions -----------------------------------------------------------


def test_joint_map_marginal_map_and_best_marginals_are_three_things():
    """P(y) is 0.26, 0.34, 0.40, 0 for 00, 01, 10, 11, and 10 spreads over four hidden states."""
    graph = FactorGraph()
    graph.add_variable("first", 2)
    graph.add_variable("second", 2)
    graph.add_variable("cause", 4, "hidden")
    joint = np.zeros((2, 2, 4))
    joint[0, 0] = [0.0, 0.13, 0.13, 0.0]
    joint[0, 1] = [0.34, 0.0, 0.0, 0.0]
    joint[1, 0] = [0.10, 0.10, 0.10, 0.10]
    with np.errstate(divide="ignore"):
        graph.add_factor(["first", "second", "cause"], np.log(joint))
    together = infer(graph, "map")
    assert dict(together.assignment) == {"first": 0, "second": 1, "cause": 0}
    assert together.value == pytest.approx(np.log(0.34))
    outputs = infer(graph, "marginal_map")
    assert dict(outputs.assignment) == {"first": 1, "second": 0}
    assert outputs.value == pytest.approx(np.log(0.40))
    marginals = infer(graph, "marginals").marginals
    np.testing.assert_allclose(marginals["first"], [0.60, 0.40])
    np.testing.assert_allclose(marginals["second"], [0.66, 0.34])
    each = [int(marginals[v].argmax()) for v in ("first", "second")]
    assert each == [0, 0]  # an assignment less probable than both others
    for method in ("enumeration", "junction_tree", "portfolio", "bp"):
        same = infer(graph, "marginal_map", method=method, random_state=0)
        assert dict(same.assignment) == dict(outputs.assignment)
        assert same.value == pytest.approx(outputs.value)


# ---- answers -----------------------------------------------------------------------------


def test_marginals_are_a_mapping(weather):
    answer = infer(weather, evidence={"umbrella": 0}, factor_marginals=True)
    marginals = answer.marginals
    assert list(marginals) == ["rain", "street", "umbrella"]
    assert len(marginals) == 3
    assert "rain" in marginals
    assert "snow" not in marginals
    with pytest.raises(KeyError, match="snow"):
        marginals["snow"]
    with pytest.raises(KeyError):
        marginals[0]  # a number is not a name here
    assert marginals.flat.shape == (7,)
    padded = marginals.array()
    assert padded.shape == (3, 3)
    np.testing.assert_allclose(padded.sum(axis=1), 1.0)
    assert padded[0, 2] == padded[2, 2] == 0.0
    tables = answer.factor_marginals
    assert len(tables) == 3
    assert list(tables) == [0, 1, 2]
    assert [t.shape for t in tables.values()] == [(2,), (2, 3), (2, 2)]
    for key in (3, -1, "rain"):
        with pytest.raises(KeyError):
            tables[key]


def test_assignments_are_a_mapping(weather):
    answer = infer(weather, "marginal_map", evidence={"umbrella": 0})
    assert dict(answer.assignment) == {"rain": 0, "umbrella": 0}
    assert len(answer.assignment) == 2
    assert answer.assignment.array.tolist() == [0, -1, 0]
    with pytest.raises(KeyError, match="street"):
        answer.assignment["street"]
    with pytest.raises(KeyError, match="snow"):
        answer.assignment["snow"]
    assert repr(answer.assignment) == "Assignment({'rain': 0, 'umbrella': 0})"
    long = infer(chain(np.zeros((12, 2)), np.eye(2)), "map").assignment
    assert repr(long).endswith(", ...})")


def test_an_answer_describes_itself(weather):
    answer = infer(weather, "partition", evidence={"umbrella": 0})
    assert answer.gap == 0.0
    assert repr(answer).startswith("Answer(partition by chain: value -0.371064, exact; exact on")
    with pytest.raises(dataclasses.FrozenInstanceError):
        answer.value = 1.0
    for field in ("marginals", "factor_marginals", "assignment", "k_best", "samples"):
        assert getattr(answer, field) is None
    assert infer(weather, evidence={"umbrella": 0}).factor_marginals is None


def test_k_best_come_in_order_and_are_the_best(weather):
    graph = chain(np.random.default_rng(1).normal(size=(4, 3)), np.eye(3))
    answer = infer(graph, "map", k=5)
    scores = np.sort(naive.joint(graph).ravel())[::-1]
    np.testing.assert_allclose([value for value, _ in answer.k_best], scores[:5])
    for value, assignment in answer.k_best:
        assert graph.score(assignment) == pytest.approx(value)
    assert dict(answer.k_best[0][1]) == dict(answer.assignment)
    given = infer(graph, "map", k=500, evidence={0: 0, 1: 1})
    assert len(given.k_best) == 9
    assert all(a[0] == 0 and a[1] == 1 for _, a in given.k_best)


def test_many_graphs_answer_in_order():
    assert infer_many([]) == []
    assert infer_many([], "map", evidence=[]) == []
    graphs = [chain(np.full((n, 2), float(n)), np.zeros((2, 2))) for n in (3, 1, 2)]
    answers = infer_many(graphs, "map", evidence=[None, {0: 1}, {1: 0}])
    assert [a.value for a in answers] == [9.0, 1.0, 4.0]
    assert [len(a.assignment) for a in answers] == [3, 1, 2]
    assert answers[1].assignment[0] == 1
    assert infer_many(graphs[0], "map")[0].value == 9.0  # one graph alone will do
    for evidence in ({0: 1}, [None], [None] * 4):
        with pytest.raises(EvidenceError, match="for 3 graphs give a list of 3 mappings"):
            infer_many(graphs, evidence=evidence)
    with pytest.raises(GraphError, match="a str was given"):
        infer_many([graphs[0], "graph"])


def test_answers_are_like_a_list():
    graphs = [chain(np.full((n, 2), float(n)), np.zeros((2, 2))) for n in (3, 1, 2)]
    answers = infer_many(graphs, "map")
    graphs[0].add_variables(1)  # answers stay as they were
    assert len(answers) == 3
    assert answers[0] is answers[0]
    assert answers[-1] is answers[2]
    assert answers[1:] == [answers[1], answers[2]]
    assert answers == list(answers)
    assert answers != list(answers)[1:]
    assert answers + answers == [*answers, *answers]
    assert answers[1:] + answers == [*answers[1:], *answers]
    assert [type(a.value) for a in answers] == [float] * 3
    assert [type(a.converged) for a in answers] == [bool] * 3
    assert list(answers[0].assignment) == [0, 1, 2]
    again = pickle.loads(pickle.dumps(answers))
    assert [dict(a.assignment) for a in again] == [dict(a.assignment) for a in answers]
    assert repr(answers) == repr(list(answers))
    with pytest.raises(IndexError, match="there is no answer 3; there are 3"):
        answers[3]


def test_many_graphs_share_one_method():
    path = chain(np.zeros((3, 2)), np.eye(2))
    ring = FactorGraph()
    ring.add_variables(3, 2)
    ring.add_factors([(0, 1), (1, 2), (2, 0)], np.eye(2))
    assert {a.method for a in infer_many([path, path])} == {"chain"}
    assert {a.method for a in infer_many([path, ring])} == {"junction_tree"}


def test_graphs_are_left_as_they_were(weather):
    before = weather.potentials.copy()
    for query, method in itertools.product(Query, ("auto", "enumeration")):
        infer(weather, query, method=method, evidence={"umbrella": 1}, n_samples=3)
    np.testing.assert_array_equal(weather.potentials, before)


# ---- chance, time and interrupts ---------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "method"),
    [("samples", "gibbs"), ("samples", "junction_tree"), ("marginals", "gibbs"),
     ("marginals", "bp"), ("map", "portfolio"), ("map", "icm")],
)  # fmt: skip
def test_the_same_random_state_gives_the_same_answer(loop, query, method):
    def ask(random_state):
        a = infer(loop, query, method=method, random_state=random_state, n_samples=20)
        parts = (a.samples, a.marginals and a.marginals.flat, a.assignment and a.assignment.array)
        return [a.value, *(p.tolist() for p in parts if p is not None)]

    assert ask(3) == ask(3) == ask(np.random.default_rng(3))
    if query == "samples":
        assert ask(3) != ask(4)
        assert ask(None) != ask(None)


@pytest.mark.parametrize(
    ("query", "method"), [("marginals", "bp"), ("map", "portfolio"), ("marginals", "gibbs")]
)
def test_a_time_limit_ends_the_work_with_a_result(query, method):
    rng = np.random.default_rng(2)
    graph = grid(rng.normal(size=(30, 30, 3)), rng.normal(0, 3, (1740, 3, 3)))
    answer = infer(
        graph, query, method=method, time_limit=1e-9, n_samples=10**6, burn_in=10**6, tol=0.0
    )
    assert "time limit reached" in answer.status
    assert answer.ended is Ending.TIME
    assert np.isfinite(answer.value)
    found = answer.marginals.flat if query == "marginals" else answer.assignment.array
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    ("query", "method"),
    [("marginals", "bp"), ("marginal_map", "bp"), ("map", "portfolio"),
     ("marginal_map", "portfolio"), ("marginals", "gibbs"), ("samples", "gibbs"), ("map", "icm")],
)  # fmt: skip
def test_progress_is_told_and_an_interrupt_keeps_what_there_is(query, method):
    graph = naive.random_graph(np.random.default_rng(3), 8, hidden=0.3 * (query == "marginal_map"))
    told = []

    def listen(fraction, words):
        told.append((fraction, words))

    infer(graph, query, method=method, progress=listen, random_state=0, tol=0.0, max_iter=30)
    assert told
    assert all(0.0 < fraction <= 1.0 for fraction, _ in told)
    assert all(isinstance(words, str) and words for _, words in told)

    def interrupt(*_):
        raise KeyboardInterrupt

    answer = infer(
        graph, query, method=method, progress=interrupt, random_state=0, tol=0.0, max_iter=30
    )
    assert "interrupted" in answer.status
    assert answer.ended is Ending.INTERRUPTED
    assert np.isfinite(answer.value)
    if query in ("map", "marginal_map"):
        assert answer.assignment
    elif query == "samples":
        assert len(answer.samples) >= 1
    else:
        sums = [m.sum() for m in answer.marginals.values()]
        np.testing.assert_allclose(sums, 1.0)


@pytest.mark.parametrize(("query", "method"), [("marginals", "tree"), ("map", "tree")])
def test_an_interrupted_pass_is_no_exact_answer(query, method, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    graph = naive.random_graph(np.random.default_rng(3), 8, kind="tree")
    monkeypatch.setattr(Messenger, "_propagate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        infer(graph, query, method=method)


def test_messages_warm_start_a_later_call(loop):
    first = infer(loop, method="bp", restarts=0)
    again = infer(loop, method="bp", restarts=0, start=first.messages)
    assert again.iterations == 1
    assert first.iterations > 1
