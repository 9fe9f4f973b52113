"""Worlds by message passing against exact ones, and what they keep between evaluations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latent
from structlearn import GridLabeler
from structlearn._src.common import threads
from structlearn._src.common.errors import ArgumentError, TooWideError
from structlearn._src.learn.loss import make_cost, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import Budget, InferenceSettings, count_steps, leaves

STEADY = settings(max_examples=25, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)


def pair(case, name, **options):
    """The same objective by elimination and by messages, and some weights."""
    loss, cost = make_loss(name), make_cost("hamming", latent.STATES)
    both = (
        StructuredObjective(case.model, case.examples, loss, cost, settings=effort)
        for effort in (
            InferenceSettings("exact"),
            InferenceSettings("bp", sweeps=300, **{"tol": 1e-11, **options}),
        )
    )
    return (*both, np.random.default_rng(1).normal(size=case.model.n_weights))


def free_values(objective, weights):
    world = objective.pairs[0].free
    return world.solve(objective.push(weights), np.ones(objective.n_examples), world.begin())[0]


def loopy(seed, **options):
    """Graphs with cycles, large enough for messages to need several sweeps."""
    return latent.graph_case(seed, "loopy", least=5, most=6, **options)


@STEADY
@given(SEEDS, st.sampled_from(["log", "eps", "latent-hinge", "perceptron"]))
def test_messages_are_exact_on_trees_at_one_temperature(seed, name):
    exact, messages, weights = pair(latent.graph_case(seed, "tree"), name)
    np.testing.assert_allclose(messages.losses(weights), exact.losses(weights), 1e-7, 1e-7)
    ours = messages.value_gradient(weights)
    theirs = exact.value_gradient(weights)
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
    gradient = messages.value_gradient(weights)[1] @ direction
    up, down = (messages.value(weights + sign * 1e-4 * direction) for sign in (1, -1))
    assert (up - down) / 2e-4 == pytest.approx(gradient, rel=1e-5)


def test_sweeps_are_counted():
    exact, messages, weights = pair(loopy(3), "log")
    memory = messages.begin()
    assert count_steps(memory) == 0
    messages.value(weights, memory)
    first = count_steps(memory)
    assert first > 2
    messages.value(weights, memory)
    assert first < count_steps(memory) <= first + 4  # they are at rest already
    assert not list(leaves(exact.begin()))


@pytest.mark.parametrize("sweeps", [1, 3])
def test_paired_worlds_sweep_so_often_and_go_on_from_where_they_stood(sweeps):
    _, messages, weights = pair(loopy(3), "log")
    few = messages.with_budget(Budget(sweeps))
    memory = few.begin()
    first = few.value(weights, memory)
    limit = messages.value(weights)
    assert count_steps(memory) == 2 * sweeps  # in the free and in the clamped world
    few.value(weights, memory)
    assert count_steps(memory) == 4 * sweeps
    assert abs(first - limit) > 1e-10
    for _ in range(40):
        value = few.value(weights, memory)
    assert value == pytest.approx(limit, rel=1e-12)
    assert few.value(weights) == first  # without a memory it begins anew


def test_efforts_that_cannot_be_made_are_refused():
    case = loopy(5)
    loss, cost = make_loss("marginal", eps_y=0.5, eps_h=0.0), make_cost("hamming", 3)
    objective = StructuredObjective(
        case.model, case.examples, loss, cost, settings=InferenceSettings("bp")
    )
    with pytest.raises(ArgumentError, match=r"eps_y=0\.5 with eps_h=0 cannot be trained"):
        objective.value(np.zeros(case.model.n_weights))


def test_exact_worlds_refuse_wide_graphs(monkeypatch):
    from structlearn._src.learn import structured_world

    case = loopy(5)
    options = structured_world.Options
    monkeypatch.setattr(structured_world, "Options", lambda **o: options(max_table=4, **o))
    exact, _, weights = pair(case, "log")
    with pytest.raises(TooWideError, match="exact inference needs a table over"):
        exact.value(weights)


def test_auto_is_exact_where_that_is_quick():
    case = loopy(5)
    weights = np.ones(case.model.n_weights)
    whole = StructuredObjective(case.model, case.examples, make_loss("log"))
    whole.value(weights)
    assert not whole.approximate
    settings = InferenceSettings(times=0.0)
    rough = StructuredObjective(case.model, case.examples, make_loss("log"), settings=settings)
    rough.value(weights)
    assert rough.approximate
    which = np.array([1, 2])
    value, gradient, _ = rough.batch_gradient(weights, which)
    again, same, _ = rough.take(which).loss_gradient(weights)
    assert value == again  # nothing is kept from batch to batch
    np.testing.assert_array_equal(gradient, same)


@pytest.mark.parametrize("method", ["exact", "bp"])
def test_threads_change_nothing_and_examples_count_by_their_weights(method):
    """Enough grids for several ranges."""
    rng = np.random.default_rng(0)
    X = list(rng.normal(size=(40, 12, 12, 2)))
    Y = [np.where(rng.random((12, 12)) < 0.5, -1, x.argmax(axis=2)) for x in X]
    whole = GridLabeler().objective(X, Y)
    weights = rng.normal(size=whole.n_weights)
    each = replace(whole.examples, weights=rng.random(40) + 0.5)
    found = []
    for n_jobs in (1, 2, 5):
        settings = replace(whole.settings, method=method, n_jobs=n_jobs)
        objective = replace(whole, examples=each, settings=settings)
        found.append(objective.loss_gradient(weights))
    assert len({value for value, *_ in found}) == 1
    for _, gradient, _ in found[1:]:
        np.testing.assert_array_equal(gradient, found[0].gradient)
    parts = [objective.take(np.array([i])).loss_gradient(weights) for i in range(40)]
    assert found[0].value == pytest.approx(sum(part.value for part in parts), rel=1e-4)
    summed = sum(part.gradient for part in parts)
    np.testing.assert_allclose(found[0].gradient, summed, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["log", "marginal", "latent-hinge", "eps"])
@pytest.mark.parametrize("method", ["exact", "bp", "trw"])
def test_parts_of_a_world_are_the_world(monkeypatch, method, name):
    """One part for every graph and one for all give the same values, gradients and memories."""
    case = latent.graph_case(7, n_graphs=12, hidden=0.0, least=2)
    labels = case.examples.labels.copy()
    borders = case.examples.structure.variables
    labels[borders[:-1]] = 0  # each graph has a label, and one that is hidden: how messages decode
    labels[borders[1:] - 1] = -1  # depends on whether some of all variables are
    if method == "exact" or name != "marginal":
        labels[: borders[2]] = -1  # one graph without any label
        labels[: borders[1]] = 0  # and one that has all, in which nothing is left to infer
    examples = replace(case.examples, labels=labels)
    weights = np.random.default_rng(1).normal(size=(2, case.model.n_weights))
    found = []
    for grain in (2**40, 1):
        monkeypatch.setitem(threads.GRAIN, "worlds", grain)
        objective = StructuredObjective(
            case.model, examples, make_loss(name), make_cost("hamming", latent.STATES),
            settings=InferenceSettings(method, n_jobs=2),
        )  # fmt: skip
        few = objective.with_budget(Budget(2))
        memory = few.begin()
        steps = [few.value_gradient(each, memory) for each in weights]
        found.append((steps, dict(leaves(memory)), objective.losses(weights[0])))
    (whole, kept, losses), (parts, also, theirs) = found
    assert len(kept) == len(also)
    np.testing.assert_allclose(theirs, losses, rtol=1e-12, atol=1e-12)
    for one, other in zip(whole, parts, strict=True):
        assert other[0] == pytest.approx(one[0], rel=1e-12)
        np.testing.assert_allclose(other[1], one[1], rtol=1e-10, atol=1e-12)
    for path, array in kept.items():
        np.testing.assert_allclose(also[path], array, rtol=1e-10, atol=1e-12)


def test_memories_of_other_graphs_are_refused():
    _, messages, weights = pair(loopy(3), "log")
    _, others, _ = pair(loopy(3, n_graphs=5), "log")
    with pytest.raises(ArgumentError, match="does not fit these worlds"):
        messages.value(weights, others.begin())
