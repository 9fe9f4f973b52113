"""Stochastic gradient steps on sequences, compiled: one sequence per step, at its own cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structlearn._src.common.arrays import Ints
from structlearn._src.kernels.chain.online import OnlineWeights, StepRule, online
from structlearn._src.learn.chain_arrays import make_errors, make_parts, make_workspace
from structlearn._src.learn.objective import Objective
from structlearn._src.learn.structured_objective import StructuredObjective, chain_refusal
from structlearn._src.solve.base import State
from structlearn._src.solve.stochastic import RULES, Stepping

_SAMPLE = 1000  # sequences on which first steps are tried
_NAMES = ("weights", "average", "squares")  # of the first arrays of `OnlineWeights`


@dataclass(frozen=True)
class Online(Stepping):
    r"""Stochastic gradient steps on one sequence at a time.

    .. math:: w := \operatorname{prox}_{\eta_t}\big(w - \eta_t (\lambda w + n C c_i \nabla
              \ell_i(w))\big)

    with :math:`\lambda` the factor of the squares in the penalty, and :math:`\operatorname{prox}`
    for its absolute values. For every convex loss of sequences without hidden labels this is
    equivalent to `Stochastic` with batches of one, at a fraction of the cost: a step touches only
    the weights of its own features. Scale factors represent changes common to all weights, and
    weights catch up on missed shrinkage when their feature occurs again.

    With AdaGrad the penalty is not part of the sums of squares: a step follows the gradient
    of the loss alone, and

    .. math:: w_k := \operatorname{prox}_{\eta_k}(w_k - \eta_k g_k) / (1 + \eta_k \lambda),
              \qquad \eta_k = \eta \Big/ \sqrt{\textstyle\sum_s g_{s,k}^2}

    follows. The :math:`m` shrinkage steps that a feature misses become one of :math:`m \eta_k`.

    Parameters
    ----------
    rule, step_size, average, horizon, evaluate
        As in `Stochastic`. Shrinkage that is caught up later enters the average later too.

    References
    ----------
    S. Shalev-Shwartz et al., "Pegasos: primal estimated sub-gradient solver for SVM", 2011.
    W. Xu, "Towards optimal one pass large scale learning with averaged stochastic gradient
    descent", 2011, section 3.3.
    J. Duchi, E. Hazan and Y. Singer, "Adaptive subgradient methods", 2011, section 5.

    Examples
    --------
    >>> from structlearn import SequenceLabeler
    >>> from structlearn.solvers import Online
    >>> X, Y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    >>> labeler = SequenceLabeler(solver=Online(step_size=0.5), max_iter=5, tol=None)
    >>> labeler.fit(X, Y).n_iter_
    5
    """

    rule: str = "decaying"
    name: ClassVar[str] = "online"

    def refuses(self, objective: Objective) -> str:
        """Refuse what is not a sequence, and Pegasos where the penalty is not the squares."""
        penalty = objective.penalty
        if self.rule == "pegasos" and not (penalty.smooth and penalty.ridge > 0.0):
            return "Pegasos needs squares alone as penalty; AdaGrad does not"
        return chain_refusal(objective)

    def _visit(self, objective: StructuredObjective, state: State, order: Ints) -> float:
        chains = objective.chain_arrays
        inner = {name: chains.to_kernel(state[name]) for name in _NAMES if name in state}
        gradient = np.zeros(chains.n_weights)
        arrays = (inner.get(name, np.empty(0)) for name in _NAMES)
        met = online(
            order,
            chains.data,
            make_parts(objective.loss),
            chains.loss_weights * objective.n_examples,
            self._rule(objective, state),
            OnlineWeights._make([*arrays, gradient, np.zeros(chains.n_features)]),
            make_errors(chains),
            make_workspace(chains),
            np.empty(5),
            state["updates"],
        )
        for name, array in inner.items():
            chains.from_kernel(state[name], array)
        state["updates"] += len(order)
        return float(met) / objective.n_examples

    def _rule(self, objective: StructuredObjective, state: State) -> StepRule:
        power = 2.0 * (1.0 - self.average) / self.average if self.average else 0.0
        begin = -1.0
        if self.horizon is not None:
            begin = math.floor((1.0 - self.average) * self.horizon * objective.n_examples)
        return StepRule(
            kind=RULES.index(self.rule),
            step=float(state["step"]),
            ridge=objective.penalty.ridge,
            lasso=objective.penalty.lasso,
            radius=float(state.get("radius", math.inf)),
            power=power,
            begin=float(begin),
        )

    def _guess(self, objective: StructuredObjective, state: State, order: Ints) -> float:
        """Return the step that would be right for one position of average features."""
        chains = objective.chain_arrays
        data = chains.data
        largest = float(chains.loss_weights.max(initial=0.0))
        squares = float(data.values @ data.values) if len(data.values) else len(data.columns)
        size = largest * objective.n_examples * squares / max(len(data.labels), 1)
        return 1.0 / size if size > 0.0 else 1.0
