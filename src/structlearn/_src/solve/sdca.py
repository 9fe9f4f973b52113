"""Stochastic dual coordinate ascent for smooth losses on sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from structlearn._src.common import checks, threads
from structlearn._src.common.arrays import Floats
from structlearn._src.common.threads import Workspaces
from structlearn._src.kernels.chain.marginals import ChainWorkspace
from structlearn._src.kernels.chain.sdca import Changes, Memory, ascend, ascend_in_threads
from structlearn._src.kernels.chain.sequence import ChainData, ChainErrors
from structlearn._src.learn.chain_arrays import (
    ChainArrays,
    make_errors,
    make_parts,
    make_workspace,
)
from structlearn._src.learn.objective import Objective
from structlearn._src.learn.structured_objective import (
    StructuredObjective,
    chain_refusal,
    over_chains,
)
from structlearn._src.model.term import Sparse
from structlearn._src.solve.base import Report, Solver, State, draw_seed, stream
from structlearn._src.solve.team import Team, suited_batch

_ROUNDING = 1e-12  # by how much values may differ that should agree, relatively
_PATIENCE = 3  # looks at the objective without gain after which steps become shorter
_ENOUGH = 0.1  # of the rise of the bound that the shortest steps promise; 0.3 does as well
_MANY = 20_000  # weights below which any solver is quick
_SURE = 0.01  # certified distance to the optimum, relatively, above which a standstill is none
_SLOW = 0.02  # steps below which a pass gains less than one of a quasi-Newton method


@dataclass(frozen=True)
class Sdca(Solver):
    r"""Stochastic dual coordinate ascent for smooth losses, one sequence or small batch at a time.

    .. math:: F(w) = \tfrac{1}{2} \|w\|^2 + \sum_i b_i \ell_i(w), \qquad w = -\sum_i b_i m_i,
              \qquad m_i := m_i + \gamma_i (\nabla \ell_i(w) - m_i)

    with :math:`b_i = C c_i`. For every sequence an old gradient :math:`m_i` is stored, and the
    weights are always the combination of these, so that :math:`\nabla F = 0` where none of them
    changes. The errors of all steps vanish with the distance to the optimum, which shrinks by about
    :math:`1 - \gamma` in every pass. The step length

    .. math:: \gamma_i = \frac{1}{1 + \tfrac{1}{2} b_i x_i^2 / \epsilon}

    follows from the curvature of the loss, where :math:`x_i^2` is the largest squared norm of the
    features of a position, including its transition. The stored gradients belong to tangents, whose
    mixtures bound the optimum from below: convergence is accepted only within 1 % of that. If the
    bound does not rise, and the distance to it not shrink, by a tenth of what the shortest steps
    promise, the steps were too long, and their lengths are halved.

    Memory: one single-precision number for every state of every position, and for every pair
    of states of every sequence.

    Parameters
    ----------
    evaluate
        Passes between two evaluations of the objective, each of which costs about half a pass.
    batch_size
        Number of sequences that are visited at once, from the same weights, each by another thread.
        The result depends on it, but not on the number of threads. By default it is 16 where there
        are 4 threads or more, sparse features and at least 50 such batches, else 1. On CoNLL-2000
        batches of 16 need 21 passes where single sequences need 18; batches of 48 do not converge
        without shorter steps. With dense features they need several times as many passes.

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
    batch_size: int | None = field(default=None, metadata={"later": True})
    name: ClassVar[str] = "sdca"
    linear_rate: ClassVar[bool] = True
    proves: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checks.integer("evaluate", self.evaluate, low=1)
        if self.batch_size is not None:
            checks.integer("batch_size", self.batch_size, low=1)

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

        A quasi-Newton method needs six times as many evaluations as this one makes passes.

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
        return float(step_lengths(text, 1.0).mean()) >= _SLOW

    def start(self, objective: Objective, weights: Floats, rng: np.random.Generator) -> State:
        """Remember gradients of 0; weights that are there fade as these memories do."""
        chains = over_chains(objective).chain_arrays
        K = chains.states
        learnt = objective.n_examples if chains.data.learnt.any() else 0
        return {
            "seed": draw_seed(rng),
            "iteration": 0,
            "batch_size": suited_batch(self.batch_size, objective),
            "weights": weights,
            "initial_weights": weights.copy() if weights.any() else np.empty(0),
            "nodes": np.zeros((len(chains.data.labels), K), np.float32),
            "steps": np.zeros((learnt, K, K), np.float32),
            "bounds": np.zeros(objective.n_examples),
            "curvature": 1.0,
            "best_value": math.inf,
            "best_bound": -math.inf,
            "least_gap": math.inf,
            "stalls": 0,
        }

    def step(self, objective: Objective, state: State) -> Report:
        """Visit all sequences once."""
        state["iteration"] += 1
        shares = step_lengths(over_chains(objective), state["curvature"])
        _visit(over_chains(objective), state, shares)
        if len(state["initial_weights"]):
            lost = float(shares.mean()) * state["initial_weights"]
            state["weights"] -= lost
            state["initial_weights"] -= lost
        if state["iteration"] % self.evaluate:
            return Report()
        value = objective.value(state["weights"])
        bound = dual_bound(objective, state)
        rose = value > state["best_value"] + _ROUNDING * abs(state["best_value"])
        promised = _ENOUGH * (1.0 - (1.0 - float(shares.min())) ** self.evaluate)
        _adapt(state, value, bound, promised, _most_curvature(objective, state))
        excess = (value - bound) / (_SURE * value) if value else 0.0
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
    primal = plan.to_kernel(chains, weights, objective.n_jobs)
    memory = Memory(*(state[name] for name in Memory._fields))
    order = stream(state, state["iteration"]).permutation(objective.n_examples)
    given = chains.data, plan.layout, make_parts(objective.loss), chains.loss_weights, shares
    size = state.get("batch_size", 1)  # old files have none
    if size == 1:
        ascend(order, *given, primal, memory, make_errors(chains), make_workspace(chains))
    else:
        team = Team.of(order, size, np.diff(chains.data.offsets), objective.n_jobs)
        if "_dealt" not in state:
            state["_dealt"] = plan.dealt(chains, team.threads, objective.n_jobs)
        changes = _make_changes(chains, size)
        helpers = team.threads - 1
        errors, spaces = _workspaces(chains, state)
        with errors.lend(helpers) as own_errors, spaces.lend(helpers) as own_spaces:
            threads.launch(
                ascend_in_threads, helpers, team.board, team.order, team.batches, *given, primal,
                memory, *state["_dealt"], changes, own_errors, own_spaces,
            )  # fmt: skip
    plan.from_kernel(chains, primal, weights, objective.n_jobs)


