"""Stochastic dual coordinate ascent for smooth losses on sequences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn.common import checks
from structlearn.common.checks import Floats
from structlearn.kernels.sdca import ascend
from structlearn.model.features import Sparse
from structlearn.objective.base import Objective
from structlearn.objective.objective import StructuredObjective
from structlearn.solve import sequences
from structlearn.solve.base import Report, State, draw_seed, stream
from structlearn.solve.sequences import Flat

_PATIENCE = 3  # looks at the objective without gain after which steps become shorter
_MANY = 20_000  # weights below which any solver is quick
_SLOW = 0.02  # steps below which a pass gains less than one of a quasi-Newton method


@dataclass(frozen=True)
class Sdca:
    r"""Steps on the dual of a smooth loss, one sequence at a time.

    .. math:: F(w) = \tfrac{1}{2} \|w\|^2 + \sum_i b_i \ell_i(w), \qquad w = -\sum_i b_i m_i,
              \qquad m_i := m_i + \gamma_i (\nabla \ell_i(w) - m_i)

    with :math:`b_i = C c_i`. Every sequence remembers an old gradient :math:`m_i`, and the weights
    are always what these make of them, so that where none of them moves, :math:`\nabla F = 0`. The
    errors of all steps vanish with the distance to the optimum, which shrinks by about
    :math:`1 - \gamma` in every pass. The share

    .. math:: \gamma_i = \frac{1}{1 + \tfrac{1}{2} b_i x_i^2 / \epsilon}

    comes from the curvature of the loss, :math:`x_i^2` being the largest squared length that the
    features of a position have. It is halved when the objective no longer falls.

    Memory: one number of single precision for every state of every position, and for every pair
    of states of every sequence.

    Parameters
    ----------
    evaluate
        Passes between two looks at the objective, each of which costs about half a pass.

    References
    ----------
    S. Shalev-Shwartz, "SDCA without duality, regularization, and individual convexity", 2016.
    R. Le Priol, A. Piche and S. Lacoste-Julien, "Adaptive stochastic dual coordinate ascent for
    conditional random fields", 2018.
    """

    evaluate: int = 5
    name: ClassVar[str] = "sdca"

    def __post_init__(self) -> None:
        checks.whole("evaluate", self.evaluate, low=1)

    def refuses(self, objective: Objective) -> str:
        """Refuse all but smooth losses on sequences with squares as penalty."""
        if why := sequences.refuses(objective):
            return why
        assert isinstance(objective, StructuredObjective)
        if not objective.smooth:
            return "it needs a smooth loss: use loss='log', or eps_y above 0"
        if not objective.penalty.smooth:
            return "it needs squares alone as penalty: use l1_ratio=0"
        return ""

    def suits(self, objective: Objective) -> bool:
        """Tell whether an objective that is not refused is solved most quickly so."""
        assert isinstance(objective, StructuredObjective)
        sparse = isinstance(objective.examples.inputs[0][0], Sparse)
        if not sparse or objective.n_weights < _MANY:
            return False
        return float(_shares(objective, 1.0).mean()) >= _SLOW

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Remember gradients of 0; weights that are there fade as these memories do."""
        flat, n = sequences.flatten(objective), objective.n_examples
        K, learnt = flat.states, n if flat.data.learnt.any() else 0
        return {
            "seed": draw_seed(rng),
            "iteration": 0,
            "weights": weights,
            "fading": weights.copy() if weights.any() else np.empty(0),
            "nodes": np.zeros((len(flat.data.labels), K), np.float32),
            "steps": np.zeros((learnt, K, K), np.float32),
            "curvature": 1.0,
            "lowest": np.inf,
            "looks": 0,
        }

    def step(self, objective: Objective, state: State) -> Report:
        """Visit all sequences once."""
        assert isinstance(objective, StructuredObjective)
        state["iteration"] += 1
        shares = _shares(objective, state["curvature"])
        _visit(objective, state, shares)
        if len(state["fading"]):
            lost = float(shares.mean()) * state["fading"]
            state["weights"] -= lost
            state["fading"] -= lost
        if state["iteration"] % self.evaluate:
            return Report()
        value = objective.value(state["weights"])
        _adapt(state, value)
        return Report(value)


def _visit(objective: StructuredObjective, state: State, shares: Floats) -> None:
    """Take one step for every sequence, in a new order."""
    flat, weights = sequences.flatten(objective), state["weights"]
    inner, table = flat.spread(weights), flat.table(weights)
    ascend(
        stream(state, state["iteration"]).permutation(objective.n_examples),
        flat.data,
        sequences.make_parts(objective),
        flat.by,
        shares,
        inner,
        table,
        state["nodes"],
        state["steps"],
        sequences.make_errors(flat),
        sequences.make_slate(flat),
    )
    flat.gather(weights, inner)
    flat.set_table(weights, table)


def _adapt(state: State, value: float) -> None:
    """Shorten steps where the lowest value is long past: they overshoot."""
    lower = value < state["lowest"]
    state["lowest"] = min(value, state["lowest"])
    state["looks"] = 0 if lower else state["looks"] + 1
    if state["looks"] == _PATIENCE:
        state["curvature"] *= 2.0
        state["looks"] = 0


def _shares(objective: StructuredObjective, curvature: float) -> Floats:
    """Return by which share of the way every memory moves."""
    flat, parts = sequences.flatten(objective), sequences.make_parts(objective)
    steep = 0.5 * curvature * float((parts.shares / parts.eps).sum())
    return 1.0 / (1.0 + steep * flat.by * _squares(flat))


def _squares(flat: Flat) -> Floats:
    """Return the largest squared length of the features of a position in every sequence."""
    data = flat.data
    if len(data.values):
        sums = np.append(0.0, np.cumsum(data.values**2))[data.rows]
        squares = np.diff(sums)
    else:
        squares = np.diff(data.rows).astype(np.float64)
    return np.maximum.reduceat(squares, data.offsets[:-1])
