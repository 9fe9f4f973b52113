"""Tree-reweighted belief propagation and the upper bound it certifies."""

from __future__ import annotations

import numpy as np

from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices, offsets_of
from structlearn._src.graph.wiring import Wiring, compile_wiring
from structlearn._src.inference.base import NO_K_BEST, Options, Problem, Result
from structlearn._src.inference.loopy import MessageRuns
from structlearn._src.inference.messenger import Messenger
from structlearn._src.inference.names import Query
from structlearn._src.kernels.graph import wiring as wire

_FORESTS = 8  # forests at least: the more, the more even the weights of alike factors


class TreeReweighted:
    r"""Belief propagation with edge weights from a set of forests.

    The forests cover every factor; a factor's weight is the share of forests it belongs to. For
    any messages the model is an average of forests, :math:`\theta = \frac1N \sum_T \theta^T`, and
    the soft maximum is convex, so

    .. math:: \Phi(\theta) \le \frac{1}{N} \sum_T \Phi(\theta^T),

    an upper bound that holds whether the messages have converged or not.

    References
    ----------
    M. Wainwright, T. Jaakkola and A. Willsky, "A new class of upper bounds on the log partition
    function", IEEE Transactions on Information Theory 51, 2005.
    """

    name = "trw"

    def refuses(self, problem: Problem, query: Query, options: Options) -> str:
        """Refuse samples, k best, and different temperatures."""
        if query == Query.SAMPLES:
            return "tree-reweighted messages draw no samples; use method='gibbs'"
        if not problem.uniform:
            return "the tree-reweighted bound needs one temperature for all variables"
        if options.k > 1:
            return NO_K_BEST
        return ""

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Pass messages until they rest, then bound."""
        forests = covering_forests(problem.wiring, options.rng)
        run = MessageRuns(problem, options, appearance=forests.mean(axis=0), restarts=0)
        result = run.result(query)
        result.upper = upper_bound(run.messenger, forests)
        if result.lower is not None:  # that of labels found, which only rounding puts above
            result.upper = np.maximum(result.upper, result.lower)
        # Before messages rest, their value may pass the bound that they prove.
        result.value = np.minimum(result.value, result.upper)
        result.status += f"; upper bound from {len(forests)} forests"
        return result


def covering_forests(wiring: Wiring, rng: np.random.Generator) -> Bools:
    """Forests that together contain every factor, as rows of a table (forests, factors).

    Each takes the factors least often taken so far first, ties at random.
    """
    taken = np.zeros(wiring.n_factors, np.int64)
    rows: list[Bools] = []
    while len(rows) < _FORESTS or (taken == 0).any():
        order = np.lexsort((rng.random(wiring.n_factors), taken))
        row = np.zeros(wiring.n_factors, np.bool_)
        wire.spanning_forest(wiring.scope_offsets, wiring.scopes, wiring.n_variables, order, row)
        taken += row
        rows.append(row)
    return np.array(rows)


def upper_bound(messenger: Messenger, forests: Bools) -> Floats:
    """Average value of the forests that the messages define, per graph."""
    problem = messenger.problem
    share = forests.mean(axis=0)
    rest, singles = reparametrise(messenger)
    total = np.zeros(problem.wiring.n_graphs)
    for forest in forests:
        total += _forest_value(problem, forest & (problem.wiring.arities > 1), rest, share, singles)
    return total / len(forests)


def reparametrise(messenger: Messenger) -> tuple[Floats, Floats]:
    """Split the model by its messages: tables less messages, and one table per variable."""
    wiring = messenger.problem.wiring
    problem = messenger.problem
    singles = np.zeros(int(wiring.belief_offsets[-1]))
    rest = problem.potentials.copy()
    wire.reparametrise(wiring, messenger.messages, rest, singles)
    return rest, singles


def _forest_value(
    problem: Problem, forest: Bools, rest: Floats, share: Floats, singles: Floats
) -> Floats:
    wiring = problem.wiring
    smaller, entries = _sub_wiring(wiring, np.flatnonzero(forest))
    scale = np.repeat(share[forest], np.diff(wiring.table_offsets)[forest])
    potentials = np.concatenate([rest[entries] / scale, singles])
    part = Problem(*_by_graph(smaller, potentials, wiring), problem.eps_output, problem.eps_hidden)
    messenger = Messenger(part, n_jobs=1)
    messenger.run(1, np.inf)
    return messenger.value()[0]


def _sub_wiring(wiring: Wiring, factors: Ints) -> tuple[Wiring, Ints]:
    """Wiring with the given factors and one factor per variable, and the entries of the former."""
    slots = np.isin(wiring.slot_factors, factors)
    arities = np.concatenate([wiring.arities[factors], np.ones(wiring.n_variables, np.int64)])
    scopes = np.concatenate([wiring.scopes[slots], np.arange(wiring.n_variables)])
    sizes = np.diff(wiring.table_offsets)
    entries = np.flatnonzero(np.repeat(np.isin(np.arange(wiring.n_factors), factors), sizes))
    return compile_wiring(wiring.cards, wiring.roles, offsets_of(arities), scopes), entries


def _by_graph(smaller: Wiring, potentials: Floats, wiring: Wiring) -> tuple[Wiring, Floats]:
    """Sort factors by graph, so that values come out per graph."""
    if wiring.n_graphs == 1:
        return smaller, potentials
    owner = wiring.variable_graphs[smaller.scopes[smaller.scope_offsets[:-1]]]
    order = np.argsort(owner, kind="stable")
    arities = smaller.arities[order]
    scopes = smaller.scopes[block_indices(smaller.scope_offsets, order)]
    tables = potentials[block_indices(smaller.table_offsets, order)]
    borders = offsets_of(np.bincount(owner, minlength=wiring.n_graphs))
    return (
        compile_wiring(
            smaller.cards,
            smaller.roles,
            offsets_of(arities),
            scopes,
            wiring.graph_variables,
            borders,
        ),
        tables,
    )
