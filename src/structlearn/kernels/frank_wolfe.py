r"""Block-coordinate Frank-Wolfe steps on the dual of the structured hinge.

The dual variables of a sequence are a distribution :math:`\alpha_i` over labellings. Weights and
scores need only its expected counts: how often position ``t`` has state ``s``, and how often ``s``
follows ``r``. Few of them are not 0, so they are kept as a list of codes and shares: the code of
a transition is ``r * K + s``, that of a position ``K * K + t * K + s``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structlearn.kernels.jit import lean, part
from structlearn.kernels.sequence import add_rows, find, score
from structlearn.kernels.viterbi import best_path

_TINY = 1e-13  # shares below this are dropped


class Dual(NamedTuple):
    """Expected counts of every sequence, and what follows from them."""

    starts: np.ndarray  #: (sequences,) where its list begins
    counts: np.ndarray  #: (sequences,) length of the list; there must be room for one more path
    codes: np.ndarray
    shares: np.ndarray
    losses: np.ndarray  #: (sequences,) weighted expected cost
    gaps: np.ndarray  #: (sequences,) duality gap when last seen


class Primal(NamedTuple):
    """Weights, and how far each is ahead of the average."""

    weights: np.ndarray  #: of features, flat
    lag: np.ndarray
    edges: np.ndarray  #: (1, states, states) table of transitions, -inf where forbidden
    edge_lag: np.ndarray  #: (states * states,)


class Desk(NamedTuple):
    """Scratch space."""

    scores: np.ndarray  #: by code: the edges of `Primal`, and then
    nodes: np.ndarray  #: (longest, states), which share its memory
    delta: np.ndarray  #: (longest, states)
    labels: np.ndarray  #: (longest,)
    slots: np.ndarray  #: by code: 1 + place in the list, all 0 between calls
    moves: np.ndarray  #: by place: what a full step would take away
    pulled: np.ndarray  #: as the weights of features, all 0 between calls


@part
def _mean(c, dual, desk):
    """Expected score of sequence `c`; copies its list to the desk."""
    mean = 0.0
    for q in range(dual.counts[c]):
        code, share = dual.codes[dual.starts[c] + q], dual.shares[dual.starts[c] + q]
        mean += share * desk.scores[code]
        desk.slots[code] = q + 1
        desk.moves[q] = share
    return mean


@part
def _subtract(code, c, dual, desk):
    """Take one from the moves of `code`, which joins the list if it is new."""
    q = desk.slots[code] - 1
    if q < 0:
        q = dual.counts[c]
        dual.codes[dual.starts[c] + q] = code
        dual.shares[dual.starts[c] + q] = 0.0
        dual.counts[c] = q + 1
        desk.slots[code] = q + 1
        desk.moves[q] = 0.0
    desk.moves[q] -= 1.0


@part
def _face(data, c, n, dual, desk):
    """Turn the moves towards the labels on the desk."""
    K = desk.nodes.shape[1]
    for t in range(n):
        if t > 0:
            code = desk.labels[t - 1] * K + desk.labels[t]
            if data.learnt[code]:
                _subtract(code, c, dual, desk)
        _subtract(K * K + t * K + desk.labels[t], c, dual, desk)


@part
def _length(data, c, first, dual, desk):
    """Squared length of the moves as weights; leaves those of features in `pulled`."""
    K = desk.nodes.shape[1]
    ones, total = data.values.size == 0, 0.0
    for q in range(dual.counts[c]):
        move, code = desk.moves[q], dual.codes[dual.starts[c] + q] - K * K
        if code < 0:
            total += move * move
        elif move != 0.0:
            t, s = first + code // K, code % K
            for e in range(data.rows[t], data.rows[t + 1]):
                k = find(data, data.columns[e], s, K)
                if k >= 0:
                    x = move if ones else move * data.values[e]
                    total += x * (2.0 * desk.pulled[k] + x)
                    desk.pulled[k] += x
    return total


@part
def _walk(data, c, first, by, past, primal, dual, desk):
    """Add `by` times the moves to the weights, and `past` times that to the lag."""
    K = desk.nodes.shape[1]
    for q in range(dual.counts[c]):
        code = dual.codes[dual.starts[c] + q]
        if code < K * K:
            x = by * desk.moves[q]
            desk.scores[code] += x
            primal.edge_lag[code] += past * x
        elif desk.moves[q] != 0.0:
            code -= K * K
            t, s = first + code // K, code % K
            for e in range(data.rows[t], data.rows[t + 1]):
                k = find(data, data.columns[e], s, K)
                if k >= 0:
                    x = by * desk.pulled[k]
                    primal.weights[k] += x
                    primal.lag[k] += past * x
                    desk.pulled[k] = 0.0


@part
def _keep(c, by, dual, desk):
    """Move the shares, drop those that are gone, and clear the desk."""
    start, kept = dual.starts[c], 0
    for q in range(dual.counts[c]):
        code, share = dual.codes[start + q], dual.shares[start + q] - by * desk.moves[q]
        desk.slots[code] = 0
        if share > _TINY:
            dual.codes[start + kept] = code
            dual.shares[start + kept] = share
            kept += 1
    dual.counts[c] = kept


@lean
def frank_wolfe(order, data, added, by, primal, dual, desk, steps):
    r"""One step with exact line search for every sequence in `order`.

    Parameters
    ----------
    added : array (positions, states)
        Task cost of every state, -inf where it is forbidden.
    by : array (sequences,)
        Weight of every sequence's loss.
    steps : int
        Number of steps before these. Weights after step :math:`k` count by :math:`k^2` in the
        average, which is the weights less the lag over :math:`\sum_{j \le k} j^2`.

    Notes
    -----
    Lacoste-Julien et al. (2013), "Block-coordinate Frank-Wolfe optimization for structural SVMs",
    algorithm 4.
    """
    for i in range(order.size):
        c = order[i]
        first, n = data.offsets[c], data.offsets[c + 1] - data.offsets[c]
        score(data, first, n, primal.weights, 1.0, desk.nodes)
        add_rows(desk.nodes, n, added, first)
        best = best_path(desk.nodes, 0, n, primal.edges, 0, 0, desk.delta, desk.labels)
        gap, length = by[c] * (best - _mean(c, dual, desk)), 0.0
        dual.gaps[c] = gap
        if gap > 0.0:
            past = steps * (steps + 1.0) * (2.0 * steps + 1.0) / 6.0
            cost = 0.0
            for t in range(n):
                cost += added[first + t, desk.labels[t]]
            _face(data, c, n, dual, desk)
            most = by[c] * by[c] * _length(data, c, first, dual, desk)
            length = 1.0 if gap >= most else gap / most
            _walk(data, c, first, length * by[c], past, primal, dual, desk)
            dual.losses[c] += length * (by[c] * cost - dual.losses[c])
        _keep(c, length, dual, desk)
        steps += 1
