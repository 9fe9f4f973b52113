"""Tree-reweighted belief propagation and the upper bound it certifies."""

from __future__ import annotations

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, block_indices, offsets_of
from structlearn._src.graph.wiring import Wiring, compile_by_graph
from structlearn._src.inference.base import BuiltInInferer, Options, Problem, Result
from structlearn._src.inference.loopy import BY_MESSAGES, MessageRuns
from structlearn._src.inference.messenger import Messenger
from structlearn._src.inference.names import Query
from structlearn._src.kernels.graph import wiring as wire

_FORESTS = 8  # forests at least: the more, the more even the weights of alike factors
_TIES = 2**22  # random numbers that are drawn at once: some tens of megabytes


class TreeReweighted(BuiltInInferer):
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
    queries = BY_MESSAGES
    one_temperature = True

    def run(self, problem: Problem, query: Query, options: Options) -> Result:
        """Pass messages until they rest, then bound."""
        forests, shares = cover(problem.wiring, options.rng, options.n_jobs)
        run = MessageRuns(problem, options, appearance=shares, restarts=0)
        result = run.result(query)
        if run.ended.early:  # the bound takes as long as many sweeps
            return result
        result.upper = upper_bound(run.messenger, forests)
        if result.lower is not None:  # that of labels found, which only rounding puts above
            result.upper = np.maximum(result.upper, result.lower)
        # Before messages rest, their value may pass the bound that they prove.
        result.value = np.minimum(result.value, result.upper)
        result.status += f"; upper bound from {len(forests)} forests"
        return result


def covering_forests(wiring: Wiring, rng: np.random.Generator, n_jobs: int | None = 1) -> Bools:
    """Forests that together contain every factor, as rows of a table (forests, factors).

    Each takes the factors least often taken so far first, ties at random.
    """
    return cover(wiring, rng, n_jobs)[0]


def cover(wiring: Wiring, rng: np.random.Generator, n_jobs: int | None = 1) -> tuple[Bools, Floats]:
    """Return such forests, and in how many of them each factor is, as a share."""
    n = wiring.n_factors
    counts = np.zeros(n, np.int64)
    rooms = [np.empty(size, np.int64) for size in (wiring.n_variables, n, n)]

    def more(rows: int) -> Bools:
        ties = rng.random((rows, n))
        taken = np.empty((rows, n), np.bool_)

        def work(first: int, last: int) -> None:
            wire.cover(wiring, ties, first, last, counts, *rooms, taken)

        threads.over_graphs(work, wiring.graph_tables, n_jobs)
        return taken

    at_once = max(1, min(_FORESTS, _TIES // max(n, 1)))
    found: list[Bools] = []
    count = 0
    while count < _FORESTS or not counts.all():
        found.append(more(min(at_once, max(_FORESTS - count, 1))))
        count += len(found[-1])
    return found[0] if len(found) == 1 else np.concatenate(found), counts / count


def upper_bound(messenger: Messenger, forests: Bools) -> Floats:
    """Average value of the forests that the messages define, per graph."""
    problem = messenger.problem
    wiring = problem.wiring
    # Messages split the model: what is left of the tables, and one table per variable.
    rest = problem.potentials.copy()
    singles = np.zeros(int(wiring.belief_offsets[-1]))
    wire.reparametrise(wiring, messenger.messages, rest, singles)
    share = forests.mean(axis=0)
    values = np.empty((len(forests), wiring.n_graphs))

    def work(first: int, last: int) -> None:
        for i in range(first, last):
            forest = forests[i] & (wiring.arities > 1)
            values[i] = _forest_value(problem, forest, rest, share, singles)

    threads.run(work, [(i, i + 1) for i in range(len(forests))], messenger.n_jobs)
    return np.add.reduce(values) / len(forests)


def _forest_value(
    problem: Problem, forest: Bools, rest: Floats, share: Floats, singles: Floats
) -> Floats:
    wiring = problem.wiring
    taken = np.flatnonzero(forest)
    n = wiring.n_variables
    slots, entries = (
        block_indices(offsets, taken) for offsets in (wiring.scope_offsets, wiring.table_offsets)
    )
    smaller, order = compile_by_graph(
        wiring.cards,
        wiring.roles,
        np.concatenate([wiring.arities[taken], np.ones(n, np.int64)]),
        np.concatenate([wiring.scopes[slots], np.arange(n)]),
        wiring.graph_variables,
    )
    sizes = np.diff(wiring.table_offsets)[taken]
    tables = np.concatenate([rest[entries] / np.repeat(share[taken], sizes), singles])
    sorted_entries = block_indices(offsets_of(np.concatenate([sizes, wiring.cards])), order)
    part = Problem(smaller, tables[sorted_entries], problem.eps_output, problem.eps_hidden)
    messenger = Messenger(part, n_jobs=1)
    messenger.run(1, np.inf)
    return messenger.value()[0]
