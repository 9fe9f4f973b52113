"""A cost of 1 for every wrong labelling, against enumeration of all labellings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from structlearn import GridLabeler, SequenceLabeler
from structlearn._src.common.errors import ArgumentError
from structlearn._src.solve.frank_wolfe import FrankWolfe

LENGTHS = (4, 1, 3, 2)
WIDTH, STATES = 2, 3


def examples(seed):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, WIDTH)) for n in LENGTHS]
    Y = [rng.integers(STATES, size=n) for n in LENGTHS]
    Y[0][:STATES] = np.arange(STATES)  # all labels occur
    return X, Y


def soft(values, eps):
    top = max(values)
    if eps == 0.0:
        return top
    return top + eps * np.log(np.exp((np.array(values) - top) / eps).sum())


def enumerated(weights, X, Y, eps, cost=1.0, possible=lambda labels: True):
    """Losses by a sum over all labellings, scores from features and weights alone."""
    nodes = weights[: WIDTH * STATES].reshape(WIDTH, STATES)
    edges = weights[WIDTH * STATES :].reshape(STATES, STATES)

    def score(x, labels):
        steps = sum(edges[a, b] for a, b in itertools.pairwise(labels))
        return (x @ nodes)[np.arange(len(x)), labels].sum() + steps

    losses = []
    for x, y in zip(X, Y, strict=True):
        found = [
            score(x, list(labels)) + cost * (list(labels) != list(y))
            for labels in itertools.product(range(STATES), repeat=len(x))
            if possible(labels)
        ]
        losses.append(soft(found, eps) - score(x, list(y)))
    return np.array(losses)


@pytest.mark.parametrize("eps", [0.0, 0.02, 0.4, 1.0])
@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
def test_losses_are_those_of_enumeration(eps, scale):
    for seed in range(4):
        X, Y = examples(seed)
        labeler = SequenceLabeler(loss="hinge", cost="zero-one", eps_y=eps)
        objective = labeler.objective(X, Y)
        weights = scale * np.random.default_rng(seed).normal(size=objective.n_weights)
        np.testing.assert_allclose(
            objective.losses(weights), enumerated(weights, X, Y, eps), rtol=1e-10, atol=1e-10
        )


def test_hybrid_adds_the_log_loss_to_the_margin_on_labellings():
    X, Y = examples(5)
    objective = SequenceLabeler(loss="hybrid", alpha=0.3, cost="zero-one").objective(X, Y)
    weights = np.random.default_rng(5).normal(size=objective.n_weights)
    expected = 0.3 * enumerated(weights, X, Y, 1.0, 0.0) + 0.7 * enumerated(weights, X, Y, 0.0)
    np.testing.assert_allclose(objective.losses(weights), expected, rtol=1e-10)


def test_forbidden_labellings_are_no_rivals():
    X, Y = [np.ones((3, WIDTH)), np.ones((2, WIDTH))], [[0, 0, 2], [1, 2]]
    labeler = SequenceLabeler(loss="hinge", cost="zero-one", forbidden=[(0, 1)])
    objective = labeler.objective(X, Y)
    weights = np.random.default_rng(1).normal(size=objective.n_weights)

    def possible(labels):
        return (0, 1) not in itertools.pairwise(labels)

    expected = enumerated(weights, X, Y, 0.0, possible=possible)
    np.testing.assert_allclose(objective.losses(weights), expected, rtol=1e-10)


@pytest.mark.parametrize("eps", [0.0, 0.3])
@pytest.mark.parametrize("transitions", ["table", "none", "features"])
def test_gradients_are_those_of_differences(eps, transitions):
    X, Y = examples(2)
    given = {"transitions": transitions, "cost": "zero-one", "eps_y": eps}
    objective = SequenceLabeler(loss="hinge", **given).objective(X, Y)
    rng = np.random.default_rng(0)
    weights = rng.normal(size=objective.n_weights)
    gradient = objective.value_gradient(weights)[1]
    for _ in range(5):
        direction = rng.normal(size=len(weights))
        up, down = (objective.value(weights + sign * 1e-6 * direction) for sign in (1, -1))
        assert (up - down) / 2e-6 == pytest.approx(gradient @ direction, rel=1e-6, abs=1e-6)


def test_a_fit_reaches_a_margin_of_one_labelling():
    X, Y = examples(0)
    labeler = SequenceLabeler(loss="hinge", cost="zero-one", C=100.0, random_state=0).fit(X, Y)
    margins = [best[0][0] - best[1][0] for best in labeler.decode(X, 2) if len(best) > 1]
    assert labeler.score(X, Y) == 1.0
    assert min(margins) == pytest.approx(1.0, abs=0.02)


def test_what_is_no_labelled_sequence_is_refused():
    X, Y = examples(0)
    Y[0][1] = -1
    with pytest.raises(ArgumentError, match="cost='zero-one'"):
        SequenceLabeler(loss="hinge", cost="zero-one").fit(X, Y)
    grid = [np.zeros((2, 2))], [np.array([[0, 1], [1, 0]])]
    with pytest.raises(ArgumentError, match="cost='zero-one'"):
        GridLabeler(loss="hinge", cost="zero-one").fit(*grid)
    Y[0][1] = 1
    labeler = SequenceLabeler(loss="hinge", cost="zero-one", solver=FrankWolfe())
    with pytest.raises(ArgumentError, match="zero-one"):
        labeler.fit(X, Y)
