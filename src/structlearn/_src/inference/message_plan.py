"""What message passing prepares once for a wiring and its temperatures."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, offsets_of
from structlearn._src.common.threads import Scratch
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Problem
from structlearn._src.inference.schedule import make_schedule, pack

_PARTS = 128  # of a graph that threads share: a few for every thread


class Parts(NamedTuple):
    """Ranges of graphs, or of a large one, for work that needs no order; chosen from graphs."""

    borders: Ints  #: (parts + 1, 3) where their variables, slots and factors begin
    graph_parts: Ints  #: (graphs + 1) into parts
    tables: Ints  #: (parts + 1) where their tables begin, as weights

    def sums(self, values: Floats) -> Floats:
        """Add up the values of the parts of every graph."""
        return np.add.reduceat(values, self.graph_parts[:-1]) if len(values) else values


class MessagePlan:
    """Made once for a wiring and its temperatures, and shared by all runs.

    Messages are tree-reweighted by `appearance`, the edge appearance probability of every factor.
    """

    def __init__(
        self, problem: Problem, appearance: Floats | None = None, n_jobs: int | None = None
    ) -> None:
        wiring = problem.wiring
        self.weights, self.ratios = _temperatures(problem, appearance)
        self.forests = wiring.forests()  #: which graphs have no cycle
        self.order = make_schedule(wiring, self.forests, n_jobs)
        self.shared = self.order.shared  #: graphs whose blocks threads share
        self.net = pack(wiring, self.order, n_jobs)
        self.parts = _parts(wiring, self.shared)
        self.borders = self.parts.borders[self.parts.graph_parts]  #: of graphs
        singles = np.flatnonzero(wiring.arities == 1)
        self.singles = len(singles)  #: factors over one variable, whose messages never change
        of_graphs = np.diff(np.searchsorted(singles, wiring.graph_factors))
        #: Number of slots of every graph whose messages can change.
        self.moving = np.diff(wiring.scope_offsets[wiring.graph_factors]) - of_graphs
        self.workspace_shapes = _workspace_shapes(wiring)
        #: Whether nothing is maximised, so that messages may be kept as exponentials.
        self.warm = bool((self.weights > 0).all() and (problem.eps > 0).all())
        self.raises = bool((self.ratios != 1.0).any())  #: whether linear messages have powers
        self.exponentials = Scratch(int(wiring.table_offsets[-1]))


def _parts(wiring: Wiring, shared: Ints) -> Parts:
    """Graphs that threads share have several parts, all others are one."""
    counts = np.ones(wiring.n_graphs, np.int64)
    counts[shared] = _PARTS
    graph_parts = offsets_of(counts)
    graphs = np.repeat(np.arange(wiring.n_graphs), counts)
    share = (np.arange(len(graphs)) - graph_parts[graphs]) / counts[graphs]

    def cut(borders: Ints) -> Ints:
        inside = (share * np.diff(borders)[graphs]).astype(np.int64)
        return np.append(borders[graphs] + inside, borders[-1])

    variables, factors = cut(wiring.graph_variables), cut(wiring.graph_factors)
    borders = np.stack([variables, wiring.scope_offsets[factors], factors], axis=1)
    return Parts(borders, graph_parts, wiring.table_offsets[factors])


def _temperatures(problem: Problem, appearance: Floats | None) -> tuple[Floats, Floats]:
    """Weight of every factor and ratio of every slot.

    A factor that touches a hidden variable works at the hidden temperature: information between
    an output and a hidden variable counts in the entropy of the hidden ones given the outputs.
    Tree-reweighted factors work at the lowest temperature of their variables: with that, whichever
    of them hangs on the other in a forest, its entropy counts in a concave way, so that there is
    one best answer still.
    """
    wiring = problem.wiring
    ratios = np.ones(len(wiring.scopes))
    weights = np.full(wiring.n_factors, problem.eps_hidden)
    if problem.uniform:
        weights[:] = problem.temperature
    else:
        touched = np.zeros(wiring.n_factors, np.bool_)
        touched[wiring.slot_factors[problem.hidden[wiring.scopes]]] = True
        weights[~touched] = problem.eps_output
        if appearance is not None:
            weights[:] = np.inf
            np.minimum.at(weights, wiring.slot_factors, problem.eps[wiring.scopes])
        slot_weight, slot_eps = weights[wiring.slot_factors], problem.eps[wiring.scopes]
        differ = slot_weight != slot_eps
        with np.errstate(divide="ignore"):
            ratios[differ] = slot_weight[differ] / slot_eps[differ]
    if appearance is not None:
        share = np.where(wiring.arities > 1, appearance, 1.0)
        weights = weights * share
        ratios = ratios * share[wiring.slot_factors]
    return weights, ratios


def _workspace_shapes(wiring: Wiring) -> tuple[tuple[int, ...], ...]:
    """Shapes of the arrays of a `MessageWorkspace`."""
    arity = int(wiring.arities.max(initial=1))
    states = int(wiring.cards.max(initial=1))
    size = max(states, int(np.diff(wiring.table_offsets).max(initial=1)))
    return (arity, states), (size,), (size,)
