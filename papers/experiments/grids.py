"""Images as grids of which some nodes are hidden: examples, training by CCCP, prediction."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from papers.arrays import Floats, Ints, offsets_of
from papers.experiments.trio import Learner, objective, predict
from papers.inside import (
    HIDDEN,
    OUTPUT,
    Examples,
    Features,
    Graphs,
    InferenceSettings,
    LinearModel,
    LinearTerm,
    TableTerm,
    assemble,
)
from structlearn import grid_edges
from structlearn.errors import InferenceWarning
from structlearn.solvers import Cccp, Stochastic, run


def make_grids(shapes: Sequence[tuple[int, int]], labels: Ints, states: int) -> Graphs:
    """Grids of these shapes; nodes without a label (-1) are hidden.

    Groups are nodes, edges to the right, edges down.
    """
    sizes = np.array([rows * columns for rows, columns in shapes])
    borders = offsets_of(sizes)
    right, down = [], []
    for (rows, columns), first in zip(shapes, borders, strict=False):
        edges = first + grid_edges(rows, columns)
        right.append(edges[: rows * (columns - 1)])
        down.append(edges[rows * (columns - 1) :])
    scopes = (np.arange(len(labels))[:, None], np.concatenate(right), np.concatenate(down))
    roles = np.where(labels < 0, HIDDEN, OUTPUT)
    return assemble(np.full(len(labels), states), roles, borders, scopes)


def make_examples(
    shapes: Sequence[tuple[int, int]], features: Features, labels: Ints, states: int
) -> Examples:
    """Grids with features of their nodes."""
    graphs = make_grids(shapes, labels, states)
    return Examples(graphs, ((features,), (None,), (None,)), labels, np.ones(len(shapes)))


def make_model(width: int, states: int) -> LinearModel:
    """Weights of features for every label, and a table for either direction of edges."""
    table = (TableTerm(states * states),)
    return LinearModel(((LinearTerm(width, states),), table, table))


#: Messages of every learner: mixed temperatures need plain ones, whose claims about the objective
#: of a hidden CRF are often false on grids; tree-reweighted ones bound that.
METHODS = {"M": "bp", "L": "bp", "H": "trw"}


class Training:
    """CCCP whose inner steps are AdaGrad's, the last quarter of them averaged."""

    def __init__(self, outer: int, inner: int, step: float, sweeps: int) -> None:
        self.outer = outer
        self.sweeps = sweeps
        steps = Stochastic("adagrad", step, average=0.25, horizon=inner)
        self.solver = Cccp(steps, inner, inner_tol=0.0, keep="last")

    def weights(
        self, learner: Learner, model: LinearModel, examples: Examples, start: Floats
    ) -> Floats:
        """Train a learner."""
        states = model.groups[0][0].size
        method = METHODS[learner.letter]
        effort = InferenceSettings(method=method, sweeps=self.sweeps, tol=1e-3, n_jobs=1)
        goal = objective(learner, model, examples, states, effort)
        return run(self.solver, goal, start, max_iter=self.outer, tol=None).weights


def outputs(learner: Learner, model: LinearModel, weights: Floats, examples: Examples) -> Ints:
    """Predict; where messages do not rest, what they have got to counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        return predict(learner, model, weights, examples, "bp")
