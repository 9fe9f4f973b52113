"""Who may be visited together: bandwidths, colours, turns; and wirings packed for messages."""

from __future__ import annotations

from structlearn._src.kernels.graph.wiring import is_forest, visit
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import publish, task, withdraw
from structlearn._src.kernels.team import take

BACK, FORTH = 1, 2  # bits of a turn
FLOODING = 4  # a way of its own


@lean
def bandwidth(w, place, first, last):
    """Largest distance between two variables of one of the factors first..last-1.

    Where no variable has a `place`, these are their numbers.
    """
    widest = 0
    for f in range(first, last):
        low = high = w.scopes[w.scope_offsets[f]]
        if place.size:
            low = high = place[low]
        for s in range(w.scope_offsets[f] + 1, w.scope_offsets[f + 1]):
            at = place[w.scopes[s]] if place.size else w.scopes[s]
            low = min(low, at)
            high = max(high, at)
        widest = max(widest, high - low)
    return widest


@lean
def colour(w, colours, taken):
    """Give every variable the lowest colour that none of its neighbours has.

    `colours` is -1 at the start; `taken` is room for one more number than there are variables.
    """
    for v in range(colours.size):
        for q in range(w.slot_offsets[v], w.slot_offsets[v + 1]):
            f = w.slot_factors[w.slots[q]]
            for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
                taken[colours[w.scopes[s]] + 1] = v
        lowest = 0
        while taken[lowest + 1] == v:
            lowest += 1
        colours[v] = lowest


@inner
def lay_out(
    number, board, ranges, w, borders, weight, parents, seen, seen_factor,
    forests, order, rank, net, weights, ratios, facts,
):  # fmt: skip
    """Find out all about graphs, each of which is one part and one block, in ranges of them.

    `forests` tells which may have no cycle. Graph by graph, while the cache holds it.
    """
    i = take(board, 0)
    while i < ranges.size - 1:
        for g in range(ranges[i], ranges[i + 1]):
            forests[g] = forests[g] and is_forest(w, parents, g)
            visit(w, g, forests[g], seen, seen_factor, order)
            turn(w, order, w.graph_variables[g], w.graph_variables[g + 1], rank, net)
            pack(w, rank, weight, borders[g, 2], borders[g + 1, 2], net, weights, ratios)
            survey(w, borders, g, g + 1, facts)
        i = take(board, 0)


@lean
def lay_out_in_threads(box, helpers, *given):
    """Run `lay_out` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(lay_out, given))
    lay_out(0, *given)
    withdraw(box, open_)


@lean
def turn(w, order, first, last, rank, net):
    """Note when some variables have their turn, and pack the variables of the same numbers."""
    for i in range(first, last):
        rank[order[i]] = i
        net.variables[i, 0] = w.slot_offsets[i]
        net.variables[i, 1] = w.belief_offsets[i]


@lean
def pack(w, rank, weight, first, last, net, weights, ratios):
    """Pack the slots of the factors first..last-1, with the turns of their messages.

    Factors get this weight and their slots the ratio 1.
    """
    for f in range(first, last):
        net.factors[f, 0] = w.scope_offsets[f]
        net.factors[f, 1] = w.table_offsets[f]
        weights[f] = weight
        for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
            v = w.scopes[s]
            turns = 0
            for t in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
                if rank[w.scopes[t]] > rank[v]:
                    turns |= BACK
                if rank[w.scopes[t]] < rank[v]:
                    turns |= FORTH
            net.slots[s, 0] = v
            net.slots[s, 1] = f
            net.slots[s, 2] = w.message_offsets[s]
            net.slots[s, 3] = turns
            ratios[s] = 1.0


@lean
def survey(w, borders, first, last, out):
    """What is in the parts first..last-1, whose variables, slots and factors begin at `borders`.

    These are the factors over one variable, and the most states of a variable, variables of a
    factor, and entries of a table.
    """
    for p in range(first, last):
        out[p] = 0
        for v in range(borders[p, 0], borders[p + 1, 0]):
            out[p, 1] = max(out[p, 1], w.cards[v])
        for f in range(borders[p, 2], borders[p + 1, 2]):
            arity = w.scope_offsets[f + 1] - w.scope_offsets[f]
            out[p, 0] += arity == 1
            out[p, 2] = max(out[p, 2], arity)
            out[p, 3] = max(out[p, 3], w.table_offsets[f + 1] - w.table_offsets[f])