def _workspaces(
    chains: ChainArrays, state: State
) -> tuple[Workspaces[ChainErrors], Workspaces[ChainWorkspace]]:
    """Return workspaces of the threads, kept from pass to pass."""
    if "_spaces" not in state:
        errors = Workspaces(partial(make_errors, chains))
        state["_spaces"] = errors, Workspaces(partial(make_workspace, chains))
    spaces: tuple[Workspaces[ChainErrors], Workspaces[ChainWorkspace]] = state["_spaces"]
    return spaces


def _make_changes(chains: ChainArrays, size: int) -> Changes:
    """Return room for the changes of a batch."""
    K = chains.states
    nodes = np.empty((size, chains.longest, K))
    return Changes(nodes, nodes.reshape(size, -1), np.empty((size, K, K)))


def _adapt(state: State, value: float, bound: float, promised: float, most: float) -> None:
    """Shorten steps where neither the bound rises nor the gap to it shrinks as promised.

    The value alone tells little: from one that was low by chance it rises for a while though all
    is well, and in a cycle of steps that are too long it may creep down to nowhere.
    """
    gap = value - bound
    highest = state.get("best_bound", -math.inf)  # old files have none, and no least gap
    closer = gap <= (1.0 - promised) * state.get("least_gap", math.inf)
    better = closer or bound - highest >= promised * gap
    state["best_value"] = min(value, state["best_value"])
    state["best_bound"] = max(highest, bound)
    state["least_gap"] = gap if closer else state.get("least_gap", math.inf)
    state["stalls"] = 0 if better else state["stalls"] + 1
    if state["stalls"] >= _PATIENCE:
        state["curvature"] = min(2.0 * state["curvature"], most)
        state["stalls"] = 0
        # What longer steps came upon by chance, shorter ones need not surpass soon.
        state["best_bound"] = bound
        state["least_gap"] = gap


def _most_curvature(objective: Objective, state: State) -> float:
    """Return a curvature beyond which steps need not be shorter: the dual rises for certain.

    The features of all positions of a sequence may be alike, and so may those of a batch.
    """
    longest = over_chains(objective).chain_arrays.longest
    return float(longest**2 * state.get("batch_size", 1))


def step_lengths(objective: StructuredObjective, curvature: float) -> Floats:
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
