"""The value of an assignment to the outputs: hidden variables summed out, outputs fixed."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.condition import condition
from structlearn._src.graph.wiring import HIDDEN
from structlearn._src.inference.base import Options, Problem, exceeds
from structlearn._src.inference.junction import JunctionTree, Tree, order_for
from structlearn._src.inference.messenger import Messenger

_SWEEPS = 200


class Clamped:
    r"""Scores assignments to the outputs by the true objective.

    .. math:: V(y) = \epsilon_h \log \sum_h \exp \frac{\theta(y, h)}{\epsilon_h}

    by elimination where the hidden variables alone are narrow enough, else by the Bethe
    approximation of a sum-product run. The structure is compiled once; each further assignment
    only slices tables.
    """

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem, self.options = problem, options
        start = np.where(problem.wiring.roles == HIDDEN, -1, 0)
        inner = self._clamp(start)
        self.exact = not JunctionTree().refuses(inner, "partition", options)
        self._tree: Tree | None = None
        self._messages: Floats | None = None
        if self.exact:
            order = order_for(inner, options.max_table, options.n_jobs)
            self._tree = Tree(inner, order, options.n_jobs)

    def _clamp(self, fixed: Ints) -> Problem:
        small = condition(self.problem.wiring, self.problem.potentials, fixed)
        self._constant = small.constant
        eps = self.problem.eps_hidden
        return Problem(small.wiring, small.potentials, eps, eps)

    def value(self, labels: Ints) -> Floats:
        """Value of every graph at the outputs in `labels`; states of hidden ones are ignored."""
        inner = self._clamp(np.where(self.problem.wiring.roles == HIDDEN, -1, labels))
        if self._tree is not None:
            return self._constant + self._tree.forward(inner.potentials)
        messenger = Messenger(inner, damping=0.2, start=self._messages, n_jobs=self.options.n_jobs)
        messenger.run(_SWEEPS, 1e-6)
        self._messages = messenger.messages
        return self._constant + messenger.value()[0]


def ascend(problem: Problem, clamped: Clamped, labels: Ints, options: Options) -> Ints:
    """Change one output at a time while that raises the true objective.

    All graphs of the wiring move together, each by itself: step j tries the j-th output of
    every graph.
    """
    wiring = problem.wiring
    best = labels.copy()
    value = clamped.value(best)
    turns = _turns(problem)

    def sweep() -> bool:
        nonlocal value
        before = value.copy()
        for chosen in turns:
            for state in range(int(wiring.cards[chosen].max())):
                if options.watch.expired:
                    return True
                trial = best.copy()
                trial[chosen] = np.minimum(state, wiring.cards[chosen] - 1)
                new = clamped.value(trial)
                better = exceeds(new, value, 1e-10)
                value = np.where(better, new, value)
                moved = chosen[better[wiring.variable_graphs[chosen]]]
                best[moved] = trial[moved]
        return not (value > before).any()

    options.watch.repeat(sweep, 20, lambda: f"coordinate ascent at {value.sum():.6g}")
    return best


def _turns(problem: Problem) -> list[Ints]:
    """The j-th outputs of all graphs, for j = 0, 1, ..."""
    outputs = np.flatnonzero(problem.wiring.roles != HIDDEN)
    graphs = problem.wiring.variable_graphs[outputs]
    first = np.searchsorted(graphs, graphs)
    turn = np.arange(len(outputs)) - first
    return [outputs[turn == j] for j in range(int(turn.max(initial=-1)) + 1)]
