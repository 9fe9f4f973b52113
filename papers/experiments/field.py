"""Data and training for the experiments on simulated fields with hidden cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from papers.arrays import Floats, Ints
from papers.data.synthetic import CALIBRATED, HiddenField, Spread, chessboard, neighbours
from papers.experiments.trio import HIDDEN_CRF, LATENT, Learner, objective, predict
from papers.inside import (
    HIDDEN,
    OUTPUT,
    Examples,
    Fit,
    Graphs,
    InferenceSettings,
    LinearModel,
    LinearTerm,
    Rows,
    Sparse,
    StructuredObjective,
    assemble,
)
from structlearn.solvers import Cccp, Solver, Stochastic, run

_START = 0.1  # standard deviation of the first weights: at 0 hidden states would stay alike
_STEP = 0.02
_EXACT = InferenceSettings(method="exact", n_jobs=1)


@dataclass(frozen=True)
class Setup:
    """Shape and size of the simulated data, and how to infer on it."""

    rows: int
    columns: int
    states: int = 4
    n_train: int = 20
    n_test: int = 100
    settings: InferenceSettings = _EXACT


CHAIN = Setup(20, 1)
GRID = Setup(6, 6, settings=InferenceSettings(method="bp", sweeps=30, tol=1e-3, n_jobs=1))


@dataclass(frozen=True, eq=False)
class Trial:
    """One draw of a field, with examples to learn from and to test on."""

    setup: Setup
    field: HiddenField
    model: LinearModel
    train: Examples
    test: Examples
    truth: Ints
    start: Floats

    @classmethod
    def draw(cls, setup: Setup, seed: list[int], spread: Spread = CALIBRATED) -> Trial:
        """Draw everything; with another spread the same seed gives the same random numbers."""
        weights, data, start = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3))
        field = HiddenField.draw(
            setup.rows, setup.columns, states=setup.states, spread=spread, random_state=weights
        )
        inputs, cells = field.sample(setup.n_train + setup.n_test, random_state=data)
        cut = setup.n_train
        model = make_model(field)
        return cls(
            setup,
            field,
            model,
            make_examples(field, inputs[:cut], cells[:cut]),
            make_examples(field, inputs[cut:], cells[cut:]),
            cells[cut:],
            start.normal(0.0, _START, model.n_weights),
        )

    def objective(self, learner: Learner) -> StructuredObjective:
        """Return what the learner minimises."""
        return objective(learner, self.model, self.train, self.setup.states, self.setup.settings)

    def fit(self, learner: Learner, how: str) -> Fit:
        """Train from small random weights (but `ZERO` from 0), by one of `WAYS`."""
        solver, steps = WAYS[how](learner)
        start = np.zeros_like(self.start) if how == ZERO else self.start
        return run(solver, self.objective(learner), start, max_iter=steps, tol=None)

    def accuracy(self, learner: Learner, weights: Floats) -> float:
        """Percentage of the outputs of the test examples that are right."""
        found = predict(learner, self.model, weights, self.test, self.setup.settings.method)
        return self.right(found.reshape(self.truth.shape)[:, ~self.field.hidden])

    def right(self, outputs: Ints) -> float:
        """Percentage of the outputs (examples, outputs) that are right."""
        return 100.0 * float((outputs == self.truth[:, ~self.field.hidden]).mean())

    def likelihood(self, weights: Floats) -> float:
        """Mean of log p(y given x) over the test examples."""
        losses = replace(self.objective(HIDDEN_CRF), examples=self.test).losses(weights)
        return -float(losses.mean())


def _averaged(learner: Learner) -> tuple[Solver, int]:
    steps = 200
    return Stochastic(rule="fixed", step_size=_STEP, average=0.5, horizon=steps), steps


def _papers(learner: Learner) -> tuple[Solver, int]:
    if learner is LATENT:
        return Stochastic(rule="fixed", step_size=0.001), 250
    return Stochastic(rule="fixed", step_size=_STEP), 50


def _cccp(learner: Learner, keep: str = "best") -> tuple[Solver, int]:
    step, inner = (0.001, 100) if learner is LATENT else (_STEP, 20)
    return Cccp(Stochastic(rule="fixed", step_size=step), inner, inner_tol=0.0, keep=keep), 10


PAPERS = "SGD, the paper's steps"
ZERO = "SGD, the paper's steps, from 0"
AVERAGED = "SGD, averaged"
PRINTED = "CCCP as printed"
#: Ways to train: for a learner the solver and the number of its iterations.
WAYS: dict[str, Callable[[Learner], tuple[Solver, int]]] = {
    PAPERS: _papers,
    ZERO: _papers,
    AVERAGED: _averaged,
    PRINTED: partial(_cccp, keep="last"),
    "CCCP, never rising": _cccp,
}


def make_model(field: HiddenField) -> LinearModel:
    """Weights of its own for every cell and every edge."""
    n, states = field.cells.shape
    nodes = LinearTerm(n * (states + 1), states)
    return LinearModel(((nodes,), (LinearTerm(len(field.edges), states * states),)))


def make_examples(field: HiddenField, inputs: Ints, cells: Ints) -> Examples:
    """Examples whose hidden cells have no label."""
    n_examples, n = inputs.shape
    states = field.cells.shape[1]
    graphs = make_graphs(field.shape, states, n_examples)
    # Every cell sees its input as an indicator, and a constant.
    seen = np.stack([inputs.ravel(), np.full(inputs.size, states)], axis=1).astype(np.int32)
    starts = np.arange(inputs.size + 1) * 2
    nodes = Sparse(Rows(starts, seen.ravel(), np.empty(0), states + 1))
    n_edges = len(field.edges)
    by_cell = Sparse.by_position(nodes, np.tile(np.arange(n), n_examples), n)
    by_edge = Sparse.by_position(None, np.tile(np.arange(n_edges), n_examples), n_edges)
    labels = np.where(field.hidden, -1, cells).ravel()
    return Examples(graphs, ((by_cell,), (by_edge,)), labels, np.ones(n_examples))


@lru_cache(maxsize=8)
def make_graphs(shape: tuple[int, int], states: int, n_examples: int) -> Graphs:
    """The same grid for every example; made once, so that elimination is planned once."""
    roles = np.where(chessboard(*shape), HIDDEN, OUTPUT)
    n = len(roles)
    scopes = (np.arange(n)[:, None], neighbours(*shape))
    one = assemble(np.full(n, states), roles, np.array([0, n]), scopes)
    return one.take(np.zeros(n_examples, np.int64))
