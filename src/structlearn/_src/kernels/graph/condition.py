"""Fix variables of graphs: what is left of them, and where its tables are."""

from __future__ import annotations

from structlearn._src.kernels.jit import inner, lean


@lean
def slice_sizes(w, fixed, first, last, sizes):
    """Count what the graphs first..last-1 keep without the variables that are fixed.

    These are variables, factors, slots, entries of tables, of messages and of beliefs.
    """
    for g in range(first, last):
        variables = factors = slots = tables = messages = beliefs = 0
        for v in range(w.graph_variables[g], w.graph_variables[g + 1]):
            if fixed[v] < 0:
                variables += 1
                beliefs += w.cards[v]
        for f in range(w.graph_factors[g], w.graph_factors[g + 1]):
            before = slots
            size = 1
            for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
                v = w.scopes[s]
                if fixed[v] < 0:
                    slots += 1
                    messages += w.cards[v]
                    size *= w.cards[v]
            if slots > before:
                factors += 1
                tables += size
        for i, count in enumerate((variables, factors, slots, tables, messages, beliefs)):
            sizes[g, i] = count


@lean
def slice_graphs(
    w, potentials, fixed, places, first, last, numbers, axis, digit,
    out, tables, constant, variables, factors,
):  # fmt: skip
    """Fix variables of the graphs first..last-1 at their state, unless that is -1.

    Rows of `places` say where the kept variables, factors and so on of a graph begin in the wiring
    `out`. There go `tables`, if there are `potentials`, and the old numbers of variables and
    factors; to `constant` what wholly fixed factors add up to. `numbers` has room for a number for
    every variable, and from there on for every slot; `axis` and `digit` for the slots of a factor.
    """
    n = w.cards.size
    for g in range(first, last):
        v_out, b = places[g, 0], places[g, 5]
        for v in range(w.graph_variables[g], w.graph_variables[g + 1]):
            if fixed[v] < 0:
                numbers[v] = v_out
                variables[v_out] = v
                out.cards[v_out] = w.cards[v]
                out.roles[v_out] = w.roles[v]
                out.belief_offsets[v_out] = b
                b += w.cards[v]
                v_out += 1
        f_out, s_out, t, m = places[g, 1], places[g, 2], places[g, 3], places[g, 4]
        constant[g] = 0.0
        for f in range(w.graph_factors[g], w.graph_factors[g + 1]):
            position, arity = _free_slots(w, fixed, f, axis, digit)
            if arity == 0:
                constant[g] += potentials[position] if potentials.size else 0.0
                continue
            factors[f_out] = f
            out.scope_offsets[f_out] = s_out
            out.table_offsets[f_out] = t
            for a in range(arity):
                v = w.scopes[axis[a]]
                numbers[n + axis[a]] = s_out + a
                out.scopes[s_out + a] = numbers[v]
                out.slot_factors[s_out + a] = f_out
                out.message_offsets[s_out + a] = m
                m += w.cards[v]
            size = 1
            for a in range(arity - 1, -1, -1):
                out.strides[s_out + a] = size
                size *= w.cards[w.scopes[axis[a]]]
            for k in range(t, t + size if potentials.size else t):
                tables[k] = potentials[position]
                position = _next_entry(w, position, arity, axis, digit)
            t += size
            s_out += arity
            f_out += 1
        q_out = places[g, 2]
        for v in range(w.graph_variables[g], w.graph_variables[g + 1]):
            if fixed[v] < 0:
                out.slot_offsets[numbers[v]] = q_out
                for q in range(w.slot_offsets[v], w.slot_offsets[v + 1]):
                    out.slots[q_out] = numbers[n + w.slots[q]]
                    q_out += 1


@inner
def _free_slots(w, fixed, f, axis, digit):
    """First entry of a factor that agrees with the fixed states, and its number of free slots."""
    position = w.table_offsets[f]
    arity = 0
    for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
        if fixed[w.scopes[s]] >= 0:
            position += w.strides[s] * fixed[w.scopes[s]]
        else:
            axis[arity] = s
            digit[arity] = 0
            arity += 1
    return position, arity


@inner
def _next_entry(w, position, arity, axis, digit):
    """Where the next entry over the free slots is, in C order."""
    for a in range(arity - 1, -1, -1):
        s = axis[a]
        digit[a] += 1
        position += w.strides[s]
        if digit[a] < w.cards[w.scopes[s]]:
            break
        position -= w.strides[s] * digit[a]
        digit[a] = 0
    return position


@lean
def agreeing(w, fixed, first, last, kept_from, gone_from, axis, digit, kept, gone):
    """Where the entries of the graphs first..last-1 that agree with the fixed states are.

    Of every graph those of factors that keep a free variable are written to `kept` from one place
    on, the only one of every other factor to `gone` from another.
    """
    for g in range(first, last):
        k, i = kept_from[g], gone_from[g]
        for f in range(w.graph_factors[g], w.graph_factors[g + 1]):
            position, arity = _free_slots(w, fixed, f, axis, digit)
            if arity == 0:
                gone[i] = position
                i += 1
                continue
            size = 1
            for a in range(arity):
                size *= w.cards[w.scopes[axis[a]]]
            for _ in range(size):
                kept[k] = position
                k += 1
                position = _next_entry(w, position, arity, axis, digit)
