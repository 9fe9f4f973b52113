"""Moves of one variable at a time: conditionals, ICM by sweeps or steepest flip, Gibbs sweeps.

States are ordered by the number of broken factors (log potential -inf) first and the sum of the
other log potentials second, so that a search that starts in a forbidden state still climbs.
`values` holds that pair for some states: column SCORE and column BROKEN. The first argument `w`
is a `Wiring`; `first` and `last` choose the graphs from `first` up to, not including, `last`.
"""

from __future__ import annotations

import numpy as np

from structlearn._src.kernels.graph.tournament import new_tree, set_leaf, winner
from structlearn._src.kernels.jit import kernel

SCORE, BROKEN = range(2)

# A change must raise the score by more than rounding can, or ties would send ICM in circles.
_ROUNDING = 1e-12


@kernel
def _position(w, labels, f):
    """Where the table of factor `f` is read at `labels`."""
    position = w.table_offsets[f]
    for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
        position += w.strides[s] * labels[w.scopes[s]]
    return position


@kernel
def _add(potentials, position, stride, card, values, at, sign):
    """Add one slice of a table (or take it away), finite entries and -inf apart."""
    for k in range(card):
        entry = potentials[position + stride * k]
        if entry == -np.inf:
            values[at + k, BROKEN] += sign
        else:
            values[at + k, SCORE] += sign * entry


@kernel
def _conditional(w, potentials, labels, v, values, at):
    """Value of every state of `v` given the labels of the others, in rows from `at` on."""
    card = w.cards[v]
    for k in range(at, at + card):
        values[k, SCORE] = 0.0
        values[k, BROKEN] = 0.0
    for q in range(w.slot_offsets[v], w.slot_offsets[v + 1]):
        s = w.slots[q]
        stride = w.strides[s]
        position = _position(w, labels, w.slot_factors[s]) - stride * labels[v]
        _add(potentials, position, stride, card, values, at, 1.0)


@kernel
def _beats(values, a, b):
    """Whether row `a` has fewer broken factors than row `b`, or as many and a higher score."""
    if values[a, BROKEN] != values[b, BROKEN]:
        return values[a, BROKEN] < values[b, BROKEN]
    return values[a, SCORE] > values[b, SCORE]


@kernel
def _best(values, at, card, now):
    """Best state of one variable; `now` unless another is better by more than rounding."""
    best = 0
    for k in range(1, card):
        if _beats(values, at + k, at + best):
            best = k
    if values[at + best, BROKEN] == values[at + now, BROKEN]:
        here, there = values[at + now, SCORE], values[at + best, SCORE]
        if there - here <= _ROUNDING * (abs(here) + abs(there)):
            return now
    return best


@kernel
def _workspace(cards, first, last):
    """Room for the values of any of the variables from `first` up to `last`."""
    top = 1
    for v in range(first, last):
        top = max(top, cards[v])
    return np.empty((top, 2))


@kernel
def _energy(w, potentials, labels, g, factor_beliefs):
    """Score and broken factors of graph `g`; counts the table entries in use."""
    score = 0.0
    broken = 0
    for f in range(w.graph_factors[g], w.graph_factors[g + 1]):
        position = _position(w, labels, f)
        if potentials[position] == -np.inf:
            broken += 1
        else:
            score += potentials[position]
        if factor_beliefs.size > 0:
            factor_beliefs[position] += 1.0
    return score, broken


@kernel
def energy(w, potentials, labels, out_score, out_broken):
    """Sum of the finite log potentials and number of broken factors of every graph."""
    nothing = np.empty(0)
    for g in range(out_score.size):
        out_score[g], out_broken[g] = _energy(w, potentials, labels, g, nothing)


@kernel
def sweeps(w, potentials, labels, limit, first, last, out_steps, out_done):
    """ICM: variables in order take their best state, until a sweep changes nothing."""
    values = _workspace(w.cards, w.graph_variables[first], w.graph_variables[last])
    for g in range(first, last):
        out_steps[g] = 0
        out_done[g] = False
        while out_steps[g] < limit and not out_done[g]:
            out_steps[g] += 1
            out_done[g] = True
            for v in range(w.graph_variables[g], w.graph_variables[g + 1]):
                _conditional(w, potentials, labels, v, values, 0)
                best = _best(values, 0, w.cards[v], labels[v])
                if best != labels[v]:
                    labels[v] = best
                    out_done[g] = False


@kernel
def _set_flip(values, at, card, now, repair, targets, tree, u):
    """Note the best flip of variable `u` of a graph, and in the tournament what it brings.

    A factor that is broken no more counts `repair`, which is more than all scores together.
    """
    best = _best(values, at, card, now)
    targets[u] = best
    gain = values[at + best, SCORE] - values[at + now, SCORE]
    set_leaf(tree, u, gain - repair * (values[at + best, BROKEN] - values[at + now, BROKEN]))


