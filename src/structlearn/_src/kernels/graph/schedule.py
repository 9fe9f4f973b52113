"""Who may be visited together: bandwidths, colours, and on which way messages are updated."""

from __future__ import annotations

from structlearn._src.kernels.jit import lean

BACK, FORTH = 1, 2  # bits of a turn


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
def turns(w, rank, first, last, out):
    """Say for the slots of the factors first..last-1 when their messages are updated."""
    for f in range(first, last):
        for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
            own = rank[w.scopes[s]]
            out[s] = 0
            for t in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
                other = rank[w.scopes[t]]
                if other != own:
                    out[s] |= BACK if other > own else FORTH
