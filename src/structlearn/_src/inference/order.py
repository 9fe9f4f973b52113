"""Find an elimination order whose tables are small, and say how small."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from structlearn._src.common import threads
from structlearn._src.common.arrays import Bools, Floats, Ints, block_indices, offsets_of
from structlearn._src.graph.joined import graph_range
from structlearn._src.graph.wiring import Wiring
from structlearn._src.kernels.graph import order as kernel
from structlearn._src.kernels.graph.tournament import new_tree

_TRIES = 64  # orders at most; later ones seldom gain anything
_STEPS_PER_TRY = 50_000  # what a look costs beside its steps
_LARGE = 2_000  # variables above which a graph too wide for a few orders is so for all
TOO_MANY_TO_ORDER = 50_000  # variables of a graph; looking for an order would take seconds
SECONDS_PER_VARIABLE = 1e-4  # of such a look, on a slow core
_STEPS_PER_ENTRY = 1  # about as long as one entry of a table takes


@dataclass(frozen=True, eq=False)
class Elimination:
    """An order with the separator of every variable in it, and what it costs."""

    variables: Ints
    separator_offsets: Ints
    separators: Ints
    width: int  #: variables in the largest table, less one
    largest: float  #: entries of the largest table
    total: float  #: entries of all tables
    messages: float  #: entries of all messages
    complete: bool  #: False if the search ended at a table over the limit
    plain: Floats  #: entries by variable in the first order tried, infinite if that ended early


def find_order(
    wiring: Wiring,
    later: Bools,
    limit: float = math.inf,
    tries: int = _TRIES,
    n_jobs: int | None = 1,
) -> Elimination:
    """Eliminate by min-fill, by min-size and in index order; keep the cheapest of many orders.

    `later` variables come after all others (outputs after hidden ones). An order is given up once
    a table has more entries than `limit`; fewer than `tries` are looked at if looking costs more
    than eliminating would.
    """
    found: dict[int, Elimination] = {}

    def work(first: int, last: int) -> None:
        low, high = wiring.graph_variables[[first, last]].tolist()
        graph = _neighbours(graph_range(wiring, first, last))
        part = _search(graph, later[low:high], limit, tries)
        found[first] = replace(
            part, variables=part.variables + low, separators=part.separators + low
        )

    threads.run(work, _ranges(wiring), n_jobs)
    parts = [found[first] for first in sorted(found)]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _ranges(wiring: Wiring) -> list[tuple[int, int]]:
    """Cut the graphs into ranges that are ordered together."""
    parts = 1 + wiring.n_variables // threads.GRAIN["orders"]
    return threads.split(wiring.graph_variables, parts)


def hopeless(wiring: Wiring, later: Bools, limit: float) -> bool:
    """Whether one look shows that `find_order` would end at a table over the limit.

    It looks at the graph of most cycles. In a large range only two orders are tried, by min-fill
    and in index order, which both order a graph as if it were alone.
    """
    if wiring.n_graphs < 2:
        return False
    joined = np.diff(wiring.scope_offsets[wiring.graph_factors]) - np.diff(wiring.graph_factors)
    g = int(np.argmax(joined - np.diff(wiring.graph_variables)))
    first, last = next((a, b) for a, b in _ranges(wiring) if a <= g < b)
    if wiring.graph_variables[last] - wiring.graph_variables[first] <= _LARGE:
        return False
    graph, mine = _alone(wiring, g, later)
    given = np.arange(float(len(mine)))
    looks = ((kernel.MIN_FILL, np.zeros(len(mine))), (kernel.AS_GIVEN, given))
    return not any(_greedy(rule, graph, noise, mine, limit)[0].complete for rule, noise in looks)


def _joined(parts: list[Elimination]) -> Elimination:
    """One order from those of consecutive ranges of variables."""
    return Elimination(
        np.concatenate([part.variables for part in parts]),
        offsets_of(np.concatenate([np.diff(part.separator_offsets) for part in parts])),
        np.concatenate([part.separators for part in parts]),
        max(part.width for part in parts),
        max(part.largest for part in parts),
        sum(part.total for part in parts),
        sum(part.messages for part in parts),
        all(part.complete for part in parts),
        np.concatenate([part.plain for part in parts]),
    )


def _search(graph: _Neighbours, later: Bools, limit: float, tries: int) -> Elimination:
    n = len(graph.log_cards)
    # Ties fall at random, but always the same way: the same graph gives the same order.
    rng = np.random.default_rng(n)
    best: Elimination | None = None
    spent = 0.0
    plain = np.full(n, np.inf)
    for attempt in range(tries):
        rule = kernel.MIN_SIZE if attempt % 4 == 3 else kernel.MIN_FILL
        noise = rng.random(n) * (0.5 if attempt else 0.0)
        if attempt == 1:  # row by row is hard to beat on grids, and only the user knows the rows
            rule = kernel.AS_GIVEN
            noise = np.arange(float(n))
        bound = limit if best is None or not best.complete else min(limit, best.largest)
        found, steps = _greedy(rule, graph, noise, later, bound)
        if attempt == 0:
            plain = found.plain
        spent += steps + _STEPS_PER_TRY
        if best is None or (found.complete, -found.total) > (best.complete, -best.total):
            best = found
        worth = best.total if best.complete or n > _LARGE else limit
        if spent > _STEPS_PER_ENTRY * worth or (attempt > 0 and n > _LARGE and not best.complete):
            break
    assert best is not None
    return replace(best, plain=plain)


def plain_totals(wiring: Wiring, later: Bools, limit: float, order: Elimination | None) -> Floats:
    """Entries of all tables of every graph by min-fill, whatever graphs stand beside it.

    Infinite where a table has more entries than `limit`, or a graph too many variables. An `order`
    from `find_order` has most of them.
    """
    totals = np.full(wiring.n_graphs, np.inf)
    if order is not None:
        totals = np.bincount(wiring.variable_graphs, order.plain, wiring.n_graphs).astype(float)
    sizes = np.diff(wiring.graph_variables)
    # One that failed leaves its whole range infinite.
    for g in np.flatnonzero((totals == np.inf) & (sizes <= TOO_MANY_TO_ORDER)).tolist():
        graph, mine = _alone(wiring, g, later)
        totals[g] = _greedy(kernel.MIN_FILL, graph, np.zeros(len(mine)), mine, limit)[0].total
    return totals


def _alone(wiring: Wiring, g: int, later: Bools) -> tuple[_Neighbours, Bools]:
    """One graph by itself, and which of its variables come after all others."""
    mine = slice(*wiring.graph_variables[[g, g + 1]])
    return _neighbours(graph_range(wiring, g, g + 1)), later[mine]


class _Neighbours(NamedTuple):
    """Who shares a factor with every variable, and the logarithm of its number of states."""

    log_cards: Floats
    offsets: Ints  #: (variables + 1) into `others`
    others: Ints


def _neighbours(wiring: Wiring) -> _Neighbours:
    n = wiring.n_variables
    slots = np.repeat(np.arange(len(wiring.scopes)), wiring.arities[wiring.slot_factors])
    others = block_indices(wiring.scope_offsets, wiring.slot_factors)
    apart = slots != others
    pairs = wiring.scopes[slots[apart]] * n + wiring.scopes[others[apart]]
    pairs.sort()  # much faster than np.unique
    new = np.ones(len(pairs), np.bool_)
    new[1:] = pairs[1:] != pairs[:-1]
    pairs = pairs[new]
    offsets = offsets_of(np.bincount(pairs // max(n, 1), minlength=n))
    return _Neighbours(np.log(wiring.cards.astype(np.float64)), offsets, pairs % max(n, 1))


def _greedy(
    rule: int, graph: _Neighbours, noise: Floats, later: Bools, limit: float
) -> tuple[Elimination, float]:
    """One order, whose tables are its plain ones, and the steps it took."""
    log_cards = graph.log_cards
    n = len(log_cards)
    log_limit = math.log(limit) + 1e-9 if limit < math.inf else math.inf
    workspace, report = _eliminate(rule, graph, noise, later, log_limit, cutting=False)
    largest, widest, steps = report.tolist()
    order = workspace.order
    starts = workspace.separator_offsets
    separators = workspace.separators[: starts.max(initial=0)]
    complete = bool((n == 0 or order[-1] >= 0) and largest <= log_limit)
    messages = sizes = plain = np.full(n, np.inf)
    if complete:
        owner = np.repeat(np.arange(n), np.diff(starts))
        messages = np.exp(np.bincount(owner, log_cards[separators], n))
        sizes = messages * np.exp(log_cards[order])
        plain = sizes[np.argsort(order)]
    found = Elimination(
        order, starts, separators, max(int(widest) - 1, 0), math.exp(min(largest, 700.0)),
        float(sizes.sum()), float(messages.sum()), complete, plain,
    )  # fmt: skip
    return found, steps


def cutset(wiring: Wiring, limit: float, rng: np.random.Generator) -> Bools:
    """Variables whose states, once fixed, leave tables of at most `limit` entries for the rest.

    A random choice among many: the order of elimination is greedy up to noise.
    """
    n = wiring.n_variables
    noise = 2.0 * rng.random(n)
    nobody = np.zeros(n, np.bool_)
    graph = _neighbours(wiring)
    return _eliminate(kernel.MIN_FILL, graph, noise, nobody, math.log(limit), cutting=True)[0].cut


def _eliminate(
    rule: int, graph: _Neighbours, noise: Floats, later: Bools, log_limit: float, cutting: bool
) -> tuple[kernel.OrderWorkspace, Floats]:
    """Run the kernel with as much room as its neighbour lists turn out to need."""
    workspace = _workspace(graph, 4 * len(graph.others) + 64)
    report = np.zeros(3)
    stand = np.array([0, 0, len(graph.others)])
    given = rule, graph.log_cards, noise, later, log_limit, cutting
    while not kernel.eliminate_greedily(*given, workspace, report, stand):
        more = {
            name: np.concatenate([array, np.empty_like(array)])
            for name in ("pool", "separators")
            for array in [getattr(workspace, name)]
        }
        workspace = workspace._replace(**more)
    return workspace, report


def _workspace(graph: _Neighbours, room: int) -> kernel.OrderWorkspace:
    n = len(graph.log_cards)
    pool = np.empty(room, np.int64)
    pool[: len(graph.others)] = graph.others
    return kernel.OrderWorkspace(
        np.full(n, -1),
        np.zeros(n, np.bool_),
        np.zeros(n + 1, np.int64),
        np.empty(room, np.int64),
        graph.offsets[:-1].copy(),
        np.diff(graph.offsets),
        pool,
        np.full(n + 1, -1),
        np.full(n, -1),
        new_tree(n),
    )
