"""Stochastic dual coordinate ascent for smooth losses on sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks
from structlearn._src.common.arrays import Floats
from structlearn._src.kernels.chain.sdca import ascend
from structlearn._src.kernels.chain.sequence import ChainData
from structlearn._src.learn.chain_arrays import make_errors, make_parts, make_workspace
from structlearn._src.learn.objective import Objective
from structlearn._src.learn.structured_objective import (
    StructuredObjective,
    chain_refusal,
    over_chains,
)
from structlearn._src.model.term import Sparse
from structlearn._src.solve.base import Report, Solver, State, draw_seed, stream
from structlearn._src.solve.hand_over import hand_over
from structlearn._src.solve.lbfgs import Lbfgs

_ROUNDING = 1e-12  # by how much values may differ that should agree, relatively
_PATIENCE = 3  # looks at the objective without gain after which steps become shorter
_MANY = 20_000  # weights below which any solver is quick
_SURE = 0.01  # certified distance to the optimum, relatively, above which a standstill is none
_SLOW = 0.02  # steps below which a pass gains less than one of a quasi-Newton method


@dataclass(frozen=True)
class Sdca(Solver):
    r"""Stochastic dual coordinate ascent for smooth losses, one sequence at a time.

    .. math:: F(w) = \tfrac{1}{2} \|w\|^2 + \sum_i b_i \ell_i(w), \qquad w = -\sum_i b_i m_i,
              \qquad m_i := m_i + \gamma_i (\nabla \ell_i(w) - m_i)

    with :math:`b_i = C c_i`. For every sequence an old gradient :math:`m_i` is stored, and the
    weights are always the combination of these, so that :math:`\nabla F = 0` where none of them
    changes. The errors of all steps vanish with the distance to the optimum, which shrinks by about
    :math:`1 - \gamma` in every pass. The step length

    .. math:: \gamma_i = \frac{1}{1 + \tfrac{1}{2} b_i x_i^2 / \epsilon}

    follows from the curvature of the loss, where :math:`x_i^2` is the largest squared norm of the
    features of a position, including its transition. If the objective no longer decreases, the
    steps were too long, and their lengths are halved. The stored gradients belong to tangents,
    whose mixtures bound the optimum from below: convergence is accepted only within 1 % of that.

    Memory: one single-precision number for every state of every position, and for every pair
    of states of every sequence.

    Parameters
    ----------
    evaluate
        Passes between two evaluations of the objective, each of which costs about half a pass.
    passes
        Passes after which L-BFGS continues, whose evaluations use all threads. Its first metric is
        diagonal, from the variances of the labels under the dual variables. By default never. On
        CoNLL-2000, 3 passes and 30 evaluations take the place of 18 passes.

    References
    ----------
    S. Shalev-Shwartz, "SDCA without duality, regularization, and individual convexity", 2016.
    R. Le Priol, A. Piche and S. Lacoste-Julien, "Adaptive stochastic dual coordinate ascent for
    conditional random fields", 2018.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import Sdca
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(solver=Sdca(evaluate=2))
    >>> labeler.fit(X, Y).converged_
    True
    """

    evaluate: int = 5
    passes: int | None = field(default=None, metadata={"later": True})
    name: ClassVar[str] = "sdca"
    linear_rate: ClassVar[bool] = True
    proves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.integer("evaluate", self.evaluate, low=1)
        if self.passes is not None:
            checks.integer("passes", self.passes, low=1)

    def refuses(self, objective: Objective) -> str:
        """Refuse all but smooth losses on sequences with squares as penalty."""
        if why := chain_refusal(objective):
            return why
        if not objective.smooth:
            return "it needs a smooth loss: use loss='log', or eps_y above 0"
        if not objective.penalty.smooth:
            return "it needs squares alone as penalty: use l1_ratio=0"
        if objective.penalty.ridge == 0.0:
            return "its dual needs a penalty, and there is none: use a finite C"
        return ""

    def suits(self, objective: Objective) -> bool:
        """Tell whether this is the quickest way: text, and losses that weigh little enough.

        One sequence at a time is work for one thread, but a quasi-Newton method alone, whose steps
        are work for all of them, needs six times as many.

        Parameters
        ----------
        objective
            Objective to minimise.

        Returns
        -------
        bool
            Whether ``solver="auto"`` should choose this solver.

        Examples
        --------
        >>> from structlearn import SequenceLabeler
        >>> from structlearn.solvers import Sdca
        >>> few = SequenceLabeler().objective([[["the"], ["cat"]]], [["D", "N"]])
        >>> Sdca().suits(few)
        False
        """
        if self.refuses(objective):
            return False
        text = over_chains(objective)
        sparse = isinstance(text.examples.inputs[0][0], Sparse)
        if not sparse or text.n_weights < _MANY:
            return False
        return float(_shares(text, 1.0).mean()) >= _SLOW

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Remember gradients of 0; weights that are there fade as these memories do."""
        chains = over_chains(objective).chain_arrays
        K = chains.states
        learnt = objective.n_examples if chains.data.learnt.any() else 0
        return {
            "seed": draw_seed(rng),
            "iteration": 0,
            "weights": weights,
            "initial_weights": weights.copy() if weights.any() else np.empty(0),
            "nodes": np.zeros((len(chains.data.labels), K), np.float32),
            "steps": np.zeros((learnt, K, K), np.float32),
            "bounds": np.zeros(objective.n_examples),
            "curvature": 1.0,
            "best_value": math.inf,
            "stalls": 0,
        }

    def step(self, objective: Objective, state: State) -> Report:
        """Visit all sequences once; after the last pass, take a quasi-Newton step."""
        if "gradient" in state:
            return Lbfgs().step(objective, state)
        state["iteration"] += 1
        shares = _shares(over_chains(objective), state["curvature"])
        _visit(over_chains(objective), state, shares)
        if len(state["initial_weights"]):
            lost = float(shares.mean()) * state["initial_weights"]
            state["weights"] -= lost
            state["initial_weights"] -= lost
        if state["iteration"] == self.passes:
            hand_over(over_chains(objective), state)
            return Report(state["value"], moving=True)
        if state["iteration"] % self.evaluate:
            return Report()
        value = objective.value(state["weights"])
        rose = value > state["best_value"] + _ROUNDING * abs(state["best_value"])
        _adapt(state, value)
        excess = (value - dual_bound(objective, state)) / (_SURE * value) if value else 0.0
        return Report(value, moving=rose or excess > 1.0, excess=excess)


