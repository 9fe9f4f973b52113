"""Answers as frames and in notebooks hold the numbers of the answer."""

from __future__ import annotations

import numpy as np
import pytest

from structlearn import FactorGraph, chain, infer
from structlearn.errors import ArgumentError, QueryError

KINDS = ["pandas", "polars"]


def frame_of(answer, kind):
    """Columns of the frame as lists."""
    pytest.importorskip(kind)
    frame = getattr(answer, f"to_{kind}")()
    return {name: frame[name].to_list() for name in frame.columns}


@pytest.fixture
def graph():
    graph = FactorGraph()
    graph.add_variable("a", states=2)
    graph.add_variable(("b", 1), states=3)
    graph.add_factor(["a", ("b", 1)], np.arange(6.0).reshape(2, 3))
    return graph


@pytest.mark.parametrize("kind", ["pandas"])  # polars has no column of tuples beside texts
def test_marginals_are_one_row_for_each_state(graph, kind):
    answer = infer(graph, "marginals")
    found = frame_of(answer, kind)
    assert found["variable"] == ["a", "a", ("b", 1), ("b", 1), ("b", 1)]
    assert found["state"] == [0, 1, 0, 1, 2]
    assert found["probability"] == [*answer.marginals["a"], *answer.marginals["b", 1]]


@pytest.mark.parametrize("kind", KINDS)
def test_marginals_of_variables_without_names_have_numbers(kind):
    answer = infer(chain(np.zeros((2, 2)), np.eye(2)), "marginals")
    found = frame_of(answer, kind)
    assert found == {"variable": [0, 0, 1, 1], "state": [0, 1, 0, 1], "probability": [0.5] * 4}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("query", ["map", "marginal_map"])
def test_assignments(kind, query):
    answer = infer(chain([[0.0, 1.0], [0.0, 0.0]], np.eye(2)), query)
    assert frame_of(answer, kind) == {"variable": [0, 1], "state": [1, 1]}


@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_in_long_form(kind):
    answer = infer(chain(np.zeros((3, 2)), np.eye(2)), "samples", n_samples=4, random_state=0)
    found = frame_of(answer, kind)
    again = np.zeros((4, 3), int)
    again[found["sample"], found["variable"]] = found["state"]
    np.testing.assert_array_equal(again, answer.samples)
    assert len(found["state"]) == 12


def test_a_number_needs_no_frame(graph):
    with pytest.raises(QueryError, match=r"'partition' is a number.*read `value`"):
        infer(graph, "partition").to_pandas()


def test_a_missing_package_is_named(graph, monkeypatch):
    monkeypatch.setattr("structlearn._src.common.frames.find_spec", lambda name: None)
    with pytest.raises(ArgumentError, match=r"'polars'.*not installed"):
        infer(graph, "map").to_polars()


def test_notebooks_show_answers_and_graphs(graph):
    text = infer(graph, "marginals")._repr_html_()
    assert "<td>marginals</td>" in text
    best = infer(graph, "marginals").marginals["a"].max()
    assert f"<tr><td>a</td><td>1</td><td>{best:.6g}</td></tr>" in text
    assert "<tr><td>a</td><td>1</td></tr>" in infer(graph, "map")._repr_html_()
    assert "Marginals" not in infer(graph, "partition")._repr_html_()
    assert "<th>output variables</th><td>2</td>" in graph._repr_html_()
    long = infer(chain(np.zeros((50, 2)), np.eye(2)), "map")._repr_html_()
    assert "the first 12 of 50 variables" in long