@kernel
def _tell_neighbours(w, potentials, labels, v, old, start, values, repair, targets, tree):
    """After `v` left `old`: correct the conditionals of those who share a factor with it."""
    for q in range(w.slot_offsets[v], w.slot_offsets[v + 1]):
        f = w.slot_factors[w.slots[q]]
        here = _position(w, labels, f)
        back = w.strides[w.slots[q]] * (old - labels[v])
        for s in range(w.scope_offsets[f], w.scope_offsets[f + 1]):
            u = w.scopes[s]
            if u == v:
                continue
            at = w.belief_offsets[u] - w.belief_offsets[start]
            row = here - w.strides[s] * labels[u]
            _add(potentials, row + back, w.strides[s], w.cards[u], values, at, -1.0)
            _add(potentials, row, w.strides[s], w.cards[u], values, at, 1.0)
            _set_flip(values, at, w.cards[u], labels[u], repair, targets, tree, u - start)


@kernel
def _climb(w, potentials, labels, limit, start, values, repair, targets, tree):
    """Take steepest flips until none helps; return how many.

    `values` has the rows of all variables of the graph, `targets` each variable's best flip.
    """
    count = 0
    for u in range(targets.size):
        v = start + u
        at = w.belief_offsets[v] - w.belief_offsets[start]
        _conditional(w, potentials, labels, v, values, at)
        _set_flip(values, at, w.cards[v], labels[v], repair, targets, tree, u)
    while count < limit and targets[winner(tree)] != labels[start + winner(tree)]:
        u = winner(tree)
        v = start + u
        at = w.belief_offsets[v] - w.belief_offsets[start]
        # Corrections leave rounding behind, so the winner is checked before it moves.
        _conditional(w, potentials, labels, v, values, at)
        old = labels[v]
        labels[v] = _best(values, at, w.cards[v], old)
        _set_flip(values, at, w.cards[v], labels[v], repair, targets, tree, u)
        if labels[v] != old:
            count += 1
            _tell_neighbours(w, potentials, labels, v, old, start, values, repair, targets, tree)
    return count


@kernel
def _repair(w, potentials, g):
    """More than any flip can change the sum of the finite log potentials of graph `g`."""
    total = 1.0
    for f in range(w.graph_factors[g], w.graph_factors[g + 1]):
        top = 0.0
        for k in range(w.table_offsets[f], w.table_offsets[f + 1]):
            if potentials[k] > -np.inf:
                top = max(top, abs(potentials[k]))
        total += 2.0 * top
    return total


@kernel
def steepest(w, potentials, labels, limit, first, last, out_steps, out_done):
    """ICM: the single change that raises the score most, again and again, until none does.

    The best change of every variable sits in a tournament tree, so that one flip costs a slice
    of each table it touches and a few matches. A round from fresh conditionals confirms the end.
    """
    for g in range(first, last):
        start, stop = w.graph_variables[g], w.graph_variables[g + 1]
        values = np.empty((w.belief_offsets[stop] - w.belief_offsets[start], 2))
        targets = np.empty(stop - start, np.int64)
        tree = new_tree(stop - start)
        repair = _repair(w, potentials, g)
        out_steps[g] = 0
        out_done[g] = start == stop
        while out_steps[g] < limit and not out_done[g]:
            left = limit - out_steps[g]
            count = _climb(w, potentials, labels, left, start, values, repair, targets, tree)
            out_steps[g] += count
            out_done[g] = count == 0


@kernel
def _weights(values, card, eps):
    """Turn the scores of the least broken states into weights, in place; return their sum."""
    best = 0
    for k in range(1, card):
        if _beats(values, k, best):
            best = k
    top, least = values[best, SCORE], values[best, BROKEN]
    total = 0.0
    for k in range(card):
        if values[k, BROKEN] > least:
            values[k, SCORE] = 0.0
        else:
            values[k, SCORE] = np.exp((values[k, SCORE] - top) / eps)
        total += values[k, SCORE]
    return total


@kernel
def _pick(values, card, target):
    """State in which the running sum of the weights passes `target`."""
    pick = 0
    for k in range(card):
        if values[k, SCORE] > 0.0:
            pick = k
            target -= values[k, SCORE]
            if target < 0.0:
                break
    return pick


@kernel
def gibbs(w, potentials, eps, labels, uniforms, first, last, beliefs, factor_beliefs, draws, best):
    """Gibbs sweeps at temperature `eps`: one per row of `uniforms`, one number per variable.

    Adds every conditional to `beliefs` and every table entry in use to `factor_beliefs`, writes
    the state after each sweep to `draws` (each of the three may be empty: not wanted) and raises
    `best` to the best score seen. In a forbidden state only the least broken states are drawn.
    """
    values = _workspace(w.cards, w.graph_variables[first], w.graph_variables[last])
    for g in range(first, last):
        for i in range(uniforms.shape[0]):
            for v in range(w.graph_variables[g], w.graph_variables[g + 1]):
                _conditional(w, potentials, labels, v, values, 0)
                total = _weights(values, w.cards[v], eps)
                labels[v] = _pick(values, w.cards[v], uniforms[i, v] * total)
                if beliefs.size > 0:
                    at = w.belief_offsets[v]
                    for k in range(w.cards[v]):
                        beliefs[at + k] += values[k, SCORE] / total
                if draws.shape[0] > 0:
                    draws[i, v] = labels[v]
            score, broken = _energy(w, potentials, labels, g, factor_beliefs)
            if broken == 0:
                best[g] = max(best[g], score)
