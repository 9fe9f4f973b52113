"""The three learners that the experiments with hidden variables compare."""

from __future__ import annotations

from typing import NamedTuple

from papers.arrays import Floats, Ints
from papers.inside import (
    Examples,
    InferenceSettings,
    LinearModel,
    Options,
    StructuredObjective,
    decode,
    make_cost,
    make_loss,
)


class Learner(NamedTuple):
    """A loss, and whether to predict by the best labels of everything or of the outputs alone."""

    letter: str
    title: str
    loss: str
    joint: bool


MARGINAL = Learner("M", "marginal structured SVM", "marginal", joint=False)
LATENT = Learner("L", "latent structured SVM", "latent-hinge", joint=True)
HIDDEN_CRF = Learner("H", "hidden CRF", "log", joint=False)
TRIO = (MARGINAL, LATENT, HIDDEN_CRF)  # the order of the columns in all tables


def objective(
    learner: Learner, model: LinearModel, examples: Examples, states: int, effort: InferenceSettings
) -> StructuredObjective:
    """Return what the learner minimises; errors are counted, and C is 1."""
    cost = make_cost("hamming", states)
    return StructuredObjective(model, examples, make_loss(learner.loss), cost, settings=effort)


def predict(
    learner: Learner, model: LinearModel, weights: Floats, examples: Examples, method: str
) -> Ints:
    """Return the labels of all variables, as the learner predicts them."""
    tables = model.push(weights, examples.inputs, 1)
    eps_h = 0.0 if learner.joint else 1.0
    return decode.best(examples.structure, tables, eps_h, Options(n_jobs=1), method)
