"""Objectives put together from parts learn factors of three variables, hidden labels included."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

from papers.inside import (
    HIDDEN,
    OUTPUT,
    Examples,
    InferenceSettings,
    LinearModel,
    LinearTerm,
    StructuredObjective,
    TableTerm,
    assemble,
    make_cost,
    make_loss,
)  # fmt: skip

SCOPES = np.array([[0, 1, 2], [2, 3, 4], [1, 3, 4]])
LABELS = np.array([1, -1, 0, -1, 1])  # two of five are hidden


@pytest.fixture(name="parts")
def make_parts():
    """Binary variables with two features each, and one table for all factors of three."""
    rng = np.random.default_rng(3)
    features = rng.normal(size=(5, 2))
    roles = np.where(LABELS < 0, HIDDEN, OUTPUT)
    graphs = assemble(np.full(5, 2), roles, np.array([0, 5]), (np.arange(5)[:, None], SCOPES))
    model = LinearModel(((LinearTerm(2, 2),), (TableTerm(8),)))
    examples = Examples(graphs, ((features,), (None,)), LABELS, np.ones(1))
    return model, examples, features, rng.normal(size=model.n_weights)


def losses(loss, features, weights):
    """By all assignments: free minus clamped, with one unit of cost for a wrong output."""
    nodes = features @ weights[:4].reshape(2, 2)
    table = weights[4:].reshape(2, 2, 2)
    known = LABELS >= 0
    free, clamped = {}, []
    for states in product((0, 1), repeat=5):
        y = np.array(states)
        score = nodes[np.arange(5), y].sum() + sum(table[tuple(y[s])] for s in SCOPES)
        wrong = int((y != LABELS)[known].sum())
        cost = 0 if loss == "log" else wrong
        free.setdefault(tuple(y[known]), []).append(score + cost)
        if wrong == 0:
            clamped.append(score)
    outputs = [logsumexp(each) for each in free.values()]
    return (logsumexp(outputs) if loss == "log" else max(outputs)) - logsumexp(clamped)


@pytest.mark.parametrize("loss", ["log", "marginal"])
def test_value_and_gradient_are_those_of_all_assignments(parts, loss):
    model, examples, features, weights = parts
    settings = InferenceSettings(method="exact", n_jobs=1)
    objective = StructuredObjective(
        model, examples, make_loss(loss), make_cost("hamming", 2), settings=settings
    )

    def value(at):
        return 0.5 * at @ at + losses(loss, features, at)

    found = objective.value_gradient(weights, objective.begin())
    assert found.value == pytest.approx(value(weights), abs=1e-10)
    h = 1e-6
    steps = h * np.eye(len(weights))
    slopes = [(value(weights + step) - value(weights - step)) / (2 * h) for step in steps]
    np.testing.assert_allclose(found.gradient, slopes, atol=1e-6)
