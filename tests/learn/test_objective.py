"""The objective against enumeration of all assignments, and its gradient against differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import latent
import naive
from structlearn._src.common import threads
from structlearn._src.common.errors import ArgumentError
from structlearn._src.graph.batch import Sequences, assemble
from structlearn._src.graph.wiring import OUTPUT
from structlearn._src.learn.loss import NAMED, ElasticNet, Loss, LossPart, make_cost, make_loss
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.learn.world import InferenceSettings
from structlearn._src.model.model import Examples, LinearModel
from structlearn._src.model.term import LinearTerm, TableTerm

STEADY = settings(max_examples=25, deadline=None, derandomize=True)
SEEDS = st.integers(0, 2**32 - 1)
KINDS = st.sampled_from(["tree", "loopy"])
EPS = [(1.0, 1.0), (0.0, 0.0), (0.0, 1.0), (0.5, 0.5), (0.3, 0.7), (1.0, 0.0)]
MATRIX = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 3.0], [0.0, 0.7, 0.0]])
COSTS = {
    "hamming": ("hamming", 1.0 - np.eye(3), False),
    "mean": ("hamming-mean", 1.0 - np.eye(3), True),
    "labels": ([2.0, 0.5, 1.0], np.array([[2.0], [0.5], [1.0]]) * (1.0 - np.eye(3)), False),
    "matrix": (MATRIX, MATRIX, False),
}
ANY_EPS, ANY_COST = st.sampled_from(EPS), st.sampled_from(sorted(COSTS))


def mixture(eps, alpha):
    """Any temperatures, on their own or beside the log loss."""
    part = LossPart(1.0 - alpha, *eps, True)
    return Loss((LossPart(alpha, 1.0, 1.0, False), part) if alpha else (part,), eps[1])


def made(case, loss, cost="hamming", C=1.0, **options):
    return StructuredObjective(
        case.model, case.examples, loss, make_cost(cost, latent.STATES), C, **options
    )


def check(case, loss, cost="hamming", C=0.7, seed=0, rtol=1e-9):
    """Losses, value and gradient are those of enumeration."""
    given_, matrix, mean = COSTS[cost]
    objective = made(case, loss, given_, C)
    weights = np.random.default_rng(seed).normal(size=case.model.n_weights)
    losses, gradients = case.losses(weights, loss, matrix, mean)
    by = C * case.examples.weights
    np.testing.assert_allclose(objective.losses(weights), losses, rtol, 1e-9)
    value, gradient, _ = objective.value_gradient(weights)
    assert value == pytest.approx(0.5 * weights @ weights + by @ losses, rel=rtol)
    assert objective.value(weights) == value
    np.testing.assert_allclose(gradient, weights + by @ gradients, rtol, 1e-9)


# ---- graphs ------------------------------------------------------------------------------


@STEADY
@given(
    SEEDS, KINDS, st.sampled_from(EPS), st.sampled_from(sorted(COSTS)), st.sampled_from([0, 0.3])
)
def test_value_and_gradient_on_graphs_are_those_of_enumeration(seed, kind, eps, cost, alpha):
    check(latent.graph_case(seed, kind), mixture(eps, alpha), cost, seed=seed)


@pytest.mark.parametrize("name", sorted(NAMED))
@pytest.mark.parametrize("kind", ["tree", "loopy"])
def test_named_losses_agree_with_enumeration_and_with_differences(name, kind):
    for seed in range(3):
        case, loss = latent.graph_case([seed, 5], kind), make_loss(name, alpha=0.3)
        check(case, loss)
        differences(made(case, loss, MATRIX, C=1.3), seed)


def differences(objective, seed):
    """Central differences of the value in random directions; the point lies on no kink."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=objective.n_weights)
    gradient = objective.value_gradient(weights)[1]
    for _ in range(3):
        direction = rng.normal(size=len(weights))
        direction /= np.linalg.norm(direction)
        up, down = (objective.value(weights + sign * 1e-5 * direction) for sign in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(gradient @ direction, rel=1e-6, abs=1e-7)


@STEADY
@given(SEEDS, KINDS, st.floats(0.05, 2.0), st.floats(0.05, 2.0))
def test_gradient_between_the_named_temperatures(seed, kind, eps_y, eps_h):
    differences(made(latent.graph_case(seed, kind), mixture((eps_y, eps_h), 0.0)), seed)


def test_roles_that_change_between_examples_do_not_share_an_order():
    """Objectives on one wiring, each with other hidden variables, in one process."""
    case = latent.graph_case(11, "loopy", n_graphs=2, hidden=0.0, least=5)
    rng = np.random.default_rng(3)
    for _ in range(6):
        labels = np.where(rng.random(len(case.examples.labels)) < 0.5, -1, 1)
        examples = Examples(
            case.examples.structure, case.examples.inputs, labels, case.examples.weights
        )
        other = latent.Case(case.model, examples, case.cards, case.features, case.barred)
        check(other, make_loss("marginal"))


def test_all_labelled_and_none_labelled():
    for hidden in (0.0, 1.0):
        case = latent.graph_case(2, "loopy", hidden=hidden)
        if hidden == 0.0:
            case.examples.labels[:] = np.maximum(case.examples.labels, 0)
        for name in ("log", "marginal", "latent-hinge"):
            check(case, make_loss(name))
        assert made(case, make_loss("log")).convex == (hidden == 0.0)


def test_costs_that_no_table_can_take_are_refused():
    case = latent.graph_case(4, "tree", hidden=0.0)
    case.examples.labels[:] = 1
    weights = np.zeros(case.model.n_weights)
    with pytest.raises(ArgumentError, match="cost is for 2 states, but the labelled variable 0"):
        StructuredObjective(
            case.model, case.examples, make_loss("hinge"), make_cost("hamming", 2)
        ).value(weights)
    borders, none = np.array([0, 1]), np.empty((0, 1), np.int64)
    lonely = assemble(np.array([3]), np.array([OUTPUT]), borders, (none,))
    examples = Examples(lonely, ((None,),), np.array([1]), np.ones(1))
    with pytest.raises(ArgumentError, match="labelled variable 0 is in no factor"):
        StructuredObjective(
            LinearModel(((TableTerm(3),),)), examples, make_loss("hinge"), make_cost("hamming", 3)
        ).value(np.zeros(3))


# ---- sequences ---------------------------------------------------------------------------


@STEADY
@given(
    SEEDS,
    st.sampled_from(["table", "features", "both", "none"]),
    st.sampled_from(["linear", "sparse", "table"]),
    st.sampled_from([0.0, 0.4]),
    st.booleans(),
    ANY_EPS,
    st.sampled_from([0.0, 0.6]),
)
def test_value_and_gradient_on_sequences(seed, edges, nodes, hidden, bars, eps, alpha):
    case = latent.sequence_case(seed, edges, hidden, bars, nodes)
    check(case, mixture(eps, alpha), sorted(COSTS)[seed % 4])
    check(latent.as_graphs(case), mixture(eps, alpha), sorted(COSTS)[seed % 4])


@pytest.mark.parametrize("name", sorted(NAMED))
def test_gradient_on_sequences_agrees_with_differences(name):
    for seed, edges in enumerate(["table", "features", "both", "none"]):
        case = latent.sequence_case(seed, edges, 0.3 * (seed % 2), bars=seed > 1)
        differences(made(case, make_loss(name, alpha=0.3), MATRIX, C=0.4), seed)


@pytest.mark.parametrize("edges", ["table", "features", "both", "none"])
def test_sequences_of_one_position_have_no_edges(edges):
    for eps in EPS:
        check(latent.sequence_case(1, edges, longest=1), mixture(eps, 0.0))


def test_the_log_loss_is_multinomial_logistic_regression():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 4)), rng.integers(0, 3, 30)
    by, weights = rng.uniform(0.5, 2.0, 30), rng.normal(size=(4, 3))
    scores = x @ weights
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    value = 0.5 * (weights**2).sum() - 1.7 * by @ np.log(chances[np.arange(30), y])
    gradient = weights + 1.7 * x.T @ (by[:, None] * (chances - np.eye(3)[y]))
    structure = Sequences(np.arange(31), 3)
    examples = Examples(structure, ((x,),), y, by)
    objective = StructuredObjective(
        LinearModel(((LinearTerm(4, 3),),)), examples, make_loss("log"), C=1.7
    )
    ours = objective.value_gradient(weights.ravel())
    assert ours[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(ours[1], gradient.ravel(), rtol=1e-11)


# ---- some of the examples ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["marginal", "hybrid", "log"])
@pytest.mark.parametrize("make", [latent.graph_case, latent.sequence_case])
def test_some_examples_are_those_examples(make, name):
    case = make(7)
    objective = made(case, make_loss(name), C=0.9)
    rng = np.random.default_rng(1)
    n = objective.n_examples
    for which in (np.array([2, 0]), np.array([1]), np.arange(n), np.array([1, 1, 2])):
        weights = rng.normal(size=objective.n_weights)
        losses, gradients = case.losses(weights, objective.loss, COSTS["hamming"][1])
        by = 0.9 * case.examples.weights[which]
        for value, gradient, _ in (
            objective.batch_gradient(weights, which),
            objective.take(which).loss_gradient(weights),
        ):
            assert value == pytest.approx(by @ losses[which], rel=1e-9)
            np.testing.assert_allclose(gradient, by @ gradients[which], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(objective.take(which).losses(weights), losses[which], 1e-9)


def test_graphs_without_factors_of_some_group():
    """A group may have no factor in some of the examples."""
    case = latent.graph_case(3, "loopy", n_graphs=6, most=3)
    weights = np.random.default_rng(0).normal(size=case.model.n_weights)
    objective = made(case, make_loss("marginal"))
    losses, gradients = case.losses(weights, objective.loss, COSTS["hamming"][1])
    missing = 0
    for i in range(6):
        piece = objective.take(np.array([i]))
        missing += sum(not len(group) for group in piece.examples.structure.groups)
        value, gradient, _ = piece.loss_gradient(weights)
        assert value == pytest.approx(case.examples.weights[i] * losses[i], rel=1e-9)
        np.testing.assert_allclose(gradient, case.examples.weights[i] * gradients[i], 1e-9, 1e-9)
    assert missing


# ---- laws --------------------------------------------------------------------------------


@STEADY
@given(SEEDS, KINDS, ANY_EPS, ANY_COST)
def test_losses_bound_the_cost_of_the_annealed_prediction(seed, kind, eps, cost):
    """Lemma 1 of the marginal structured SVM paper; so no such loss is negative."""
    given_, matrix, mean = COSTS[cost]
    case = latent.graph_case(seed, kind)
    objective = made(case, mixture(eps, 0.0), given_)
    weights = np.random.default_rng(seed).normal(0.0, 2.0, case.model.n_weights)
    best = np.concatenate(
        [
            naive.annealed_best(case.scores(i, weights), case.cards[i], case.labels(i), eps[1])
            for i in range(len(case.cards))
        ]
    )
    labels, borders = case.examples.labels, case.examples.structure.variables
    task = [
        sum(naive.cost_rows(case.labels(i), matrix, mean)[np.arange(b - a), best[a:b]])
        for i, (a, b) in enumerate(itertools.pairwise(borders))
    ]
    np.testing.assert_allclose(objective.cost.between(labels, best, borders), task, atol=1e-12)
    losses = objective.losses(weights)
    assert (losses >= np.array(task) - 1e-9).all()
    assert (losses >= -1e-9).all()


@STEADY
@given(SEEDS, st.sampled_from(sorted(NAMED)), st.sampled_from([0.0, 0.3, 1.0]))
def test_the_linearised_objective_is_convex_and_touches_from_above(seed, name, l1_ratio):
    case = latent.graph_case(seed, "loopy")
    rng = np.random.default_rng(seed)
    objective = made(case, make_loss(name), penalty=ElasticNet(l1_ratio))
    point, direction = rng.normal(size=(2, objective.n_weights))
    bound = objective.linearise(point)
    assert bound.convex
    assert bound.value(point) == pytest.approx(objective.value(point), rel=1e-9)
    for ours, theirs in zip(
        bound.value_gradient(point)[:2], objective.value_gradient(point)[:2], strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    line = np.array([bound.value(point + t * direction) for t in (-1.0, -0.3, 0.4, 1.1)])
    true = np.array([objective.value(point + t * direction) for t in (-1.0, -0.3, 0.4, 1.1)])
    assert (line >= true - 1e-9 * np.abs(true)).all()
    chord = np.interp([-0.3, 0.4], [-1.0, 1.1], line[[0, 3]])
    assert (line[1:3] <= chord + 1e-9 * np.abs(chord)).all()


def test_the_linearised_gradient_agrees_with_differences():
    case = latent.graph_case(5, "loopy")
    rng = np.random.default_rng(5)
    bound = made(case, make_loss("marginal")).linearise(rng.normal(size=case.model.n_weights))
    differences(bound, 5)


@pytest.mark.parametrize("make", [latent.graph_case, latent.sequence_case])
def test_results_do_not_depend_on_the_number_of_threads(make, monkeypatch):
    monkeypatch.setitem(threads.GRAIN, "graphs", 1)
    monkeypatch.setitem(threads.GRAIN, "chains", 8)
    monkeypatch.setitem(threads.GRAIN, "features", 4)
    case = make(3, n_graphs=12) if make is latent.graph_case else make(3, n=12, hidden=0.2)
    weights = np.random.default_rng(0).normal(size=case.model.n_weights)
    for name in ("hybrid", "eps"):
        one, three = (
            made(case, make_loss(name), settings=InferenceSettings(n_jobs=n)).value_gradient(
                weights
            )
            for n in (1, 3)
        )
        assert one[0] == three[0]
        np.testing.assert_array_equal(one[1], three[1])


def test_what_the_objective_tells_about_itself():
    whole, part = latent.sequence_case(0), latent.sequence_case(0, hidden=0.5)
    assert made(whole, make_loss("log")).convex
    assert not made(part, make_loss("log")).convex
    assert made(whole, make_loss("log")).smooth
    assert not made(whole, make_loss("hinge")).smooth
    assert made(whole, make_loss("eps", eps_y=0.5, eps_h=0.0)).smooth
    assert not made(part, make_loss("eps", eps_y=0.5, eps_h=0.0)).smooth
    assert made(part, make_loss("eps")).smooth
    assert not made(part, make_loss("hybrid")).smooth
    assert made(part, make_loss("hybrid", alpha=1.0)).smooth
