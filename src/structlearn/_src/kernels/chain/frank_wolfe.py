r"""Block-coordinate Frank-Wolfe steps on the dual of the structured hinge.

The dual variables of a sequence are a distribution :math:`\alpha_i` over labellings. Weights and
scores need only its flow: how likely state ``s`` stands at position ``t`` after state ``r``. Few
of these probabilities are not 0, so the flow is a list of links, sorted by position: a link ends
in the node ``t * K + s``, comes from the state ``r`` (-1 at the first position), and has a share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn._src.kernels.chain.sequence import (
    add_costs,
    bar_ends,
    begin,
    find,
    pull_node,
    score,
    unit_cost,
)
from structlearn._src.kernels.chain.viterbi import best_path
from structlearn._src.kernels.jit import inner, lean

TINY = 1e-13  # shares below this are dropped
ROUNDING = 1e-13  # by how much two scores may differ that should agree, relatively


class DualFlow(NamedTuple):
    """The flow of every sequence, and its expected cost."""

    starts: np.ndarray  #: (sequences,) where its list begins
    counts: np.ndarray  #: (sequences,) length of the list; there must be room for one more path
    ends: np.ndarray  #: node in which a link ends, int32
    befores: np.ndarray  #: state from which it comes, int32
    shares: np.ndarray
    losses: np.ndarray  #: (sequences,) weighted expected cost


class FlowWeights(NamedTuple):
    """The weights of a flow."""

    weights: np.ndarray  #: of features, flat
    edges: np.ndarray  #: (1, states, states) table of transitions, -inf where forbidden


class FlowWorkspace(NamedTuple):
    """What a step on one sequence is made in."""

    nodes: np.ndarray  #: (longest, states) scores
    delta: np.ndarray  #: (longest, states) scores of partial paths; the moves of nodes
    labels: np.ndarray  #: (longest,)
    borders: np.ndarray  #: (longest + 1,) where the links of every position begin
    states: np.ndarray  #: state in which every link ends, int32
    befores: np.ndarray
    shares: np.ndarray
    moves: np.ndarray  #: what a step of length 1 takes from every share
    back: np.ndarray  #: (longest, states) link by which a state is reached
    path: np.ndarray  #: (longest,) links of the best path
    pulled: np.ndarray  #: the moves as weights of features, all 0 between steps
    turns: np.ndarray  #: (states, states) the moves as weights of transitions


@inner
def _load(c, n, dual, work):
    """Copy the flow of sequence `c` to `work`, and mark or add the path in ``work.labels``."""
    K = work.nodes.shape[1]
    q = dual.starts[c]
    m = 0
    stop = q + dual.counts[c]
    for t in range(n):
        state, before = work.labels[t], work.labels[t - 1] if t > 0 else -1
        work.borders[t] = m
        work.path[t] = -1
        while q < stop and dual.ends[q] < (t + 1) * K:
            work.states[m] = dual.ends[q] - t * K
            work.befores[m] = dual.befores[q]
            work.shares[m] = dual.shares[q]
            if work.states[m] == state and work.befores[m] == before:
                work.path[t] = m
            q += 1
            m += 1
        if work.path[t] < 0:
            work.states[m] = state
            work.befores[m] = before
            work.shares[m] = 0.0
            work.path[t] = m
            m += 1
    work.borders[n] = m


@inner
def _store(c, n, dual, work):
    """Put the flow back, without the links that are gone."""
    K = work.nodes.shape[1]
    q = dual.starts[c]
    for t in range(n):
        for m in range(work.borders[t], work.borders[t + 1]):
            if work.shares[m] > TINY:
                dual.ends[q] = t * K + work.states[m]
                dual.befores[q] = work.befores[m]
                dual.shares[q] = work.shares[m]
                q += 1
    dual.counts[c] = q - dual.starts[c]


@inner
def _leave_all(n, edges, work):
    """Let all of the flow move; return its mean score and how far the step can go."""
    mean = 0.0
    for t in range(n):
        for m in range(work.borders[t], work.borders[t + 1]):
            s, r = work.states[m], work.befores[m]
            mean += work.shares[m] * (work.nodes[t, s] + (edges[0, r, s] if t > 0 else 0.0))
            work.moves[m] = work.shares[m]
    return mean, 1.0


@inner
def _leave_worst(n, edges, work):
    """Let only the worst path in use move; return its score and how far the step can go."""
    K = work.nodes.shape[1]
    delta = work.delta
    for t in range(n):
        for s in range(K):
            delta[t, s] = np.inf
        for m in range(work.borders[t], work.borders[t + 1]):
            work.moves[m] = 0.0
            s, r = work.states[m], work.befores[m]
            value = work.nodes[t, s] + (delta[t - 1, r] + edges[0, r, s] if t > 0 else 0.0)
            if value < delta[t, s] and work.shares[m] > 0.0:
                delta[t, s] = value
                work.back[t, s] = m
    s = 0
    most = 1.0
    for r in range(1, K):
        if delta[n - 1, r] < delta[n - 1, s]:
            s = r
    worst = delta[n - 1, s]
    for t in range(n - 1, -1, -1):
        m = work.back[t, s]
        work.moves[m] = 1.0
        if m != work.path[t]:
            most = min(most, work.shares[m])
        s = work.befores[m]
    return worst, most


@inner
def _pull(data, first, n, work):
    """Turn the moves of links into those of nodes, and these into weights; their squared length."""
    K = work.nodes.shape[1]
    moves = work.delta
    total = 0.0
    for t in range(n):
        for s in range(K):
            moves[t, s] = 0.0
        for m in range(work.borders[t], work.borders[t + 1]):
            s = work.states[m]
            r = work.befores[m]
            x = work.moves[m]
            moves[t, s] += x
            if t > 0 and data.learnt[r, s]:
                total += x * (2.0 * work.turns[r, s] + x)
                work.turns[r, s] += x
        for s in range(K):
            if abs(moves[t, s]) > TINY:
                total += pull_node(data, first + t, s, moves[t, s], work.pulled, K)
    return total


@inner
def _walk(data, first, n, length, factor, primal, work):
    """Take a step of some length; return by how much it raises the expected cost."""
    K = work.nodes.shape[1]
    moves = work.delta
    cost = 0.0
    for t in range(n):
        for m in range(work.borders[t], work.borders[t + 1]):
            s, r = work.states[m], work.befores[m]
            work.shares[m] -= length * work.moves[m]
            if t > 0:
                primal.edges[0, r, s] += length * factor * work.turns[r, s]
                work.turns[r, s] = 0.0
        for s in range(K):
            if abs(moves[t, s]) > TINY:
                cost -= moves[t, s] * data.costs[data.labels[first + t], s]
                _add_node(data, first + t, s, length * factor, primal.weights, work)
    return cost * length * unit_cost(data, n)


@inner
def _add_node(data, t, s, factor, weights, work):
    """Add what was pulled for a node to its weights."""
    K = work.nodes.shape[1]
    if data.pair_offsets.size > 0:
        for e in range(data.rows[t], data.rows[t + 1]):
            k = find(data, data.columns[e], s, K)
            if k >= 0:
                _add(np.uint64(k), factor, weights, work.pulled)
    else:
        weights = weights[s:]
        pulled = work.pulled[s:]
        for e in range(data.rows[t], data.rows[t + 1]):
            _add(begin(data, e, K), factor, weights, pulled)


@inner
def _add(k, factor, weights, pulled):
    weights[k] += factor * pulled[k]
    pulled[k] = 0.0


@inner
def best_labels(data, first, n, weights, edges, work):
    """Best score of one sequence, costs included; its labels and all scores go to `work`."""
    score(data, first, n, weights, work.nodes)
    add_costs(data, first, n, work.nodes)
    bar_ends(data, n, work.nodes)
    return best_path(work.nodes, 0, n, edges, 0, 0, work.delta, work.labels)


@lean
def hinge(data, loss_weights, weights, edges, first_sequence, last_sequence, work):
    """Weighted sum of the losses of some sequences."""
    total = 0.0
    for c in range(first_sequence, last_sequence):
        first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
        loss = best_labels(data, first, n, weights, edges, work)
        for t in range(n):
            s = data.labels[first + t]
            loss -= work.nodes[t, s] + (edges[0, data.labels[first + t - 1], s] if t > 0 else 0.0)
        total += loss_weights[c] * loss
    return total


@inner
def _plan(c, data, loss_weights, primal, dual, work, pairwise, coupling):
    """Find the step of one sequence; return its length, 0 if there is nothing to gain.

    Its moves stay in `work`: of links, of nodes in ``delta``, and as weights in ``pulled`` and
    ``turns``, which must be cleared where the length is not 0.
    """
    first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
    best = best_labels(data, first, n, primal.weights, primal.edges, work)
    _load(c, n, dual, work)
    if pairwise:
        left, most = _leave_worst(n, primal.edges, work)
    else:
        left, most = _leave_all(n, primal.edges, work)
    for t in range(n):
        work.moves[work.path[t]] -= 1.0
    rise = loss_weights[c] * (best - left)
    if rise <= ROUNDING * loss_weights[c] * abs(best):
        return 0.0
    square = loss_weights[c] * loss_weights[c] * _pull(data, first, n, work) * coupling
    return most if rise >= square * most else rise / square


@lean
def frank_wolfe(order, data, loss_weights, primal, dual, work, pairwise, coupling):
    """One step with exact line search for every sequence in `order`.

    A step moves probability to the best path, from all others or from the worst one in use only.
    The weights move `coupling` times as far as the dual variables say, and the squares in the dual
    count as often: in a shard, others are taken to move likewise. Alone it is 1.

    Lacoste-Julien et al. (2013), "Block-coordinate Frank-Wolfe optimization for structural SVMs",
    algorithm 4; Garber and Meshi (2016), "Linear-memory and decomposition-invariant linearly
    convergent conditional gradient algorithm for structured polytopes", algorithm 3.
    """
    for i in range(order.size):
        c = order[i]
        first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
        length = _plan(c, data, loss_weights, primal, dual, work, pairwise, coupling)
        if length > 0.0:
            factor = coupling * loss_weights[c]
            cost = _walk(data, first, n, length, factor, primal, work)
            dual.losses[c] += loss_weights[c] * cost
            _store(c, n, dual, work)
