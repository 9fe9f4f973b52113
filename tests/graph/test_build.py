"""FactorGraph: what goes in, what is refused and in which words, what comes out."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from structlearn import FactorGraph
from structlearn._src.common.errors import (
    ArgumentError,
    EvidenceError,
    GraphError,
    PotentialError,
    StructlearnError,
)


@pytest.fixture
def graph():
    out = FactorGraph()
    out.add_variable("a", 2)
    out.add_variable("b", 3, "hidden")
    out.add_variable("c", 1, "observed")
    out.add_factor(["a", "b"], np.arange(6.0).reshape(2, 3))
    out.add_factor(["b"], [0.5, -np.inf, 0.25])
    return out


# ---- variables ---------------------------------------------------------------------------


def test_variables_by_name(graph):
    assert graph.n_variables == 3
    assert graph.names == ("a", "b", "c")
    assert graph.cards.tolist() == [2, 3, 1]
    assert graph.roles.tolist() == [0, 1, 2]
    assert [graph.variable(n) for n in "abc"] == [0, 1, 2]


def test_variables_without_names_are_called_by_their_index():
    graph = FactorGraph()
    assert graph.add_variable() == 0
    assert graph.add_variables(3, [2, 3, 4]).tolist() == [1, 2, 3]
    assert list(graph.names) == [0, 1, 2, 3]
    assert graph.cards.tolist() == [2, 2, 3, 4]
    assert graph.variable(np.int64(2)) == 2
    assert graph.add_variables(["x", ("y", 1)], 5, "hidden").tolist() == [4, 5]
    assert graph.add_variable() == 6
    assert list(graph.names) == [0, 1, 2, 3, "x", ("y", 1), 6]
    assert graph.variable(("y", 1)) == 5


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (GraphError, "already a variable named 'a'; names are unique", {"names": ["a"]}),
        (GraphError, "already a variable named 'z'", {"names": ["z", "z"]}),
        (
            GraphError,
            "states=0: every variable needs a whole number >= 1",
            {"names": 2, "states": 0},
        ),
        (GraphError, "states=1.5", {"names": 2, "states": 1.5}),
        (GraphError, "states='two'", {"names": 2, "states": "two"}),
        (
            GraphError,
            "3 state counts were given for 2 variables",
            {"names": 2, "states": [2, 2, 2]},
        ),
        (
            ArgumentError,
            "role='latent' is not known; choose one of",
            {"names": 1, "role": "latent"},
        ),
        (ArgumentError, "names=-1 must be a whole number", {"names": -1}),
    ],
)
def test_bad_variables_are_refused_and_change_nothing(graph, error, words, arguments):
    with pytest.raises(error, match=words):
        graph.add_variables(**arguments)
    assert graph.n_variables == len(graph.names) == len(graph.cards) == 3
    assert graph.add_variable("z") == 3


def test_a_name_that_does_not_exist_is_answered_with_those_that_do(graph):
    with pytest.raises(
        GraphError, match="no variable named 'q'; the graph has 3 variables named 'a'"
    ):
        graph.variable("q")
    numbered = FactorGraph()
    with pytest.raises(GraphError, match="the graph has 0 variables"):
        numbered.variable(0)
    numbered.add_variables(4)
    for name in (4, -1, "a", 1.0):
        with pytest.raises(GraphError, match="has 4 variables named 0 to 3"):
            numbered.variable(name)


def test_roles_can_be_changed(graph):
    assert graph.set_roles({"a": "hidden", "c": "output"}) is graph
    assert graph.roles.tolist() == [1, 1, 0]
    assert graph.wiring.roles.tolist() == [1, 1, 0]
    with pytest.raises(ArgumentError, match="role='target'"):
        graph.set_roles({"a": "target"})
    with pytest.raises(GraphError, match="no variable named 'z'"):
        graph.set_roles({"z": "output"})


# ---- factors -----------------------------------------------------------------------------


def test_factors_keep_their_tables_and_scopes(graph):
    assert graph.n_factors == 2
    assert graph.scope(0).tolist() == [0, 1]
    np.testing.assert_array_equal(graph.table(0), [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(graph.table(1), [0.5, -np.inf, 0.25])
    np.testing.assert_array_equal(graph.potentials, [0, 1, 2, 3, 4, 5, 0.5, -np.inf, 0.25])
    for factor in (2, -1):
        with pytest.raises(GraphError, match=f"there is no factor {factor}; the graph has 2"):
            graph.scope(factor)


def test_the_order_of_a_scope_is_the_order_of_the_axes():
    graph = FactorGraph()
    graph.add_variables(["a", "b"], [2, 3])
    table = np.random.default_rng(0).normal(size=(3, 2))
    graph.add_factor(["b", "a"], table)
    assert graph.score({"a": 1, "b": 2}) == table[2, 1]


def test_many_factors_at_once():
    graph = FactorGraph()
    graph.add_variables(4, 2)
    each = np.random.default_rng(1).normal(size=(3, 2, 2))
    assert graph.add_factors([(0, 1), (1, 2), (2, 3)], each).tolist() == [0, 1, 2]
    assert graph.add_factors([(0, 3), (0, 2)], each[0]).tolist() == [3, 4]  # one table for all
    assert graph.add_factors(np.empty((0, 2), int), each[0]).tolist() == []
    np.testing.assert_array_equal(graph.table(1), each[1])
    np.testing.assert_array_equal(graph.table(4), each[0])


@pytest.mark.parametrize(
    ("scope", "words"),
    [
        (["a", "q"], "no variable named 'q'"),
        (["a", "a"], "variable 0 occurs twice in the scope of factor 0"),
        ([], "empty scope; need >= 1 variable"),
        ("ab", "scope='ab' must be a list of variable names"),
        (7, "scope=7 must be a list"),
        ([0, 1], "no variable named 0"),
    ],
)
def test_bad_scopes_are_refused(graph, scope, words):
    with pytest.raises(GraphError, match=words):
        graph.add_factor(scope, np.zeros((2, 2)) if scope else 0.0)
    assert graph.n_factors == 2


@pytest.mark.parametrize(
    ("scopes", "words"),
    [
        ([[0, 3]], "the scope of factor 0 names variable 3, but there are 3 variables"),
        ([[0, -1]], "the scope of factor 0 names variable -1"),
        ([[0, 1], [1, 1]], "variable 1 occurs twice in the scope of factor 1"),
        ([[0.0, 1.0]], r"scopes must be an integer array of shape \(factors, arity\)"),
        ([0, 1], "scopes must be an integer array"),
    ],
)
def test_bad_scopes_by_index_are_refused(graph, scopes, words):
    with pytest.raises(GraphError, match=words):
        graph.add_factors(scopes, np.zeros((2, 3)))
    assert graph.n_factors == 2


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (np.zeros((3, 2)), r"a table of shape \(3, 2\) was given for the factor over \['a', 'b'\]"),
        (np.zeros(2), r"whose variables have \(2, 3\) states: the shapes must agree"),
        (np.zeros((2, 3, 1)), r"shape \(2, 3, 1\)"),
        ([[0.0, 1.0, np.nan], [0.0, 0.0, 0.0]], r"is NaN at \(0, 2\); log potentials must be"),
        ([[0.0, 1.0, 2.0], [0.0, np.inf, 0.0]], r"is \+inf at \(1, 1\); to force a combination"),
        ([[0.0, 1.0, 2.0], [0.0, 0.0]], "is not an array of numbers"),
        ("table", "is not an array of numbers"),
        (np.ma.masked_equal(np.arange(6.0).reshape(2, 3), 4.0), "masks some entries"),
    ],
)
def test_bad_tables_are_refused(graph, table, words):
    with pytest.raises(PotentialError, match=words) as caught:
        graph.add_factor(["a", "b"], table)
    assert isinstance(caught.value, StructlearnError)
    assert isinstance(caught.value, ValueError)
    assert graph.n_factors == 2


def test_bad_tables_of_many_factors_are_refused(graph):
    for tables in (np.zeros((2, 3, 2)), np.zeros((2, 2, 2, 3))):
        with pytest.raises(PotentialError, match="the shapes must agree"):
            graph.add_factors([(0, 1), (0, 1)], tables)
    with pytest.raises(PotentialError, match="3 tables"):
        graph.add_factors([(0, 1), (0, 1)], np.zeros((3, 2, 3)))
    with pytest.raises(PotentialError, match=r"tables is NaN at \(1, 0, 0\)"):
        graph.add_factors([(0, 1), (0, 1)], np.stack([np.zeros((2, 3)), np.full((2, 3), np.nan)]))


def test_too_many_variables_in_one_factor():
    graph = FactorGraph()
    graph.add_variables(61, 1)
    with pytest.raises(GraphError, match="has 61 variables; at most 60"):
        graph.add_factor(list(range(61)), np.zeros(1))
    graph.add_factor(list(range(30)), np.zeros((1,) * 30))


def test_tables_are_copied_from_their_owner(graph):
    table = np.zeros((2, 3))
    graph.add_factor(["a", "b"], table)
    table[:] = 9.0
    assert graph.table(2).max() == 0.0


# ---- scores and labels -------------------------------------------------------------------


def test_score_of_an_assignment():
    rng = np.random.default_rng(2)
    graph = naive.random_graph(rng, 5, max_arity=4)
    for labels in naive.assignments(graph.cards):
        assert graph.score(labels) == pytest.approx(naive.score(graph, labels))
        assert graph.score(dict(enumerate(labels))) == pytest.approx(naive.score(graph, labels))


def test_labels_are_checked(graph):
    assert graph.labels({"b": 2}).tolist() == [-1, 2, -1]
    assert graph.labels([1, 0, 0]).tolist() == [1, 0, 0]
    with pytest.raises(EvidenceError, match="says nothing about variable 'b'"):
        graph.score({"a": 1, "c": 0})
    with pytest.raises(EvidenceError, match=r"an array of shape \(2,\) was given"):
        graph.score([0, 1])
    with pytest.raises(EvidenceError, match="variable 'b' cannot be in state 3; its states are 0"):
        graph.score([0, 3, 0])
    with pytest.raises(EvidenceError, match="no variable named 'q'"):
        graph.labels({"q": 0})


# ---- from arrays, and other potentials ---------------------------------------------------


def test_from_arrays_is_the_same_graph():
    rng = np.random.default_rng(3)
    graph = naive.random_graph(rng, 6, max_arity=4, hidden=0.5)
    w = graph.wiring
    same = FactorGraph.from_arrays(w.cards, w.scope_offsets, w.scopes, graph.potentials, w.roles)
    for name in ("cards", "roles", "potentials"):
        np.testing.assert_array_equal(getattr(same, name), getattr(graph, name))
    for f in range(graph.n_factors):
        np.testing.assert_array_equal(same.table(f), graph.table(f))
    named = FactorGraph.from_arrays([2], [0, 1], [0], [0.0, 1.0], names=["only"])
    assert named.variable("only") == 0
    named.add_variable("more")
    assert named.n_variables == 2


@pytest.mark.parametrize(
    ("error", "words", "change"),
    [
        (GraphError, "cards: every variable needs a whole number >= 1", {"cards": [2, 0]}),
        (GraphError, "the scope of factor 0 names variable 2", {"scopes": [0, 2]}),
        (GraphError, "variable 0 occurs twice", {"scopes": [0, 0]}),
        (GraphError, "empty scope", {"scope_offsets": [0, 0, 2]}),
        (
            PotentialError,
            "3 potentials were given for tables of 4 entries",
            {"potentials": [0.0] * 3},
        ),
        (PotentialError, "NaN", {"potentials": [0.0, 1.0, np.nan, 0.0]}),
    ],
)
def test_bad_arrays_are_refused(error, words, change):
    good = {"cards": [2, 2], "scope_offsets": [0, 2], "scopes": [0, 1], "potentials": [0.0] * 4}
    assert FactorGraph.from_arrays(**good).n_factors == 1
    with pytest.raises(error, match=words):
        FactorGraph.from_arrays(**{**good, **change})


def test_with_potentials_keeps_everything_else(graph):
    other = graph.with_potentials(np.arange(9.0))
    assert other.names == graph.names
    assert other.roles.tolist() == graph.roles.tolist()
    np.testing.assert_array_equal(other.table(1), [6, 7, 8])
    np.testing.assert_array_equal(graph.table(1), [0.5, -np.inf, 0.25])
    with pytest.raises(PotentialError, match="2 potentials were given for tables of 9 entries"):
        graph.with_potentials([0.0, 1.0])


def test_repr(graph):
    text = "FactorGraph(3 variables (1 output, 1 hidden, 1 observed), 2 factors, largest arity 2)"
    assert repr(graph) == text
    assert repr(FactorGraph()) == "FactorGraph(0 variables (none), 0 factors, largest arity 0)"
