"""Ascent from an assignment to better ones: one output at a time, or large blocks at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.wiring import condition
from structlearn._src.inference.base import Options, Problem, exceeds
from structlearn._src.inference.engine import clamp
from structlearn._src.inference.junction import EliminationTree
from structlearn._src.inference.names import ASKED
from structlearn._src.inference.order import cutset, find_order

_SWEEPS = 200  # from the messages of another assignment, far more than they need to rest
_TOL = 1e-6  # as the default of `infer`
_DAMPING = 0.2  # keeps messages at rest where cycles are strong
_GAIN = 1e-10  # relative: less than that is rounding
_ROUNDS = 20  # over all outputs; few runs need more than three
_BLOCK_ROUNDS = 40  # of blocks; they mostly end earlier, for want of gain
_PATIENCE = 10  # rounds of blocks without gain after which the ascent ends


class OutputScore:
    r"""Scores assignments to the outputs by the true objective.

    .. math:: V(y) = \epsilon_h \log \sum_h \exp \frac{\theta(y, h)}{\epsilon_h}

    by elimination where the hidden variables alone are narrow enough, else by the Bethe
    approximation of a sum-product run. The structure is compiled once; each further assignment
    only slices tables.
    """

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem = problem
        fixed = np.where(problem.hidden, -1, 0)
        settings = replace(options, damping=_DAMPING)
        self.clamped = clamp(
            problem.wiring, fixed, problem.eps_hidden, "auto", settings, times=ASKED
        )
        self.exact = self.clamped.exact
        self._memory = self.clamped.begin()

    def value(self, labels: Ints) -> Floats:
        """Value of every graph at the outputs in `labels`; messages go on from the last call's."""
        engine = self.clamped.at(np.where(self.problem.hidden, -1, labels))
        found = engine.solve(self.problem.potentials, self._memory, _SWEEPS, _TOL, beliefs=False)
        self._memory = found.memory
        return found.values


def ascend(problem: Problem, score: OutputScore, labels: Ints, options: Options) -> Ints:
    """Change one output at a time while that raises the true objective.

    All graphs of the wiring move together, each by itself: step j tries the j-th output of
    every graph.
    """
    wiring = problem.wiring
    best = labels.copy()
    value = score.value(best)
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
                new = score.value(trial)
                better = exceeds(new, value, _GAIN)
                value = np.where(better, new, value)
                moved = chosen[better[wiring.variable_graphs[chosen]]]
                best[moved] = trial[moved]
        return not (value > before).any()

    options.watch.repeat(sweep, _ROUNDS, lambda: f"coordinate ascent at {value.sum():.6g}")
    return best


def _turns(problem: Problem) -> list[Ints]:
    """The j-th outputs of all graphs, for j = 0, 1, ..."""
    outputs = np.flatnonzero(~problem.hidden)
    graphs = problem.wiring.variable_graphs[outputs]
    first = np.searchsorted(graphs, graphs)
    turn = np.arange(len(outputs)) - first
    return [outputs[turn == j] for j in range(int(turn.max(initial=-1)) + 1)]


def ascend_by_blocks(problem: Problem, labels: Ints, max_table: int, options: Options) -> Ints:
    """Raise the score of an assignment by exact maximisation over large blocks.

    Each round cuts a random set of variables so that the rest can be eliminated with small
    tables, keeps the cut ones as they are and maximises over all others at once: the score
    never falls, and a block reaches across barriers that single flips cannot pass.
    """
    wiring = problem.wiring
    best = labels
    value = wiring.score(problem.potentials, best)
    idle = 0

    def step() -> bool:
        nonlocal best, value, idle
        fixed = np.where(cutset(wiring, max_table, options.rng), best, -1)
        small = condition(wiring, problem.potentials, fixed)
        free = np.zeros(len(small.variables), np.bool_)
        block = Problem(small.wiring, small.potentials, 0.0, 0.0)
        tree = EliminationTree(block, find_order(small.wiring, free))
        store = tree.stores.take()
        tree.forward(small.potentials, store)
        trial = best.copy()
        trial[small.variables] = tree.decode(store)
        new = wiring.score(problem.potentials, trial)
        better = exceeds(new, value, 1e-12)
        best = np.where(better[wiring.variable_graphs], trial, best)
        value = np.where(better, new, value)
        idle = 0 if better.any() else idle + 1
        return idle >= _PATIENCE

    words = f"blocks of {max_table} entries"
    options.watch.repeat(step, _BLOCK_ROUNDS, lambda: f"{words}, {value.sum():.6g}")
    return best
