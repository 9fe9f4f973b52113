r"""From dual ascent to quasi-Newton steps: a run that begins on one thread and ends on all.

Dual ascent visits one sequence after the other. Rounds of visits from the same weights do not
help: common features tie all sequences together, so that steps that are safe for 16 sequences at
once are 13 times as short on CoNLL-2000. Evaluations of the objective share their work among all
threads, but from weights of 0 a quasi-Newton method needs six times as many of them as dual ascent
makes passes. After a few passes, however, it needs few, if it is told the scale of every weight.
The variances of the labels are known from the memory of dual ascent,

.. math:: d_k = \sum_i b_i \sum_t x_{itk}^2 \, p_{it} (1 - p_{it}) / \epsilon, \qquad
          H_0 \propto (\lambda + d)^{-\tau}

with :math:`\tau` between 0, for no scales, and 1, where weights would be taken to be independent.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Floats
from structlearn._src.common.vectors import over
from structlearn._src.learn.structured_objective import StructuredObjective
from structlearn._src.model.model import Tables
from structlearn._src.model.term import power
from structlearn._src.solve.base import State
from structlearn._src.solve.lbfgs import Lbfgs

_POWER = 0.6  # evaluations to 0.1 % on CoNLL-2000 after 3 passes: 30; with 0.5 32, with 1 43
_ROWS = 2**12  # positions whose variances one thread computes at a time


def hand_over(objective: StructuredObjective, state: State) -> None:
    """Turn a state of dual ascent into one of L-BFGS at the same weights."""
    inverse = (objective.penalty.ridge + variances(objective, state)) ** -_POWER
    weights = state["weights"]
    state.clear()
    state |= Lbfgs().start(objective, weights, np.random.default_rng(0))
    state["inverse"] = inverse


def variances(objective: StructuredObjective, state: State) -> Floats:
    """Variance of the features of every weight under the labels that are remembered."""
    chains = objective.chain_arrays
    steep = sum(part.share / part.eps_y for part in objective.loss.parts)
    by = steep * chains.loss_weights
    tables: Tables = (_of_labels(objective, state["nodes"], by),)
    if len(objective.model.groups) > 1:
        tables += (_of_transitions(objective, state["steps"], by),)
    squares = tuple(tuple(power(x, 2) for x in terms) for terms in objective.examples.inputs)
    return objective.model.pull(tables, squares, objective.n_jobs)


def _of_labels(objective: StructuredObjective, errors: Floats, by: Floats) -> Floats:
    """Weighted variance of every state of every position, whose errors are remembered."""
    data = objective.chain_arrays.data
    each = np.repeat(by, np.diff(data.offsets))
    out = np.empty(errors.shape)

    def work(part: slice) -> None:
        own = out[part]
        own[:] = errors[part]
        own[np.arange(len(own)), data.labels[part]] += 1.0
        np.clip(own, 0.0, 1.0, out=own)
        own *= 1.0 - own
        own *= each[part, None]

    over(work, len(out), objective.n_jobs, _ROWS)
    return out


def _of_transitions(objective: StructuredObjective, errors: Floats, by: Floats) -> Floats:
    """Weighted expected number of every transition, which its variance does not exceed."""
    data = objective.chain_arrays.data
    counts = np.tensordot(by, errors, axes=1) if len(errors) else np.zeros(data.bars.shape)
    inside = np.ones(len(data.labels), np.bool_)
    inside[data.offsets[:-1]] = False
    later = np.flatnonzero(inside)
    each = np.repeat(by, np.diff(data.offsets))
    np.add.at(counts, (data.labels[later - 1], data.labels[later]), each[later])
    return np.maximum(counts, 0.0).reshape(1, -1)