def dual_bound(objective: Objective, state: State) -> float:
    r"""Return a value that the objective never falls below.

    .. math:: \min_v \tfrac{1}{2} \|v\|^2 + \sum_i b_i (c_i + \langle m_i, v \rangle)
              = \sum_i b_i c_i - \tfrac{1}{2} \Bigl\|\sum_i b_i m_i\Bigr\|^2

    Every loss lies above the mixture of its old tangents that its memory is the slope of.
    """
    slope = state["weights"].copy()
    if len(state["initial_weights"]):
        slope -= state["initial_weights"]
    bound = over_chains(objective).chain_arrays.loss_weights @ state["bounds"]
    return float(bound - 0.5 * (slope @ slope))


def _visit(objective: StructuredObjective, state: State, shares: Floats) -> None:
    """Take one step for every sequence, in a new order."""
    chains = objective.chain_arrays
    state.setdefault("bounds", np.full(objective.n_examples, np.nan))  # old files have none
    plan = objective.chain_layout
    weights = state["weights"]
    primal = plan.to_kernel(chains, weights)
    ascend(
        stream(state, state["iteration"]).permutation(objective.n_examples),
        chains.data,
        plan.layout,
        make_parts(objective.loss),
        chains.loss_weights,
        shares,
        primal,
        state["nodes"],
        state["steps"],
        state["bounds"],
        make_errors(chains),
        make_workspace(chains),
    )
    plan.from_kernel(chains, primal, weights)


def _adapt(state: State, value: float) -> None:
    """Shorten steps where the lowest value is long past: they overshoot."""
    lower = value < state["best_value"]
    state["best_value"] = min(value, state["best_value"])
    state["stalls"] = 0 if lower else state["stalls"] + 1
    if state["stalls"] == _PATIENCE:
        state["curvature"] *= 2.0
        state["stalls"] = 0


def _shares(objective: StructuredObjective, curvature: float) -> Floats:
    """Return by which share of the way every memory moves."""
    chains = objective.chain_arrays
    parts = make_parts(objective.loss)
    steep = 0.5 * curvature * float((parts.shares / parts.eps).sum())
    return 1.0 / (1.0 + steep * chains.loss_weights * _squares(chains.data))


def _squares(data: ChainData) -> Floats:
    """Return the largest squared length of the features of a position in every sequence."""
    squares = np.diff(data.rows).astype(np.float64)
    if len(data.values):
        squares = np.diff(np.append(0.0, np.cumsum(data.values**2))[data.rows])
    return np.maximum.reduceat(squares, data.offsets[:-1]) + float(data.learnt.any())
