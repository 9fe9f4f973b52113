"""Who may be visited together: bandwidths, colours, turns; and wirings packed for messages."""

from __future__ import annotations

from structlearn._src.kernels.jit import lean

BACK, FORTH = 1, 2  # bits of a turn
FLOODING = 4  # a way of its own


@lean
def bandwidth(w, place, first, last):
    """Largest distance in `place` between two variables of one of the factors first..last-1."""
    widest = 0
    for f in range(first, last):
        low = place[w.scopes[w.scope_offsets[f]]]
        high = low
        for s in range(w.scope_offsets[f] + 1, w.scope_offsets[f + 1]):
            low = min(low, place[w.scopes[s]])
            high = max(high, place[w.scopes[s]])
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


@lean
def pack(w, rank, first, last, out_slots, out_factors):
    """Pack the slots of the factors first..last-1, with the turns of their messages."""
    for f in range(first, last):
        out_factors[f, 0] = w.scope_offsets[f]
        out_factors[f, 1] = w.table_offsets[f]
        for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
            v = w.scopes[s]
            turns = 0
            for t in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
                if rank[w.scopes[t]] > rank[v]:
                    turns |= BACK
                if rank[w.scopes[t]] < rank[v]:
                    turns |= FORTH
            out_slots[s, 0] = v
            out_slots[s, 1] = f
            out_slots[s, 2] = w.message_offsets[s]
            out_slots[s, 3] = turns


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
