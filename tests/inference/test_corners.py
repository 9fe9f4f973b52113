"""Corners that were wrong once."""

import copy

import numpy as np
import pytest

import naive
from structlearn import FactorGraph, StructlearnError, chain, grid, infer, pairwise
from structlearn.errors import ImpossibleEvidenceError


@pytest.mark.parametrize("method", ["junction_tree", "enumeration", "auto"])
def test_marginal_map_at_temperature_0_throughout_is_the_outputs_of_joint_map(method):
    rng = np.random.default_rng(0)
    for _ in range(60):
        graph = naive.random_graph(rng, 5, 3, 3, "loopy", hidden=0.5)
        best, joint = naive.value_and_distribution(graph, 0.0, 0.0)
        answer = infer(graph, "marginal_map", method=method, temperatures=(0, 0))
        assert answer.value == pytest.approx(best)
        maximiser = np.unravel_index(joint.argmax(), joint.shape)
        outputs = {v: int(maximiser[v]) for v in range(5) if graph.roles[v] != 1}
        # Outputs without any factor are free: compare what the outputs are worth.
        merged = {**{v: int(maximiser[v]) for v in range(5)}, **answer.assignment}
        assert set(answer.assignment) == set(outputs)
        assert graph.score(merged) == pytest.approx(best)


def test_a_copy_does_not_share_what_is_added_later():
    graph = FactorGraph()
    graph.add_variables(2, 2)
    other = copy.copy(graph)
    other.add_variable(None, 3)
    other.add_factor([0], [1.0, 2.0])
    assert graph.cards.tolist() == [2, 2]
    assert graph.n_factors == 0
    assert infer(graph, "partition").value == pytest.approx(np.log(4))


def test_exact_marginals_at_temperature_0_are_those_of_one_assignment():
    tables = np.array([[[1, 1], [1, 0]], [[0, 0], [0, 0]], [[0, 1], [1, 1]]], float)
    graph = chain(np.zeros((4, 2)), tables)
    for method in ("bp", "tree", "chain", "junction_tree", "enumeration"):
        answer = infer(graph, method=method, temperatures=(0, 0), factor_marginals=True)
        assert answer.exact
        expected = sum(
            (answer.factor_marginals[f] * graph.table(f)).sum() for f in range(graph.n_factors)
        )
        assert expected == pytest.approx(answer.value)
        assert set(np.unique(answer.marginals.flat)) == {0.0, 1.0}


def test_answers_stay_as_they_are_when_the_graph_grows():
    graph = chain(np.zeros((3, 2)), np.eye(2))
    marginals, best = infer(graph).marginals, infer(graph, "map").assignment
    graph.add_variable("more", 4)
    assert marginals.array().shape == (3, 2)
    assert len(best) == 3
    assert "more" not in best
    assert list(marginals) == [0, 1, 2]


def test_impossible_tables_leak_no_warning():
    graph = FactorGraph()
    graph.add_variable("x", 2)
    graph.add_factor(["x"], [-np.inf, -np.inf])
    graph.add_factor(["x"], [800.0, 0.0])
    for method in ("tree", "bp"):
        with pytest.raises(StructlearnError, match="hard constraints"):
            infer(graph, "partition", method=method)
    assert "no possible state" in infer(graph, method="trw").status


@pytest.mark.parametrize("far", [700.0, 735.0, 742.0, 746.0])
@pytest.mark.parametrize("method", ["tree", "bp", "trw"])
def test_values_do_not_hang_on_probabilities_that_lost_their_digits(method, far):
    # exp(-742) is a subnormal number, of two bits.
    graph = chain([[-far, 0.0], [0.0, 1.0], [0.0, 0.0]], np.zeros((2, 2)))
    right, _ = naive.value_and_distribution(graph)
    for schedule in ("sequential", "flooding"):
        answer = infer(graph, "partition", method=method, schedule=schedule)
        assert answer.value == pytest.approx(right, abs=1e-12)
        assert answer.upper >= right - 1e-12


def test_a_wide_graph_under_a_time_limit_does_not_look_for_orders_for_long():
    rng = np.random.default_rng(0)
    graph = grid(rng.normal(size=(120, 120, 3)), rng.normal(size=(3, 3)))
    answer = infer(graph, "map", time_limit=0.2)
    assert answer.method == "portfolio"
    assert answer.value > -np.inf


BAD = [
    lambda g: infer(g, method=["bp"]),
    lambda g: infer(g, query=np.array(["map"])),
    lambda g: infer(g, random_state=-1),
    lambda g: infer(g, tol=10**400),
    lambda g: infer(g, temperatures={0, 1}),
    lambda g: infer(g, start=np.full(3, np.nan)),
    lambda g: g.add_factor([0], [10**400, 1]),
    lambda g: g.add_factor([0], [1j, 1]),
    lambda g: g.add_factor([0], ["1", "2"]),
    lambda g: g.add_factor([["a"]], [1, 2]),
    lambda g: g.add_factors([[0, 1], [1]], np.eye(2)),
    lambda g: g.add_variable([1]),
    lambda g: g.add_variable("x", 2**62),
    lambda g: g.set_roles(None),
    lambda g: g.table("a"),
    lambda g: g.scope(0.0),
    lambda g: pairwise(np.zeros((3, 2)), [(0.7, 1.2)], np.eye(2)),
    lambda g: pairwise(np.zeros((3, 2)), [(0, 1, 2)], np.eye(2)),
    lambda g: FactorGraph.from_arrays([2, 2], [0, 1], [0], [0.0, 0.0], names=["a", "a"]),
    lambda g: FactorGraph.from_arrays([2, 2], [0, 1], [0], [0.0, 0.0], names=["a"]),
    lambda g: FactorGraph.from_arrays([2, 2], [0, 1], [0], [0.0, 0.0], roles=[9, 9]),
    lambda g: FactorGraph.from_arrays([2, 2], [5, 6], [0], [0.0, 0.0]),
    lambda g: FactorGraph.from_arrays([2.7, 2], [0, 1], [0], [0.0, 0.0]),
]


@pytest.mark.parametrize("wrong", BAD)
def test_bad_input_of_every_kind_is_a_named_error(wrong):
    graph = chain(np.zeros((3, 2)), np.eye(2))
    with pytest.raises(StructlearnError):
        wrong(graph)
    assert infer(graph, "partition").exact  # and the graph is as good as before


@pytest.mark.parametrize("method", ["enumeration", "chain", "junction_tree", "auto"])
@pytest.mark.parametrize("evidence", [{0: 0, 1: 0}, {0: 0}])
def test_the_k_best_of_what_is_impossible_are_refused(method, evidence):
    graph = chain(np.zeros((3, 2)), np.full((2, 2), -np.inf))
    with pytest.raises(ImpossibleEvidenceError):
        infer(graph, "map", evidence=evidence, method=method, k=2)
