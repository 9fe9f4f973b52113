r"""Steps on the dual of the structured hinge among the labellings that are at hand.

`search` finds the best labelling of every sequence, all for the same weights, and adds its links to
the flow of `frank_wolfe` with a share of 0. Steps then move shares between the links that are
there, which needs the scores of few nodes only: those of positions where there is a choice.

Where all links of a position end in one state, what comes before it and what comes after do not
depend on each other. A step is therefore made for every stretch of positions between such states,
with a length of its own.

The dual converges if the first steps after a search take shares from all links: a search promises
each sequence a rise, and unless weights have moved far since, its step gets a part of it; where
they have moved far, other steps have raised the dual, each by a share of its squared length.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.frank_wolfe import ROUNDING, TINY, best_labels
from structlearn._src.kernels.chain.sequence import find, pull_node, unit_cost
from structlearn._src.kernels.jit import inner, lean
from structlearn._src.kernels.launch import own, publish, task, withdraw
from structlearn._src.kernels.team import take


class StepWorkspace(NamedTuple):
    """What the steps on one sequence are made in."""

    nodes: np.ndarray  #: (longest, states) scores
    delta: np.ndarray  #: (longest, states) scores of the best partial paths
    worst: np.ndarray  #: (longest, states) the same of the worst ones in use; the moves of nodes
    best_link: np.ndarray  #: (longest, states) by which a state is reached
    worst_link: np.ndarray
    labels: np.ndarray  #: (longest,)
    borders: np.ndarray  #: (longest + 1,) where the links of every position begin
    ends: np.ndarray  #: (links,) as in the flow, int32
    befores: np.ndarray
    scores: np.ndarray  #: (links,) with those of the nodes that they end in
    pulled: np.ndarray  #: the moves of a stretch as weights, all 0 between stretches


class Steps(NamedTuple):
    """Steps of length 1, by stretches, of the sequences of a batch."""

    counts: np.ndarray  #: (batch,) number of stretches
    links: np.ndarray  #: (batch, longest, 2) where in the flow the links of each begin and end
    moves: np.ndarray  #: (batch, links) what is taken from the share of every link of the sequence
    costs: np.ndarray  #: (batch, longest) by how much the expected cost rises
    limits: np.ndarray  #: (batch, longest, 2) how far a step can go, back and forth
    lengths: np.ndarray  #: (batch, longest) how far it went
    firsts: np.ndarray  #: (batch, longest + 1) where the weights of each begin
    numbers: np.ndarray  #: those weights that change
    values: np.ndarray  #: by how much


# ---- the best labellings ---------------------------------------------------------------------


@inner
def search(first_sequence, last_sequence, order, data, loss_weights, weights, edges, dual, work):
    """Add the best labelling of each of ``order[first_sequence:last_sequence]`` to its links.

    Links without a share are dropped before. Returns the weighted sum of the losses.
    """
    total = 0.0
    for i in range(first_sequence, last_sequence):
        c = order[i]
        first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
        loss = best_labels(data, first, n, weights, edges, work)
        for t in range(n):
            s = data.labels[first + t]
            loss -= work.nodes[t, s] + (edges[0, data.labels[first + t - 1], s] if t > 0 else 0.0)
        total += loss_weights[c] * loss
        if loss_weights[c] > 0.0:
            _add_links(c, n, dual, work)
    return total


@inner
def search_ranges(
    number, board, ranges, order, data, loss_weights, weights, edges, dual, workspaces, losses
):
    """As `search`, over ranges of the order that threads take."""
    work = own(*workspaces, number)
    i = take(board, 0)
    while i < ranges.size - 1:
        first, last = ranges[i], ranges[i + 1]
        losses[i] = search(first, last, order, data, loss_weights, weights, edges, dual, work)
        i = take(board, 0)


@lean
def search_in_threads(box, helpers, *given):
    """Run `search_ranges` in the calling thread and so many helpers."""
    open_ = publish(box, helpers, task(search_ranges, given))
    search_ranges(0, *given)
    withdraw(box, open_)


@inner
def _add_links(c, n, dual, work):
    """Drop the links of a sequence that have no share, and add those of a path.

    Those from a state in which no link ends any more have none but what rounding left: they go too.
    """
    K = work.nodes.shape[1]
    reached = work.best_link  # whether a link ends in a state
    q = dual.starts[c]
    stop = q + dual.counts[c]
    m = 0
    for t in range(n):
        state, before = work.labels[t], work.labels[t - 1] if t > 0 else -1
        missing = True
        reached[t] = 0
        reached[t, state] = 1
        while q < stop and dual.ends[q] < (t + 1) * K:
            s, r = dual.ends[q] - t * K, dual.befores[q]
            own = s == state and r == before
            if own or (dual.shares[q] > TINY and (t == 0 or reached[t - 1, r] > 0)):
                reached[t, s] = 1
                work.ends[m], work.befores[m] = dual.ends[q], r
                work.scores[m] = dual.shares[q]
                missing = missing and not own
                m += 1
            q += 1
        if missing:
            work.ends[m], work.befores[m] = t * K + state, before
            work.scores[m] = 0.0
            m += 1
    q = dual.starts[c]
    for i in range(m):
        dual.ends[q + i] = work.ends[i]
        dual.befores[q + i] = work.befores[i]
        dual.shares[q + i] = work.scores[i]
    dual.counts[c] = m


# ---- steps -----------------------------------------------------------------------------------


@lean
def take_steps(order, pairwise, reach, data, loss_weights, weights, edges, dual, steps, work):
    """Take the steps of one sequence after the other.

    A step takes shares from the worst path in use if it is `pairwise`, else from all of them. It is
    `reach` times as long as would raise the dual most, as in successive over-relaxation.
    """
    for c in order:
        plan(c, 0, 0, pairwise, reach, True, data, loss_weights, weights, edges, dual, steps, work)


@inner
def plan(
    c, i, base, pairwise, reach, at_once, data, loss_weights, weights, edges, dual, steps, work
):
    """Find the steps of a sequence, number `i` of a batch, and take each if that is to be at once.

    The weights that they change are noted from `base` on.
    """
    n = data.offsets[c + 1] - data.offsets[c]
    _find_borders(c, n, dual, work)
    steps.counts[i] = 0
    steps.firsts[i, 0] = base
    a = 0
    while a < n:
        b = a
        while b < n and _has_choice(b, dual, work):
            b += 1
        if b > a and _aim(c, i, a, b, n, pairwise, data, weights, edges, dual, steps, work):
            if at_once:
                go(c, i, 0, reach, loss_weights, weights, edges, steps)
                settle(c, i, 0, loss_weights, dual, steps)
            else:
                steps.counts[i] += 1
        a = max(a + 1, b)


@inner
def go(c, i, j, reach, loss_weights, weights, edges, steps):
    """Take step `j` from the weights of now, by the length that suits them.

    A step whose direction is old may go back.
    """
    K = edges.shape[1]
    table = weights.size - K * K
    loss_weight = loss_weights[c]
    score = 0.0
    square = 0.0
    for e in range(steps.firsts[i, j], steps.firsts[i, j + 1]):
        score += weights[steps.numbers[e]] * steps.values[e]
        square += steps.values[e] * steps.values[e]
    rise = loss_weight * (steps.costs[i, j] - score)
    square *= loss_weight * loss_weight
    length = steps.limits[i, j, 0 if rise < 0.0 else 1]
    if abs(reach * rise) < square * abs(length):
        length = reach * rise / square
    for e in range(steps.firsts[i, j], steps.firsts[i, j + 1]):
        k = steps.numbers[e]
        y = length * loss_weight * steps.values[e]
        weights[k] += y
        if k >= table:
            edges[0, (k - table) // K, (k - table) % K] += y
    steps.lengths[i, j] = length


@inner
def settle(c, i, j, loss_weights, dual, steps):
    """Move shares between the links of a sequence as far as its step `j` went, none below 0."""
    length = steps.lengths[i, j]
    start = dual.starts[c]
    for m in range(steps.links[i, j, 0], steps.links[i, j, 1]):
        dual.shares[m] = max(dual.shares[m] - length * steps.moves[i, m - start], 0.0)
    dual.losses[c] += loss_weights[c] * length * steps.costs[i, j]


@inner
def _find_borders(c, n, dual, work):
    """Find where in the flow the links of every position begin."""
    K = work.nodes.shape[1]
    q = dual.starts[c]
    stop = q + dual.counts[c]
    for t in range(n):
        work.borders[t] = q
        while q < stop and dual.ends[q] < (t + 1) * K:
            q += 1
    work.borders[n] = stop


@inner
def _has_choice(t, dual, work):
    """Whether the links of a position end in more than one state."""
    q = work.borders[t]
    for m in range(q + 1, work.borders[t + 1]):
        if dual.ends[m] != dual.ends[q]:
            return True
    return False


@inner
def _aim(c, i, a, b, n, pairwise, data, weights, edges, dual, steps, work):
    """Find the step of a stretch, positions from `a` up to `b`; say whether it raises the dual.

    The links into the one state at `b` belong to it.
    """
    first = data.offsets[c]
    last = min(b, n - 1)
    unit = unit_cost(data, n)
    _score(a, b, last, first, unit, data, weights, edges, dual, work)
    moves = steps.moves[i, work.borders[a] - dual.starts[c] :]
    if not _choose(a, last, pairwise, dual, moves, work):
        return False
    j = steps.counts[i]
    steps.links[i, j, 0], steps.links[i, j, 1] = work.borders[a], work.borders[last + 1]
    _limit(a, last, dual, moves, steps.limits[i, j], work)
    steps.costs[i, j] = unit * _pull(a, b, last, first, data, edges, dual, moves, work)
    e = steps.firsts[i, j]
    steps.firsts[i, j + 1] = _gather(a, b, last, first, e, data, edges, dual, steps, work)
    return True


@inner
def _score(a, b, last, first, unit, data, weights, edges, dual, work):
    """Score the nodes of a stretch, and find the best path and the worst one in use to each."""
    K = work.nodes.shape[1]
    for t in range(a, last + 1):
        for m in range(work.borders[t], work.borders[t + 1]):
            work.delta[t, dual.ends[m] - t * K] = -np.inf
            work.worst[t, dual.ends[m] - t * K] = np.inf
        for m in range(work.borders[t], work.borders[t + 1]):
            s, r = dual.ends[m] - t * K, dual.befores[m]
            if work.delta[t, s] == -np.inf:
                x = 0.0
                if t < b:
                    x = unit * data.costs[data.labels[first + t], s]
                    x += _score_node(data, first + t, s, weights, K)
                work.nodes[t, s] = x
            x = work.nodes[t, s] + (edges[0, r, s] if t > 0 else 0.0)
            best = x + (work.delta[t - 1, r] if t > a else 0.0)
            if best > work.delta[t, s]:
                work.delta[t, s] = best
                work.best_link[t, s] = m
            worst = x + (work.worst[t - 1, r] if t > a else 0.0)
            if dual.shares[m] > TINY and worst < work.worst[t, s]:
                work.worst[t, s] = worst
                work.worst_link[t, s] = m
            work.scores[m - work.borders[a]] = x


@inner
def _score_node(data, t, s, weights, K):
    """Score of a node by its features."""
    ones = data.values.size == 0
    total = 0.0
    for e in range(data.rows[t], data.rows[t + 1]):
        k = find(data, data.columns[e], s, K)
        if k >= 0:
            total += weights[k] if ones else weights[k] * data.values[e]
    return total


@inner
def _choose(a, last, pairwise, dual, moves, work):
    """Find what a step of length 1 takes from every link; say whether the score rises by it."""
    K = work.nodes.shape[1]
    start, stop = work.borders[a], work.borders[last + 1]
    best = worst = -1
    for m in range(work.borders[last], stop):
        s = dual.ends[m] - last * K
        if best < 0 or work.delta[last, s] > work.delta[last, best]:
            best = s
        if worst < 0 or work.worst[last, s] < work.worst[last, worst]:
            worst = s
    rise = work.delta[last, best]
    rounding = ROUNDING * abs(rise)
    if pairwise:
        rise -= work.worst[last, worst]
    for m in range(start, stop):
        moves[m - start] = 0.0 if pairwise else dual.shares[m]
        if not pairwise:
            rise -= dual.shares[m] * work.scores[m - start]
    if not rise > rounding:
        return False
    for t in range(last, a - 1, -1):
        m = work.best_link[t, best]
        moves[m - start] -= 1.0
        best = dual.befores[m]
        if pairwise:
            m = work.worst_link[t, worst]
            moves[m - start] += 1.0
            worst = dual.befores[m]
    return True


@inner
def _limit(a, last, dual, moves, limits, work):
    """Find how far a step can go until a share is 0, back and forth."""
    start = work.borders[a]
    limits[0], limits[1] = -1.0, 1.0
    for m in range(start, work.borders[last + 1]):
        x, share = moves[m - start], max(dual.shares[m], 0.0)
        if x > 0.0:
            limits[1] = min(limits[1], share / x)
        elif x < 0.0:
            limits[0] = max(limits[0], share / x)


@inner
def _pull(a, b, last, first, data, edges, dual, moves, work):
    """Turn the moves of links into those of nodes and of weights; return how the cost rises."""
    K = work.nodes.shape[1]
    table = work.pulled.size - K * K
    cost = 0.0
    for t in range(a, last + 1):
        for s in range(K):
            work.worst[t, s] = 0.0
        for m in range(work.borders[t], work.borders[t + 1]):
            x = moves[m - work.borders[a]]
            s, r = dual.ends[m] - t * K, dual.befores[m]
            work.worst[t, s] += x
            if t > 0 and data.learnt[r, s]:
                work.pulled[table + r * K + s] += x
        for s in range(K if t < b else 0):
            x = work.worst[t, s]
            if abs(x) > TINY:
                cost -= x * data.costs[data.labels[first + t], s]
                pull_node(data, first + t, s, x, work.pulled, K)
    return cost


@inner
def _gather(a, b, last, first, e, data, edges, dual, steps, work):
    """Note the weights that change from `e` on, and clear them; return where they end."""
    K = work.nodes.shape[1]
    table = work.pulled.size - K * K
    for t in range(a, last + 1):
        for m in range(work.borders[t], work.borders[t + 1]):
            if t > 0:
                k = table + dual.befores[m] * K + dual.ends[m] - t * K
                e = _note(k, e, steps, work)
        for s in range(K if t < b else 0):
            if abs(work.worst[t, s]) > TINY:
                for f in range(data.rows[first + t], data.rows[first + t + 1]):
                    k = find(data, data.columns[f], s, K)
                    if k >= 0:
                        e = _note(k, e, steps, work)
    return e


@inner
def _note(k, e, steps, work):
    """Note the change of a weight, unless it is 0, as it is when it was noted."""
    if work.pulled[k] == 0.0:
        return e
    steps.numbers[e] = k
    steps.values[e] = work.pulled[k]
    work.pulled[k] = 0.0
    return e + 1
