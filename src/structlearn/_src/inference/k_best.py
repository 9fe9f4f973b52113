"""The k best assignments of every graph, read off one elimination at temperature 0."""

from __future__ import annotations

import heapq

import numpy as np

from structlearn._src.common.arrays import Floats, Ints
from structlearn._src.graph.wiring import Wiring
from structlearn._src.inference.base import Options, Problem, TooWide
from structlearn._src.inference.names import Query
from structlearn._src.kernels.graph import eliminate
from structlearn._src.kernels.graph.eliminate import EliminationPlan

_MOST = 4  # numbers that the k best assignments take, in units of the largest table


def refusal(problem: Problem, query: Query, options: Options) -> str:
    """Say why the k best assignments cannot be found by any method; empty if they can."""
    if query == Query.MARGINAL_MAP and problem.hidden.any():
        return "k > 1 needs a query without hidden variables"
    k = at_most(problem.wiring, options.k)
    return too_many(k, k * int(problem.wiring.belief_offsets[-1]), options)


def too_many(k: int, numbers: int, options: Options) -> str:
    """Say that k assignments take too many numbers; empty if they do not."""
    if numbers <= _MOST * options.max_table:
        return ""
    return TooWide(f"k={k} best assignments need {numbers} numbers; lower k")


def at_most(wiring: Wiring, k: int) -> int:
    """Return how many of the `k` best assignments there can be."""
    most = wiring.log_assignments().max(initial=0.0)
    return k if most > np.log(k) + 1 else min(k, round(np.exp(most)))


def rank(
    wiring: Wiring, plan: EliminationPlan, store: Floats, values: Floats, k: int
) -> list[tuple[Floats, Ints]]:
    """Return the best assignments of all graphs, then the second best, and so on.

    The store is that of a forward pass at temperature 0, and `values` are its values. Where a
    graph has fewer than k possible assignments the value is -inf and the labels are -1.

    After a forward pass the value of the best completion is known for whatever is fixed behind a
    bucket. So all assignments but the best fall into sets whose best values are known: those that
    agree with it behind some bucket, and take another state there. The best of these sets gives
    the next assignment, and falls into such sets in turn (Lawler, 1972).
    """
    k = at_most(wiring, k)
    scores = np.full((k, wiring.n_graphs), -np.inf)
    labels = np.full((k, wiring.n_variables), -1, np.int64)
    for g in range(wiring.n_graphs):
        if values[g] > -np.inf:
            scores[0, g] = values[g]
            _rank_graph(wiring, plan, store, g, scores, labels)
    found = 1 + int((scores[1:] > -np.inf).any(axis=1).sum())
    return list(zip(scores[:found], labels[:found], strict=True))


def _rank_graph(
    wiring: Wiring, plan: EliminationPlan, store: Floats, g: int, scores: Floats, labels: Ints
) -> None:
    """Fill the column of one graph in `scores`, whose first entry is known, and its labels."""
    first, last = (int(b) for b in plan.graph_buckets[g : g + 2])
    own = slice(*wiring.graph_variables[g : g + 2])
    states = int(wiring.cards[own].max(initial=1))
    losses = np.empty((last - first, states))
    space = np.empty(states)
    # Sets by their best value: the assignment they come from, and bucket and state that differ.
    # Of two alike the one that was found first comes first, so that runs repeat.
    sets: list[tuple[float, int, int, int, int]] = []
    count = 0
    stop = last
    for r in range(len(scores)):
        left = len(scores) - 1 - r  # assignments that can be needed after this one
        if r:
            if not sets:
                return
            value, _, parent, bucket, state = heapq.heappop(sets)
            scores[r, g] = -value
            labels[r, own] = labels[parent, own]
            labels[r, plan.variables[bucket]] = state
            stop = bucket
        eliminate.branch(wiring.cards, plan, store, first, stop, space, labels[r], losses)
        cost = losses[: stop - first].ravel()
        near = np.argsort(cost, kind="stable")[:left]
        for at in near[np.isfinite(cost[near])].tolist():
            bucket, state = first + at // states, at % states
            heapq.heappush(sets, (cost[at] - scores[r, g], count, r, bucket, state))
            count += 1
        if len(sets) > 2 * left:  # else they would grow with k times the size of the graph
            sets = heapq.nsmallest(left, sets)
