"""What message passing on a graph needs that neither potentials nor messages change."""

from __future__ import annotations

from typing import Any

import numpy as np

from structlearn._src.common.arrays import Floats, Ints, block_indices, offsets_of
from structlearn._src.common.threads import Scratch
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Problem
from structlearn._src.kernels.graph import loopy
from structlearn._src.kernels.graph.message import Net


class MessagePlan:
    """Made once for a wiring and its temperatures, and shared by all runs.

    Messages are tree-reweighted by `appearance`, the edge appearance probability of every factor.
    """

    def __init__(self, problem: Problem, appearance: Floats | None = None) -> None:
        wiring = problem.wiring
        self.net, self.borders = pack(wiring)
        self.weights, self.ratios = temperatures(problem, appearance)
        self.order = visiting_order(wiring)
        self.moving = moving_slots(wiring)
        singles = np.flatnonzero(wiring.arities == 1)
        #: Messages of factors over one variable, and the potentials that they are.
        self.single_messages = block_indices(wiring.message_offsets, wiring.scope_offsets[singles])
        self.single_potentials = block_indices(wiring.table_offsets, singles)
        self.workspace_shapes = _workspace_shapes(wiring)
        #: Whether nothing is maximised, so that messages may be kept as exponentials.
        self.warm = bool((self.weights > 0).all() and (problem.eps > 0).all())
        self.exponentials = Scratch(int(wiring.table_offsets[-1]))


def temperatures(problem: Problem, appearance: Floats | None) -> tuple[Floats, Floats]:
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


def visiting_order(wiring: Wiring) -> loopy.VisitingOrder:
    """Forests breadth-first, so that one sweep is exact; other graphs in index order."""
    variables: Any = np.arange(wiring.n_variables)
    forest = wiring.forests()
    if forest.any():
        variables = np.where(forest[wiring.variable_graphs], wiring.breadth_first(), variables)
    rank = np.empty_like(variables)
    rank[variables] = np.arange(wiring.n_variables)
    ranks, starts = rank[wiring.scopes], wiring.scope_offsets[:-1]
    span = np.empty((wiring.n_factors, 2), np.int64)
    if len(span):
        span[:] = np.stack([f.reduceat(ranks, starts) for f in (np.minimum, np.maximum)], axis=1)
    return loopy.VisitingOrder(variables, rank, span)


def pack(wiring: Wiring) -> tuple[Net, Ints]:
    """Pack a wiring for the message kernels; also where each graph's parts begin."""
    net = Net(
        np.stack([wiring.scopes, wiring.slot_factors, wiring.message_offsets[:-1]], axis=1),
        np.stack([wiring.slot_offsets, wiring.belief_offsets], axis=1),
        np.stack([wiring.scope_offsets, wiring.table_offsets], axis=1),
        wiring.slots,
    )
    slots = wiring.scope_offsets[wiring.graph_factors]
    return net, np.stack([wiring.graph_variables, slots, wiring.graph_factors], axis=1)


def moving_slots(wiring: Wiring) -> Ints:
    """Number of slots of every graph whose messages can change."""
    arities = wiring.arities
    moving = offsets_of(np.where(arities > 1, arities, 0))
    return np.diff(moving[wiring.graph_factors])


def _workspace_shapes(wiring: Wiring) -> tuple[tuple[int, ...], ...]:
    """Shapes of the arrays of a `MessageWorkspace`."""
    arity = int(wiring.arities.max(initial=1))
    states = int(wiring.cards.max(initial=1))
    size = max(states, int(np.diff(wiring.table_offsets).max(initial=1)))
    return (arity, states), (size,), (size,)
