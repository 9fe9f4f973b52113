"""Worlds by message passing against exact ones, and what they keep between evaluations."""

from __future__ import annotations

import latent
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from structlearn._src.common.errors import ArgumentError, TooWideError
from structlearn._src.learn.cost import make_cost
from structlearn._src.learn.graph_world import Effort
from structlearn._src.learn.loss import make_loss
from structlearn._src.learn.objective import StructuredObjective

STEADY = settings(max_examples=25, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)


def pair(case, name, **options):
    """The same objective by elimination and by messages, and some weights."""
    loss, cost = make_loss(name), make_cost("hamming", latent.STATES)
    both = (
        StructuredObjective(case.model, case.examples, loss, cost, effort=effort)
        for effort in (Effort("exact"), Effort("bp", sweeps=300, **{"tol": 1e-11, **options}))
    )
    return (*both, np.random.default_rng(1).normal(size=case.model.n_weights))


def free_values(objective, weights):
    tables = objective.tables(weights)
    return objective.worlds[0].free.solve(tables, np.ones(objective.n_examples))[0]


def loopy(seed, **options):
    """Graphs with cycles, large enough for messages to need several sweeps."""
    return latent.graph_case(seed, "loopy", least=5, most=6, **options)


@STEADY
@given(SEEDS, st.sampled_from(["log", "eps", "latent-hinge", "perceptron"]))
def test_messages_are_exact_on_trees_at_one_temperature(seed, name):
    exact, messages, weights = pair(latent.graph_case(seed, "tree"), name)
    np.testing.assert_allclose(messages.losses(weights), exact.losses(weights), 1e-7, 1e-7)
    ours, theirs = messages.value_slope(weights), exact.value_slope(weights)
    assert ours[0] == pytest.approx(theirs[0], rel=1e-7)
    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6, atol=1e-6)


@STEADY
@given(SEEDS)
def test_decoded_labels_never_exceed_the_maximum(seed):
    exact, messages, weights = pair(loopy(seed), "latent-hinge", damping=0.2)
    assert (free_values(messages, weights) <= free_values(exact, weights) + 1e-9).all()


@STEADY
@given(SEEDS)
def test_decoded_outputs_never_exceed_the_maximum_when_the_rest_is_a_tree(seed):
    exact, messages, weights = pair(latent.graph_case(seed, "tree"), "marginal")
    assert (free_values(messages, weights) <= free_values(exact, weights) + 1e-7).all()


@pytest.mark.parametrize("name", ["log", "eps"])
def test_the_gradient_of_converged_messages_agrees_with_differences(name):
    """At a fixed point beliefs are the gradient of the Bethe value, on any graph."""
    _, messages, weights = pair(loopy(3, n_graphs=2), name, tol=1e-13)
    messages.value(weights)
    direction = np.random.default_rng(0).normal(size=len(weights))
    direction /= np.linalg.norm(direction)
    slope = messages.value_slope(weights)[1] @ direction
    up, down = (messages.value(weights + sign * 1e-4 * direction) for sign in (1, -1))
    assert (up - down) / 2e-4 == pytest.approx(slope, rel=1e-5)


def test_sweeps_are_counted():
    exact, messages, weights = pair(loopy(3), "log")
    assert messages.sweeps == 0
    messages.value(weights)
    first = messages.sweeps
    assert first > 2
    messages.value(weights)
    assert first < messages.sweeps <= first + 4  # they are at rest already
    exact.value(weights)
    assert exact.sweeps == 0
    assert len(exact.messages()) == 0


@pytest.mark.parametrize("sweeps", [1, 3])
def test_paired_worlds_sweep_so_often_and_go_on_from_where_they_stood(sweeps):
    case = loopy(3)
    _, messages, weights = pair(case, "log")
    few = messages.paired(sweeps)
    first, limit = few.value(weights), messages.value(weights)
    assert few.sweeps == 2 * sweeps  # in the free and in the clamped world
    few.value(weights)
    assert few.sweeps == 4 * sweeps
    assert abs(first - limit) > 1e-10
    for _ in range(40):
        value = few.value(weights)
    assert value == pytest.approx(limit, rel=1e-12)
    assert messages.paired(sweeps).value(weights) == first  # a new objective begins anew


@pytest.mark.parametrize("name", ["log", "marginal", "latent-hinge", "hybrid"])
def test_messages_can_be_kept_and_put_back(name):
    case = loopy(5)
    _, messages, weights = pair(case, name)
    one, other = messages.paired(2), messages.paired(2)
    for k in range(3):
        one.value_slope(weights * (1.0 + 0.1 * k))
    kept = one.messages()
    assert len(kept) > 0
    expected = one.value_slope(weights * 1.4)
    other.recall(kept)
    got = other.value_slope(weights * 1.4)
    assert got[0] == expected[0]
    np.testing.assert_array_equal(got[1], expected[1])
    if name in ("log", "hybrid"):
        assert messages.paired(2).value(weights * 1.4) != expected[0]
    with pytest.raises(ArgumentError, match=rf"3 messages were given.* have {len(kept)}"):
        other.recall(kept[:3])


def test_efforts_that_cannot_be_made_are_refused():
    case = loopy(5)
    loss, cost = make_loss("marginal", eps_y=0.5, eps_h=0.0), make_cost("hamming", 3)
    objective = StructuredObjective(case.model, case.examples, loss, cost, effort=Effort("bp"))
    with pytest.raises(ArgumentError, match=r"eps_y=0\.5 with eps_h=0 cannot be trained"):
        objective.value(np.zeros(case.model.n_weights))


def test_exact_worlds_refuse_wide_graphs(monkeypatch):
    from structlearn._src.learn import graph_world

    case = loopy(5)
    options = graph_world.Options
    monkeypatch.setattr(graph_world, "Options", lambda **o: options(max_table=4, **o))
    exact, _, weights = pair(case, "log")
    with pytest.raises(TooWideError, match="exact inference needs a table over"):
        exact.value(weights)


def test_auto_is_exact_where_that_is_quick(monkeypatch):
    case = loopy(5)
    weights = np.ones(case.model.n_weights)
    whole = StructuredObjective(case.model, case.examples, make_loss("log"))
    whole.value(weights)
    assert whole.messengers == ()
    monkeypatch.setattr("structlearn._src.inference.junction._WORTH", 0.01)
    rough = StructuredObjective(case.model, case.examples, make_loss("log"))
    rough.value(weights)
    assert len(rough.messengers) == 2
    which = np.array([1, 2])
    value, slope = rough.loss_slope(weights, which)
    again, same = rough.take(which).loss_slope(weights)
    assert value == again  # nothing is kept from batch to batch
    np.testing.assert_array_equal(slope, same)
